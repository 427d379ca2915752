"""§6.1: the outputs of a beam search that have ended, ranked by their score."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from aiayn.inference.hypothesis import Hypothesis


class Finished:
    """What has ended, for every sentence; and for those still being written, how good.

    ``best`` and ``count`` have a row for each sentence that is still being written,
    ``found`` has a list for each sentence that there ever was.
    """

    def __init__(self, sentences: int, num_best: int, device: torch.device) -> None:
        self.num_best = num_best
        self.found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.sentences = torch.arange(sentences, device=device)  # places in found
        self.best: Tensor = torch.full((sentences, num_best), -math.inf, device=device)
        self.count = torch.zeros(sentences, dtype=torch.long, device=device)

    def add(
        self,
        ended: Bool[Tensor, "sentences candidates"],
        prefixes: Int[Tensor, "ended written"],
        totals: Float[Tensor, "sentences candidates"],
        scores: Float[Tensor, "sentences candidates"],
    ) -> None:
        """Record candidates that have ended.

        Args:
            ended: Which ones.
            prefixes: What each of them wrote before the end token.
            totals: Every candidate's log-probability.
            scores: The same over the length penalty.
        """
        reached = scores.masked_fill(~ended, -math.inf)
        self.best = torch.cat([self.best, reached], dim=1).topk(self.num_best)[0]
        self.count = self.count + ended.sum(dim=1)
        for sentence, *fields in zip(
            self.sentences[ended.nonzero()[:, 0]].tolist(),
            prefixes.tolist(),
            totals[ended].tolist(),
            scores[ended].tolist(),
            strict=True,
        ):
            self.found[sentence].append(Hypothesis(*fields))

    def close(
        self, done: Bool[Tensor, " sentences"], beginnings: Int[Tensor, "done written"]
    ) -> None:
        """Rank the outputs of the sentences that are done, and forget their rows.

        Args:
            done: Which ones.
            beginnings: What stands in for the output of a sentence that has none.
        """
        for sentence, beginning in zip(
            self.sentences[done].tolist(), beginnings.tolist(), strict=True
        ):
            found = self.found[sentence]
            found = found or [Hypothesis(beginning, -math.inf, -math.inf)]
            ranked = sorted(found, key=lambda hypothesis: -hypothesis.score)
            self.found[sentence] = ranked[: self.num_best]
        self.sentences, self.best, self.count = (
            kept[~done] for kept in (self.sentences, self.best, self.count)
        )

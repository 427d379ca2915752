"""§6.1: beam search, with the length penalty of Wu et al. (2016).

The paper: 'beam search with a beam size of 4 and length penalty α = 0.6', 'terminate
early when possible'. It does not say how; here is what we do for each sentence.

1. The beam holds K unfinished outputs, all of one length. Each is extended by every
   token; of these candidates, the K most probable count.
2. Those among them that end are finished. The beam goes on with the K most probable
   candidates that do not end.
3. The search is over when K outputs are finished and no unfinished one, scored as far
   as it is written, is better than those that were asked for; or at the longest allowed
   length, where nothing but the end token may be written.

K finished outputs alone are no reason to stop, although several toolkits stop there. If
a model is confident, its second to fourth choices have a tiny probability; but they may
be end tokens at early positions, and then the sentence itself would never be finished.

A search stops earlier if nothing can change any more. Log-probabilities only fall, and
no penalty is larger than that of the longest allowed length. So an unfinished output
with log-probability p never scores more than p / lp(longest). Once the worst of the
finished outputs that were asked for scores at least that much for the best p, the
search stops. No result depends on this rule.

With K = 1 this is greedy search. With K at least the number of all outputs, it is
exhaustive search.
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from aiayn.errors import InputError
from aiayn.inference.hypothesis import (
    Hypothesis,
    Model,
    check_ends,
    eval_mode,
    force_end,
    gnmt_length_penalty,
    next_log_probs,
    output_limits,
    refuse_nan,
    to_model_device,
)
from aiayn.model.validation import check_sizes

LARGEST = 2**50
"""A beam that no memory holds; torch's integers would overflow."""


def beam_search(
    model: Model,
    source: Int[Tensor, "sentences source_length"],
    *,
    bos_id: int,
    eos_id: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    extra_length: int = 50,
    max_length: int | None = None,
) -> list[Hypothesis]:
    r"""The best output that beam search finds for each sentence.

    $$\mathrm{score}(Y) = \log p(Y \mid X) / lp(Y)$$

    with the penalty of `gnmt_length_penalty`.

    Args:
        model: A `Transformer`, or a model with its decoding methods. The source is
            moved to its device.
        source: Token ids, padded at the end; each sentence ends in its end token.
        bos_id: What the decoder reads first.
        eos_id: What ends an output.
        beam_size: K, the unfinished outputs that are kept at each step.
        length_penalty: α; 0 ranks by log-probability alone, more favours long outputs.
        extra_length: An output may have this many tokens more than its input.
        max_length: None, or a limit for every output, its end token included.

    Returns:
        One hypothesis a sentence. If every output has probability zero, it is the best
        beginning of one, with a log-probability of -inf.

    Raises:
        InputError: The model's scores are NaN, or an argument makes no sense.

    Paper: §6.1.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source = torch.tensor([[5, 6, 2], [7, 2, 0]])  # two sentences, padded
    >>> first, second = beam_search(model, source, bos_id=1, eos_id=2, beam_size=4)
    >>> len(first.tokens) < 3 + 50  # the input's length + 50, the end included
    True
    """
    found = beam_search_n_best(
        model,
        source,
        bos_id=bos_id,
        eos_id=eos_id,
        num_best=1,
        beam_size=beam_size,
        length_penalty=length_penalty,
        extra_length=extra_length,
        max_length=max_length,
    )
    return [best[0] for best in found]


def beam_search_n_best(
    model: Model,
    source: Int[Tensor, "sentences source_length"],
    *,
    bos_id: int,
    eos_id: int,
    num_best: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    extra_length: int = 50,
    max_length: int | None = None,
) -> list[list[Hypothesis]]:
    """Several outputs for each sentence, the best first; arguments as `beam_search`.

    Args:
        num_best: How many are wanted, at most beam_size. There may be fewer where the
            search ends at the limit.

    Paper: §6.1.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source, ends = torch.tensor([[5, 6, 2]]), {"bos_id": 1, "eos_id": 2}
    >>> [found] = beam_search_n_best(model, source, num_best=3, max_length=8, **ends)
    >>> found == sorted(found, key=lambda one: one.score, reverse=True)
    True
    """
    check_sizes(1, beam_size=beam_size, num_best=num_best)
    if beam_size > LARGEST:
        raise InputError(
            f"beam_size = {beam_size} is more than any memory holds: the paper's is 4."
        )
    if num_best > beam_size:
        raise InputError(
            f"num_best = {num_best} outputs do not come from a beam of {beam_size}: "
            "give a larger beam_size, or ask for fewer."
        )
    if not 0.0 <= length_penalty <= 10.0:
        raise InputError(
            f"length_penalty must lie between 0 (none) and 10, not {length_penalty}; "
            "the paper's is 0.6."
        )
    check_ends(model, bos_id, eos_id)
    source = to_model_device(model, source)
    with eval_mode(model):
        limits = output_limits(model, source, extra_length, max_length)
        if not len(source):
            return []
        beams = _Beams(source, limits, beam_size, length_penalty, eos_id)
        finished = FinishedHypotheses(len(source), num_best, source.device)
        tokens = source.new_full((len(source),), bos_id)  # (hypotheses,)
        cache = model.init_decode(source)
        while len(tokens):
            log_probs = next_log_probs(model, tokens, cache, bos_id)
            tokens = beams.advance(log_probs, cache, finished)
        return finished.found


class FinishedHypotheses:
    """The outputs of each sentence that have ended.

    ``best`` (their highest scores) and ``count`` have a row for each sentence that is
    still being decoded; ``found`` has a list for each sentence of the batch.
    """

    def __init__(self, sentences: int, num_best: int, device: torch.device) -> None:
        self.num_best = num_best
        self.found: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        self.sentences = torch.arange(sentences, device=device)  # indices into found
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
        """Rank the outputs of the sentences that are done, and drop their rows.

        Args:
            done: Which ones.
            beginnings: The output of a sentence of which none has ended.
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


class _Beams:
    """The unfinished outputs of the sentences that are still being decoded.

    Shapes: ``written`` (sentences, width, length) and ``log_probs`` (sentences, width),
    best first, where width is 1 at the start and then beam_size. A log-probability of
    -inf marks an empty slot of the beam.
    """

    def __init__(
        self, source: Tensor, limits: Tensor, beam_size: int, alpha: float, eos_id: int
    ) -> None:
        self.beam_size, self.alpha, self.eos_id = beam_size, alpha, eos_id
        self.limits, self.first_limit = limits, int(limits.min())
        self.written = source.new_empty(len(source), 1, 0)
        self.log_probs: Tensor = torch.zeros(len(source), 1, device=source.device)

    @property
    def length(self) -> int:
        """Tokens of a candidate."""
        return self.written.size(2) + 1

    def advance(
        self, log_probs: Tensor, cache: Any, finished: FinishedHypotheses
    ) -> Tensor:
        """Extend every output by one token; return those tokens: (hypotheses,)."""
        totals, parents, tokens = self.candidates(log_probs)
        ends = tokens == self.eos_id  # (sentences, 2·beam_size)
        ended = ends & (totals > -math.inf)
        ended[:, self.beam_size :] = False
        if ended.any():
            rows = ended.nonzero()[:, 0]  # (ended,)
            prefixes = self.written[rows, parents[ended]]  # (ended, length - 1)
            scores = totals / gnmt_length_penalty(self.length, self.alpha)
            finished.add(ended, prefixes, totals, scores)

        alive, order = totals.masked_fill(ends, -math.inf).topk(self.beam_size)
        # An empty slot reads what the best output reads, so that its input is valid.
        order = order.where(alive > -math.inf, order[:, :1])
        parents, tokens = parents.gather(1, order), tokens.gather(1, order)
        done = self.done(alive, finished)
        if done.any():
            refuse_nan(totals)
            finished.close(done, self.written[done, 0])
        self.keep(~done, alive, parents, tokens, cache)
        return tokens[~done].flatten()

    def candidates(self, log_probs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The 2·beam_size most probable extensions, their parents and their tokens.

        At most one extension of each output ends, so beam_size are left to go on with.
        """
        if self.length >= self.first_limit:
            last = (self.limits <= self.length).repeat_interleave(self.written.size(1))
            force_end(log_probs, last, self.eos_id)
        vocab = log_probs.size(1)
        totals = log_probs.add_(self.log_probs.view(-1, 1))  # (sentences·width, vocab)
        totals = totals.view(len(self.written), -1)  # (sentences, width·vocab)
        missing = max(0, 2 * self.beam_size - totals.size(1))  # a tiny vocabulary
        totals = F.pad(totals, (0, missing), value=-math.inf)
        totals, index = totals.topk(2 * self.beam_size)  # (sentences, 2·beam_size)
        return totals, index // vocab, index % vocab

    def done(self, alive: Tensor, finished: FinishedHypotheses) -> Tensor:
        """Which sentences need no further step: see the module's description."""
        worst, most_probable = finished.best[:, -1], alive[:, 0]
        so_far = most_probable / gnmt_length_penalty(self.length, self.alpha)
        bound = most_probable / gnmt_length_penalty(self.limits, self.alpha)
        return (
            ((finished.count >= self.beam_size) & (worst >= so_far))
            | (self.limits <= self.length)
            | (worst >= bound)
        )

    def keep(
        self, going: Tensor, alive: Tensor, parents: Tensor, tokens: Tensor, cache: Any
    ) -> None:
        """Drop finished sentences and reorder the rest."""
        sentences = going.nonzero()  # (kept, 1)
        parents, width = parents[going], self.written.size(1)
        prefixes = self.written[sentences, parents]  # (kept, beam_size, length - 1)
        self.written = torch.cat([prefixes, tokens[going][:, :, None]], dim=2)
        self.log_probs, self.limits = alive[going], self.limits[going]
        if len(sentences):
            left = sentences[:, 0] if len(sentences) < len(going) else None
            cache.reorder((sentences * width + parents).flatten(), left)

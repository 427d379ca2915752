"""Checks of chapter 17, search (§6.1)."""

import math

import torch
from torch import Tensor

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _extend(totals: Tensor, log_p: Tensor, K: int) -> Tensor:
    """Every extension in a list, sorted."""
    longer = [
        (total + step, parent, token)
        for parent, total in enumerate(totals.tolist())
        for token, step in enumerate(log_p[parent].tolist())
    ]
    longer.sort(reverse=True)
    return torch.tensor([[parent, token] for _, parent, token in longer[:K]])


def _without_totals(totals: Tensor, log_p: Tensor, K: int) -> Tensor:
    return _extend(torch.zeros_like(totals), log_p, K)


def _one_of_each(totals: Tensor, log_p: Tensor, K: int) -> Tensor:
    """The best token of each hypothesis, as greedy search would take it."""
    best = (totals[:, None] + log_p).max(dim=1)
    parents = best.values.argsort(descending=True)[:K]
    return torch.stack([parents, best.indices[parents]], dim=1)


def _divided_by_hypotheses(totals: Tensor, log_p: Tensor, K: int) -> Tensor:
    index = (totals[:, None] + log_p).flatten().topk(K).indices
    return torch.stack([index // len(totals), index % len(totals)], dim=1)


def _steps() -> list[tuple[Tensor, Tensor, int]]:
    """In the first case, each mistake gives another answer."""
    generator = torch.Generator().manual_seed(17)

    def drawn(hypotheses: int, vocab: int) -> Tensor:
        logits = torch.randn(hypotheses, vocab, generator=generator)
        return logits.log_softmax(-1)

    by_hand = torch.tensor([[0.4, 0.35, 0.25], [0.9, 0.06, 0.04]]).log()
    return [
        (torch.tensor([0.6, 0.4]).log(), by_hand, 2),
        (torch.tensor([-0.5, -4.0, -1.0]), drawn(3, 7), 3),
        (torch.zeros(1), drawn(1, 9), 4),
        (torch.tensor([-3.0, -0.2]), drawn(2, 5), 4),
    ]


extend = FunctionCheck(
    exercise="17.1",
    reference=_extend,
    cases=_steps,
    mistakes=(
        Mistake(
            _without_totals,
            "add the log-probability of each hypothesis: an extension has both.",
        ),
        Mistake(
            _one_of_each,
            "one extension of each hypothesis. The best K may have the same parent.",
        ),
        Mistake(
            _divided_by_hypotheses,
            "after flatten a hypothesis has as many entries as the vocabulary has "
            "tokens: divide by that number.",
        ),
        Mistake(
            lambda totals, log_p, K: _extend(totals, log_p, K).flip(1),
            "the hypothesis comes first, then the token.",
        ),
        Mistake(
            lambda totals, log_p, K: _extend(totals, log_p, K).flip(0),
            "the best extension comes first.",
        ),
    ),
)

beginnings = ValueCheck(
    exercise="17.2",
    reference=lambda: 19,
    mistakes=(
        Mistake(20, "twenty that are all above 0.05 would sum to more than 1."),
        Mistake(21, "how many times does 0.05 fit into 1, if each has more?"),
        Mistake(0.95, "that is what is left for them. How many are there at most?"),
    ),
)

turning_point = ValueCheck(
    exercise="17.3",
    reference=lambda: math.log(2.4 / 1.9) / math.log(12 / 8),
    mistakes=(
        Mistake(
            math.log(2.4 / 1.9) / math.log(7 / 3),
            "the penalty is (5 + length) / 6: the ratio of the two is 12/8, not 7/3.",
        ),
        Mistake(0.58, "nearly. Solve 1.9 / 2.4 = (8/12)^α and give the fraction."),
        Mistake(0.6, "nearly. Solve 1.9 / 2.4 = (8/12)^α and give the fraction."),
    ),
)

proved = ValueCheck(
    exercise="17.4",
    reference=lambda: (2, 3),
    mistakes=(
        Mistake(
            (1, 3),
            "look at A again: this search ranks by log p over the length penalty.",
        ),
        Mistake(
            (2, 2),
            "look at A again: a model error compares probabilities, and a sentence "
            "can have both errors.",
        ),
        Mistake((3, 2), "the search errors first, then the model errors."),
        Mistake(
            (1, 2),
            "look at A again: it has both errors, one by score, one by probability.",
        ),
    ),
)

"""Checks of chapter 11, how the decoder writes (§3, §3.1, §6.1)."""

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _write(table: Tensor, start: int, end: int, limit: int) -> Tensor:
    """Token by token."""
    written: list[int] = []
    newest = start
    while len(written) < limit:
        newest = int(table[newest].argmax())
        if newest == end:
            break
        written.append(newest)
    return torch.tensor(written)


def _with_end(table: Tensor, start: int, end: int, limit: int) -> Tensor:
    written = _write(table, start, end, limit)
    ended = torch.tensor([end]) if len(written) < limit else written[:0]
    return torch.cat([written, ended])


def _from_start_only(table: Tensor, start: int, end: int, limit: int) -> Tensor:
    return table[start].argmax().repeat(limit)


def _chains() -> list[tuple[Tensor, int, int, int]]:
    """Tables that end after 3 and after 1 words, and one that goes round for ever.

    And one whose start and end are other tokens than the chapter's.
    """
    cases = []
    for follows, start, end, limit in (
        ({1: 4, 4: 6, 6: 5, 5: 2}, 1, 2, 10),
        ({1: 3, 3: 2}, 1, 2, 4),
        ({1: 5, 5: 4, 4: 5}, 1, 2, 7),
        ({3: 1, 1: 2, 2: 4, 4: 0}, 3, 0, 8),
    ):
        table = torch.full((7, 7), 0.1)
        for token, following in follows.items():
            table[token, following] = 0.4
        cases.append((table, start, end, limit))
    return cases


write = FunctionCheck(
    exercise="11.1",
    reference=_write,
    cases=_chains,
    mistakes=(
        Mistake(_with_end, "the end token stops the writing; it is no word of it."),
        Mistake(
            lambda table, start, end, limit: torch.cat(
                [torch.tensor([start]), _write(table, start, end, limit)]
            ),
            "the start token is read, not written.",
        ),
        Mistake(
            _from_start_only,
            "each step reads the start token again. It must read the newest one.",
        ),
        Mistake(
            lambda table, start, end, limit: _write(table, 1, 2, limit),
            "start and end are arguments: another vocabulary has others than BOS and "
            "EOS.",
        ),
        Mistake(
            lambda table, start, end, limit: _write(table, start, end, limit + 1),
            "one word more than the limit is written.",
        ),
        Mistake(
            lambda table, start, end, limit: _write(table, start, end, limit - 1),
            "the writing stops one word before the limit.",
        ),
    ),
)


def _log_probability(logits: Tensor, target: Tensor, pad_id: int) -> Tensor:
    """Number by number."""
    totals = []
    for scores, tokens in zip(logits, target.tolist(), strict=True):
        total = torch.tensor(0.0)
        for row, token in zip(scores, tokens, strict=True):
            if token != pad_id:
                total = total + row[token] - row.exp().sum().log()
        totals.append(total)
    return torch.stack(totals)


def _picked(scores: Tensor, target: Tensor) -> Tensor:
    return scores.gather(-1, target[..., None])[..., 0]


def _scored() -> list[tuple[Tensor, Tensor, int]]:
    """The last one's padding is token 5, and its token 0 a word like any other."""
    generator = seeded(11)
    targets = [
        ([[4, 5, 2, 0], [3, 4, 5, 2]], 0),
        ([[5, 2, 0, 0, 0], [4, 4, 3, 2, 0]], 0),
        ([[4, 0, 2, 5], [0, 3, 1, 2]], 5),
    ]
    return [
        (torch.randn(2, len(rows[0]), 6, generator=generator), torch.tensor(rows), pad)
        for rows, pad in targets
    ]


log_probability = FunctionCheck(
    exercise="11.2",
    reference=_log_probability,
    cases=_scored,
    mistakes=(
        Mistake(
            lambda logits, target, pad_id: _picked(logits.log_softmax(-1), target).sum(
                1
            ),
            "padding is counted too. It is no word of the sentence.",
        ),
        Mistake(
            lambda logits, target, pad_id: (
                _picked(logits, target) * (target != pad_id)
            ).sum(1),
            "logits are no log-probabilities yet: log_softmax over the vocabulary.",
        ),
        Mistake(
            lambda logits, target, pad_id: (
                _log_probability(logits, target, pad_id) / (target != pad_id).sum(1)
            ),
            "that is the mean over the words. A sentence's probability is a product, "
            "so its logarithm is a sum.",
        ),
        Mistake(
            lambda logits, target, pad_id: _log_probability(logits, target, 0),
            "pad_id is an argument: another vocabulary pads with another token.",
        ),
        Mistake(
            lambda logits, target, pad_id: -_log_probability(logits, target, pad_id),
            "the sign: a log-probability is at most 0, a loss is its negative.",
        ),
        Mistake(
            lambda logits, target, pad_id: _log_probability(
                logits[:, :-1], target[:, 1:], pad_id
            ),
            "shifted once too often: row i of the logits is for token i of the target.",
        ),
    ),
)

cached_numbers = ValueCheck(
    exercise="11.3",
    reference=lambda: 6 * 2 * 512 * (30 + 20),
    mistakes=(
        Mistake(
            6 * 2 * 512 * 20, "the keys and values of the memory are kept as well."
        ),
        Mistake(6 * 512 * 50, "keys and values: each is kept."),
        Mistake(2 * 512 * 50, "that is one layer. Each has its own."),
        Mistake(
            6 * 2 * 512 * 50 * 8,
            "eight heads share the width: together their keys have 512 numbers.",
        ),
        Mistake(6 * 2 * 512 * 30, "what was written is kept as well."),
    ),
)

recomputed = ValueCheck(
    exercise="11.4",
    reference=lambda: len(range(5, 9)),
    mistakes=(
        Mistake(
            1, "so it is in the first layer, where a key comes from one token alone."
        ),
        Mistake(9, "the causal mask: rows before the exchange cannot know of it."),
        Mistake(8, "the causal mask: rows before the exchange cannot know of it."),
        Mistake(3, "the row that reads the new word changes, too."),
        Mistake(5, "count from the row that reads the fifth word to the last."),
    ),
)

turning_point = ValueCheck(
    exercise="11.5",
    reference=lambda: 9 / 13,
    mistakes=(
        Mistake(4 / 13, "that is the probability of Ein at that point."),
        Mistake(
            0.5, "there greedy changes its first word, but is it the best sentence?"
        ),
        Mistake(0.69, "nearly. Solve p · 0.4 = (1 - p) · 0.9 and give the fraction."),
        Mistake(0.7, "nearly. Solve p · 0.4 = (1 - p) · 0.9 and give the fraction."),
    ),
)

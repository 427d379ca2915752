"""Checks of chapter 1, recurrence (§1, §2)."""

import torch
from torch import Tensor

from aiayn_book.checks.draws import seeded
from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck


def _all_states(x: Tensor, keep: float) -> Tensor:
    """One number after the other."""
    state, states = torch.zeros(()), []
    for number in x:
        state = keep * state + number
        states.append(state)
    return torch.stack(states)


def _state_cases() -> list[tuple[Tensor, float]]:
    generator = seeded(1)
    sizes = [(2, 0.5), (4, 0.5), (7, 0.25), (16, 0.75)]  # numbers, keep
    return [(torch.randn(n, generator=generator), keep) for n, keep in sizes]


def _one_round(x: Tensor, keep: float) -> Tensor:
    before = torch.cat([x.new_zeros(1), x[:-1]])
    return x + keep * before


def _same_power_in_each_round(x: Tensor, keep: float) -> Tensor:
    states, apart = x, 1
    while apart < len(x):
        before = torch.cat([x.new_zeros(apart), states[:-apart]])
        states, apart = states + keep * before, 2 * apart
    return states


all_states = FunctionCheck(
    exercise="1.1",
    reference=_all_states,
    cases=_state_cases,
    mistakes=(
        Mistake(
            lambda x, keep: _all_states(x, keep)[-1],
            "that is the last state alone. All of them were asked for, one for each "
            "number.",
        ),
        Mistake(
            lambda x, keep: x.cumsum(dim=0),
            "that is the plain sum of all numbers so far. Each step keeps only a share "
            "of what there was.",
        ),
        Mistake(
            lambda x, keep: keep * _all_states(x, keep),
            "the newest number is multiplied by keep as well. It has not been through "
            "any step yet.",
        ),
        Mistake(
            _same_power_in_each_round,
            "each round multiplies by keep once. In the second round an entry reaches "
            "two positions back: what is left of a number after two steps?",
        ),
        Mistake(
            _one_round,
            "each state knows only two numbers. Go on in rounds: how far back must the "
            "second round look?",
        ),
    ),
)

layers = ValueCheck(
    exercise="1.2",
    reference=lambda: (25, 5),
    mistakes=(
        Mistake(
            (20, 5),
            "(b) is right. For (a): a kernel of five covers the position itself and "
            "four before it.",
        ),
        Mistake(
            (25, 3),
            "(a) is right. For (b) you took dilations that grow fivefold. Here they "
            "double.",
        ),
        Mistake(
            (25, 7),
            "(a) is right. For (b), mind that layers add up: what do dilations 1, 2, 4 "
            "reach together?",
        ),
        Mistake(
            (25, 4),
            "(a) is right. For (b): how far do four layers reach, exactly?",
        ),
    ),
)

forgotten = ValueCheck(
    exercise="1.3",
    reference=lambda: 44,
    mistakes=(
        Mistake(43, "after 43 steps it is still a little above one hundredth."),
        Mistake(
            10,
            "a tenth is lost at each step, but a tenth of what is left, not of what "
            "there was at first.",
        ),
        Mistake(22, "by then it has fallen to a tenth, not to a hundredth."),
    ),
)

batch = ValueCheck(
    exercise="1.4",
    reference=lambda: (8, 8),
    mistakes=(
        Mistake((64, 8), "the sentences are eight times longer: so are their results."),
        Mistake(
            (1, 8),
            "memory of a recurrent layer goes with the length, not with its square.",
        ),
        Mistake(
            (8, 1),
            "fewer sentences do not shorten the critical path: each of them is read "
            "word by word.",
        ),
    ),
)

fair = ValueCheck(
    exercise="1.5",
    reference=lambda: 0.85,
    mistakes=(
        Mistake(
            0.95,
            "with 0.95 the oldest number counts far more than a twentieth. Look at the "
            "last bar and the dashed line.",
        ),
        Mistake(
            0.86,
            "near, but the last bar stands a little too high. One notch further.",
        ),
        Mistake(1.0, "then all numbers count alike, and each counts 1, not 1/20."),
    ),
)

"""Chapter 21, what changed: Muon, an optimizer for matrices.

Not in the paper: Jordan and others (2024).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import altair as alt
import pandas as pd
import torch
from torch import Tensor

from aiayn.training import orthogonalized
from aiayn_book.chapters.optimizer import (
    WIDTH,
    Sorter,
    draw_digits,
    fresh,
    losses_of,
)
from aiayn_book.plots import curves
from aiayn_book.records import load_record


def polynomial(values: Tensor, times: int) -> Tensor:
    """Jordan's polynomial, applied several times to singular values."""
    for _ in range(times):
        values = 3.4445 * values - 4.775 * values**3 + 2.0315 * values**5
    return values


def polynomial_chart() -> alt.LayerChart:
    """What becomes of a singular value."""
    values = torch.logspace(-4, 0, 300, dtype=torch.float64)
    rows = [
        {"before": before, "after": after, "applied": f"{times} times"}
        for times in (0, 1, 2, 4)
        for before, after in zip(
            values.tolist(), polynomial(values, times).tolist(), strict=True
        )
    ]
    return curves(
        rows,
        "before",
        "after",
        "applied",
        description="Singular value after the polynomial against the one before, from "
        "a ten-thousandth to 1 on a logarithmic axis. Applied once, the curve has "
        "hardly left the bottom at a hundredth. Applied four times it rises steeply up "
        "to a hundredth and then stays in a band around 1.",
        log_x=True,
    )


@cache
def gradient_spectra() -> dict[str, Tensor]:
    """Singular values, the largest being 1, of gradients and of two steps.

    The gradients are those of the square matrices of a fresh post-norm model, three
    draws; each value is (matrices, WIDTH).
    """
    weights = {name: w.requires_grad_() for name, w in fresh("post", 1).items()}
    batch = draw_digits(64, 1, 3, torch.Generator().manual_seed(2))
    loss = losses_of(Sorter("post"), weights, *batch)
    gradients = torch.autograd.grad(loss.sum(), list(weights.values()))
    pairs = zip(weights, gradients, strict=True)
    square = torch.cat([g for name, g in pairs if name.endswith("_projection.weight")])
    steps = {
        "the gradient": square,
        "Adam's first step": square.sign(),
        "Muon's": orthogonalized(square),
    }
    spectra = {name: torch.linalg.svdvals(step) for name, step in steps.items()}
    return {name: s / s[:, :1] for name, s in spectra.items()}


def strong_directions() -> dict[str, float]:
    """How many directions get at least half of what the first gets, on average."""
    return {
        name: (s > 0.5).double().sum(dim=1).mean().item()
        for name, s in gradient_spectra().items()
    }


def spectra_chart() -> alt.LayerChart:
    """The median singular values of gradients, and of the steps made of them."""
    rows = [
        {"direction": number, "singular value": value, "of": name}
        for name, s in gradient_spectra().items()
        for number, value in enumerate(s.median(dim=0).values.tolist(), start=1)
    ]
    return curves(
        rows,
        "direction",
        "singular value",
        "of",
        description=f"Singular values of {WIDTH} directions, the largest being 1, "
        "median over the projection matrices of a fresh model. Those of the gradient "
        "fall off steeply, those of Adam's first step less so, and those of Muon's "
        "step far more slowly.",
    )


# The recorded trainings of this book's grammar.

_NAMES = {
    ("adam", 0.5): "Adam, half the rate",
    ("adam", 1.0): "Adam",
    ("muon", 1.0): "Muon and Adam",
}


@cache
def optimizer_runs() -> pd.DataFrame:
    """Nine recorded trainings: three ways to move the weights, three seeds each."""
    runs = pd.DataFrame(load_record("optimizers")["runs"])
    choices = zip(runs.optimizer, runs.learning_rate_scale, strict=True)
    runs["moved by"] = [_NAMES[choice] for choice in choices]
    return runs


def optimizer_table() -> pd.DataFrame:
    """Shortest time, lowest and highest loss, and the share of exact sentences."""
    return optimizer_runs().groupby("moved by", sort=False).agg(
        seconds=("seconds", "min"),
        least=("loss", "min"),
        most=("loss", "max"),
        exact=("exact", "mean"),
    ).round({"seconds": 0, "least": 3, "most": 3, "exact": 3})  # fmt: skip


def met(checks: Sequence[Sequence[float]], wanted: float) -> float:
    """The step, between two checks, at which the loss has come down to one wanted."""
    for (before, high), (after, low) in pairwise(checks):
        if low <= wanted:
            return before + (high - wanted) / (high - low) * (after - before)
    raise ValueError(f"The loss never came down to {wanted}.")


@dataclass(frozen=True)
class Needed:
    """The part of its training that Muon needs to get where Adam ends, by seed."""

    steps: list[float]
    time: list[float]


def needed() -> Needed:
    """By the validation loss of each seed, and by the ratio of the shortest times."""
    runs, table = optimizer_runs(), optimizer_table()
    seconds = table["seconds"]["Muon and Adam"] / table["seconds"]["Adam"]
    checks = [
        runs[runs["moved by"] == name].sort_values("seed").validation
        for name in ("Adam", "Muon and Adam")
    ]
    steps = [
        met(fast, slow[-1][1]) / fast[-1][0]
        for slow, fast in zip(*checks, strict=True)
    ]  # fmt: skip
    return Needed(steps, [float(part * seconds) for part in steps])


def optimizer_chart() -> alt.LayerChart:
    """Validation loss by step, for the three ways to move the weights."""
    runs = optimizer_runs()
    rows = [
        {"step": step, "loss": loss, "moved by": name, "seed": seed}
        for name, seed, checks in zip(
            runs["moved by"], runs.seed, runs.validation, strict=True
        )
        for step, loss in checks
    ]
    return curves(
        rows,
        "step",
        "loss",
        "moved by",
        description="Validation loss in nats a piece, on a logarithmic axis, against "
        "the optimizer step, for three ways to move the weights, three seeds each. "
        "From the second check on the loss with Muon is below both of Adam's.",
        log_y=True,
    )

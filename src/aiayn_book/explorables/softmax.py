"""Softmax and scale: one query's weights, for any width and any divisor (§3.2.1).

Scores of independent queries and keys grow with the root of the width d_k. The figure
divides them by d_kᵃ: a = 0 is no division, a = ½ the paper's, and the weights that the
paper's choice gives stay marked.
"""

from typing import Any

import numpy as np

from aiayn.errors import InputError
from aiayn_book.explorables.base import (
    Explorable,
    as_table,
    number,
    rounded,
    short,
    slider,
    status,
)


def softmax_scale(
    scores: Any,
    *,
    title: str,
    description: str,
    power: int = 6,
    exponent: int | float = 0.0,
) -> Explorable:
    r"""One query's scores and weights, with the width and the divisor to choose.

    Args:
        scores: ``(keys,)``, as they are when divided by $\sqrt{d_k}$.
        title: the point that the figure makes.
        description: the text alternative.
        power: $\log_2 d_k$ at first, from 0 to 10.
        exponent: the a of the divisor $d_k^a$ at first, from 0 to 1 in steps of 0.1.

    Raises:
        InputError: the scores are no vector, or the first setting is none of the
            sliders'.
    """
    normal = as_table("scores", scores, (None,)).astype(float)
    steps = [step / 10 for step in range(11)]
    if power not in range(11) or not np.isclose(exponent, steps).any():
        raise InputError(
            f"power is {power} and exponent is {exponent}, but the sliders go from 0 "
            "to 10, and from 0 to 1 in steps of 0.1: choose numbers that they have."
        )
    body = f"""<div class="aiayn-controls">
{slider("power", "log₂ dₖ", power, f"{power}", high=10)}
{slider("exponent", "exponent a", exponent, f"{exponent:.1f}", high=1, step=0.1)}
</div>
<table>
<thead><tr><th scope="col">key</th><th scope="col">q·k</th>\
<th scope="col">divided</th>\
<th scope="col">weight</th><th scope="col">mark: with √dₖ</th></tr></thead>
<tbody>
{_rows(normal, power, exponent)}
</tbody></table>
{status(_sentence(normal, power, exponent))}"""
    return Explorable("softmax", title, description, body, {"scores": rounded(normal)})


def _softmax(scores: np.ndarray) -> np.ndarray:
    exponentials = np.exp(scores - scores.max())
    return exponentials / exponentials.sum()


def _jacobian_norm(weights: np.ndarray) -> float:
    """The Frobenius norm of diag(p) − p pᵀ."""
    jacobian = np.diag(weights) - np.outer(weights, weights)
    return float(np.linalg.norm(jacobian))


def _rows(normal: np.ndarray, power: int, exponent: int | float) -> str:
    """One row a key: its score, the score divided, its weight as number and bar."""
    raw = normal * 2 ** (power / 2)
    divided = normal * 2 ** (power * (0.5 - exponent))
    columns = (raw, divided, _softmax(divided), _softmax(normal))
    return "\n".join(
        f'<tr><th scope="row">k{place}</th><td>{number(score)}</td>'
        f"<td>{number(part)}</td><td>{number(share, 3)}</td>"
        f'<td><div class="bar" style="--share: {share:.4f}; --paper: {paper:.4f}">'
        "</div></td></tr>"
        for place, (score, part, share, paper) in enumerate(
            zip(*columns, strict=True), start=1
        )
    )


def _sentence(normal: np.ndarray, power: int, exponent: int | float) -> str:
    """What the setting means, in words; the script writes the same ones."""
    yours = _softmax(normal * 2 ** (power * (0.5 - exponent)))
    paper = _softmax(normal)
    return (
        f"dₖ = {2**power}, divided by {short(2 ** (power * exponent))}. "
        f"Largest weight {number(yours.max(), 3)}; with the paper’s root "
        f"{number(paper.max(), 3)}. Size of the softmax’s Jacobian "
        f"{number(_jacobian_norm(yours), 3)}; with the root "
        f"{number(_jacobian_norm(paper), 3)}."
    )

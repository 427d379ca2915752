"""The decoder stepper: one written token at a time, as the decoder does it (§3.1).

Each step reads what was written so far, weighs the next token, and adds one row to both
attentions: to the source, and to what was read. Rows that are there do not change.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from aiayn.errors import InputError
from aiayn_book.explorables.base import (
    Explorable,
    as_table,
    number,
    rounded,
    slider,
    status,
)
from aiayn_book.html import escape

_CANDIDATES = 4


def decoder_stepper(
    source_tokens: Sequence[str],
    read_tokens: Sequence[str],
    written_tokens: Sequence[str],
    *,
    to_source: Any,
    to_read: Any,
    probabilities: Any,
    vocabulary: Sequence[str],
    title: str,
    description: str,
    step: int = 1,
) -> Explorable:
    """A translation in the making, step by step.

    Args:
        source_tokens: what the encoder read.
        read_tokens: what the decoder reads: the start token and all that it wrote.
        written_tokens: what each step writes, the end token last; as many.
        to_source: weights of the cross-attention,
            ``(layers, heads, steps, source tokens)``.
        to_read: weights of the decoder's self-attention,
            ``(layers, heads, steps, steps)``.
        probabilities: of the next token, ``(steps, vocabulary)``.
        vocabulary: the tokens that these stand for.
        title: the point that the figure makes.
        description: the text alternative.
        step: the step that is shown at first, counted from 1.

    Raises:
        InputError: a shape does not fit, or there is no such step.
    """
    steps = len(written_tokens)
    if not 1 <= step <= steps == len(read_tokens):
        raise InputError(
            f"step is {step}, {len(read_tokens)} tokens are read and {steps} written, "
            "but each step reads one more and writes one: give as many of both, and a "
            f"step from 1 to {steps}."
        )
    cross = as_table("to_source", to_source, (None, None, steps, len(source_tokens)))
    own = as_table("to_read", to_read, (*cross.shape[:2], steps, steps))
    chances = as_table("probabilities", probabilities, (steps, len(vocabulary)))
    best = np.argsort(-chances, axis=1, kind="stable")[:, :_CANDIDATES]
    candidates = [
        [[vocabulary[token], round(float(row[token]), 6)] for token in tokens]
        for row, tokens in zip(chances, best, strict=True)
    ]
    read, written, source = map(list, (read_tokens, written_tokens, source_tokens))
    to_words = _map("Attention to the source, in %", cross[-1], source, written, step)
    to_own = _map("Attention to what was read, in %", own[-1], read, written, step)
    body = f"""{_controls(step, steps, *cross.shape[:2])}
{status(_sentence(step, read, written, candidates))}
<table class="chances"><caption>Most probable next tokens</caption>
<tbody>{_chances(candidates[step - 1])}</tbody></table>
<div class="side-by-side">
{to_words}
{to_own}
</div>"""
    numbers = {
        "read": read,
        "written": written,
        "candidates": candidates,
        "maps": [rounded(cross, 6), rounded(own, 6)],
    }
    return Explorable("stepper", title, description, body, numbers)


def _controls(step: int, steps: int, layers: int, heads: int) -> str:
    def menu(name: str, label: str, options: list[str], chosen: int) -> str:
        entries = "".join(
            f'<option value="{value}"{" selected" if value == chosen else ""}>'
            f"{words}</option>"
            for value, words in enumerate(options)
        )
        start = f'<label>{label} <select name="{name}" autocomplete="off">'
        return f"{start}{entries}</select></label>"

    numbered = [f"{layer + 1}" for layer in range(layers)]
    of_heads = ["mean of all", *(f"{head + 1}" for head in range(heads))]
    return (
        '<div class="aiayn-controls">'
        '<span class="ways"><button type="button" name="back">← Back</button> '
        '<button type="button" name="next">Next →</button></span>'
        + slider("step", "Step", step, f"{step}", low=1, high=steps)
        + menu("layer", "Layer", numbered, layers - 1)
        + menu("head", "Head", of_heads, 0)
        + "</div>"
    )


def _sentence(
    step: int, read: list[str], written: list[str], candidates: list[Any]
) -> str:
    word, chance = written[step - 1], dict(candidates[step - 1]).get(written[step - 1])
    sure = "" if chance is None else f" ({number(100 * chance, 1)} %)"
    return (
        f"Step {step} of {len(written)}. Reads: "
        f"<b>{escape(' '.join(read[:step]))}</b>. "
        f'Writes: <b class="query">{escape(word)}</b>{sure}.'
    )


def _percent(share: float) -> int:
    return int(np.floor(share * 100 + 0.5))


def _chances(candidates: list[Any]) -> str:
    return "\n".join(
        f'<tr><th scope="row">{escape(word)}</th><td>{number(100 * share, 1)} %</td>'
        f'<td><div class="bar" style="--share: {share:.4f}"></div></td></tr>'
        for word, share in candidates
    )


def _map(
    caption: str, heads: np.ndarray, keys: list[str], written: list[str], step: int
) -> str:
    """The heads' mean as a table, a row for each step; those to come are not shown.

    Where the keys are what was read, they come one by one as well.
    """
    weights = heads.mean(axis=0)
    own = bool((np.triu(weights, 1) == 0).all())

    def kind(i: int) -> str:
        name = "later" if i >= step else "now" if i == step - 1 else ""
        return f' class="{name}"' if name else ""

    names = "".join(
        f'<th scope="col"{kind(j) if own and j >= step else ""}>'
        f"<span>{escape(key)}</span></th>"
        for j, key in enumerate(keys)
    )

    def cell(i: int, j: int, share: float) -> str:
        if own and j > i:
            return "<td></td>"
        text = _percent(share) or ""
        return f'<td><span style="--share: {share:.4f}">{text}</span></td>'

    rows = "\n".join(
        f'<tr{kind(i)}><th scope="row">{escape(word)}</th>'
        f"{''.join(cell(i, j, share) for j, share in enumerate(row))}</tr>"
        for i, (word, row) in enumerate(zip(written, weights, strict=True))
    )
    return (
        '<div class="aiayn-scrolls">'
        f'<table class="map" data-own="{int(own)}"><caption>{caption}</caption>'
        f"<thead><tr><td></td>{names}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )

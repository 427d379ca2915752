"""Figures 3–5: what the decoder looked at while it wrote, as numbers and as text.

The paper draws the encoder's self-attention. Here it is the decoder's attention to the
source (§3.2.3), drawn for translation since Bahdanau et al. (2015).
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from aiayn.data import Tokenizer
from aiayn.errors import InputError
from aiayn.inference.hypothesis import eval_mode, refuse_nan
from aiayn.inference.translation import encode_sources, search
from aiayn.model import Transformer, shift_right


@dataclass(frozen=True)
class AttentionMap:
    """How much each piece of a translation looked at each piece of its source.

    Paper: §3.2.3; Figures 3–5 draw the encoder's.
    """

    source: list[str]
    """Pieces of the source, the end token included."""
    target: list[str]
    """Pieces of the translation, the end token included."""
    weights: Float[Tensor, "target source"]
    """Row t: where the decoder looked to write piece t. Each row sums to one."""
    translation: str
    """The translation as text."""


def cross_attention_map(
    line: str,
    model: Transformer,
    tokenizer: Tokenizer,
    *,
    layer: int | None = None,
    head: int | None = None,
    translation: str | None = None,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    extra_length: int = 50,
    first_line: int = 1,
) -> AttentionMap:
    """Translate a sentence and return the decoder's attention to it.

    Args:
        line: The sentence.
        model: On whichever device it should run.
        tokenizer: The one that the model was trained with.
        layer: A decoder layer, counted from 1 (in `aiayn_book.head_scores` from 0);
            None: the mean over all of them.
        head: A head, likewise counted from 1; None: the mean over all of them.
        translation: Look at the writing of this text; None: of the model's own.
        beam_size: Of the search for the model's own translation.
        length_penalty: Likewise.
        extra_length: Likewise.
        first_line: Number of the line, for messages.

    Raises:
        InputError: The line is empty or too long, there is no such layer or head, the
            model has no attention or no decoder layer, or its weights are damaged.

    Paper: §3.2.3; Figures 3–5 draw the encoder's.

    >>> model, tokenizer = load_translator("runs/grammar")  # after a training
    >>> found = cross_attention_map("The old dog sleeps.", model, tokenizer)
    >>> found.weights.shape == (len(found.target), len(found.source))
    True
    """
    source = encode_sources([line], model, tokenizer, first_line=first_line)[0]
    if source == [tokenizer.eos_id]:
        raise InputError("An empty sentence has nothing to look at; give a text.")
    if translation is None:
        found = search(
            model,
            torch.tensor([source]),
            tokenizer,
            beam_size=beam_size,
            length_penalty=length_penalty,
            extra_length=extra_length,
        )[0]
        target, translation = found.tokens, tokenizer.decode(found.tokens)
    else:
        target = tokenizer.encode(translation)
    target = [*target, tokenizer.eos_id]
    weights = _weights(model, source, target, tokenizer.bos_id)
    refuse_nan(weights)
    weights = _choose(weights, layer, "layer")  # (heads, target, source)
    return AttentionMap(
        tokenizer.pieces(source),
        tokenizer.pieces(target),
        _choose(weights, head, "head").float().cpu(),
        translation,
    )


def _weights(
    model: Transformer, source: Sequence[int], target: Sequence[int], bos_id: int
) -> Float[Tensor, "layers heads target source"]:
    device = next(model.parameters()).device
    sources = torch.tensor([source], device=device)
    targets = shift_right(torch.tensor([target], device=device), bos_id)
    with eval_mode(model):
        layers = model.attention_weights(sources, targets).cross
    if not layers:
        raise InputError(
            "A model without decoder layers looks at nothing; give one that has some."
        )
    return torch.cat(layers)  # out here: what is made inside cannot be changed in place


def _choose(weights: Tensor, number: int | None, name: str) -> Tensor:
    if number is None:
        return weights.mean(dim=0)
    if not 1 <= number <= len(weights):
        raise InputError(
            f"There is no {name} {number}; choose one from 1 to {len(weights)}."
        )
    return weights[number - 1]


_SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (0.05, "░"), (0.0, " "))
_CELL = 4  # three digits and a shade
_LONGEST_LABEL = 14


def render_attention(attention: AttentionMap, width: int = 80) -> str:
    """The map as text: a row for each piece that was written, percentages and shades.

    The source's pieces stand above the columns, from top to bottom. A map that is too
    wide for the page is cut into several, one below the other.

    Args:
        attention: What to draw.
        width: Columns of the page.

    Not in the paper.

    >>> weights = torch.tensor([[0.9, 0.1], [0.2, 0.8]])
    >>> made = AttentionMap(["Tea", "helps"], ["Tee", "hilft"], weights, "Tee hilft")
    >>> print(render_attention(made))
               h
               e
           T   l
           e   p
           a   s
    Tee   90█ 10░
    hilft 20░ 80█
    """
    labels = [_printable(piece)[:_LONGEST_LABEL] for piece in attention.target]
    label_width = max(map(_width, labels))
    per_page = max(1, (width - label_width) // _CELL)
    pages = []
    for start in range(0, len(attention.source), per_page):
        part = slice(start, start + per_page)
        heading = _heading(attention.source[part], label_width)
        rows = [
            label + " " * (label_width - _width(label)) + "".join(map(_cell, row))
            for label, row in zip(
                labels, attention.weights[:, part].tolist(), strict=True
            )
        ]
        pages.append("\n".join(line.rstrip() for line in [*heading, *rows]))
    return "\n\n".join(pages)


def _heading(pieces: Sequence[str], indent: int) -> list[str]:
    """The pieces from top to bottom, all ending on the last line."""
    labels = [_printable(piece)[:_LONGEST_LABEL] for piece in pieces]
    height = max(map(len, labels))
    lines = []
    for depth in range(height):
        characters = [label.rjust(height)[depth] for label in labels]
        cells = [" " * (_CELL - 1 - _width(c)) + c + " " for c in characters]
        lines.append(" " * indent + "".join(cells))
    return lines


def _cell(weight: float) -> str:
    shade = next(shade for least, shade in _SHADES if weight >= least)
    percent = round(100 * weight)
    return f"{percent or '·':>3}{shade}"


def _printable(piece: str) -> str:
    """The piece, with a sign for each character that would disturb the page.

    Combining marks and marks of direction have no place of their own in a column, and
    control characters would move the cursor.
    """
    piece = unicodedata.normalize("NFC", piece)
    return "".join(
        c if c.isprintable() and unicodedata.category(c) not in ("Mn", "Me") else "�"
        for c in piece
    )


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: Chinese characters take two."""
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)

"""The decoder's attention to the source while it translates, as numbers and as text.

Figures 3–5 of the paper draw the encoder's self-attention. Attention between target and
source (§3.2.3) has been drawn for translation since Bahdanau et al. (2015).
"""

import unicodedata
from dataclasses import dataclass
from typing import Any

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
    """How much each piece of a translation attends to each piece of its source.

    Paper: §3.2.3; Figures 3–5 draw the encoder's.
    """

    source: list[str]
    """Pieces of the source, the end token included."""
    target: list[str]
    """Pieces of the translation, the end token included."""
    weights: Float[Tensor, "target source"]
    """Row t: what the decoder attended to when it predicted piece t; its sum is 1."""
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
    first_line: int = 1,
    **options: Any,
) -> AttentionMap:
    """Translate a sentence and return the decoder's attention to it.

    Args:
        line: The sentence.
        model: On whichever device it should run.
        tokenizer: The one that the model was trained with.
        layer: A decoder layer, counted from 1 (in `aiayn_book.head_scores` from 0);
            None: the mean over all of them.
        head: A head, likewise counted from 1; None: the mean over all of them.
        translation: The text that the decoder predicts; None: the model's own.
        first_line: Number of the line, for messages.
        options: beam_size, length_penalty and extra_length, as for `translate`.

    Raises:
        InputError: The line is empty or too long, there is no such layer or head, or
            the model's weights are damaged.

    Paper: §3.2.3; Figures 3–5 draw the encoder's.

    >>> model, tokenizer = load_translator("runs/grammar")  # after a training
    >>> found = cross_attention_map("The old dog sleeps.", model, tokenizer)
    >>> found.weights.shape == (len(found.target), len(found.source))
    True
    """
    source = encode_sources([line], model, tokenizer, first_line=first_line)[0]
    if source == [tokenizer.eos_id]:
        raise InputError("There is no attention to an empty sentence; give a text.")
    sources = torch.tensor([source], device=next(model.parameters()).device)
    if translation is None:
        target = search(model, sources, tokenizer, **options)[0].tokens
        translation = tokenizer.decode(target)
    else:
        target = tokenizer.encode(translation)
    target = [*target, tokenizer.eos_id]
    read = shift_right(sources.new_tensor([target]), tokenizer.bos_id)
    with eval_mode(model):
        layers = model.attention_weights(sources, read).cross
    # Copied outside, because tensors of inference mode cannot be changed in place.
    weights = torch.cat(layers)  # (layers, heads, target, source)
    refuse_nan(weights)
    return AttentionMap(
        tokenizer.pieces(source),
        tokenizer.pieces(target),
        _choose(_choose(weights, layer, "layer"), head, "head").float().cpu(),
        translation,
    )


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
    rows = [_label(piece) for piece in attention.target]
    columns = [_label(piece) for piece in attention.source]
    indent = max(map(_width, rows))
    per_page = max(1, (width - indent) // _CELL)
    pages = []
    for start in range(0, len(columns), per_page):
        part = slice(start, start + per_page)
        height = max(map(len, columns[part]))
        upright = zip(*(label.rjust(height) for label in columns[part]), strict=True)
        lines = [
            " " * indent + "".join(f"{c:>{_CELL - _width(c)}} " for c in characters)
            for characters in upright
        ]
        shares = attention.weights[:, part].tolist()
        for label, weights in zip(rows, shares, strict=True):
            label += " " * (indent - _width(label))
            lines.append(label + "".join(map(_cell, weights)))
        pages.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(pages)


def _cell(weight: float) -> str:
    shade = next(shade for least, shade in _SHADES if weight >= least)
    return f"{round(100 * weight) or '·':>3}{shade}"


def _label(piece: str) -> str:
    """A short label without characters that would disturb the page.

    Combining marks and marks of direction take no column of their own, and control
    characters would move the cursor.
    """
    return "".join(
        c if c.isprintable() and unicodedata.category(c) not in ("Mn", "Me") else "�"
        for c in unicodedata.normalize("NFC", piece)
    )[:_LONGEST_LABEL]


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: Chinese characters take two."""
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)

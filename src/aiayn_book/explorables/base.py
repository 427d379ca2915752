"""What all explorables share: their frame, their numbers, their script and style."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from typing import Any, SupportsFloat

import numpy as np

from aiayn.errors import InputError
from aiayn_book.html import STYLE, escape


@dataclass(frozen=True)
class Explorable:
    """A figure that works without its script and can be operated with it."""

    kind: str  # names the script and the style sheet in this folder
    title: str
    description: str
    body: str  # the figure as it stands before anyone touches it
    numbers: dict[str, Any]  # what the script needs to know

    def __post_init__(self) -> None:
        for name in ("title", "description"):
            if not getattr(self, name).strip():
                raise InputError(
                    f"{name} is empty: say in a sentence what the figure shows, for "
                    "readers who do not see it."
                )

    def _repr_html_(self) -> str:
        numbers = json.dumps(
            self.numbers, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        digest = hashlib.sha256((self.title + self.body + numbers).encode())
        words = f"explorable-{digest.hexdigest()[:8]}"
        # The numbers stand in an attribute, so that the script is the same everywhere.
        return f"""<div class="aiayn">{STYLE}
<style>
{_read("base.css")}{_read(f"{self.kind}.css")}</style>
<figure class="aiayn-explorable" data-kind="{self.kind}" aria-describedby="{words}" \
data-numbers="{escape(numbers)}">
<figcaption>{escape(self.title)}</figcaption>
<p class="aiayn-unseen" id="{words}">{escape(self.description)}</p>
{self.body}
</figure>
<script>
(() => {{
{_read("base.js")}{_read(f"{self.kind}.js")}}})();
</script></div>"""

    def __repr__(self) -> str:
        return f"[Explorable: {self.title}. {self.description}]"


@cache
def _read(name: str) -> str:
    return files("aiayn_book.explorables").joinpath(name).read_text(encoding="utf-8")


def number(value: SupportsFloat, digits: int = 2) -> str:
    """A number as the scripts write it too: a true minus sign, and no minus zero.

    Halves are rounded away from zero, as JavaScript does and Python's format does not.

    Raises:
        InputError: from 10²¹ on, JavaScript writes a power of ten.
    """
    if not abs(float(value)) < 1e21:
        raise InputError(
            f"A number of the figure is {float(value):.3g}, too long to be written "
            "out: choose values that keep it below 10²¹."
        )
    step = Decimal(1).scaleb(-digits)
    exact = Decimal(float(value)).quantize(step, ROUND_HALF_UP)
    text = f"{exact}".replace("-", "−")
    return text if any(sign in "123456789" for sign in text) else text.lstrip("−")


def short(value: SupportsFloat, digits: int = 2) -> str:
    """The same without the zeros at the end: 2 and not 2.00."""
    text = number(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def as_table(name: str, values: Any, shape: Sequence[int | None]) -> np.ndarray:
    """A tensor or nested lists as an array of that shape; None is any size.

    Raises:
        InputError: the shape is another one, or a number is not finite.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values
    table = np.asarray(values)
    fits = table.ndim == len(shape) and all(
        wanted in (None, size) for wanted, size in zip(shape, table.shape, strict=True)
    )
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise InputError(
            f"{name} has the shape {table.shape}, but ({wanted}) was expected: choose "
            "one sentence and one head, and see that it fits the tokens."
        )
    if not (finite := np.isfinite(table)).all():
        raise InputError(
            f"{name} holds {table[~finite][0]}, but only finite numbers can be drawn: "
            "is there a division by zero, or the logarithm of zero?"
        )
    return table


def exponentials(
    scores: np.ndarray, query_tokens: Sequence[str], key_tokens: Sequence[str]
) -> np.ndarray:
    """e to each score, (queries, keys), small enough to be written out.

    Raises:
        InputError: a score is beyond ±40. Up to there, sums of thousands of
            exponentials stay below what `number` writes, and above zero.
    """
    i, j = divmod(int(np.abs(scores).argmax()), len(key_tokens))
    if not abs(scores[i, j]) <= 40:
        raise InputError(
            f"The score of {query_tokens[i]!r} for {key_tokens[j]!r} is "
            f"{scores[i, j]:.4g}, but e to each score is written out, and for that all "
            "must lie between -40 and 40: choose smaller numbers."
        )
    return np.exp(scores)


def require_cell(start: tuple[int, int], rows: int, columns: int) -> None:
    """Raise an `InputError` unless `start` is a cell of such a table."""
    if not (0 <= start[0] < rows and 0 <= start[1] < columns):
        raise InputError(
            f"start is {start}, but the table has {rows} rows and {columns} columns, "
            "both counted from 0: choose a cell of it."
        )


def rounded(table: np.ndarray, digits: int = 9) -> list[Any]:
    """An array as nested lists for a script.

    Far more digits than are shown: rounding twice may end elsewhere than once.
    """
    return np.round(table, digits).tolist()


def slider(
    name: str,
    label: str,
    at: int | float,
    shown: str,
    *,
    low: int | float = 0,
    high: int | float,
    step: int | float = 1,
) -> str:
    """A slider with its label before and its value, in words, behind it.

    A slider says its value itself: what is shown would be heard once more in its name,
    and a third time as an output.
    """
    return (
        f'<label class="aiayn-slider"><span>{escape(label)}</span>'
        f'<input type="range" name="{name}" min="{low:g}" max="{high:g}" '
        f'step="{step:g}" value="{at:g}" autocomplete="off">'
        f'<output aria-hidden="true">{escape(shown)}</output></label>'
    )


def status(says: str) -> str:
    """The line that says what is chosen; a screen reader hears when it changes."""
    return f'<p class="aiayn-says" role="status" aria-live="polite">{says}</p>'

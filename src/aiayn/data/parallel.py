"""§5.1: sentence pairs, and how to read them from two files."""

import hashlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, overload

from aiayn.data.text import MemmapLines, read_lines
from aiayn.data.tokenizer import checked_lines
from aiayn.errors import InputError


@dataclass(frozen=True)
class ParallelText:
    """One split of a corpus: line i of the target translates line i of the source.

    The sides are sequences of strings: tuples, or `MemmapLines` where a corpus is too
    large for the memory. Lists, columns of pandas and others become tuples.

    Raises:
        InputError: A line is no text, or the sides have not as many lines.

    Paper: §5.1.

    >>> text = ParallelText(("a dog", "a cat"), ("ein Hund", "eine Katze"))
    >>> len(text), list(text[:1])
    (2, [('a dog', 'ein Hund')])
    """

    source: Sequence[str]
    """Sentences to translate."""
    target: Sequence[str]
    """Their translations."""

    def __post_init__(self) -> None:
        """Check that the two sides hold text, and have the same length."""
        for name, side in (("source", self.source), ("target", self.target)):
            if not isinstance(side, MemmapLines):  # which holds nothing but text
                object.__setattr__(self, name, tuple(checked_lines(side, name)))
        if len(self.source) != len(self.target):
            raise InputError(
                f"The two sides of a parallel text must have as many lines: source has "
                f"{len(self.source):,}, target {len(self.target):,}."
            )

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], swap: bool = False) -> Self:
        """Sentence pairs held in memory; swap exchanges source and target."""
        sides = tuple(zip(*pairs, strict=True)) or ((), ())
        return cls(*(reversed(sides) if swap else sides))

    def __len__(self) -> int:
        return len(self.source)

    @property
    def digest(self) -> str:
        """The sha256 of its lines: equal for texts of the same pairs."""
        total = hashlib.sha256()
        for side in (self.source, self.target):
            if isinstance(side, MemmapLines):
                total.update(side.raw)
            else:
                text = "".join(f"{line}\n" for line in side)
                total.update(text.encode("utf-8", "surrogatepass"))
        return total.hexdigest()

    @overload
    def __getitem__(self, index: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> "ParallelText": ...
    def __getitem__(self, index: int | slice) -> "tuple[str, str] | ParallelText":
        """One pair, or some of them: ``text[:1000]`` are the first thousand."""
        if isinstance(index, slice):
            return ParallelText(self.source[index], self.target[index])
        return self.source[index], self.target[index]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.source, self.target, strict=True)


def read_parallel(source_path: str | Path, target_path: str | Path) -> ParallelText:
    r"""Read two files in which line i of one translates line i of the other.

    A pair is left out if one of its sides is empty or only white space, as some pairs
    of most real corpora are. A warning says how many were left out.

    Args:
        source_path: One sentence a line, UTF-8, packed with gzip if it ends in .gz.
        target_path: The same for the translations.

    Returns:
        The pairs, with their lines unchanged.

    Raises:
        InputError: A file cannot be read (see `read_lines`), the files differ in their
            number of lines, or no pair is left.

    Not in the paper.

    >>> _ = Path("some.en").write_text("a dog\na cat\n")
    >>> _ = Path("some.de").write_text("ein Hund\neine Katze\n")
    >>> list(read_parallel("some.en", "some.de"))
    [('a dog', 'ein Hund'), ('a cat', 'eine Katze')]
    """
    sources, targets = tuple(read_lines(source_path)), tuple(read_lines(target_path))
    if len(sources) != len(targets):
        raise InputError(
            f"{source_path} has {len(sources):,} lines and {target_path} "
            f"{len(targets):,}; line i of one must translate line i of the other."
        )
    pairs = list(zip(sources, targets, strict=True))
    full = [pair for pair in pairs if all(map(str.strip, pair))]
    if not full:
        raise InputError(f"{source_path} and {target_path} hold no pair of sentences.")
    if len(full) < len(pairs):
        warnings.warn(
            f"{len(pairs) - len(full):,} of {len(pairs):,} pairs of {source_path} and "
            f"{target_path} are empty on one side and were left out.",
            stacklevel=2,
        )
    return ParallelText.from_pairs(full)

"""§5.1: sentence pairs, and reading them from a reader's own two files."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

from aiayn.data.text import read_lines, refuse_text
from aiayn.errors import InputError

# What a side may weigh that is held in memory: about 20 million sentences.
MAX_SIDE_BYTES = 2 * 2**30


@dataclass(frozen=True)
class ParallelText:
    """One split of a corpus: line i of the target translates line i of the source.

    The sides are sequences of strings, tuples for every corpus that fits into memory; a
    loader of a larger one may give a sequence that reads from disk.

    Paper: §5.1.

    >>> text = ParallelText(("a dog", "a cat"), ("ein Hund", "eine Katze"))
    >>> len(text), list(text[:1])
    (2, [('a dog', 'ein Hund')])
    """

    source: Sequence[str]
    """Sentences to translate."""
    target: Sequence[str]
    """Their translations."""
    skipped: tuple[int, ...] = ()
    """Numbers of the lines of a file that were left out, counted from 1."""

    def __post_init__(self) -> None:
        """Hold the two sides to the same length."""
        refuse_text(self.source)
        refuse_text(self.target)
        if len(self.source) != len(self.target):
            raise InputError(
                f"The two sides of a parallel text must have as many lines: source has "
                f"{len(self.source):,}, target {len(self.target):,}."
            )

    def __len__(self) -> int:
        return len(self.source)

    @overload
    def __getitem__(self, some: int) -> tuple[str, str]: ...

    @overload
    def __getitem__(self, some: slice) -> "ParallelText": ...

    def __getitem__(self, some: int | slice) -> "tuple[str, str] | ParallelText":
        """One pair, or some of them: ``text[:1000]`` are the first thousand."""
        if not isinstance(some, slice):
            return self.source[some], self.target[some]
        return ParallelText(self.source[some], self.target[some])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.source, self.target, strict=True)


def read_parallel(source_path: str | Path, target_path: str | Path) -> ParallelText:
    r"""Read two files of which line i of one translates line i of the other.

    Real corpora hold some empty lines. A pair with a side that is empty or only white
    space teaches nothing, so it is left out; a warning says how many were, and
    `ParallelText.skipped` which.

    Args:
        source_path: One sentence a line, UTF-8, gzip-packed if it ends in .gz.
        target_path: The same for the translations.

    Returns:
        The pairs, their lines as they stand in the files.

    Raises:
        InputError: A file cannot be read (see `aiayn.data.text.read_lines`), the files
            differ in their number of lines, or no pair is left; or there is more text
            than a memory should hold.

    Not in the paper.

    >>> _ = Path("some.en").write_text("a dog\na cat\n")
    >>> _ = Path("some.de").write_text("ein Hund\neine Katze\n")
    >>> list(read_parallel("some.en", "some.de"))
    [('a dog', 'ein Hund'), ('a cat', 'eine Katze')]
    """
    sources, targets = _read_side(source_path), _read_side(target_path)
    if len(sources) != len(targets):
        raise InputError(
            f"{source_path} has {len(sources):,} lines and {target_path} "
            f"{len(targets):,}; line i of one must translate line i of the other."
        )
    full = [
        bool(s.strip() and t.strip()) for s, t in zip(sources, targets, strict=True)
    ]
    if not any(full):
        raise InputError(
            f"{source_path} and {target_path} hold no pair of sentences: every line is "
            "empty on one side or both."
        )
    skipped = tuple(number for number, keep in enumerate(full, 1) if not keep)
    if not skipped:
        return ParallelText(sources, targets)
    warnings.warn(
        f"{len(skipped):,} of {len(full):,} pairs of {source_path} and {target_path} "
        f"are empty on one side and were left out, the first in line {skipped[0]}.",
        stacklevel=2,
    )
    return ParallelText(
        tuple(s for s, keep in zip(sources, full, strict=True) if keep),
        tuple(t for t, keep in zip(targets, full, strict=True) if keep),
        skipped,
    )


def _read_side(path: str | Path) -> tuple[str, ...]:
    lines, read = [], 0
    for line in read_lines(path):
        read += len(line) + 1
        if read > MAX_SIDE_BYTES:
            raise InputError(
                f"{path} holds more than {MAX_SIDE_BYTES:,} characters, and a corpus "
                "of your own is held in memory: take a part of it."
            )
        lines.append(line)
    return tuple(lines)

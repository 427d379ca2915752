"""§5.1: a corpus, whatever it was read from."""

from collections.abc import Mapping
from dataclasses import dataclass

from aiayn.data.parallel import ParallelText
from aiayn.errors import InputError


@dataclass(frozen=True)
class Corpus:
    """Parallel text in named splits, with what its makers ask us to pass on.

    Paper: §5.1.

    >>> corpus = load_corpus("grammar", size=200)
    >>> corpus.source_language, corpus.target_language, len(corpus.train)
    ('en', 'de', 200)
    """

    name: str
    """As `load_corpus` knows it, or the folder."""
    source_language: str
    """en, de, …"""
    target_language: str
    """Likewise; trees for a parser."""
    splits: Mapping[str, ParallelText]
    """By name: train, validation, test and what else there is."""
    licence: str
    """On what terms one has it."""
    citation: str
    """Whom to cite."""

    @property
    def train(self) -> ParallelText:
        """The pairs to learn from."""
        return self.split("train")

    @property
    def validation(self) -> ParallelText:
        """The pairs to choose by."""
        return self.split("validation")

    @property
    def test(self) -> ParallelText:
        """The pairs to report, once."""
        return self.split("test")

    def split(self, name: str) -> ParallelText:
        """The split of that name; an InputError lists the names that there are."""
        if name not in self.splits:
            raise InputError(
                f"The corpus {self.name} has no split {name!r}; it has "
                f"{', '.join(self.splits)}."
            )
        return self.splits[name]


def check_languages(
    name: str, source: str, target: str, known: tuple[str, ...]
) -> None:
    """Refuse a direction that the corpus does not have, with an InputError."""
    for argument, language in (("source", source), ("target", target)):
        if language not in known:
            raise InputError(
                f"The corpus {name} is in {', '.join(known)}; {argument}={language!r} "
                "is none of them."
            )

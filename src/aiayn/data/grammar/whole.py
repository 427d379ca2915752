"""Whole sentences from clauses: final punctuation, and a subordinate clause's place."""

from collections.abc import Callable

from aiayn.data.grammar.clauses import Clause, SubordinateClause
from aiayn.data.grammar.draw import Draw
from aiayn.data.grammar.english_order import english_clause
from aiayn.data.grammar.german_order import german_clause
from aiayn.data.grammar.phrases import Draft, word

Pair = tuple[Draft, Callable[[], Draft]]
"""The English draft; the German one is written, once, only if the sentence is kept."""


def finished(
    source: list, target: Callable[[], list], mark: str, link: int, label: str = "S"
) -> Pair:
    return (
        (label, [*source, word(".", mark, link)]),
        lambda: (label, [*target(), word("$.", mark, link)]),
    )


def statement(draw: Draw, clause: Clause) -> Pair:
    return finished(
        english_clause(clause),
        lambda: german_clause(clause, "second"),
        ".",
        draw.links(1),
    )


def with_subordinate(
    draw: Draw, main: Clause, clause: SubordinateClause, first: bool
) -> Pair:
    draw.tags.add("subordinate")
    if first:
        comma = draw.links(1)
        source = [clause.english(), word(",", ",", comma), *english_clause(main)]

        def target() -> list:
            front, *rest = german_clause(main, "second", front=clause.german())
            return [front, word("$,", ",", comma), *rest]

        return finished(source, target, ".", draw.links(1))
    main.content = clause
    return statement(draw, main)

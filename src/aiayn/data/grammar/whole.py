"""Whole sentences from clauses: final punctuation, and a subordinate clause's place."""

from aiayn.data.grammar.clauses import Clause, SubordinateClause
from aiayn.data.grammar.draw import Draw
from aiayn.data.grammar.english_order import english_clause
from aiayn.data.grammar.german_order import german_clause
from aiayn.data.grammar.phrases import Draft, word

Pair = tuple[Draft, Draft]


def finished(
    source: list, target: list, mark: str, link: int, label: str = "S"
) -> Pair:
    tag = "$."
    return (
        (label, [*source, word(".", mark, link)]),
        (label, [*target, word(tag, mark, link)]),
    )


def statement(draw: Draw, clause: Clause) -> Pair:
    source, target = english_clause(clause), german_clause(clause, "second")
    return finished(source, target, ".", draw.links(1))


def with_subordinate(
    draw: Draw, main: Clause, clause: SubordinateClause, first: bool
) -> Pair:
    draw.tags.add("subordinate")
    if first:
        comma = draw.links(1)
        source = [clause.english(), word(",", ",", comma), *english_clause(main)]
        front = clause.german()
        target = german_clause(main, "second", front=front)
        target.insert(1, word("$,", ",", comma))
        return finished(source, target, ".", draw.links(1))
    main.content = clause
    return statement(draw, main)

"""Chapter 17, search and BLEU: what a beam finds that greedy search misses.

Paper: §6.1.
"""

from collections import Counter
from collections.abc import Sequence

import altair as alt
import pandas as pd

from aiayn.inference.hypothesis import Hypothesis
from aiayn_book.colours import SERIES

OUTCOMES = ("both right", "only beam right", "only greedy right", "both wrong")
FOUND = ("the same output", "the beam's is more probable", "greedy's is more probable")


def greedy_beside_beam(
    greedy: Sequence[Hypothesis],
    beam: Sequence[Hypothesis],
    references: Sequence[Sequence[int]],
) -> pd.DataFrame:
    """Count sentences by which output is more probable and by which is right.

    Args:
        greedy: What greedy search found.
        beam: What a beam found, ranked by plain probability.
        references: The right tokens, without their end tokens.

    Returns:
        A row for each element of `FOUND`, a column for each of `OUTCOMES`.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for g, b, reference in zip(greedy, beam, references, strict=True):
        right = list(g.tokens) == list(reference), list(b.tokens) == list(reference)
        outcome = {
            (True, True): "both right",
            (False, True): "only beam right",
            (True, False): "only greedy right",
            (False, False): "both wrong",
        }[right]
        found = FOUND[0]
        if g.tokens != b.tokens:
            found = FOUND[1 if b.log_probability >= g.log_probability else 2]
        counts[found, outcome] += 1
    rows = {row: [counts[row, column] for column in OUTCOMES] for row in FOUND}
    return pd.DataFrame.from_dict(rows, "index", columns=list(OUTCOMES))


def instructive_case(
    greedy: Sequence[Hypothesis],
    beam: Sequence[Hypothesis],
    references: Sequence[Sequence[int]],
) -> int:
    """A sentence that only the beam gets right, the shortest; else one that differs."""

    def worth(k: int) -> tuple[bool, bool, int]:
        g, b, reference = greedy[k], beam[k], list(references[k])
        only_beam = list(b.tokens) == reference and list(g.tokens) != reference
        return only_beam, b.log_probability > g.log_probability, -len(g.tokens)

    return max(range(len(greedy)), key=worth)


def outcome_chart(counts: pd.DataFrame) -> alt.Chart:
    """The table of `greedy_beside_beam` as stacked bars."""
    rows = [
        {
            "found": found,
            "outcome": outcome,
            "sentences": int(counts.loc[found, outcome]),
        }
        for found in counts.index
        for outcome in counts.columns
    ]
    colours = [colour.mark for colour in SERIES[: len(OUTCOMES)]]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("sentences:Q", stack="zero"),
            y=alt.Y("found:N", title=None, sort=list(FOUND)),
            color=alt.Color(
                "outcome:N",
                title=None,
                scale=alt.Scale(domain=list(OUTCOMES), range=colours),
                legend=alt.Legend(columns=2, symbolType="square", symbolStrokeWidth=0),
            ),
            tooltip=["found:N", "outcome:N", "sentences:Q"],
        )
        .properties(
            width="container",
            height=36 * len(FOUND),
            description="Three bars: sentences for which greedy search and beam found "
            "the same output, for which the beam's is more probable, and for which "
            "greedy's is. Each is cut into both right, only one right, and both wrong.",
        )
    )

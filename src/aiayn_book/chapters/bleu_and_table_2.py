"""Chapter 17b, BLEU and Table 2: its sentences, drawings, charts and claims.

Paper: §6.1, Table 2.
"""

import difflib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from aiayn_book import paper, settle
from aiayn_book.bleu import (
    bleu,
    bootstrap_differences,
    sentence_counts,
    split_compounds,
    words_13a,
)
from aiayn_book.colours import ALERT, KEY, NEUTRAL, QUERY, VALUE, css_colour
from aiayn_book.diagrams import Diagram
from aiayn_book.html import escape
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

BY_HAND = ("ein Hund läuft im Schnee .", "ein Hund läuft durch den Schnee .")
ORDERS = ("words", "pairs", "triples", "fours")


class Translated(NamedTuple):
    """A sentence, its reference, and two translations."""

    english: str
    reference: str
    reworded: str
    """Without a mistake, in other words."""
    altered: str
    """The reference, with one word of another sense."""


SENTENCES = (  # written for this chapter
    Translated(
        "By 2030, the city wants to replace all buses with electric vehicles.",
        "Die Stadt will bis zum Jahr 2030 alle Busse durch elektrische Fahrzeuge "
        "ersetzen.",
        "Bis 2030 möchte die Stadt alle Busse durch Elektrofahrzeuge ersetzen.",
        "Die Stadt will bis zum Jahr 2030 keine Busse durch elektrische Fahrzeuge "
        "ersetzen.",
    ),
    Translated(
        "After the storm, more than a hundred schools stayed closed on Tuesday.",
        "Nach dem Sturm blieben am Dienstag mehr als hundert Schulen geschlossen.",
        "Mehr als hundert Schulen blieben nach dem Sturm am Dienstag geschlossen.",
        "Vor dem Sturm blieben am Dienstag mehr als hundert Schulen geschlossen.",
    ),
    Translated(
        "The minister said that he would present the law before the summer break.",
        "Der Minister sagte, er werde das Gesetz noch vor der Sommerpause vorlegen.",
        "Der Minister kündigte an, das Gesetz noch vor der Sommerpause vorzulegen.",
        "Der Minister sagte, er werde das Gesetz nicht vor der Sommerpause vorlegen.",
    ),
    Translated(
        "Researchers have found traces of an old volcano in the Antarctic ice.",
        "Forscher haben im Eis der Antarktis Spuren eines alten Vulkans entdeckt.",
        "Im Eis der Antarktis haben Forscher Spuren eines alten Vulkans gefunden.",
        "Forscher haben im Eis der Antarktis Spuren eines alten Vulkans erfunden.",
    ),
    Translated(
        "The number of unemployed people fell slightly last month.",
        "Die Zahl der Arbeitslosen ist im vergangenen Monat leicht gesunken.",
        "Die Zahl der Arbeitslosen ging im letzten Monat leicht zurück.",
        "Die Zahl der Arbeitslosen ist im vergangenen Monat leicht gestiegen.",
    ),
    Translated(
        "Anyone who smokes on the train must expect a heavy fine in future.",
        "Wer im Zug raucht, muss in Zukunft mit einer hohen Strafe rechnen.",
        "Wer im Zug raucht, dem droht künftig eine hohe Strafe.",
        "Wer im Zug schläft, muss in Zukunft mit einer hohen Strafe rechnen.",
    ),
    Translated(
        "The concert was cancelled because the singer had suddenly fallen ill.",
        "Das Konzert wurde abgesagt, weil der Sänger plötzlich krank geworden war.",
        "Das Konzert wurde abgesagt, da der Sänger plötzlich erkrankt war.",
        "Das Konzert wurde abgesagt, obwohl der Sänger plötzlich krank geworden war.",
    ),
    Translated(
        "Two hikers were rescued from the mountain by helicopter in the evening.",
        "Zwei Wanderer wurden am Abend mit einem Hubschrauber vom Berg gerettet.",
        "Ein Hubschrauber rettete am Abend zwei Wanderer vom Berg.",
        "Zwei Wanderer wurden am Abend mit einem Hubschrauber vom Berg geworfen.",
    ),
)
REFERENCES = [one.reference for one in SENTENCES]
REWORDED = [one.reworded for one in SENTENCES]
ALTERED = [one.altered for one in SENTENCES]

Words = Sequence[str]


def counts_of(hypotheses: Words, references: Words) -> np.ndarray:
    """A row of nine numbers for each sentence, cut into words as sacreBLEU does."""
    pairs = zip(hypotheses, references, strict=True)
    return np.array([sentence_counts(words_13a(a), words_13a(b)) for a, b in pairs])


def score(hypotheses: Words, references: Words = REFERENCES) -> float:
    """BLEU of plain text."""
    return float(bleu(counts_of(hypotheses, references).sum(axis=0)))


# BLEU by hand.


def matches(hypothesis: Words, reference: Words, n: int) -> list[bool]:
    """Which n-grams of a translation count, each as often as the reference has it.

    >>> matches("der der Hund".split(), "der Hund".split(), 1)
    [True, False, True]
    """
    left = Counter(_grams(reference, n))
    found = []
    for gram in _grams(hypothesis, n):
        found.append(left[gram] > 0)
        left[gram] -= 1
    return found


def _grams(words: Words, n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(n)), strict=False)


def by_hand() -> list[Svg]:
    """The key picture: what is found, and the score that comes of it."""
    translation, reference = (line.split() for line in BY_HAND)
    return [found_runs(translation, reference), from_counts_to_score(*BY_HAND)]


def found_runs(translation: Words, reference: Words) -> Svg:
    """The n-grams of a translation as bars below its words."""
    step, left, y = 50, 30, 92
    drawing = Diagram(338, 306)
    drawing.text(4, 14, "reference", anchor="start", bold=True)
    drawing.text(4, 36, " ".join(reference), anchor="start", italic=True)
    drawing.text(4, 66, "translation", anchor="start", bold=True)
    shares = []
    for n, name in enumerate(ORDERS, start=1):
        found = matches(translation, reference, n)
        shares.append(f"{sum(found)} of {len(found)} {name}")
        for start, hit in enumerate(found):
            role = "value" if hit else "alert"
            if n == 1:
                x = left + step * start
                drawing.box(x, y, translation[start], width=step - 6, role=role)
                continue
            level = y + 13 * (start % n)
            ends = (left + step * start - 18, left + step * (start + n - 1) + 18)
            drawing.arrow(
                (ends[0], level),
                (ends[1], level),
                role=role,
                head=False,
                dashed=not hit,
                width=6 if hit else 2.5,
            )
        drawing.text(334, y, f"{sum(found)}/{len(found)}", anchor="end", bold=True)
        y += 40 if n == 1 else 13 * n + 18
    drawing.text(4, 296, "thick: in the reference too", anchor="start", role="value")
    drawing.text(334, 296, "dashed: not", anchor="end", role="alert")
    return drawing.finish(
        "What a translation shares with its reference",
        f"{' '.join(translation)} beside {' '.join(reference)} Found: "
        + ", ".join(shares)
        + ". Below the words, each pair, triple and four of neighbours is a bar.",
    )


def from_counts_to_score(translation: str, reference: str) -> Svg:
    """Four precisions as bars, their geometric mean, the brevity factor, BLEU."""
    counts = np.array(sentence_counts(translation.split(), reference.split()))
    found, written = counts[1:5], counts[5:]
    precisions = smoothed_precisions(counts)
    drawing = Diagram(338, 306)
    drawing.text(4, 14, "precision", anchor="start", bold=True)
    left, room = 70, 180
    for row, (name, precision) in enumerate(zip(ORDERS, precisions, strict=True)):
        y = 44 + 36 * row
        drawing.text(left - 8, y, name, anchor="end")
        drawing.arrow((left, y), (left + room, y), head=False, width=0.6)
        end = left + room * precision
        drawing.arrow((left, y), (end, y), role="value", head=False, width=14)
        share = f"{found[row]}/{written[row]}" if found[row] else f"½/{written[row]}"
        drawing.text(334, y, f"{share} = {precision:.2f}", anchor="end")
    mean = float(np.prod(precisions) ** 0.25)
    factor = brevity(counts[5] / counts[0])
    y = 192
    drawing.text(4, y, "their geometric mean", anchor="start")
    drawing.text(334, y, f"{mean:.3f}", anchor="end")
    drawing.text(4, y + 28, "times the brevity penalty", anchor="start")
    drawing.text(334, y + 28, f"{factor:.3f}", anchor="end")
    drawing.text(4, y + 56, "times 100", anchor="start")
    drawing.arrow((240, y + 72), (334, y + 72), head=False, width=1)
    drawing.text(4, y + 92, "BLEU", anchor="start", bold=True)
    drawing.text(334, y + 92, f"{bleu(counts):.1f}", anchor="end", bold=True)
    return drawing.finish(
        "From counts to a score",
        f"Four precisions, from {precisions[0]:.2f} for words down to "
        f"{precisions[3]:.2f} for fours; their geometric mean {mean:.3f} times the "
        f"brevity penalty {factor:.3f} times 100 is a BLEU of {bleu(counts):.1f}.",
    )


def smoothed_precisions(counts: np.ndarray) -> np.ndarray:
    """The four precisions; orders without a match count as a half, a quarter, …"""
    found, written = counts[1:5], counts[5:]
    missed = found == 0
    halves = np.where(missed, 0.5 ** np.cumsum(missed), found)
    return halves / np.maximum(written, 1)


def brevity(ratio: float) -> float:
    """The penalty of a translation whose length is `ratio` times the reference's."""
    return float(np.exp(min(0.0, 1 - 1 / ratio)))


def clipped_words() -> Svg:
    """A translation of one word, repeated, joined to the words that it uses up."""
    drawing = Diagram(338, 196)
    drawing.text(4, 14, "translation", anchor="start", bold=True)
    written = drawing.tokens(169, 46, ["der"] * 5, step=60)
    wanted = ["der", "Bruder", "der", "Mutter", "lacht", "."]
    drawing.text(4, 170, "reference", anchor="start", bold=True)
    kept = drawing.tokens(169, 138, wanted, step=55)
    places = [kept[at] for at, word in enumerate(wanted) if word == "der"]
    for at, x in enumerate(written):
        if at < len(places):
            drawing.arrow((x, 60), (places[at], 124), role="value", width=3)
        else:
            drawing.arrow((x, 60), (x, 84), role="alert", dashed=True, head=False)
            drawing.text(x, 94, "✗", role="alert", bold=True)
    drawing.text(334, 170, "2 of 5 count", anchor="end", bold=True)
    return drawing.finish(
        "Clipping",
        "The translation is five times the word der. The reference has it twice, so "
        "two of the five are joined to it, and three count for nothing.",
    )


def brevity_curve() -> alt.LayerChart:
    """The factor against the ratio of lengths."""
    ratios = np.linspace(0.3, 1.6, 131)
    curve = pd.DataFrame({"ratio": ratios, "factor": [brevity(r) for r in ratios]})
    marked = pd.DataFrame(
        [(6 / 7, "our 6 of 7 words"), (0.5, "half of it"), (1.5, "half as much again")],
        columns=["ratio", "name"],
    )
    marked["factor"] = [brevity(r) for r in marked.ratio]
    x = alt.X(
        "ratio:Q",
        title="length of the translation / reference",
        scale=alt.Scale(domain=[0.3, 1.6]),
    )
    y = alt.Y("factor:Q", title="factor", scale=alt.Scale(domain=[0, 1.15]))
    line = alt.Chart(curve).mark_line(color=KEY.mark).encode(x=x, y=y)
    dots = alt.Chart(marked).encode(x=x, y=y)
    left = dots.transform_filter("datum.ratio < 1")
    return alt.layer(
        line,
        dots.mark_point(filled=True, size=80, color=QUERY.mark, opacity=1),
        left.mark_text(align="left", dx=9, dy=9).encode(text="name:N"),
        dots.transform_filter("datum.ratio > 1")
        .mark_text(align="right", dx=9, dy=-14)
        .encode(text="name:N"),
    ).properties(
        width="container",
        height=196,
        description="The brevity penalty against the ratio of lengths: it rises from "
        "0.1 at 0.3 to 1 at equal lengths, 0.37 at one half, and stays 1 beyond.",
    )


# What 28.4 looks like.


@dataclass(frozen=True)
class Sentences:
    """Lines of text under a title, as HTML."""

    title: str
    rows: tuple[str, ...]

    @property
    def html(self) -> str:
        rows = "".join(f'<p style="margin: .5rem 0 0">{row}</p>' for row in self.rows)
        return f"<div><strong>{escape(self.title)}</strong>{rows}</div>"


@dataclass(frozen=True)
class Columns:
    """Sentences side by side where there is room, as a panel of a figure."""

    parts: tuple[Sentences, ...]

    def _repr_html_(self) -> str:
        style = (
            "display: grid; gap: 1.2rem; line-height: 1.45; "
            "grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr))"
        )
        return f'<div style="{style}">{"".join(part.html for part in self.parts)}</div>'


def _marked(word: str, role: str, *, line: str = "solid") -> str:
    style = f"color: {css_colour(role)}; font-weight: 600; "
    return f'<span style="{style}border-bottom: 2px {line}">{escape(word)}</span>'


def beside_reference(one: Translated, which: str) -> str:
    """A translation in which the words that its reference lacks are underlined."""
    words = words_13a(getattr(one, which))
    found = matches(words, words_13a(one.reference), 1)
    shown = (
        escape(word) if hit else _marked(word, "alert")
        for word, hit in zip(words, found, strict=True)
    )
    return _closed_up(" ".join(shown))


def _closed_up(line: str) -> str:
    """Without the space before a comma or a full stop."""
    return line.replace(" ,", ",").replace(" .", ".")


def two_translations(some: Sequence[int] = (0, 4, 6, 7)) -> Columns:
    """The same sentences reworded and altered, each with its score."""
    parts = []
    for which, title in (
        ("reworded", f"without a mistake: BLEU {score(REWORDED):.1f}"),
        ("altered", f"each sentence false: BLEU {score(ALTERED):.1f}"),
    ):
        rows = (
            f"<em>{escape(SENTENCES[i].reference)}</em><br>"
            f"{beside_reference(SENTENCES[i], which)}"
            for i in some
        )
        parts.append(Sentences(title, tuple(rows)))
    return Columns(tuple(parts))


def listed() -> Styler:
    """The sentences with their reference and the translation in other words."""
    rows = [(one.english, one.reference, one.reworded) for one in SENTENCES]
    table = pd.DataFrame(rows, columns=["English", "reference", "translation"])
    return table.style.set_properties(**{"text-align": "left"}).hide(axis="index")


def caption_counts(run: Mapping[str, Any], name: str) -> np.ndarray:
    """A recorded search's rows of nine numbers, one for each validation caption."""
    reference = np.array(run["counts"]["reference"].split(), dtype=int)
    kept = np.array(run["counts"][name].split(), dtype=int).reshape(-1, 5)
    length, found = kept[:, :1], kept[:, 1:]
    possible = np.maximum(length - np.arange(4), 0)
    return np.hstack([reference[:, None], found, possible])


def profiles() -> dict[str, np.ndarray]:
    """The four precisions of three corpora."""
    captions = caption_counts(load_record("search")["runs"][0], "paper")
    corpora = {
        "reworded, no mistake": counts_of(REWORDED, REFERENCES),
        "one word altered in each": counts_of(ALTERED, REFERENCES),
        "a trained model, captions": captions,
    }
    return {
        f"{name}: BLEU {bleu(counts.sum(axis=0)):.1f}": smoothed_precisions(
            counts.sum(axis=0)
        )
        for name, counts in corpora.items()
    }


def precision_chart(found: Mapping[str, np.ndarray]) -> alt.LayerChart:
    """Precisions against the length of the n-gram."""
    rows = [
        {"n-gram": order, "precision": share, "translations": name}
        for name, shares in found.items()
        for order, share in zip(ORDERS, shares, strict=True)
    ]
    names = list(found)
    colours = alt.Scale(domain=names, range=[QUERY.mark, ALERT.mark, KEY.mark])
    legend = alt.Legend(columns=1, labelLimit=0, symbolType="circle")
    base = alt.Chart(pd.DataFrame(rows)).encode(
        x=alt.X(
            "n-gram:N",
            sort=list(ORDERS),
            title=None,
            axis=alt.Axis(labelAngle=0),
        ),
        y=alt.Y(
            "precision:Q",
            axis=alt.Axis(format="%"),
            scale=alt.Scale(domain=[0, 1]),
        ),
        color=alt.Color("translations:N", scale=colours, title=None, legend=legend),
        tooltip=["translations", "n-gram", alt.Tooltip("precision:Q", format=".1%")],
    )
    return alt.layer(
        base.mark_line(), base.mark_point(filled=True, size=70, opacity=1)
    ).properties(
        width="container",
        height=240,
        description="Three falling lines, the precision of words, pairs, triples and "
        "fours: " + "; ".join(f"{n} falls to {s[3]:.0%}" for n, s in found.items()),
    )


# What half a point is worth.


@dataclass(frozen=True)
class Edit:
    """Words of one translation that are replaced by those of its reference."""

    sentence: int
    start: int
    end: int
    words: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many words are touched."""
        return max(self.end - self.start, len(self.words))


def edits(hypotheses: Words, references: Words = REFERENCES) -> list[Edit]:
    """What would have to be changed to make the references of the translations."""
    found = []
    for place, (ours, theirs) in enumerate(zip(hypotheses, references, strict=True)):
        a, b = words_13a(ours), words_13a(theirs)
        for kind, i, j, k, m in difflib.SequenceMatcher(
            None, a, b, False
        ).get_opcodes():
            if kind != "equal":
                found.append(Edit(place, i, j, tuple(b[k:m])))
    return found


def edited(hypotheses: Words, some: Sequence[Edit]) -> list[list[str]]:
    """The translations as words, with these edits made."""
    lines = [words_13a(line) for line in hypotheses]
    for edit in sorted(some, key=lambda one: (one.sentence, -one.start)):
        lines[edit.sentence][edit.start : edit.end] = edit.words
    return lines


def score_of_words(lines: Sequence[Words], references: Words = REFERENCES) -> float:
    """BLEU of translations that are cut into words already."""
    pairs = zip(lines, references, strict=True)
    rows = [sentence_counts(a, words_13a(b)) for a, b in pairs]
    return float(bleu(np.sum(rows, axis=0)))


NEARER = {
    0.5: {
        1: "Mehr als hundert Schulen blieben am Dienstag nach dem Sturm geschlossen.",
    },
    5: {
        3: "Im Eis der Antarktis haben Forscher Spuren eines alten Vulkans entdeckt.",
        4: "Die Zahl der Arbeitslosen ging im vergangenen Monat leicht zurück.",
    },
}
"""Changes of the reworded translation that are worth about so many points."""


def changed(points: float) -> list[str]:
    """All eight sentences after such a change."""
    new = NEARER[points]
    return [new.get(place, line) for place, line in enumerate(REWORDED)]


def nearer(points: float) -> Sentences:
    """The sentences that change, before and after, with the words that differ."""
    before, after = score(REWORDED), score(changed(points))
    rows = []
    for place, line in NEARER[points].items():
        old, new = words_13a(REWORDED[place]), words_13a(line)
        shown: tuple[list[str], list[str]] = ([], [])
        matcher = difflib.SequenceMatcher(None, old, new, False)
        for kind, i, j, k, m in matcher.get_opcodes():
            for side, words, role in (
                (shown[0], old[i:j], "alert"),
                (shown[1], new[k:m], "value"),
            ):
                same = kind == "equal"
                side += [escape(w) if same else _marked(w, role) for w in words]
        rows.append(
            f"<em>{escape(REFERENCES[place])}</em><br>"
            f"{_closed_up(' '.join(shown[0]))}<br>→ {_closed_up(' '.join(shown[1]))}"
        )
    title = f"{before:.1f} becomes {after:.1f}: {after - before:+.1f}"
    return Sentences(title, tuple(rows))


def two_differences() -> Columns:
    """Changes that are worth about half a point and about five."""
    return Columns(tuple(map(nearer, NEARER)))


def towards_the_reference(orders: int = 40, seed: int = 17) -> pd.DataFrame:
    """BLEU while edits are made one after the other, in several random orders."""
    draw = random.Random(seed)
    known = edits(REWORDED)
    total = sum(edit.size for edit in known)
    words = sum(len(words_13a(line)) for line in REFERENCES)
    rows = []
    for order in range(orders):
        queue = draw.sample(known, len(known))
        for made in range(len(queue) + 1):
            left = total - sum(edit.size for edit in queue[:made])
            after = score_of_words(edited(REWORDED, queue[:made]))
            rows.append((order, 100 * left / words, after))
    return pd.DataFrame(rows, columns=["order", "words", "BLEU"])


def points_for_each_word(runs: pd.DataFrame) -> float:
    """BLEU for each right word in a hundred: the slope of a straight line."""
    slope, _ = np.polyfit(runs.words, runs.BLEU, 1)
    return float(-slope)


def correction_chart(runs: pd.DataFrame) -> alt.LayerChart:
    """BLEU against the words that still differ, one thin line for each order."""
    x = alt.X(
        "words:Q",
        title="words that differ, per 100 of the reference",
        scale=alt.Scale(reverse=True),
    )
    y = alt.Y("BLEU:Q", scale=alt.Scale(domain=[0, 100]))
    lines = (
        alt.Chart(runs)
        .mark_line(color=KEY.mark, opacity=0.25, strokeWidth=1.5)
        .encode(x=x, y=y, detail="order:N")
    )
    ends = pd.DataFrame(
        [
            (runs.words.max(), runs.BLEU.min(), "28.4, reworded"),
            (0.0, 100.0, "the references"),
        ],
        columns=["words", "BLEU", "name"],
    )
    dots = alt.Chart(ends).encode(x=x, y=y)
    return alt.layer(
        lines,
        dots.mark_point(filled=True, size=80, color=QUERY.mark, opacity=1),
        dots.transform_filter("datum.words > 0")
        .mark_text(align="left", dx=4, dy=18)
        .encode(text="name:N"),
        dots.transform_filter("datum.words == 0")
        .mark_text(align="right", dx=-12)
        .encode(text="name:N"),
    ).properties(
        width="container",
        height=260,
        description="Forty lines from 28.4 BLEU up to 100: each makes the same edits "
        "in another order, and BLEU rises as fewer words differ from the reference.",
    )


# Is a difference real?


def matched(counts: np.ndarray) -> np.ndarray:
    """How many n-grams of each sentence are found, over all four orders."""
    return counts[:, 1:5].sum(axis=1)


def better_or_worse(one: np.ndarray, other: np.ndarray) -> dict[str, int]:
    """In how many sentences one system matches more n-grams than the other."""
    more = matched(one) - matched(other)
    return {
        "more matches": int((more > 0).sum()),
        "as many": int((more == 0).sum()),
        "fewer matches": int((more < 0).sum()),
    }


def share_bars(counts: Mapping[str, int], title: str) -> Svg:
    """Numbers of sentences as bars."""
    drawing = Diagram(338, 60 + 52 * len(counts))
    drawing.text(4, 14, title, anchor="start", bold=True)
    most = max(counts.values())
    roles = ("value", "neutral", "alert")
    for row, ((name, many), role) in enumerate(zip(counts.items(), roles, strict=True)):
        y = 46 + 52 * row
        drawing.text(4, y, f"{name}: {many}", anchor="start")
        end = 6 + 326 * many / most
        drawing.arrow((6, y + 19), (end, y + 19), role=role, head=False, width=14)
    told = ", ".join(f"{many} with {name}" for name, many in counts.items())
    return drawing.finish("Sentence by sentence", f"Of the sentences: {told}.")


def draws_chart(gains: np.ndarray) -> alt.LayerChart:
    """A histogram of the differences, with its middle 95 % between two rules."""
    low, high = np.quantile(gains, [0.025, 0.975])
    bars = (
        alt.Chart(pd.DataFrame({"gain": gains}))
        .mark_bar(color=KEY.mark)
        .encode(
            x=alt.X(
                "gain:Q",
                bin=alt.Bin(maxbins=30),
                title="difference in BLEU",
                axis=alt.Axis(values=[-0.5, 0, 0.5, 1, 1.5]),
            ),
            y=alt.Y("count()", title="draws"),
        )
    )
    ends = alt.Chart(pd.DataFrame({"gain": [low, high]}))
    return alt.layer(
        bars,
        ends.mark_rule(color=QUERY.mark, strokeDash=[6, 4], size=2).encode(x="gain:Q"),
    ).properties(
        width="container",
        height=216,
        description="A histogram of a thousand differences of BLEU between a beam of 4 "
        "and greedy search, one for each draw of sentences: a bell around the observed "
        f"difference. Dashed lines hold 95 % of them, from {low:.2f} to {high:.2f}.",
    )


def interval(counts: np.ndarray, resamples: int = 1000) -> tuple[float, float]:
    """The middle 95 % of one system's BLEU over draws of its sentences."""
    nothing = np.zeros_like(counts)
    low, high = np.quantile(
        bootstrap_differences(counts, nothing, resamples=resamples), [0.025, 0.975]
    )
    return float(low), float(high)


def test_scores() -> list[float]:
    """The test BLEU of trainings that differ in their seed only."""
    runs = load_record("search")["runs"]
    return [load_record(run["name"])["test"]["bleu"] for run in runs]


# How words are cut.

CUTS = {  # the record's names, and what a reader needs to know of them
    "not tokenised": "not cut: Schnee. is one word",
    "13a": "13a, sacreBLEU's default",
    "intl": "intl, by Unicode classes",
    "13a, lower case": "13a, in lower case",
    "13a, compounds split": "13a, compounds split",
}


def cut_sentence(line: str = "Im T-Shirt, bei Schnee.") -> Svg:
    """One sentence cut into words in three ways."""
    ways = {
        "not cut: {} words": line.split(),
        "13a: {} words": words_13a(line),
        "13a, compounds split: {} words": split_compounds(words_13a(line)),
    }
    drawing = Diagram(360, 226)
    for row, (name, words) in enumerate(ways.items()):
        y = 16 + 76 * row
        drawing.text(4, y, name.format(len(words)), anchor="start", bold=True)
        shown = [word.replace("##AT##-##AT##", "⟨-⟩") for word in words]
        x = 4.0
        for word in shown:
            width = 8 * len(word) + 12
            drawing.box(x + width / 2, y + 30, word, width=width)
            x += width + 5
    told = "; ".join(f"{n.format(len(w))}, {' | '.join(w)}" for n, w in ways.items())
    return drawing.finish("One sentence, cut in three ways", told + ".")


def conventions() -> pd.DataFrame:
    """Recorded test translations under each way of cutting, and run."""
    rows = []
    for number, run in enumerate(load_record("search")["runs"], start=1):
        known = run["test"]["conventions"]
        for name, words in CUTS.items():
            rows.append((words, f"seed {number}", known[name]))
    return pd.DataFrame(rows, columns=["cut", "run", "BLEU"])


def convention_chart(table: pd.DataFrame) -> alt.Chart:
    """A row for each way of cutting, a mark for each run."""
    legend = alt.Legend(orient="top")  # one for both, or Vega sees a conflict
    return (
        alt.Chart(table)
        .mark_point(filled=True, size=80, opacity=1)
        .encode(
            x=alt.X("BLEU:Q", scale=alt.Scale(zero=False, padding=14)),
            y=alt.Y(
                "cut:N",
                sort=list(CUTS.values()),
                title=None,
                axis=alt.Axis(labelLimit=220, grid=True),
            ),
            color=alt.Color(
                "run:N",
                title=None,
                scale=alt.Scale(range=[KEY.mark, QUERY.mark, VALUE.mark]),
                legend=legend,
            ),
            shape=alt.Shape("run:N", title=None, legend=legend),
            tooltip=["cut", "run", alt.Tooltip("BLEU:Q", format=".2f")],
        )
        .properties(
            width="container",
            height=190,
            description="The BLEU of the same translations of three models, cut into "
            "words in five ways. Without cutting, each is more than a point lower; in "
            "lower case each is higher.",
        )
    )


# Compounds, split at their hyphens.


def compound_before_and_after() -> Svg:
    """A right compound is one match, or three and the runs between them."""
    pair = "Das T-Shirt war rot .", "Das T-Shirt ist rot ."
    drawing = Diagram(360, 268)
    told = []
    for row, (name, cut) in enumerate(
        (("as it is", list), ("split at the hyphen", split_compounds))
    ):
        ours, theirs = (cut(line.split()) for line in pair)
        counts = np.array(sentence_counts(ours, theirs))
        y = 16 + 134 * row
        drawing.text(4, y, name, anchor="start", bold=True)
        drawing.text(
            356, y, f"BLEU {bleu(counts):.1f}", anchor="end", role="query", bold=True
        )
        x = 4.0
        for word, hit in zip(ours, matches(ours, theirs, 1), strict=True):
            shown = word.replace("##AT##-##AT##", "⟨-⟩")
            width = 8 * len(shown) + 14
            role = "value" if hit else "alert"
            drawing.box(x + width / 2, y + 32, shown, width=width, role=role)
            x += width + 5
        found = [
            f"{hits}/{many} {order}"
            for order, hits, many in zip(ORDERS, counts[1:5], counts[5:], strict=True)
        ]
        drawing.text(4, y + 66, ", ".join(found[:2]), anchor="start")
        drawing.text(4, y + 86, ", ".join(found[2:]), anchor="start")
        told.append(f"{name}: {', '.join(found)}, BLEU {bleu(counts):.1f}")
    return drawing.finish(
        "What splitting a compound does",
        "The reference is Das T-Shirt ist rot, the translation has war for ist. "
        + "; ".join(told)
        + ".",
    )


REPORTED = {
    "users of the authors' code: 0.7 to 1": (0.7, 1.0),
    "another model, 29.3 beside 28.6": (29.3 - 28.6, 29.3 - 28.6),
}
"""What was published on the paper's test set: tensor2tensor, issue 317 (January 2018);
fairseq, issue 435 (January 2019), on the model of Ott et al. (2018)."""


def splitting_gains() -> dict[str, tuple[float, float]]:
    """What splitting gained, on news as reported and on captions as recorded."""
    runs = load_record("search")["runs"]
    gains = [run["test"]["conventions"]["splitting"] for run in runs]
    low, high = min(g[1] for g in gains), max(g[2] for g in gains)
    return {**REPORTED, f"our captions: {low:.1f} to {high:.1f}": (low, high)}


def splitting_drawing() -> Svg:
    """Intervals of what splitting gains, on one scale."""
    found = splitting_gains()
    drawing = Diagram(360, 66 + 52 * len(found))
    left, right, least, most = 24, 336, -0.3, 1.2

    def place(value: float) -> float:
        return left + (right - left) * (value - least) / (most - least)

    for row, (name, (low, high)) in enumerate(found.items()):
        y = 42 + 52 * row
        role = "query" if name in REPORTED else "key"
        drawing.text(left, y - 22, name.replace("-", "−"), anchor="start")
        drawing.arrow((left, y), (right, y), head=False, width=0.5)
        drawing.arrow((place(low), y), (place(high), y), role=role, head=False, width=6)
        for end in (low, high):
            drawing.dot(place(end), y, role=role, radius=5)
    y = 32 + 52 * len(found)
    ticks = [((v - least) / (most - least), f"{v:g}") for v in (0, 0.5, 1)]
    drawing.axis((left, y), (right, y), ticks)
    told = "; ".join(found)
    return drawing.finish("What splitting compounds gains, in BLEU", f"{told}.")


# Table 2.

PAIRS = {"en_de": "English–German", "en_fr": "English–French"}
OURS = [row for row in paper.TABLE_2 if "Transformer" in row.model]
BEFORE = [row for row in paper.TABLE_2 if row not in OURS]
BASE, BIG = OURS
KINDS = ("Transformer", "single model", "ensemble")
SIDES = {  # where a name stands, if not above its point, so that none meet
    "en_de": {"GNMT + RL": "below", "GNMT + RL ens.": "below"},
    "en_fr": {
        "GNMT + RL": "below",
        "GNMT + RL ens.": "below",
        "Deep-Att": "below",
        "Deep-Att ens.": "below",
        "ConvS2S": "below left",
        "big (41.0)": "left",
    },
}


def table_2_map() -> list[alt.LayerChart]:
    """Quality against the cost of the training, for each language."""
    return [_map(pair) for pair in PAIRS]


def _short(model: str) -> str:
    name = model.replace(" Ensemble", " ens.").replace(" + PosUnk", "")
    return {"Transformer (base model)": "base", "Transformer (big)": "big"}.get(
        name, name
    )


def _map(pair: str) -> alt.LayerChart:
    rows = []
    for row in paper.TABLE_2:
        cost, quality = getattr(row, f"flops_{pair}"), getattr(row, f"bleu_{pair}")
        if cost and quality:
            kind = "ensemble" if "Ensemble" in row.model else "single model"
            kind = "Transformer" if row in OURS else kind
            rows.append((_short(row.model), cost, quality, kind))
    if pair == "en_fr":
        other = BIG.bleu_en_fr_in_proceedings
        rows.append((f"big ({other})", BIG.flops_en_fr, other, "Transformer"))
    points = pd.DataFrame(rows, columns=["model", "operations", "BLEU", "kind"])
    points["side"] = points.model.map(SIDES[pair]).fillna("above")
    x = alt.X(
        "operations:Q",
        scale=alt.Scale(type="log", domain=[1e18, 4e21]),
        axis=alt.Axis(
            values=[1e18, 1e19, 1e20, 1e21],
            labelExpr="'10' + {18:'¹⁸',19:'¹⁹',20:'²⁰',21:'²¹'}"
            "[round(log(datum.value) / log(10))]",
        ),
        title=f"operations, {PAIRS[pair]}",
    )
    low, high = (24, 29) if pair == "en_de" else (37.5, 42.5)
    base = alt.Chart(points).encode(
        x=x,
        y=alt.Y("BLEU:Q", scale=alt.Scale(domain=[low, high])),
        tooltip=["model", alt.Tooltip("operations:Q", format=".1e"), "BLEU"],
    )
    look = alt.Scale(domain=list(KINDS), range=[QUERY.mark, KEY.mark, NEUTRAL.mark])
    shapes = alt.Scale(domain=list(KINDS), range=["diamond", "circle", "square"])
    legend = alt.Legend(columns=2)
    dots = base.mark_point(filled=True, size=90, opacity=1).encode(
        color=alt.Color("kind:N", scale=look, title=None, legend=legend),
        shape=alt.Shape("kind:N", scale=shapes, title=None, legend=legend),
    )
    moved: dict[str, dict[str, Any]] = {
        "above": {"dy": -13},
        "below": {"dy": 17},
        "left": {"align": "right", "dx": -10},
        "below left": {"align": "right", "dx": -6, "dy": 13},
    }
    names = [
        base.transform_filter(f"datum.side == '{side}'")
        .mark_text(**where)
        .encode(text="model:N")
        for side, where in moved.items()
    ]
    return alt.layer(dots, *names).properties(
        width="container",
        height=330,
        description=f"{PAIRS[pair]}: BLEU against training operations on a logarithmic "
        "axis. " + "; ".join(f"{m} {b} at {c:.1e}" for m, c, b, _ in rows) + ".",
    )


def highest(rows: Sequence[paper.TranslationResult], pair: str) -> Any:
    """The row with the best score of those that have one."""
    known = [row for row in rows if getattr(row, f"bleu_{pair}")]
    return max(known, key=lambda row: getattr(row, f"bleu_{pair}"))


def margins() -> dict[str, float]:
    """The margin of big over the best earlier row, if that was not split either."""
    best = highest(BEFORE, "en_de").bleu_en_de
    return {
        "as printed": BIG.bleu_en_de - best,
        "if it lacks 0.7": BIG.bleu_en_de - best - 0.7,
        "if it lacks 1.0": BIG.bleu_en_de - best - 1.0,
    }


def margin_drawing() -> Svg:
    """Best earlier row, base and big on a scale, the earlier one raised or not."""
    best = highest(BEFORE, "en_de").bleu_en_de
    drawing = Diagram(360, 318)
    left, right, least, most = 24, 336, 26.0, 28.6

    def place(value: float) -> float:
        return left + (right - left) * (value - least) / (most - least)

    for row, raised in enumerate((0.0, 0.7, 1.0)):
        y = 62 + 84 * row
        words = "as printed" if not raised else f"if ConvS2S ens. lacks {raised:.1f}"
        drawing.text(left, y - 46, words, anchor="start", bold=True)
        drawing.arrow((left, y), (right, y), head=False, width=0.5)
        earlier, base, big = map(
            place, (best + raised, BASE.bleu_en_de, BIG.bleu_en_de)
        )
        drawing.arrow((earlier, y), (big, y), role="query", head=False, width=5)
        drawing.dot(earlier, y, role="key", radius=6)
        drawing.dot(base, y, role="query", radius=6)
        drawing.dot(big, y, role="query", radius=6)
        if row == 0:
            drawing.text(earlier, y - 18, "ConvS2S ens.", anchor="start", role="key")
        drawing.text(base, y - 18, "base", role="query")
        drawing.text(big, y - 18, "big", role="query")
        margin = BIG.bleu_en_de - best - raised
        drawing.text((max(base, earlier) + big) / 2, y + 17, f"{margin:.2f}", bold=True)
    ticks = [((v - least) / (most - least), f"{v}") for v in (26, 27, 28)]
    drawing.axis((left, 286), (right, 286), ticks)
    told = ", ".join(f"{name} {value:.2f}" for name, value in margins().items())
    return drawing.finish(
        "The margin of big over the best earlier row", f"In BLEU: {told}."
    )


def settle_german() -> None:
    """Abstract: 28.4, more than 2 above all others."""
    best = highest(BEFORE, "en_de")
    margin = BIG.bleu_en_de - best.bleu_en_de
    settle(
        "abstract-english-german",
        holds=None if margin > 2 else False,
        expected="28.4 BLEU, more than 2 above the best earlier result",
        measured=f"the score is quoted; {BIG.bleu_en_de} is {margin:.2f} above "
        f"{best.model} ({best.bleu_en_de}), if both are on one scale",
        scale="figures",
    )


def settle_base() -> None:
    """§6.1: base is better and cheaper than all before it."""
    best = highest(BEFORE, "en_de")
    costs = [row.flops_en_de for row in BEFORE if row.flops_en_de]
    beaten = all(BASE.bleu_en_de > (row.bleu_en_de or 0) for row in BEFORE)
    cheapest = BASE.flops_en_de / min(costs)
    settle(
        "s6.1-base-beats-ensembles",
        holds=beaten and cheapest < 1,
        expected="in Table 2, base above every earlier row and below every cost",
        measured=f"{BASE.bleu_en_de} against {best.bleu_en_de}; {cheapest:.2f} of the "
        f"cheapest earlier cost, {BASE.flops_en_de / best.flops_en_de:.2f} of the best "
        "earlier model's; if all are on one scale",
        scale="figures",
    )


def settle_french() -> None:
    """§6.1 and the abstract: a record for single models, at a quarter of the cost."""
    rival = highest([row for row in BEFORE if "Ensemble" not in row.model], "en_fr")
    share = BIG.flops_en_fr / rival.flops_en_fr
    scores = BIG.bleu_en_fr_in_proceedings, BIG.bleu_en_fr
    above = all(one > rival.bleu_en_fr for one in scores)
    settle(
        "s6.1-quarter-of-the-cost",
        holds=above and share < 0.25,
        expected="in Table 2, above the best single model, under 1/4 of its cost",
        measured=f"{scores[0]} or {scores[1]} against {rival.model}'s "
        f"{rival.bleu_en_fr}; {share:.2f} of its cost",
        scale="figures",
    )
    settle(
        "abstract-english-french",
        holds=None if above else False,
        expected="41.8 (proceedings: 41.0) BLEU, a record for a single model",
        measured=f"quoted; both lie above {rival.bleu_en_fr}, the best of those",
        scale="figures",
    )

"""Chapter 19, parsing: its drawings, charts, faults of the output and claims (§6.3)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from math import comb
from statistics import NormalDist, fmean, stdev
from typing import Any, NamedTuple

import altair as alt

from aiayn.data.trees import ANY_TAG
from aiayn.errors import InputError
from aiayn.parsing import (
    Parse,
    Tree,
    bracket_score,
    delinearise,
    linearise,
    parse,
    parse_tree,
    repair,
    score_parses,
    tree_pairs,
    with_tags,
)
from aiayn_book import paper, settle
from aiayn_book.colours import ALERT, KEY, NEUTRAL, QUERY, VALUE
from aiayn_book.diagrams import Diagram
from aiayn_book.parsing import SEEDS
from aiayn_book.plots import curves
from aiayn_book.records import load_record
from aiayn_book.svg import Svg

DOG = parse_tree(
    "(S (NP (DT The) (NN dog)) (VP (VBZ eats) (NP (DT a) (NN cake))) (. .))"
)
"""The tree of the key picture."""
MAN = parse_tree(
    "(S (NP (NP (DT The) (NN man)) (SBAR (WHNP (WP who)) (S (VP (VBZ sleeps))))) "
    "(VP (VBZ knows) (NP (DT a) (NN song))) (. .))"
)
"""The tree that grows symbol by symbol."""
SPLIT_CAKE = parse_tree(
    "(S (NP (DT The) (NN dog)) (VP (VBZ eats) (NP (DT a)) (NP (NN cake))) (. .))"
)
"""What a parser makes of the first that splits *a cake* in two."""
BROKEN = (  # rule, what was written, the symbol at fault (counted from 0), why
    (1, "(S (NP XX XX )NP (VP XX )VP", None, ")S is missing"),
    (2, "(S (NP XX XX )VP (VP XX )VP )S", 4, "(NP is open"),
    (3, "(S (NP XX XX )NP (VP XX XX )VP )S", 7, "there are three words"),
    (4, "(S (NP )NP XX XX (VP XX )VP )S", 2, "NP holds no word"),
)
"""The four rules, each broken once, for a sentence of three words."""
TREE, COUNT, BRACKETS = "a tree", "wrong number of words", "wrong brackets"
OUTCOMES = (BRACKETS, COUNT, TREE)
MARGIN = 0.1
"""How much F1 a parser needs above one that does not read."""
ENOUGH = 0.8

_ROLES = {"(": "query", ")": "key"}


def role_of(symbol: str) -> str | None:
    """The colour of a symbol: one that opens, one that closes, or a word's."""
    return _ROLES.get(symbol[0])


# A tree is a string.


class _Node(NamedTuple):
    """A constituent of the key picture."""

    label: str
    x: int
    y: int
    below: "tuple[_Node | int, ...]"
    """Constituents, and words by their numbers."""
    between: tuple[tuple[int, int], ...]
    """Where the walk turns, between one of these and the next."""
    closes: tuple[int, int]
    """Where its closing symbol stands."""


_WORDS_X, _WORDS_Y = (34, 92, 150, 208, 266, 340), 220  # of the words
_CAKE = _Node("NP", 237, 158, (3, 4), (), (264, 158))
_EATS = _Node("VP", 188, 96, (2, _CAKE), ((184, 138),), (218, 94))
_THE = _Node("NP", 63, 96, (0, 1), (), (90, 101))
_ROOT = _Node("S", 262, 34, (_THE, _EATS, 5), ((206, 68), (258, 66)), (289, 24))


def walk_around() -> Svg:
    """A tree, the walk around it, and the symbols that are written on the way."""
    drawing = Diagram(360, 340)
    drawing.arrow(*_walk(drawing, _ROOT), dashed=True, role="weight")
    for x, word in zip(_WORDS_X, DOG.leaves, strict=True):
        drawing.text(x, _WORDS_Y, word, italic=True)
    for number, symbol in enumerate(linearise(DOG)):
        row, column = divmod(number, 7)
        x, y = 26 + 51 * column, 295 + 26 * row
        drawing.text(x, y, symbol, role=role_of(symbol), small=True)
    return drawing.finish(
        "A walk around a tree writes its string",
        "The tree of The dog eats a cake, with the labels S, NP, VP and NP over the "
        "words. A dashed walk goes down on the left of each label, where it writes an "
        "opening symbol, below each word, where it writes XX, and up on the right, "
        "where it writes a closing symbol. Below stands the string: "
        f"{' '.join(linearise(DOG))}.",
    )


def _walk(drawing: Diagram, node: _Node) -> list[tuple[int, int]]:
    """Draw a constituent with its symbols; the walk goes down on its left, up again."""
    label, x, y, below, between, closes = node
    drawing.text(x, y, label, bold=True)
    down = -10 if node is _ROOT else 4
    drawing.text(x - 24, y + down, f"({label}", anchor="end", role="query", small=True)
    route = [(x - 20, y - 16), (x - 20, y + 2)] if node is not _ROOT else [(x - 20, y)]
    for number, child in enumerate(below):
        if isinstance(child, int):
            end = _WORDS_X[child], _WORDS_Y
            half = 21 if child < len(_WORDS_X) - 1 else 15
            route += [(end[0] + side, _WORDS_Y + 15) for side in (-half, half)]
            drawing.text(end[0], _WORDS_Y + 31, ANY_TAG, small=True)
        else:
            end = child.x, child.y
            route += _walk(drawing, child)
        route += between[number : number + 1]
        drawing.arrow((x, y + 10), (end[0], end[1] - 10), head=False, role="neutral")
    drawing.text(*closes, f"){label}", anchor="start", role="key", small=True)
    return [*route, (x + 20, y - 4)]


def two_languages() -> Svg:
    """One model, two target languages: German and trees."""
    drawing = Diagram(338, 336)
    drawing.text(169, 20, "The dog eats a cake .", italic=True)
    drawing.arrow((169, 32), (169, 66))
    drawing.box(169, 96, "Transformer\nunchanged", width=170, height=56, role="weight")
    for x, end in ((88, 76), (250, 262)):
        drawing.arrow((x, 124), (end, 168))
    drawing.box(76, 186, 'target="de"', width=130, role="neutral")
    drawing.box(262, 186, 'target="trees"', width=130, role="query")
    for line, words in enumerate(("Der Hund isst", "einen Kuchen.")):
        drawing.text(76, 226 + 22 * line, words, italic=True)
    symbols = linearise(DOG)
    for line, start in enumerate(range(0, len(symbols), 4)):
        for column, symbol in enumerate(symbols[start : start + 4]):
            drawing.text(
                200 + 40 * column,
                226 + 22 * line,
                symbol,
                role=role_of(symbol),
                small=True,
            )
    return drawing.finish(
        "One model, two target languages",
        "The same Transformer reads The dog eats a cake. With the target de it writes "
        "the German sentence Der Hund isst einen Kuchen, with the target trees the "
        f"string {' '.join(symbols)}.",
    )


class Growth(NamedTuple):
    """What is open and what is closed after each symbol of a tree."""

    bars: list[dict[str, Any]]
    words: list[dict[str, Any]]
    symbols: list[dict[str, Any]]
    depths: list[int]
    """How many constituents are open after each symbol."""


_COLUMNS = 6  # symbols in a line of the string


def growth(tree: Tree) -> Growth:
    """A linearised tree, read symbol by symbol with a stack."""
    symbols = linearise(tree)
    bars, words, text, depths = [], [], [], []
    known: list[dict[str, Any]] = []  # every constituent so far, the open ones too
    stack: list[dict[str, Any]] = []
    tags = 0
    for k, symbol in enumerate(symbols, start=1):
        if symbol.startswith("("):
            stack.append({"label": symbol[1:], "from": tags, "level": len(stack)})
            known.append(stack[-1])
        elif symbol.startswith(")"):
            stack.pop()["to"] = tags
        else:
            tags += 1
        depths.append(len(stack))
        for one in known:
            closed = "to" in one
            end = one["to"] if closed else max(tags, one["from"] + 1)
            bars.append(
                {
                    "k": k,
                    "label": one["label"] + ("" if closed else "…"),
                    "from": one["from"] + 0.03,
                    "to": end - 0.03,
                    "level": one["level"],
                    "is": "closed" if closed else "open",
                }
            )
        words += [
            {"k": k, "word": word, "at": i + 0.5, "seen": 1.0 if i < tags else 0.4}
            for i, word in enumerate(tree.leaves)
        ]
        text += [
            {
                "k": k,
                "symbol": one,
                "column": i % _COLUMNS,
                "line": i // _COLUMNS,
                "latest": i + 1 == k,
            }
            for i, one in enumerate(symbols[:k])
        ]
    return Growth(bars, words, text, depths)


def growth_chart(tree: Tree = MAN) -> alt.LayerChart:
    """A tree in the making, with a slider for the number of symbols."""
    grown = growth(tree)
    total, wide = len(grown.depths), len(tree.leaves)
    lines = (total - 1) // _COLUMNS + 1
    written = alt.param(
        name="written",
        value=13,
        bind=alt.binding_range(min=1, max=total, step=1, name="Symbols "),
    )
    levels = max(row["level"] for row in grown.bars) + 1
    foot = lines + 0.6 + levels
    x = alt.Scale(domain=[0, wide], nice=False)
    y = alt.Scale(domain=[foot + 1, -0.4], nice=False)

    def across(field: str) -> alt.X:
        return alt.X(field, axis=None, scale=x)

    def down(field: str) -> alt.Y:
        return alt.Y(field, axis=None, scale=y)

    def now(rows: list[dict[str, Any]]) -> alt.Chart:
        return alt.Chart(alt.Data(values=rows)).transform_filter("datum.k == written")

    top = f"{lines} + 0.6 + datum.level"
    bars = now(grown.bars).transform_calculate(
        top=top, foot=f"{top} + 0.84", middle=f"{top} + 0.42", left="datum.from + 0.1"
    )
    states = alt.Scale(domain=["open", "closed"], range=[QUERY.mark, NEUTRAL.mark])
    squares = alt.Legend(title=None, symbolType="square")
    drawn = bars.mark_rect(fillOpacity=0.25, strokeWidth=1.5).encode(
        x=across("from:Q"),
        x2="to:Q",
        y=down("top:Q"),
        y2="foot:Q",
        color=alt.Color("is:N", scale=states, legend=squares),
        stroke=alt.Stroke("is:N", scale=states, legend=squares),
    )
    names = bars.mark_text(align="left", fontSize=12).encode(
        x=across("left:Q"), y=down("middle:Q"), text="label:N"
    )
    under = (
        now(grown.words)
        .transform_calculate(y=f"{foot + 0.4}")
        .mark_text(fontSize=12)
        .encode(
            x=across("at:Q"),
            y=down("y:Q"),
            text="word:N",
            opacity=alt.Opacity("seen:Q", scale=None),
        )
    )
    string = now(grown.symbols).transform_calculate(
        x=f"(datum.column + 0.1) * {wide} / {_COLUMNS}"
    )
    places = {"x": across("x:Q"), "y": down("line:Q"), "text": "symbol:N"}
    before = string.transform_filter("!datum.latest").mark_text(align="left")
    latest = string.transform_filter("datum.latest").mark_text(
        align="left", color=QUERY.mark, fontWeight="bold"
    )
    return (
        alt.layer(drawn, names, under, before.encode(**places), latest.encode(**places))
        .add_params(written)
        .properties(
            width="container",
            height=340,
            description="The symbols of a linearised tree that are written so far, and "
            "below them the constituents that they have opened, one bar for each over "
            "its words, nested by level. Bars that are still open are orange and end "
            "in dots, closed ones are grey. The slider adds symbol after symbol, and "
            "the stack of open bars grows and shrinks.",
        )
    )


# What the output must obey.


def broken_rules() -> Svg:
    """Four strings, each of which breaks one of the four rules."""
    said = {
        1: "Every bracket that opens closes.",
        2: "A bracket closes what was opened last.",
        3: "There are as many XX as words.",
        4: "No constituent is empty.",
    }
    drawing = Diagram(360, 68 * len(BROKEN) + 4)
    for row, (rule, written, at, why) in enumerate(BROKEN):
        y = 16 + 68 * row
        drawing.text(6, y, f"{rule}. {said[rule]}", anchor="start", bold=True)
        symbols = written.split()
        for i, symbol in enumerate(symbols):
            x = 22 + 35 * i
            wrong = i == at
            role = "alert" if wrong else role_of(symbol)
            drawing.text(x, y + 22, symbol, role=role, small=True, bold=wrong)
            if wrong:
                _underline(drawing, x, y + 31)
        end = 22 + 35 * (len(symbols) if at is None else at)
        late = end > 180
        shift, anchor = (15, "end") if late else (-15, "start")
        drawing.text(end + shift, y + 43, why, anchor=anchor, role="alert")
        if at is None:
            _underline(drawing, end, y + 31)
    told = "; ".join(f"{said[rule]} Broken by {text}" for rule, text, *_ in BROKEN)
    return drawing.finish("Four rules, each broken once", told)


def _underline(drawing: Diagram, x: float, y: float) -> None:
    """A symbol's mark, since colour alone says nothing to some."""
    drawing.arrow((x - 15, y), (x + 15, y), role="alert", head=False)


def balanced_share(pairs: int, labels: int = 1) -> float:
    """The share of strings of 2·pairs brackets that are balanced, labels included.

    >>> balanced_share(1), balanced_share(3) * 64
    (0.25, 5.0)
    """
    return comb(2 * pairs, pairs) / (pairs + 1) / (4 * labels) ** pairs


def balanced_chart(counted: Mapping[int, float]) -> alt.LayerChart:
    """The share of balanced strings by their length: counted, and with more labels."""
    rows = [
        {"symbols": symbols, "share": share, "labels": "one label"}
        for symbols, share in counted.items()
    ] + [
        {
            "symbols": 2 * pairs,
            "share": balanced_share(pairs, labels),
            "labels": f"{words} labels",
        }
        for labels, words in ((2, "two"), (10, "ten"))
        for pairs in range(1, max(counted) // 2 + 1)
    ]
    ticks = [10.0**power for power in range(-8, 1, 2)]
    names = ["one label", "two labels", "ten labels"]
    colours = alt.Scale(domain=names, range=[KEY.mark, QUERY.mark, VALUE.mark])
    shapes = alt.Scale(domain=names, range=["circle", "square", "triangle-up"])
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "symbols:Q",
            title="brackets in the string",
            axis=alt.Axis(values=sorted(counted)),
        ),
        y=alt.Y(
            "share:Q",
            title="share that is balanced",
            scale=alt.Scale(type="log", domain=[1e-9, 1]),
            axis=alt.Axis(values=ticks, format="~e"),
        ),
        color=alt.Color("labels:N", title=None, scale=colours),
        tooltip=["labels:N", "symbols:Q", alt.Tooltip("share:Q", format=".3g")],
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        shape=alt.Shape("labels:N", title=None, scale=shapes)
    )
    return alt.layer(base.mark_line(), points).properties(
        width="container",
        height=240,
        description="Share of balanced strings on a logarithmic scale against the "
        "number of brackets. With one label it falls from one quarter to less than "
        "three hundredths at fourteen brackets; with more labels the lines are "
        "straighter and much steeper.",
    )


def lengths(trees: Sequence[Tree]) -> dict[str, dict[str, float]]:
    """Mean words and symbols of these trees, and of GUM's, which are recorded."""
    text = tree_pairs(trees)
    ours = {
        "sentences": len(text),
        "words": fmean(len(line.split()) for line in text.source),
        "symbols": fmean(len(line.split()) for line in text.target),
    }
    return {"grammar": ours, "GUM": load_record("parsing")["lengths"]["gum"]}


def lengths_figure(measured: Mapping[str, Mapping[str, float]]) -> Svg:
    """Mean words and symbols of two treebanks as bars."""
    drawing = Diagram(360, 96 * len(measured) - 16)
    longest = max(row["symbols"] for row in measured.values())
    for number, (name, row) in enumerate(measured.items()):
        y = 14 + 96 * number
        ratio = row["symbols"] / row["words"]
        drawing.text(
            6, y, f"{name}: {ratio:.1f} symbols a word", anchor="start", bold=True
        )
        for line, (kind, role) in enumerate((("words", "key"), ("symbols", "query"))):
            wide = 190 * row[kind] / longest
            at = y + 26 + 28 * line
            drawing.text(72, at, kind, anchor="end")
            drawing.grid(
                80 + wide / 2,
                at,
                [[1.0]],
                role=role,
                cell=wide,
                tall=20,
                digits=None,
            )
            drawing.text(86 + wide, at, f"{row[kind]:.1f}", anchor="start")
    told = "; ".join(
        f"{name}: {row['words']:.1f} words and {row['symbols']:.1f} symbols"
        for name, row in measured.items()
    )
    return drawing.finish(
        "How long sentences and their trees are", f"On average, {told}."
    )


class Edits(NamedTuple):
    """How many changed strings there were, and how many of them are still trees."""

    replaced: int
    trees_after_replacing: int
    exchanged: int
    trees_after_exchanging: int


def one_symbol_changed(trees: Iterable[Tree]) -> Edits:
    """Each symbol replaced by every other one; each two neighbours exchanged."""
    strings = [(tree.leaves, list(linearise(tree))) for tree in trees]
    kinds = sorted({symbol for _, symbols in strings for symbol in symbols})
    counts = [0, 0, 0, 0]
    for words, symbols in strings:
        for i, symbol in enumerate(symbols):
            for other in kinds:
                if other != symbol:
                    counts[0] += 1
                    counts[1] += is_tree(
                        [*symbols[:i], other, *symbols[i + 1 :]], words
                    )
            after = symbols[i + 1 : i + 2]
            if after and after != [symbol]:
                counts[2] += 1
                counts[3] += is_tree(
                    [*symbols[:i], *after, symbol, *symbols[i + 2 :]], words
                )
    return Edits(*counts)


def is_tree(symbols: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the symbols are a tree over these words."""
    try:
        delinearise(symbols, words)
    except InputError:
        return False
    return True


# The score.


def bracket_bars(gold: Tree = DOG, guess: Tree = SPLIT_CAKE) -> Svg:
    """The brackets of two trees over their words: right, wrong and missed ones."""
    drawing = Diagram(360, 350)
    words = gold.leaves
    step, left = 57, 10
    panels = (
        ("right tree", gold, guess, "✗ missed", "neutral"),
        ("parser", guess, gold, "✗", "alert"),
    )
    y = 16
    for name, tree, other, fault, colour in panels:
        left_over = Counter(other.spans())
        drawing.text(left, y, name, anchor="start", bold=True)
        for i, word in enumerate(words):
            drawing.text(left + step * (i + 0.5), y + 24, word, italic=True)
        for row, span in enumerate(tree.spans()):
            right = left_over[span] > 0
            left_over[span] -= right
            wide = step * (span.end - span.start) - 6
            drawing.box(
                left + step * (span.start + span.end) / 2,
                y + 48 + 25 * row,
                f"{span.label} {'✓' if right else fault}",
                width=wide,
                height=21,
                role="value" if right else colour,
            )
        y += 44 + 25 * len(tree.spans()) + 14
    counts = bracket_score([gold], [guess])
    return drawing.finish(
        "Brackets of two trees compared",
        f"The right tree has {len(gold.spans())} brackets, the parser's "
        f"{len(guess.spans())}, of which three agree: S, NP over The dog, and VP. "
        "The parser has an NP over a and one over cake, where the right tree has one "
        f"over both. Precision {counts.precision:.2f}, recall {counts.recall:.2f}.",
    )


# When it is no tree.


def repairs(words: Sequence[str], strings: Sequence[str]) -> Svg:
    """What was written, and the string of the repaired tree with its new symbols."""
    drawing = Diagram(360, 152 * len(strings) - 16)
    told = []
    for number, text in enumerate(strings):
        written = text.split()
        mended = linearise(repair(written, words))
        added = inserted(written, mended)
        y = 14 + 152 * number
        for line, (name, symbols) in enumerate(
            (("written", written), ("repaired", mended))
        ):
            top = y + 66 * line
            drawing.text(6, top, name, anchor="start", bold=True)
            for i, symbol in enumerate(symbols):
                x, at = 28 + 43 * (i % 8), top + 20 + 20 * (i // 8)
                new = line == 1 and added[i]
                role = "alert" if new else role_of(symbol)
                drawing.text(x, at, symbol, role=role, small=True, bold=new)
                if new:
                    _underline(drawing, x, at + 9)
        told.append(f"{text} becomes {' '.join(mended)}")
    return drawing.finish("Two strings and their repair", "; ".join(told) + ".")


def inserted(before: Sequence[str], after: Sequence[str]) -> list[bool]:
    """Which symbols of the second are not in the first.

    >>> inserted(["(S", "XX"], ["(S", "XX", ")S"])
    [False, False, True]
    """
    new = [True] * len(after)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for _, start, size in matcher.get_matching_blocks():
        new[start : start + size] = [False] * size
    return new


def outcome(found: Parse) -> str:
    """What an output is: a tree, good brackets over too few or many words, or neither.

    >>> outcome(Parse(DOG, ("(S", "XX", ")S"), "The tree has 1 tags for 6 words."))
    'wrong number of words'
    """
    if found.fault is None:
        return TREE
    tags = sum(symbol[0] not in "()" for symbol in found.symbols)
    return COUNT if is_tree(found.symbols, ["word"] * tags) else BRACKETS


def greedy(gold: Sequence[Tree], model: Any, tokenizer: Any) -> list[Parse]:
    """Parse the sentences of these trees, greedily."""
    sentences = [" ".join(tree.leaves) for tree in gold]
    return parse(sentences, model, tokenizer, beam_size=1, extra_length=50)


def examine(gold: Sequence[Tree], parses: Sequence[Parse]) -> dict[str, float]:
    """F1 with and without repair, and the share of each outcome."""
    shares = Counter(map(outcome, parses))
    return {
        "repaired": score_parses(gold, parses).f1,
        "thrown away": score_parses(gold, parses, repaired=False).f1,
        **{name: shares[name] / len(parses) for name in OUTCOMES},
    }


def outcomes_chart(history: Sequence[Mapping[str, float]]) -> alt.Chart:
    """The share of each outcome, as a stack, at each checkpoint."""
    rows = [
        {"step": row["step"], "outcome": name, "share": row[name], "order": order}
        for row in history
        for order, name in enumerate(OUTCOMES)
    ]
    colours = alt.Scale(domain=list(OUTCOMES), range=[ALERT.mark, KEY.mark, VALUE.mark])
    legend = alt.Legend(columns=1, symbolType="square", labelLimit=0)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("step:O", title="step", axis=alt.Axis(labelAngle=0)),
            y=alt.Y(
                "share:Q",
                title="share of outputs",
                stack="zero",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%"),
            ),
            color=alt.Color("outcome:N", title=None, scale=colours, legend=legend),
            order="order:Q",
            tooltip=["step:O", "outcome:N", alt.Tooltip("share:Q", format=".0%")],
        )
        .properties(
            width="container",
            height=240,
            description="Stacked bars at five steps of the training. Outputs with "
            "wrong brackets are many at first and soon nearly gone; those with the "
            "wrong number of words become fewer slowly; trees grow from few to most.",
        )
    )


def treatment_chart(history: Sequence[Mapping[str, float]]) -> alt.LayerChart:
    """F1 against the step, with outputs repaired and with outputs thrown away."""
    rows = [
        {"step": row["step"], "F1": row[name], "output that is no tree": name}
        for row in history
        for name in ("repaired", "thrown away")
    ]
    return curves(
        rows,
        "step",
        "F1",
        "output that is no tree",
        description="Bracket F1 against the step of training, twice: outputs that are "
        "no tree repaired, or thrown away. Both rise; at first they are far apart, at "
        "the end close together.",
    ).properties(height=240)


# Does it parse?


def blind_f1(frequent: Mapping[int, Counter], gold: Sequence[Tree]) -> float:
    """F1 of the parser that knows only how many words a sentence has.

    Args:
        frequent: By number of words, how often each tree, as symbols, occurred.
        gold: The right trees.
    """
    return bracket_score(gold, [_without_reading(frequent, tree) for tree in gold]).f1


def _without_reading(frequent: Mapping[int, Counter], gold: Tree) -> Tree | None:
    words = gold.leaves
    if len(words) not in frequent:
        return None
    ((symbols, _),) = frequent[len(words)].most_common(1)
    return with_tags(delinearise(symbols, words), gold.tags)


def recorded(sentences: int) -> list[dict[str, Any]]:
    """The scores of the recorded runs on so many trees of the grammar, by split."""
    return [
        run["scores"]
        for run in load_record("parsing")["runs"]
        if run["corpus"] == "grammar" and run["sentences"] == sentences
    ]


class Comparison(NamedTuple):
    """F1 on one split: of a parser that does not read, and of trained ones."""

    blind: float
    here: float
    recorded: tuple[float, ...]

    @property
    def gains(self) -> list[float]:
        """What each training gains over not reading, this one first."""
        return [f1 - self.blind for f1 in (self.here, *self.recorded)]


def compare(
    blind: Mapping[str, float], here: Mapping[str, float], sentences: int
) -> dict[str, Comparison]:
    """By split, with the recorded runs on as many trees."""
    runs = recorded(sentences)
    return {
        split: Comparison(
            blind[split], here[split], tuple(run[split]["f1"] for run in runs)
        )
        for split in blind
    }


def gains_chart(compared: Mapping[str, Comparison]) -> alt.Chart:
    """F1 of the parsers on both splits, and the bar that they had to reach."""
    names = ["does not read", "bar: 0.1 more", "recorded seeds", "this run"]
    rows = []
    for split, one in compared.items():
        values = [one.blind], [one.blind + MARGIN], one.recorded, [one.here]
        rows += [
            {"split": split, "F1": f1, "parser": name}
            for name, some in zip(names, values, strict=True)
            for f1 in some
        ]
    colours = [NEUTRAL.mark, ALERT.mark, KEY.mark, QUERY.mark]
    shapes = ["square", "diamond", "circle", "triangle-up"]
    legend = alt.Legend(columns=2, labelLimit=0)
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=130, opacity=0.9, strokeWidth=2)
        .encode(
            x=alt.X("F1:Q", title="F1", scale=alt.Scale(zero=False)),
            y=alt.Y("split:N", title=None, sort=list(compared)),
            color=alt.Color(
                "parser:N",
                title=None,
                scale=alt.Scale(domain=names, range=colours),
                legend=legend,
            ),
            shape=alt.Shape(
                "parser:N",
                title=None,
                scale=alt.Scale(domain=names, range=shapes),
                legend=legend,
            ),
            tooltip=["split:N", "parser:N", alt.Tooltip("F1:Q", format=".3f")],
        )
        .properties(
            width="container",
            height=150,
            description="F1 on the test split and on held-out combinations: a parser "
            "that does not read, a bar 0.1 above it, three recorded trainings and this "
            "one. On combinations no recorded run reaches the bar.",
        )
    )


def by_length(
    trees: Sequence[Tree],
    classes: Sequence[tuple[int, int]],
    model: Any,
    tokenizer: Any,
) -> list[dict[str, Any]]:
    """The scores of a parser on trees with so many symbols; at most 100 of each."""
    rows = []
    for low, high in classes:
        gold = [tree for tree in trees if low <= len(linearise(tree)) < high][:100]
        scores = examine(gold, greedy(gold, model, tokenizer))
        rows.append({"symbols": f"{low}–{high - 1}", **scores})
    return rows


def length_chart(rows: Sequence[Mapping[str, Any]], trained: int) -> alt.LayerChart:
    """F1 and the share of trees; the first `trained` classes were in the training."""
    order = [row["symbols"] for row in rows]
    data = [
        {"symbols": row["symbols"], "measure": name, "value": row[key]}
        for row in rows
        for name, key in (("F1, repaired", "repaired"), ("share of trees", TREE))
    ]
    names = ["F1, repaired", "share of trees"]
    colours = alt.Scale(domain=names, range=[KEY.mark, VALUE.mark])
    shapes = alt.Scale(domain=names, range=["circle", "square"])
    across = alt.X(
        "symbols:O", title="symbols", sort=order, axis=alt.Axis(labelAngle=0)
    )
    base = alt.Chart(alt.Data(values=data)).encode(
        x=across,
        y=alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("measure:N", title=None, scale=colours),
        tooltip=["symbols:O", "measure:N", alt.Tooltip("value:Q", format=".2f")],
    )
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        shape=alt.Shape("measure:N", title=None, scale=shapes)
    )
    unseen = alt.Chart(alt.Data(values=[{"symbols": s} for s in order[trained:]]))
    shade = unseen.mark_bar(color=NEUTRAL.mark, opacity=0.18).encode(
        x=across, y=alt.value(0), y2=alt.value(220)
    )
    return alt.layer(shade, base.mark_line(), points).properties(
        width="container",
        height=220,
        description="F1 and the share of outputs that are trees, for four classes of "
        "length. Both fall with the length; in the last two classes, which are shaded "
        "because training had none so long, hardly any output is a tree.",
    )


def more_trees_chart() -> alt.LayerChart:
    """F1 of recorded parsers against the number of trees, a dot for each seed."""
    rows = [
        {
            "trees": run["sentences"],
            "F1": scores["f1"],
            "split": split,
            "seed": run["seed"],
        }
        for run in load_record("parsing")["runs"]
        if run["corpus"] == "grammar"
        for split, scores in run["scores"].items()
    ]
    sizes = sorted({row["trees"] for row in rows})
    names = ["test", "combinations"]
    colours = alt.Scale(domain=names, range=[KEY.mark, QUERY.mark])
    shapes = alt.Scale(domain=names, range=["circle", "square"])
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X(
            "trees:Q",
            title="trees in the training",
            scale=alt.Scale(type="log", domain=[450, 7000], nice=False),
            axis=alt.Axis(values=sizes, format=",", grid=False),
        ),
        color=alt.Color("split:N", title=None, scale=colours),
    )
    mean = base.mark_line().encode(
        y=alt.Y("F1:Q", aggregate="mean", title="F1", scale=alt.Scale(zero=False))
    )
    each = base.mark_point(filled=True, size=70, opacity=0.8).encode(
        y=alt.Y("F1:Q", title="F1", scale=alt.Scale(zero=False)),
        shape=alt.Shape("split:N", title=None, scale=shapes),
        tooltip=["split:N", "trees:Q", "seed:O", alt.Tooltip("F1:Q", format=".3f")],
    )
    return alt.layer(mean, each).properties(
        width="container",
        height=220,
        description="F1 against the number of training trees on a logarithmic scale, "
        "with three seeds at each of three sizes. Neither split rises from the fewest "
        "trees to the most.",
    )


def passed(sentences: int, bar: float) -> int:
    """How many of the recorded runs on so many trees reach the bar on combinations."""
    return sum(run["combinations"]["f1"] >= bar for run in recorded(sentences))


# Table 4, and the claims.


def table_4_figure() -> list[Svg]:
    """The rows of Table 4: a panel for little data, and one for more."""
    little = [row for row in paper.TABLE_4 if row.training.startswith("WSJ")]
    more = [row for row in paper.TABLE_4 if not row.training.startswith("WSJ")]
    return [
        _ranking("Wall Street Journal only", little),
        _ranking("more data, or another kind of model", more),
    ]


def _ranking(title: str, results: Sequence[paper.ParsingResult]) -> Svg:
    drawing = Diagram(338, 84 + 40 * len(results))
    left, right, low, high = 14, 318, 88, 94
    drawing.text(6, 14, title, anchor="start", bold=True)
    ranked = sorted(results, key=lambda row: -row.f1)
    for number, row in enumerate(ranked):
        y = 58 + 40 * number
        x = left + (row.f1 - low) / (high - low) * (right - left)
        ours = row.parser.startswith("Transformer")
        kind = "" if row.training in _UNSAID else f", {row.training}"
        drawing.text(
            left, y - 18, f"{row.f1:.1f}  {row.parser}{kind}", anchor="start", bold=ours
        )
        drawing.arrow((left, y), (right, y), head=False, width=0.5)
        drawing.dot(x, y, role="query" if ours else "neutral", radius=6)
    y = 52 + 40 * len(ranked)
    ticks = [((f1 - low) / (high - low), f"{f1}") for f1 in range(low, high + 1, 2)]
    drawing.axis((left, y), (right, y), ticks)
    told = ", ".join(f"{row.parser} {row.f1:.1f}" for row in ranked)
    return drawing.finish(
        f"Table 4, {title}", f"Bracket F1 from best to worst: {told}."
    )


_UNSAID = ("WSJ only, discriminative", "semi-supervised")


def settle_structure(
    measured: Mapping[str, Mapping[str, float]], trees: Sequence[Tree]
) -> None:
    """§6.3: the output is constrained, and much longer than the input."""
    ratio = min(row["symbols"] / row["words"] for row in measured.values())
    edits = one_symbol_changed(trees)
    settle(
        "s6.3-structure",
        holds=ratio > 2 and not edits.trees_after_replacing,
        expected="outputs twice as long, and no symbol that can be another one",
        measured=f"at least {ratio:.2f} symbols a word in two treebanks; "
        f"{edits.trees_after_replacing or 'none'} of {edits.replaced:,} replacements "
        "of one symbol leave a tree, which follows from brackets with labels (of "
        "exchanges of neighbours "
        f"{edits.trees_after_exchanging / edits.exchanged:.0%} do)",
        sample="two treebanks, this book's grammar and GUM's real English; "
        f"{len(trees)} trees of the grammar",
        detects="a ratio of 2 or less",
    )


def settle_parsing(compared: Mapping[str, Comparison], sentences: int) -> None:
    """Abstract: it parses, by the rule that every run gains 0.1 on both splits."""
    least = {split: min(one.gains) for split, one in compared.items()}
    found = [f1 for one in compared.values() for f1 in (one.here, *one.recorded)]
    runs = len(next(iter(compared.values())).gains)
    (gum,) = (r for r in load_record("parsing")["runs"] if r["corpus"] == "gum")
    settle(
        "abstract-parsing",
        holds=min(least.values()) > MARGIN,
        expected="F1 above that of a parser that does not read, by 0.1",
        measured=f"F1 {min(found):.2f} to {max(found):.2f} here and in {runs - 1} "
        "recorded runs on this book's grammar, above by at least "
        + " and ".join(f"{gain:.2f} ({split})" for split, gain in least.items())
        + f"; one run on GUM's real English reaches {gum['scores']['test']['f1']:.2f}",
        sample=f"{len(SEEDS)} seeds, one of them trained twice, of a model 64 wide; "
        f"one size of data; {sentences} sentences of each split",
        detects=f"a gain of {detectable(compared):.2f} on a split, in four of five "
        "repetitions, if trainings differ as these do",
    )


def detectable(compared: Mapping[str, Comparison]) -> float:
    """The true gain with which all runs pass the bar on a split in four of five tries.

    Gains of trainings are taken as normal, with the larger of the splits' standard
    deviations over all runs, this one too.
    """
    runs = len(next(iter(compared.values())).gains)
    deviation = max(stdev(one.gains) for one in compared.values())
    return MARGIN + NormalDist().inv_cdf(ENOUGH ** (1 / runs)) * deviation


def settle_table_4() -> None:
    """§6.3: three sentences that rest on Table 4."""
    of = {(row.parser, row.training): row.f1 for row in paper.TABLE_4}
    wsj = {key: f1 for key, f1 in of.items() if key[1].startswith("WSJ")}
    regime = "WSJ only, discriminative"
    ours, berkeley, recurrent = (
        wsj[name, regime]
        for name in (
            "Transformer (4 layers)",
            "Petrov et al. (2006)",
            "Vinyals & Kaiser et al. (2014)",
        )
    )
    best = max(f1 for (name, _), f1 in wsj.items() if "Transformer" not in name)
    settle(
        "s6.3-little-data",
        holds=None,
        expected="91.3 F1 from 40,000 sentences, above the Berkeley parser",
        measured=f"Table 4: {ours} and {berkeley}; the treebank is not free",
    )
    settle(
        "s6.3-recurrent",
        holds=recurrent < best,
        expected="recurrent translators of trees behind the best earlier parser",
        measured=f"Table 4, little data: {recurrent}, the best earlier parser has "
        f"{best}. (The abstract of Vinyals and others says that theirs matches "
        "standard parsers on little data.)",
        scale="figures",
    )
    above = better_than(of["Transformer (4 layers)", "semi-supervised"])
    settle(
        "s6.3-semi-supervised",
        holds=[row.parser for row in above] == ["Dyer et al. (2016)"],
        expected="above 92.7 only Dyer et al.",
        measured="in Table 4 above 92.7: "
        + ", ".join(f"{row.parser} {row.f1}, {row.training}" for row in above)
        + "; of the semi-supervised parsers none"
        * all("semi" not in row.training for row in above),
        scale="figures",
    )


def better_than(f1: float) -> list[paper.ParsingResult]:
    """The rows of Table 4 with a larger F1."""
    return [row for row in paper.TABLE_4 if row.f1 > f1]

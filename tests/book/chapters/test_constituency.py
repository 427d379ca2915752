"""Chapter 19: its drawings show the measured, its claims can fail, its text holds."""

import json
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

from aiayn.parsing import (
    Parse,
    bracket_score,
    delinearise,
    linearise,
    load_treebank,
    parse_tree,
    repair,
    with_tags,
)
from aiayn_book import claims, paper
from aiayn_book.chapters import constituency as chapter
from aiayn_book.checks import chapter_19
from aiayn_book.ledger import records_in_html
from aiayn_book.parsing import short, small_parser
from aiayn_book.records import load_record
from tests.book.chapters.drawings import check_words, texts

MOST = 5477  # short trees among the 10,000 of the chapter
STRINGS = ("(S (NP XX XX (VP XX (NP XX XX )VP XX )S", "(S (NP XX XX )NP (VP XX )VP")
LENGTHS = {"one": {"words": 8.0, "symbols": 20.0}, "two": {"words": 2, "symbols": 7}}
DRAWINGS = {
    "walk": chapter.walk_around(),
    "two languages": chapter.two_languages(),
    "rules": chapter.broken_rules(),
    "lengths": chapter.lengths_figure(LENGTHS),
    "brackets": chapter.bracket_bars(),
    "repairs": chapter.repairs(chapter.DOG.leaves, STRINGS),
    **dict(zip(("little", "more"), chapter.table_4_figure(), strict=True)),
}


@pytest.fixture(scope="module")
def bank():
    return load_treebank(size=10_000)


@pytest.fixture(scope="module")
def blind(bank):
    """F1 of the parser that does not read, by split."""
    config = small_parser()
    frequent: dict[int, Counter] = {}
    for tree in short(bank["train"], config):
        frequent.setdefault(len(tree.leaves), Counter())[linearise(tree)] += 1
    return {
        split: chapter.blind_f1(frequent, short(bank[split], config)[:300])
        for split in ("test", "combinations")
    }


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_words_stay_inside(drawing):
    """And there is a text alternative of more than a few words."""
    check_words(drawing)


def test_the_walk_writes_what_the_line_below_says():
    """Once at the tree and once in the string stands each symbol."""
    shown = Counter(words for *_, words in texts(DRAWINGS["walk"]))
    symbols = Counter(linearise(chapter.DOG))
    assert all(shown[symbol] == 2 * number for symbol, number in symbols.items())
    assert all(shown[label] for label, *_ in chapter.DOG.spans())


def test_a_tree_grows_as_its_stack_does():
    grown = chapter.growth(chapter.MAN)
    assert max(grown.depths) == chapter_19.deepest.reference() == 5
    assert grown.depths[-1] == 0
    assert linearise(chapter.MAN)[grown.depths.index(5) + 1] == "XX"  # sleeps
    for k, depth in enumerate(grown.depths, start=1):
        now = [bar for bar in grown.bars if bar["k"] == k]
        assert sum(bar["is"] == "open" for bar in now) == depth
    last = {
        (bar["label"], round(bar["from"]), round(bar["to"]))
        for bar in grown.bars
        if bar["k"] == len(grown.depths)
    }
    assert last == {tuple(span) for span in chapter.MAN.spans()}


def test_the_second_np_settles_where_the_subject_ends():
    """As the caption of Figure 19.2 says."""
    grown, symbols = chapter.growth(chapter.MAN), linearise(chapter.MAN)
    (_, k, *_) = [k for k, symbol in enumerate(symbols, 1) if symbol == ")NP"]
    subject = {
        bar["k"]: bar["is"]
        for bar in grown.bars
        if bar["level"] == 1 and bar["label"].startswith("NP")
    }
    assert (subject[k - 1], subject[k]) == ("open", "closed")


@pytest.mark.parametrize(("rule", "written", "at", "_"), chapter.BROKEN)
def test_each_string_breaks_its_rule_and_is_mended_there(rule, written, at, _):
    words, symbols = ["word"] * 3, written.split()
    assert not chapter.is_tree(symbols, words)
    mended = {
        1: [*symbols, ")S"],
        2: [*symbols[:4], ")NP", *symbols[5:]],
        3: [*symbols[:7], *symbols[8:]],
        4: [*symbols[:2], "XX", "XX", ")NP", *symbols[5:]],
    }[rule]
    assert chapter.is_tree(mended, words)
    assert at is None or symbols[at] != mended[at]
    enough = ["word"] * symbols.count("XX")
    assert chapter.is_tree(symbols, enough) == (rule == 3)


def test_the_share_of_balanced_strings_is_that_of_all_strings():
    """With two labels too, by trying all of them."""
    for labels in (1, 2):
        kinds = [f"{bracket}{i}" for bracket in "()" for i in range(labels)]
        strings = list(product(kinds, repeat=4))
        found = 0
        for string in strings:
            stack = []
            for symbol in string:
                if symbol[0] == "(":
                    stack.append(symbol[1])
                elif not stack or stack.pop() != symbol[1]:
                    stack = [None]
                    break
            found += not stack
        assert chapter.balanced_share(2, labels) == found / len(strings)
    assert chapter.balanced_share(8) == chapter_19.balanced_share.reference()


def test_one_symbol_changed_is_counted():
    """Of (S XX )S no symbol can be another; an exchange never leaves a tree."""
    tree = parse_tree("(S (NN Tea))")
    assert chapter.one_symbol_changed([tree]) == (6, 0, 2, 0)
    wide = parse_tree("(S (NP (NN a) (NN b)) (NN c))")
    # (S (NP XX XX )NP XX )S: XX and )NP, )NP and XX, (NP and XX can be exchanged.
    assert chapter.one_symbol_changed([wide])[1::2] == (0, 3)


def test_lengths_count_words_and_symbols():
    found = chapter.lengths([chapter.DOG, chapter.MAN])
    assert found["grammar"] == {
        "sentences": 2,
        "words": 7.0,
        "symbols": (len(linearise(chapter.DOG)) + len(linearise(chapter.MAN))) / 2,
    }
    assert found["GUM"] == load_record("parsing")["lengths"]["gum"]


def test_brackets_of_the_example_are_those_of_the_text():
    score = bracket_score([chapter.DOG], [chapter.SPLIT_CAKE])
    assert score == (3 / 5, 3 / 4, 6 / 9)
    shown = [words for *_, words in texts(DRAWINGS["brackets"])]
    assert sum(words.endswith("✓") for words in shown) == 2 * 3
    assert shown.count("NP ✗") == 2
    assert shown.count("NP ✗ missed") == 1


def test_right_brackets_score_below_one_without_their_tags(bank):
    """The pitfall."""
    gold = short(bank["test"], small_parser())[:300]
    bare = [delinearise(linearise(tree), tree.leaves) for tree in gold]
    back = [with_tags(b, t.tags) for b, t in zip(bare, gold, strict=True)]
    assert bracket_score(gold, bare).f1 < 1
    assert bracket_score(gold, back).f1 == 1


def test_a_repair_keeps_what_was_written():
    for text in STRINGS:
        mended = linearise(repair(text.split(), chapter.DOG.leaves))
        new = chapter.inserted(text.split(), mended)
        kept = [s for s, added in zip(mended, new, strict=True) if not added]
        assert kept == text.split()
        assert any(new)


def test_outcomes_are_told_apart():
    def of(text, words):
        symbols = text.split()
        fault = None if chapter.is_tree(symbols, words) else "no tree"
        return chapter.outcome(Parse(chapter.DOG, tuple(symbols), fault))

    words = ["a", "b"]
    assert of("(S XX XX )S", words) == chapter.TREE
    assert of("(S XX )S", words) == of("(S XX XX XX )S", words) == chapter.COUNT
    for text in ("(S XX XX", "(S XX XX )NP", "(S (NP )NP XX XX )S", ""):
        assert of(text, words) == chapter.BRACKETS


def test_examine_counts_and_scores():
    symbols = linearise(chapter.DOG)
    right = Parse(delinearise(symbols, chapter.DOG.leaves), symbols, None)
    short_of = symbols[:2] + symbols[3:]
    wrong = Parse(repair(short_of, chapter.DOG.leaves), short_of, "too few")
    found = chapter.examine([chapter.DOG] * 2, [right, wrong])
    assert (found[chapter.TREE], found[chapter.COUNT]) == (0.5, 0.5)
    assert found[chapter.BRACKETS] == 0
    assert found["thrown away"] == pytest.approx(2 * 4 / (4 + 8))
    # The repaired tree has S in common; the other words have moved by one.
    assert found["repaired"] == pytest.approx(2 * 5 / (8 + 8))


def test_what_the_text_says_of_the_first_attempt():
    (first,) = load_record("parsing-first")["runs"]
    same, *_ = [
        run
        for run in load_record("parsing")["runs"]
        if (run["corpus"], run["sentences"]) == ("grammar", first["sentences"])
        and run["seed"] == first["seed"]
    ]
    assert round(first["scores"]["test"]["f1"], 2) == 0.65
    assert round(same["scores"]["test"]["f1"], 2) == 0.80
    old, new = first["config"], same["config"]
    assert (old["model"]["norm"], new["model"]["norm"]) == ("post", "pre")
    assert 2 * old["model"]["d_ff"] == new["model"]["d_ff"]
    assert 2 * old["tokens_per_batch"] == new["tokens_per_batch"]
    assert old["learning_rate_scale"] < new["learning_rate_scale"]


def test_what_the_text_says_of_the_recorded_runs():
    """Counting is what fails, repair moves F1 by up to 0.05, seeds by two points."""
    runs = load_record("parsing")["runs"]
    grammar = [run for run in runs if run["corpus"] == "grammar"]
    scores = [one for run in grammar for one in run["scores"].values()]
    assert all(one["wrong_tag_count"] > 0.93 * one["ill_formed"] for one in scores)
    moved = max(abs(one["f1"] - one["f1_unrepaired"]) for one in scores)
    assert round(moved, 2) == 0.05
    tests = [run["test"]["f1"] for run in chapter.recorded(MOST)]
    assert 0.02 < max(tests) - min(tests) < 0.03
    assert (paper.TABLE_4[3].f1 - paper.TABLE_4[4].f1) == pytest.approx(0.4)
    (gum,) = [run for run in runs if run["corpus"] == "gum"]
    score = gum["scores"]["test"]
    assert gum["sentences"] == 3707
    assert round(score["f1"], 2) == 0.12
    assert round(score["ill_formed"], 2) == 0.97
    assert score["wrong_tag_count"] > 0.97 * score["ill_formed"]


def test_sizes_do_not_differ_more_than_seeds():
    """As the section on the amount of data says."""
    for split in ("test", "combinations"):
        sizes = [
            [run[split]["f1"] for run in chapter.recorded(size)]
            for size in (574, 1664, MOST)
        ]
        means = [sum(some) / len(some) for some in sizes]
        assert max(means) - min(means) < max(max(s) - min(s) for s in sizes)
        assert means[0] > means[2]  # the fewest trees are not the worst


def test_the_bar_is_reached_on_test_and_never_on_combinations(blind):
    here = {split: f1 + 0.05 for split, f1 in blind.items()}
    compared = chapter.compare(blind, here, MOST)
    assert min(compared["test"].gains[1:]) > chapter.MARGIN
    assert min(compared["combinations"].gains[1:]) > 0
    assert max(compared["combinations"].gains[1:]) < chapter.MARGIN
    assert compared["test"].gains[0] == pytest.approx(0.05)
    bar = blind["combinations"] + chapter.MARGIN
    assert [chapter.passed(size, bar) for size in (1664, MOST)] == [2, 0]
    # To the parser that does not read, both are about equally hard.
    assert abs(blind["test"] - blind["combinations"]) < 0.01


def test_detectable_gain_is_above_the_margin_and_grows_with_the_deviation():
    narrow = {"test": chapter.Comparison(0.5, 0.7, (0.70, 0.71, 0.72))}
    wide = {"test": chapter.Comparison(0.5, 0.7, (0.60, 0.71, 0.82))}
    assert chapter.detectable(narrow) == pytest.approx(0.1 + 0.00957 * 1.604, abs=1e-4)
    assert chapter.detectable(wide) > chapter.detectable(narrow)


def test_a_parser_that_does_not_read_gives_each_length_its_tree():
    frequent = {6: Counter({linearise(chapter.DOG): 2})}
    other = parse_tree("(S (NP (NN Tea)) (VP (VBZ helps)))")
    assert chapter.blind_f1(frequent, [chapter.DOG]) == 1
    assert chapter.blind_f1(frequent, [other]) == 0


def test_table_4_has_the_transformer_second_and_third():
    assert len(paper.TABLE_4) == 5 + 7
    little, more = chapter.table_4_figure()
    for drawing, rank, count in ((little, 2, 5), (more, 3, 7)):
        rows = [words for *_, words in texts(drawing) if " " in words][1:]
        assert len(rows) == count
        assert "Transformer" in rows[rank - 1]
    assert [row.f1 for row in chapter.better_than(92.7)] == [93.0, 93.3]


def compared(gain):
    one = chapter.Comparison(0.6, 0.6 + gain, (0.61 + gain, 0.62 + gain))
    return {"test": one, "combinations": one}


MANY = {"a": {"words": 2, "symbols": 5}}
FEW = {"a": {"words": 2, "symbols": 4}}


@pytest.mark.parametrize(
    ("call", "verdicts"),
    [
        (
            lambda: chapter.settle_parsing(compared(0.2), 300),
            ["reproduced at small scale"],
        ),
        (
            lambda: chapter.settle_parsing(compared(0.05), 300),
            ["not reproduced at small scale"],
        ),
        (
            lambda: chapter.settle_structure(MANY, [chapter.DOG]),
            ["reproduced at small scale"],
        ),
        (
            lambda: chapter.settle_structure(FEW, [chapter.DOG]),
            ["not reproduced at small scale"],
        ),
        (
            chapter.settle_table_4,
            [
                "reported by the paper only",
                "consistent with the paper's own figures",
                "contradicted",
            ],
        ),
    ],
)
def test_claims_can_fail(call, verdicts, monkeypatch):
    shown = []
    monkeypatch.setattr(claims, "show", shown.append)
    call()
    found = [
        record.verdict
        for one in shown
        for record in records_in_html(one._repr_html_(), "19-parsing")
    ]
    assert found == verdicts


def test_the_chapter_s_function_writes_the_package_s_symbols(bank):
    """For two thousand trees."""
    notebook = Path("notebooks/19-parsing.ipynb").read_text(encoding="utf-8")
    (cell,) = [
        "".join(one["source"])
        for one in json.loads(notebook)["cells"]
        if one["id"] == "as-symbols"
    ]
    definition = cell[cell.index("def as_symbols") : cell.index("\n\n\nprint")]
    namespace: dict = {}
    exec(definition, namespace)
    for tree in bank["train"][:2000]:
        assert tuple(namespace["as_symbols"](tree)) == linearise(tree)

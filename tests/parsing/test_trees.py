"""§6.3: bracketed text, linearisation and bracket scores."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiayn.data.trees import MAX_DEPTH
from aiayn.errors import InputError
from aiayn.parsing import (
    Span,
    Tree,
    bracket_score,
    brackets,
    delinearise,
    linearise,
    parse_tree,
    with_tags,
)

DOG = "(S (NP (DT The) (NN dog)) (VP (VBZ eats) (NP (DT a) (NN cake))) (. .))"

symbols = st.text("abNPS-$.'", min_size=1, max_size=4)
preterminals = st.builds(lambda tag, word: Tree(tag, (word,)), symbols, symbols)
trees = st.recursive(
    preterminals,
    lambda inner: st.builds(
        lambda label, children: Tree(label, tuple(children)),
        symbols,
        st.lists(inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


def test_reads_labels_children_and_words() -> None:
    tree = parse_tree("(S (NP (PRP We)) (VP (VBP sleep)))")
    we = Tree("NP", (Tree("PRP", ("We",)),))
    sleep = Tree("VP", (Tree("VBP", ("sleep",)),))
    assert tree == Tree("S", (we, sleep))
    assert tree.leaves == ("We", "sleep")
    assert str(tree) == "(S (NP (PRP We)) (VP (VBP sleep)))"


def test_white_space_and_unlabelled_roots_are_read_as_in_the_penn_treebank() -> None:
    spread = "( (S\n   (NP (PRP We))\t(VP (VBP sleep))) )\n"
    assert parse_tree(spread).label == ""
    assert parse_tree(spread).children == (
        parse_tree("(S (NP (PRP We)) (VP (VBP sleep)))"),
    )


def test_a_tag_is_the_label_right_above_the_word() -> None:
    """Also of a bare word that stands after constituents which are closed."""
    assert parse_tree(DOG).tags == ("DT", "NN", "VBZ", "DT", "NN", ".")
    assert parse_tree("(S (NN a) b)").tags == ("NN", "S")
    assert parse_tree("(S (NP (DT a) b) c (, ,))").tags == ("DT", "NP", "S", ",")


def test_spans_are_those_read_off_by_hand() -> None:
    assert parse_tree(DOG).spans() == [
        Span("S", 0, 6),
        Span("NP", 0, 2),
        Span("VP", 2, 5),
        Span("NP", 3, 5),
    ]


def test_a_unary_chain_gives_each_of_its_labels() -> None:
    tree = parse_tree("(NP (NP (NP (NN tea))) (PP (IN at) (NP (NN home))))")
    assert tree.spans() == [
        Span("NP", 0, 3),
        Span("NP", 0, 1),
        Span("NP", 0, 1),
        Span("PP", 1, 3),
        Span("NP", 2, 3),
    ]


@given(trees)
def test_text_and_back(tree: Tree) -> None:
    assert parse_tree(str(tree)) == tree


@given(trees)
def test_symbols_and_back(tree: Tree) -> None:
    assert with_tags(delinearise(linearise(tree), tree.leaves), tree.tags) == tree


@given(trees)
def test_without_tags_only_the_tags_are_lost(tree: Tree) -> None:
    back = delinearise(linearise(tree), tree.leaves)
    assert back.spans() == tree.spans()
    assert back.leaves == tree.leaves
    assert set(back.tags) == {"XX"}


def test_linearisation_is_that_of_vinyals_et_al() -> None:
    assert " ".join(linearise(parse_tree(DOG))) == (
        "(S (NP XX XX )NP (VP XX (NP XX XX )NP )VP XX )S"
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "0 open brackets"),
        ("  \n", "0 open brackets"),
        ("dog", "Symbol 1, 'dog', stands outside"),
        ("(S (NN dog)", "with 1 open"),
        ("(S (NN dog)))", "Symbol 6, '\\)', stands outside"),
        ("(S (NN dog)) (S (NN cat))", "Symbol 6, .* stands outside"),
        ("(S (NN dog)) cat", "Symbol 6, 'cat', stands outside"),
        ("(S (NP) (NN dog))", "closes an empty constituent 'NP'"),
        ("()", "closes an empty"),
        ("(", "open brackets"),
    ],
)
def test_bad_text_gets_a_sentence(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        parse_tree(text)


def test_absurd_depth_gets_a_sentence_and_the_limit_is_exact() -> None:
    def nested(levels: int) -> str:
        return "(X " * levels + "word" + ")" * levels

    deepest = parse_tree(nested(MAX_DEPTH))
    assert deepest == parse_tree(str(deepest))
    for levels in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(InputError, match=f"more than {MAX_DEPTH} levels"):
            parse_tree(nested(levels))
    with pytest.raises(InputError, match=f"more than {MAX_DEPTH} levels"):
        delinearise(["(X"] * 100_000, [])


def test_a_tag_is_a_level_of_what_a_model_emits() -> None:
    def emitted(constituents: int) -> list[str]:
        return ["(X"] * constituents + ["XX"] + [")X"] * constituents

    deepest = delinearise(emitted(MAX_DEPTH - 1), ["word"])
    assert str(deepest).count("(") == MAX_DEPTH
    with pytest.raises(InputError, match=f"more than {MAX_DEPTH} levels"):
        delinearise(emitted(MAX_DEPTH), ["word"])


@pytest.mark.parametrize(
    ("emitted", "words", "complaint"),
    [
        ("(S XX", ["dog"], "open brackets"),
        ("(S XX )NP", ["dog"], r"Symbol 3, '\)NP', closes a '\(S'"),
        ("(S XX )S )S", ["dog"], "Symbol 4, '\\)S', stands outside"),
        ("(S (NP )NP XX )S", ["dog"], "closes an empty constituent 'NP'"),
        ("(S XX )S (S XX )S", ["dog", "cat"], "stands outside"),
        ("(S XX XX )S", ["dog"], "2 tags for 1 words"),
        ("(S XX )S", ["dog", "cat"], "1 tags for 2 words"),
        ("XX XX", ["a", "b"], "Symbol 2, 'XX', stands outside"),
        ("", [], "0 open brackets"),
    ],
)
def test_what_a_model_emits_amiss_gets_a_sentence(
    emitted: str, words: list[str], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        delinearise(emitted.split(), words)


def test_a_word_without_a_tag_cannot_be_linearised() -> None:
    with pytest.raises(InputError, match="'dog' stands directly under 'NP'"):
        linearise(parse_tree("(NP (DT the) dog)"))


def test_brackets_leave_out_root_tags_and_punctuation() -> None:
    tree = parse_tree(
        "(ROOT (S (`` ``) (NP-SBJ (NNS Dogs)) (VP (VBP wake) (PRT (RP up)))"
        " (PRN (, ,)) (. .)))"
    )
    # Only three words count; PRN holds nothing else, and PRT counts as ADVP.
    assert brackets(tree) == {
        Span("S", 0, 3): 1,
        Span("NP", 0, 1): 1,
        Span("VP", 1, 3): 1,
        Span("ADVP", 2, 3): 1,
    }


def test_a_bare_word_after_a_comma_counts() -> None:
    tree = parse_tree("(S (NP (NN a) (, ,) b))")
    assert brackets(tree) == {Span("S", 0, 2): 1, Span("NP", 0, 2): 1}


def test_brackets_leave_out_traces() -> None:
    """Penn's sign of what was moved is no word, and no bracket is over it alone."""
    tree = parse_tree(
        "(S (NP-SBJ (PRP She)) (VP (VBZ wants) (S (NP-SBJ (-NONE- *-1)) (VP (TO to)"
        " (VP (VB sleep))))) (SBAR (-NONE- 0) (S (-NONE- *T*-2))))"
    )
    assert brackets(tree) == {
        Span("S", 0, 4): 1,
        Span("NP", 0, 1): 1,
        Span("VP", 1, 4): 1,
        Span("S", 2, 4): 1,
        Span("VP", 2, 4): 1,
        Span("VP", 3, 4): 1,
    }


def test_labels_like_minus_lrb_are_not_cut_to_nothing() -> None:
    tree = parse_tree("(S (-X- (NN a)) (NP=2 (NN b)))")
    assert Span("-X", 0, 1) in brackets(tree)
    assert Span("NP", 1, 2) in brackets(tree)


def test_score_of_an_example_by_hand() -> None:
    gold = parse_tree(DOG)
    guess = parse_tree(
        "(S (NP (DT The) (NN dog)) (VP (VBZ eats) (NP (DT a)) (NP (NN cake))) (. .))"
    )
    # Gold: S NP VP NP. Guess: S NP VP NP NP, of which S NP VP are right.
    score = bracket_score([gold], [guess])
    assert score.precision == 3 / 5
    assert score.recall == 3 / 4
    assert score.f1 == pytest.approx(2 * (3 / 5) * (3 / 4) / (3 / 5 + 3 / 4), rel=1e-12)


def test_a_repeated_bracket_counts_as_often_as_it_stands_there() -> None:
    twice = parse_tree("(NP (NP (NN tea)))")
    once = parse_tree("(NP (NN tea))")
    assert bracket_score([once], [twice]) == (1 / 2, 1, 2 / 3)
    assert bracket_score([twice], [once]) == (1, 1 / 2, 2 / 3)


def test_an_output_that_is_no_tree_counts_as_nothing_found() -> None:
    gold = parse_tree(DOG)
    assert bracket_score([gold, gold], [gold, None]) == (1, 1 / 2, 2 / 3)
    assert bracket_score([gold], [None]) == (0, 0, 0)


@given(trees, trees)
def test_scores_swap_precision_and_recall_with_the_arguments(a: Tree, b: Tree) -> None:
    forth, back = bracket_score([a], [b]), bracket_score([b], [a])
    assert forth.precision == back.recall
    assert forth.f1 == back.f1
    assert 0 <= forth.f1 <= 1


@given(trees)
def test_a_tree_scores_one_against_itself_if_it_has_brackets(tree: Tree) -> None:
    expected = 1.0 if brackets(tree) else 0.0
    assert bracket_score([tree], [tree]).f1 == expected


def test_scores_need_as_many_predictions_as_trees() -> None:
    with pytest.raises(ValueError, match="shorter than argument 1"):
        bracket_score([parse_tree(DOG)], [])


def _treebank() -> Path:
    beside = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("AIAYN_DATA", beside)) / "gum_const"
    if not folder.is_dir():
        pytest.skip("The GUM treebank is not here: set AIAYN_DATA to a folder with it.")
    return folder


@pytest.mark.parametrize("part", ["dev", "test"])
def test_a_real_treebank_comes_back_as_it_was(part: str) -> None:
    path = _treebank() / f"open.{part}.ptb.gz"
    bank = gzip.decompress(path.read_bytes()).decode().splitlines()
    trees = [parse_tree(line) for line in bank]
    assert [str(tree) for tree in trees] == bank
    for tree in trees:
        assert with_tags(delinearise(linearise(tree), tree.leaves), tree.tags) == tree
    assert bracket_score(trees, trees) == (1, 1, 1)
    assert all("ROOT" not in {span.label for span in brackets(tree)} for tree in trees)

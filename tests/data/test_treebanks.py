"""§6.3: treebanks, and the strings that a parser is trained on."""

import re

import pytest

from aiayn.data import TREEBANKS, Tokenizer, load_corpus, load_treebank, tree_pairs
from aiayn.data.grammar import load_grammar
from aiayn.errors import InputError
from aiayn.trees import cut_function_tags, delinearise, parse_tree

OPTIONS = {"size": 40, "held_out_size": 5, "seed": 3}


def test_the_grammars_trees_are_its_samples():
    bank = load_treebank("grammar", **OPTIONS)
    samples = load_grammar(**OPTIONS)
    assert list(bank) == ["train", "validation", "test", "combinations"]
    for split, trees in bank.items():
        assert list(trees) == [sample.source_tree for sample in samples[split]]


def test_a_parsers_corpus_holds_the_same_trees_in_the_same_order():
    bank = load_treebank("grammar", **OPTIONS)
    corpus = load_corpus("grammar", target="trees", **OPTIONS)
    assert (corpus.source_language, corpus.target_language) == ("en", "trees")
    for split, trees in bank.items():
        for (words, symbols), tree in zip(corpus.split(split), trees, strict=True):
            assert tuple(words.split()) == tree.leaves
            back = delinearise(symbols.split(), words.split())
            assert back.spans() == cut_function_tags(tree).spans()


def test_every_symbol_is_one_piece_of_a_small_vocabulary():
    """So a parser writes a symbol a step, and pieces are spent on words."""
    text = load_corpus("grammar", target="trees", size=1000).train
    tokenizer = Tokenizer.train([*text.source, *text.target], 1200, whole_symbols=True)
    symbols = sorted({symbol for line in text.target for symbol in line.split()})
    assert len(symbols) > 20
    for symbol in symbols:
        assert tokenizer.pieces(tokenizer.encode(symbol)) == [f"▁{symbol}"]
    apart = Tokenizer.train([*text.source, *text.target], 1200)
    assert len(apart.encode("(NP")) == 2  # why the option is there


def test_function_tags_are_not_learnt():
    tree = parse_tree("(S (NP-SBJ=1 (NN Tea)) (VP (VBZ helps)))")
    assert list(tree_pairs([tree])) == [("Tea helps", "(S (NP XX )NP (VP XX )VP )S")]


def test_gum_is_whole_and_has_no_document_roots(data_folder):
    bank = load_treebank("gum")
    assert {split: len(trees) for split, trees in bank.items()} == {
        "train": 3_707,
        "validation": 438,
        "test": 491,
    }
    assert {tree.label for tree in bank["train"]}.isdisjoint({"ROOT", "TOP", ""})
    corpus = load_corpus("gum", target="trees")
    assert "CC BY" in corpus.licence
    assert "ROOT" not in " ".join(corpus.train.target)
    for (words, symbols), tree in zip(corpus.test, bank["test"], strict=True):
        back = delinearise(symbols.split(), words.split())
        assert back.leaves == tree.leaves
        assert len(back.spans()) == len(tree.spans())


def test_without_gum_the_message_says_what_it_is_made_of():
    with pytest.raises(InputError, match=re.escape("const/*.ptb")) as refusal:
        load_treebank("gum")
    assert "AIAYN_DATA" in str(refusal.value)
    assert "'grammar'" in str(refusal.value)


def test_an_unknown_treebank_is_answered_with_those_that_exist():
    with pytest.raises(InputError, match=", ".join(TREEBANKS)):
        load_treebank("wsj")

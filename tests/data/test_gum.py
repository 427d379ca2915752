"""§6.3: GUM, the treebank of chapter 19's record."""

import re

import pytest

from aiayn.data import load_corpus
from aiayn.errors import InputError
from aiayn.parsing import delinearise
from aiayn_book.gum import read_gum, write_gum


def test_gum_is_whole_and_has_no_document_roots(data_folder, tmp_path):
    bank = read_gum()
    assert {split: len(trees) for split, trees in bank.items()} == {
        "train": 3_707,
        "validation": 438,
        "test": 491,
    }
    assert {tree.label for tree in bank["train"]}.isdisjoint({"ROOT", "TOP", ""})
    write_gum(tmp_path)
    corpus = load_corpus(tmp_path, target="trees")
    assert "ROOT" not in " ".join(corpus.train.target)
    for (words, symbols), tree in zip(corpus.test, bank["test"], strict=True):
        back = delinearise(symbols.split(), words.split())
        assert back.leaves == tree.leaves
        assert len(back.spans()) == len(tree.spans())


def test_without_gum_the_message_says_what_it_is_made_of():
    with pytest.raises(InputError, match=re.escape("const/*.ptb")) as refusal:
        read_gum()
    assert "AIAYN_DATA" in str(refusal.value)
    assert "'grammar'" in str(refusal.value)

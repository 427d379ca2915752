"""The corpora by name, on the real files where they are at hand."""

import gzip
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from aiayn.data import CORPORA, Corpus, ParallelText, load_corpus, multi30k, tatoeba
from aiayn.data.grammar import load_grammar
from aiayn.errors import InputError


@pytest.mark.parametrize(
    ("source", "target"), [("en", "de"), ("de", "en"), ("fr", "de"), ("en", "fr")]
)
def test_multi30k(data_folder, source, target):
    corpus = load_corpus("multi30k", source=source, target=target)
    assert {name: len(split) for name, split in corpus.splits.items()} == {
        "train": 29_000,
        "validation": 1_014,
        "test": 1_000,
    }
    first = {
        "en": "A man in an orange hat starring at something.",
        "de": "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
        "fr": "Un homme avec un chapeau orange regardant quelque chose.",
    }
    assert next(iter(corpus.test)) == (first[source], first[target])
    assert "non-commercial" in corpus.licence


def test_tatoeba_is_whole_and_its_splits_share_no_sentence(data_folder):
    corpus = load_corpus("tatoeba")
    sizes = {name: len(split) for name, split in corpus.splits.items()}
    # 169,813 pairs, of which 568 share their German side with a held-out pair.
    assert sizes == {"train": 165_821, "validation": 1_740, "test": 1_684}
    assert sum(sizes.values()) == 169_813 - 568
    for side in ("source", "target"):
        train = set(getattr(corpus.train, side))
        assert train.isdisjoint(getattr(corpus.validation, side))
        assert train.isdisjoint(getattr(corpus.test, side))
    assert set(corpus.validation.source).isdisjoint(corpus.test.source)
    assert "CC BY 2.0" in corpus.licence
    assert "Attribution: www.manythings.org/anki and tatoeba.org" in corpus.licence
    backwards = load_corpus("tatoeba", source="de", target="en").test
    assert backwards == ParallelText(corpus.test.target, corpus.test.source)


def test_the_grammar_in_both_directions():
    options = {"size": 30, "held_out_size": 5, "seed": 3}
    corpus = load_corpus("grammar", **options)
    samples = load_grammar(**options)
    assert list(corpus.splits) == ["train", "validation", "test", "combinations"]
    for name, split in corpus.splits.items():
        assert list(split) == [(s.source, s.target) for s in samples[name]]
    assert len(corpus.train) == 30
    backwards = load_corpus("grammar", source="de", target="en", **options)
    assert backwards.train.source == corpus.train.target
    assert backwards.train.target == corpus.train.source


def test_every_file_has_a_hash_and_mirrors_of_different_hosts():
    files = [*multi30k.remote_files().values(), tatoeba.REMOTE_FILE]
    assert len({file.path for file in files}) == 10
    for file in files:
        assert re.fullmatch("[0-9a-f]{64}", file.digest)
        assert all(urlsplit(mirror).scheme == "https" for mirror in file.mirrors)
        assert len({urlsplit(mirror).netloc for mirror in file.mirrors}) >= 2


def folder_with(tmp_path, **files):
    """A folder with those files; train_en becomes train.en."""
    for name, content in files.items():
        path = tmp_path / name.replace("_", ".")
        data = content.encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(tmp_path)


def test_a_folder_of_ones_own(tmp_path):
    folder = folder_with(
        tmp_path, train_en="a\n", train_de_gz="A\n", dev_en="b\n", dev_de="B\n"
    )
    corpus = load_corpus(folder)
    assert list(corpus.train) == [("a", "A")]
    assert list(corpus.validation) == [("b", "B")]
    turned = load_corpus(Path(folder), source="de", target="en")
    assert list(turned.train) == [("A", "a")]
    with pytest.raises(InputError, match="has no split 'test'; it has train, valid"):
        _ = corpus.test


def test_a_folder_without_one_side_or_any_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no corpus from en to de.*train\.en"):
        load_corpus(str(tmp_path))
    folder = folder_with(tmp_path, train_de="A\n")
    with pytest.raises(InputError, match=r"train\.en cannot be read: No such file"):
        load_corpus(folder)


@pytest.mark.parametrize("name", ["wmt13", "", "no/such/folder", "x\0y"])
def test_an_unknown_corpus_is_answered_with_those_that_exist(name):
    with pytest.raises(InputError, match=", ".join(CORPORA)):
        load_corpus(name)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "multi30k",
            {"source": "cs"},
            "from 'cs' to 'de'; it has the directions en-de, ",
        ),
        ("tatoeba", {"target": "fr"}, "to 'fr'; it has the directions en-de, de-en"),
        ("wmt14", {"source": "de", "target": "fr"}, "from 'de' to 'fr'; it has"),
        (
            "grammar",
            {"target": "fr"},
            "the directions en-de, de-en, en-trees",
        ),
        ("grammar", {"source": "de", "target": "trees"}, "cannot be read from 'de' to"),
        ("grammar", {"target": "en"}, "both 'en'"),
    ],
)
def test_what_a_corpus_does_not_have_is_said(name, arguments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        load_corpus(name, **arguments)


@pytest.mark.parametrize("name", ["multi30k", "."])
def test_only_the_grammar_has_options(name):
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        load_corpus(name, size=5)


def test_a_missing_split_is_answered_with_those_that_exist():
    text = ParallelText(("a",), ("A",))
    corpus = Corpus("small", "en", "de", {"train": text}, "", "")
    assert corpus.train is text
    with pytest.raises(InputError, match="'combinations'; it has train"):
        corpus.split("combinations")


def test_a_reader_may_change_what_was_read():
    """The grammar is kept for who asks next, and is not the reader's copy of it."""
    corpus = load_corpus("grammar", size=20, held_out_size=5)
    corpus.splits["train"] = corpus.splits.pop("test")
    again = load_corpus("grammar", size=20, held_out_size=5)
    assert list(again.splits) == ["train", "validation", "test", "combinations"]
    assert len(again.train) == 20

"""A reader's own two files."""

import gzip

import pytest

from aiayn.data import ParallelText, read_parallel
from aiayn.errors import InputError


def two_files(tmp_path, source, target):
    """Two files with those contents."""
    paths = tmp_path / "a.en", tmp_path / "a.de"
    for path, content in zip(paths, (source, target), strict=True):
        path.write_text(content, encoding="utf-8", newline="")
    return paths


def test_one_pair_or_some():
    text = ParallelText(("a", "b", "c"), ("A", "B", "C"))
    assert text[0] == ("a", "A")
    assert text[-1] == ("c", "C")
    assert list(text[1:]) == [("b", "B"), ("c", "C")]


def test_pairs_come_in_order(tmp_path):
    text = read_parallel(*two_files(tmp_path, "a\nb\n", "A\r\nB"))
    assert list(text) == [("a", "A"), ("b", "B")]
    assert len(text) == 2
    assert text[1:] == ParallelText(("b",), ("B",))
    assert text[:None] == text


def test_a_separator_inside_one_side_does_not_shift_the_pairs(tmp_path):
    text = read_parallel(*two_files(tmp_path, "a\u2028b\nc\n", "A B\nC\n"))
    assert list(text) == [("a\u2028b", "A B"), ("c", "C")]


def test_pairs_with_an_empty_side_are_left_out_and_counted(tmp_path):
    paths = two_files(tmp_path, "a\n\nc\n \t\u2028\ne\n", "A\nB\n\u3000\nD\nE\n")
    with pytest.warns(UserWarning, match=r"3 of 5 pairs of .*a\.en and .*a\.de are"):
        text = read_parallel(*paths)
    assert list(text) == [("a", "A"), ("e", "E")]


@pytest.mark.parametrize(("source", "target"), [("", ""), ("a\n\n", "\nB\n")])
def test_a_corpus_without_a_pair_is_refused(tmp_path, source, target):
    with pytest.raises(InputError, match=r"a\.en and .*a\.de hold no pair"):
        read_parallel(*two_files(tmp_path, source, target))


def test_unequal_counts_are_both_named(tmp_path):
    with pytest.raises(InputError, match=r"a\.en has 3 lines and .*a\.de 2"):
        read_parallel(*two_files(tmp_path, "a\nb\nc\n", "A\nB\n"))


def test_a_missing_side_is_named(tmp_path):
    source, _ = two_files(tmp_path, "a\n", "A\n")
    with pytest.raises(InputError, match=r"a\.fr cannot be read: No such file"):
        read_parallel(source, tmp_path / "a.fr")


def test_packed_and_plain_files_go_together(tmp_path):
    source, _ = two_files(tmp_path, "a\n", "")
    (tmp_path / "a.de.gz").write_bytes(gzip.compress(b"A\n"))
    assert list(read_parallel(source, tmp_path / "a.de.gz")) == [("a", "A")]


def test_one_text_is_no_side():
    """Each of its letters would be a sentence."""
    with pytest.raises(InputError):
        ParallelText("a dog", "a cat")


def test_sides_of_unequal_length_make_no_text():
    with pytest.raises(InputError, match="source has 2, target 1"):
        ParallelText(("a", "b"), ("A",))

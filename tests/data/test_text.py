"""Lines of text: what a line is, and files that are damaged."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiayn.data import MemmapLines, ParallelText, read_lines
from aiayn.errors import InputError


def written(tmp_path, content, name="text.en"):
    """A file with that content."""
    path = tmp_path / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\n\n", ["a", ""]),
        (b"\xef\xbb\xbfa\r\nb\r\n", ["a", "b"]),
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),  # no mark of the file's beginning
        # Other separators stay inside their line: a lone return, line tabulation, form
        # feed, next line (U+0085), line and paragraph separator (U+2028, U+2029).
        (b"a\rb\x0bc\x0cd\n", ["a\rb\x0bc\x0cd"]),
        ("a\x85b\u2028c\u2029d\n".encode(), ["a\x85b\u2028c\u2029d"]),
        (b" a \xc2\xa0\n", [" a \xa0"]),
        (b"\0\n", ["\0"]),
    ],
)
def test_a_line_ends_at_a_line_feed_only(tmp_path, content, lines):
    assert list(read_lines(written(tmp_path, content))) == lines


@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"))))
def test_gzip_and_plain_give_the_same_lines(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("text")
    content = "".join(f"{line}\n" for line in lines).encode()
    plain = written(folder, content)
    packed = written(folder, gzip.compress(content), "text.en.gz")
    expected = list(read_lines(plain))
    assert list(read_lines(packed)) == expected
    assert len(expected) == len(lines)


def test_invalid_utf8_names_file_and_line(tmp_path):
    path = written(tmp_path, b"good\nbad \xff\n")
    with pytest.raises(InputError, match=r"Line 2 of .*text\.en is not UTF-8.*byte 5"):
        list(read_lines(path))


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere cannot be read: No such file"):
        list(read_lines(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize("cut", [5, 20, -1])
def test_gzip_cut_short_is_refused(tmp_path, cut):
    packed = gzip.compress("".join(f"line {i}\n" for i in range(99)).encode())
    with pytest.raises(InputError, match=r"text\.gz cannot be read: Compressed"):
        list(read_lines(written(tmp_path, packed[:cut], "text.gz")))


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read: Not a gzipped file"):
        list(read_lines(written(tmp_path, b"plain text\n", "text.gz")))


# Lines on disk


def on_disk(path, lines):
    """The path of a file that holds these lines."""
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def test_lines_on_disk_are_a_sequence(tmp_path, monkeypatch):
    lines = ["eins", "", "drei ä", "vier\u2028"]
    monkeypatch.setattr("aiayn.data.text.SCANNED", 5)  # inside lines and at their ends
    found = MemmapLines.open(on_disk(tmp_path / "text", lines))
    assert list(found) == lines
    assert found[-1] == lines[-1]
    assert list(found[1:3]) == lines[1:3]
    assert list(found[1:3][1:]) == lines[2:3]
    assert list(found[3:1]) == []
    assert list(found[::2]) == lines[::2]
    assert list(found[::-1]) == lines[::-1]
    assert isinstance(found[::2], MemmapLines)
    with pytest.raises(IndexError):
        found[4]


def test_a_path_may_be_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    on_disk(tmp_path / "text", ["eins", "zwei"])
    assert list(MemmapLines.open("text")) == ["eins", "zwei"]


@pytest.mark.parametrize("name", ["nowhere", "empty", "endless", "."])
def test_what_cannot_be_left_on_disk_is_named(tmp_path, name):
    (tmp_path / "empty").touch()
    (tmp_path / "endless").write_bytes(b"eins\nzwei")
    with pytest.raises(InputError, match=r"cannot be opened: "):
        MemmapLines.open(tmp_path / name)


OLD_MAC = {
    "CR alone": b"a\rb\rc\r",
    "and a line feed at the end": b"a\rb\rc\n",
    "without an end": b"a\rb\rc",
    "half of the file": b"a\nb\n" + b"c\rd\re\rf\r",
}


@pytest.mark.parametrize("content", OLD_MAC.values(), ids=OLD_MAC)
def test_line_ends_of_old_macs_are_named(tmp_path, content):
    with pytest.raises(InputError, match=r"text.* has carriage returns alone \(\d\)"):
        list(read_lines(written(tmp_path, content)))


def test_texts_of_the_same_lines_have_the_same_digest(tmp_path):
    """In memory or on disk, a part or a whole."""
    sides = ["a dog", "ein", "ü"], ["ein Hund", "x", "\U0001f642"]
    whole = ParallelText(*map(tuple, sides))
    files = (
        MemmapLines.open(on_disk(tmp_path / f"{number}", side))
        for number, side in enumerate(sides)
    )
    mapped = ParallelText(*files)
    assert whole.digest == mapped.digest == ParallelText(*sides).digest
    assert whole[:2].digest == mapped[:2].digest != whole.digest
    assert whole[:0].digest == mapped[:0].digest
    assert whole[::2].digest == mapped[::2].digest != whole.digest
    assert whole[::-1].digest == mapped[::-1].digest != whole.digest
    assert ParallelText(*reversed(sides)).digest != whole.digest

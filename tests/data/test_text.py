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
    with pytest.raises(InputError, match=r"no file .*nowhere"):
        list(read_lines(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_lines(tmp_path))


@pytest.mark.parametrize("cut", [5, 20, -1])
def test_gzip_cut_short_is_refused(tmp_path, cut):
    packed = gzip.compress("".join(f"line {i}\n" for i in range(99)).encode())
    with pytest.raises(InputError, match=r"text\.gz is damaged"):
        list(read_lines(written(tmp_path, packed[:cut], "text.gz")))


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(InputError, match="damaged"):
        list(read_lines(written(tmp_path, b"plain text\n", "text.gz")))


# Lines on disk


def test_lines_on_disk_are_a_sequence(tmp_path):
    lines = ["eins", "", "drei ä", "vier\u2028"]
    found = MemmapLines.write(tmp_path / "text", lines)
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
    with (tmp_path / "text").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(InputError, match="do not belong together"):
        MemmapLines.open(tmp_path / "text")


def test_a_path_may_be_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert list(MemmapLines.write("text", ["eins", "zwei"])) == ["eins", "zwei"]
    assert list(MemmapLines.open("text")) == ["eins", "zwei"]


def test_a_text_does_not_stand_without_the_list_of_its_lines(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("aiayn.data.text.np.save", full)
    with pytest.raises(InputError, match="No space left"):
        MemmapLines.write(tmp_path / "text", ["eins"])
    assert list(tmp_path.iterdir()) == []


def test_what_are_no_lines_is_refused_and_leaves_nothing(tmp_path, unchecked_shapes):
    with pytest.raises(InputError, match=r"give \[text\]"):
        MemmapLines.write(tmp_path / "text", "eins")
    with pytest.raises(InputError, match="Line 2 contains a line feed"):
        MemmapLines.write(tmp_path / "text", ["eins", "zwei\ndrei"])
    assert not list(tmp_path.iterdir())


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
        MemmapLines.write(tmp_path / f"{number}", side)
        for number, side in enumerate(sides)
    )
    on_disk = ParallelText(*files)
    assert whole.digest == on_disk.digest == ParallelText(*sides).digest
    assert whole[:2].digest == on_disk[:2].digest != whole.digest
    assert whole[:0].digest == on_disk[:0].digest
    assert ParallelText(*reversed(sides)).digest != whole.digest

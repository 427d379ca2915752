"""Lines of text: what a line is, and files that are damaged or hostile."""

import gzip
import tracemalloc
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aiayn.data import read_lines, text
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
def test_gzip_zip_and_plain_give_the_same_lines(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("text")
    content = "".join(f"{line}\n" for line in lines).encode()
    plain = written(folder, content)
    packed = written(folder, gzip.compress(content), "text.en.gz")
    archive = folder / "text.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("text.en", content)
    expected = list(read_lines(plain))
    assert list(read_lines(packed)) == expected
    assert list(read_lines(archive, member="text.en")) == expected
    assert len(expected) == len(lines)


def test_invalid_utf8_names_file_and_line(tmp_path):
    path = written(tmp_path, b"good\nbad \xff\n")
    with pytest.raises(InputError, match=r"Line 2 of .*text\.en is not UTF-8.*byte 5"):
        list(read_lines(path))


def test_missing_file_folder_and_member_are_named(tmp_path):
    with pytest.raises(InputError, match=r"no file .*nowhere"):
        list(read_lines(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="cannot be read"):
        list(read_lines(tmp_path))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("one", "1")
    with pytest.raises(InputError, match="holds no file two"):
        list(read_lines(tmp_path / "a.zip", member="two"))


@pytest.mark.parametrize("cut", [5, 20, -1])
def test_gzip_cut_short_is_refused(tmp_path, cut):
    packed = gzip.compress("".join(f"line {i}\n" for i in range(99)).encode())
    with pytest.raises(InputError, match=r"text\.gz is damaged"):
        list(read_lines(written(tmp_path, packed[:cut], "text.gz")))


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(InputError, match="damaged"):
        list(read_lines(written(tmp_path, b"plain text\n", "text.gz")))
    with pytest.raises(InputError, match="damaged"):
        list(read_lines(written(tmp_path, b"plain text\n", "text.zip"), member="x"))


@settings(max_examples=200)
@given(place=st.integers(0, 10_000), change=st.integers(1, 255))
def test_a_changed_byte_in_a_zip_gives_lines_or_a_sentence(
    tmp_path_factory, place, change
):
    folder = tmp_path_factory.mktemp("zip")
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("one", "".join(f"line {i}\n" for i in range(20)))
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= change
    path.write_bytes(content)
    message = ""
    lines = [f"line {i}" for i in range(20)]
    try:  # some bytes are of no account: a time stamp, for instance
        found = list(read_lines(path, member="one"))
    except InputError as error:
        found, message = lines, str(error)
    assert found == lines
    assert not message or str(path) in message


def test_many_lines_that_unpack_from_little_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MIN_BOUND_BYTES", 50_000)
    content = b"again and again\n" * 100_000
    packed = written(tmp_path, gzip.compress(content), "bomb.gz")
    assert packed.stat().st_size * text.MAX_RATIO < len(content)
    with pytest.raises(InputError, match=r"bomb\.gz grows beyond"):
        list(read_lines(packed))
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("bomb", content)
    with pytest.raises(InputError, match=r"bomb in .*bomb\.zip grows beyond"):
        list(read_lines(tmp_path / "bomb.zip", member="bomb"))


def test_an_endless_line_is_refused_before_it_fills_the_memory(tmp_path):
    packed = written(tmp_path, gzip.compress(bytes(100 * 2**20), 1), "zeros.gz")
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"Line 1 of .* is longer than"):
            list(read_lines(packed))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The line up to the limit, once in pieces and once joined, and small change.
    assert peak < 3 * text.MAX_LINE_BYTES


def test_names_in_an_archive_lead_nowhere(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    with zipfile.ZipFile(inner / "a.zip", "w") as file:
        file.writestr("../escaped", "out\n")
        file.writestr("/absolute", "out\n")
    assert list(read_lines(inner / "a.zip", member="../escaped")) == ["out"]
    assert list(tmp_path.rglob("*")) == [inner, inner / "a.zip"]

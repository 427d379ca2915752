"""Which files of two sites differ, and where."""

import reproducible


def site(folder, **files):
    folder.mkdir()
    for name, content in files.items():
        (folder / f"{name}.html").write_bytes(content)
    return folder


def test_the_files_that_differ_are_named(tmp_path):
    one = site(tmp_path / "one", same=b"a", other=b"text one", alone=b"")
    two = site(tmp_path / "two", same=b"a", other=b"text two")
    assert reproducible.differences(one, two) == ["alone.html", "other.html"]
    said = reproducible.first_difference(one / "other.html", two / "other.html")
    assert said == "at byte 5: b'text one' and b'text two'"
    said = reproducible.first_difference(one / "alone.html", two / "alone.html")
    assert said == "only in one of them"


def test_a_text_that_goes_on_differs_at_its_end(tmp_path):
    one = site(tmp_path / "one", page=b"text")
    two = site(tmp_path / "two", page=b"text and more")
    said = reproducible.first_difference(one / "page.html", two / "page.html")
    assert said.startswith("at byte 4:")

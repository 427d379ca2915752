"""Which releases the package is tested with: what pyproject.toml claims."""

import project
import releases


def test_the_lowest_are_the_bounds_and_the_newest_are_free():
    bounds = [*project.requirements(), *project.requirements("book")]
    lowest = releases.wanted("lowest")
    assert lowest == [bound.replace(">=", "==") for bound in bounds]
    assert "torch==2.11" in lowest
    assert releases.wanted("newest") == [bound.split(">=")[0] for bound in bounds]


def test_the_pinned_are_the_books(tmp_path):
    """Every requirement of the package and every tool of its tests has its pin."""
    pins = releases.pins()
    assert set(releases.TOOLS) <= pins.keys()
    for one in releases.wanted("pinned"):
        name, version = one.split("==")
        assert pins[name] == version


def test_every_part_of_the_package_is_tested():
    """All but the book, whose tests need the tools that build it."""
    package = project.ROOT / "src" / "aiayn"
    parts = {path.parent.name for path in package.glob("*/__init__.py")}
    assert set(releases.FOLDERS) == parts - {"book"}
    for name in releases.FOLDERS:
        assert list((project.ROOT / "tests" / name).glob("test_*.py")), name

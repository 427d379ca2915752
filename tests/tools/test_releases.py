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


def test_every_folder_of_tests_of_the_package_is_run():
    """All but those that need the book's own tools."""
    tests = project.ROOT / "tests"
    folders = {path.parent.name for path in tests.glob("*/test_*.py")}
    others = {"benchmarks", "book", "notebooks", "site", "slides", "soak", "tools"}
    assert set(releases.FOLDERS) == folders - others

"""Which releases the package is tested with: what pyproject.toml claims."""

import ast
import re
import sys
from importlib.metadata import packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import project
import releases


def test_the_lowest_are_the_bounds_and_the_newest_are_free():
    parts = ("dependencies", "book")
    bounds = [bound for part in parts for bound in project.requirements(part)]
    lowest = releases.wanted("lowest")
    assert lowest == [bound.replace(">=", "==") for bound in bounds]
    assert "torch==2.11" in lowest
    newest = [bound.split(">=")[0] for bound in bounds]
    assert releases.wanted("newest") == newest


def test_the_pinned_are_the_books(tmp_path):
    """Every requirement of the package and every tool of its tests has its pin."""
    pins = releases.pinned()
    assert set(releases.TOOLS) <= pins.keys()
    for one in releases.wanted("pinned"):
        name, version = one.split("==")
        assert pins[name] == version


def test_what_builds_the_package_is_as_free_as_its_metadata_says():
    """torch 2.11 wants setuptools below 82: a pin beside it would have no solution."""
    assert releases.build_tools() == ["setuptools>=77"]
    assert "setuptools" not in releases.TOOLS


def test_every_part_of_the_package_is_tested():
    """All but the book, whose tests need the tools that build it."""
    package = project.ROOT / "src" / "aiayn"
    parts = {path.parent.name for path in package.glob("*/__init__.py")}
    assert set(releases.FOLDERS) == parts
    for name in releases.FOLDERS:
        assert list((project.ROOT / "tests" / name).glob("test_*.py")), name


def imported(tool):
    """The modules that a tool imports, and those that its imports do, if ours."""
    tree = ast.parse((project.ROOT / "tools" / f"{tool}.py").read_text("utf-8"))
    for node in ast.walk(tree):
        names = [alias.name for alias in getattr(node, "names", ())]
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif not isinstance(node, ast.Import):
            continue
        for name in names:
            if (project.ROOT / "tools" / f"{name}.py").exists():
                yield from imported(name)
            else:
                yield name.partition(".")[0]


def test_other_versions_stand_in_one_environment_and_not_beside_the_books():
    """A runner's disk has room for one torch; what starts it installs what it needs."""
    makefile = (project.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("colab", "releases"):
        assert re.search(rf"^{target}: \$\(STARTER_READY\) ", makefile, re.MULTILINE)
    (line,) = re.findall(r"--constraint requirements\.txt (.*)", makefile)
    waiting, installed = line.split(), set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in installed:
            installed.add(name)
            needed = map(Requirement, requires(name) or ())
            waiting += [one.name for one in needed if not one.marker]
    assert "torch" not in installed
    owners = packages_distributions()
    for module in {*imported("colab"), *imported("releases")}:
        if module not in sys.stdlib_module_names:
            assert installed & set(map(canonicalize_name, owners[module])), module

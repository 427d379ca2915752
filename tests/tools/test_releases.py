"""Which releases the package is tested with, and what of it."""

import ast
import re
import sys
from importlib.metadata import packages_distributions, requires
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import project

MAKEFILE = (project.ROOT / "Makefile").read_text(encoding="utf-8")


def test_what_tests_the_package_is_pinned():
    """A name that requirements.txt does not pin would be passed over in silence."""
    (names,) = re.findall(r"^TESTERS := (.*)", MAKEFILE, re.MULTILINE)
    kept = (project.ROOT / "requirements.txt").read_text(encoding="utf-8")
    for name in names.split("|"):
        assert re.search(rf"^{name}==", kept, re.MULTILINE), name


def test_every_part_of_the_package_is_tested():
    """All but the book, whose tests need the tools that build it."""
    package = project.ROOT / "src" / "aiayn"
    parts = {path.parent.name for path in package.glob("*/__init__.py")}
    (tested,) = re.findall(
        r"^PACKAGE_TESTS := .*addprefix tests/,(.*)\)", MAKEFILE, re.M
    )
    assert set(tested.split()) == parts
    for name in parts:
        assert list((project.ROOT / "tests" / name).glob("test_*.py")), name


def imported(tool):
    """The modules that a tool imports, and those that its imports do, if ours."""
    tree = ast.parse(Path(find_spec(tool).origin).read_text("utf-8"))
    for node in ast.walk(tree):
        names = [alias.name for alias in getattr(node, "names", ())]
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
        elif not isinstance(node, ast.Import):
            continue
        for name in names:
            if name.startswith("tools."):
                yield from imported(name)
            else:
                yield name.partition(".")[0]


def test_other_versions_stand_in_one_environment_and_not_beside_the_books():
    """A runner's disk has room for one torch; what starts it installs what it needs."""
    for target in ("colab", "releases"):
        assert re.search(rf"^{target}: \$\(STARTER_READY\) ", MAKEFILE, re.MULTILINE)
    (line,) = re.findall(r"--constraint requirements\.txt (.*nbclient.*)", MAKEFILE)
    waiting, installed = line.split(), set()
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in installed:
            installed.add(name)
            needed = map(Requirement, requires(name) or ())
            waiting += [one.name for one in needed if not one.marker]
    assert "torch" not in installed
    owners = packages_distributions()
    for module in set(imported("tools.site.colab")):
        if module not in sys.stdlib_module_names:
            assert installed & set(map(canonicalize_name, owners[module])), module

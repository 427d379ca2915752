"""Which part of the package may import which: arrows run one way (see the design).

Read from the sources, so that an import inside a function counts as well.
"""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "aiayn"
LEAVES = ("checkpoint", "errors", "files", "machine", "run")
MAY_IMPORT = {leaf: set() for leaf in LEAVES} | {
    "model": set(),
    "data": set(),
    "inference": {"model", "data"},
    "training": {"model", "data", "inference"},
    "parsing": {"model", "data", "inference"},
    "interop": {"model"},
}


def imported_by(path):
    """The parts of aiayn that a module imports, and the other packages."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} does not say in full what it imports"
            names = [node.module]
        else:
            continue
        yield from (name.split(".") for name in names)


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_only_what_stands_below_it(part):
    allowed = {part, *MAY_IMPORT[part], *LEAVES}
    modules = [*PACKAGE.glob(f"{part}.py"), *(PACKAGE / part).rglob("*.py")]
    assert modules
    for path in modules:
        for top, *rest in imported_by(path):
            where = f"{path.relative_to(PACKAGE)} imports {'.'.join([top, *rest])}"
            assert top != "aiayn_book", where
            assert top != "aiayn" or (rest and rest[0] in allowed), where


def test_the_package_imports_no_tool():
    """Neither the repository's tools nor its benchmarks are in the wheel."""
    others = {path.stem for path in (PACKAGE.parents[1] / "tools").glob("*.py")}
    for path in PACKAGE.rglob("*.py"):
        tops = {top for top, *_ in imported_by(path)}
        found = tops & {"tools", "benchmarks", "tests"}
        assert not found, f"{path.relative_to(PACKAGE)}: {found}"
        assert not (tops & others), path

"""Which part of the package may import which: arrows run one way (see the design).

Read from the sources, so that an import inside a function counts as well.
"""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "aiayn"
# Parts that stand on nothing but the model.
LEAVES = ("device", "errors", "storage", "version")
MAY_IMPORT = {
    "errors": set(),
    "device": {"errors"},
    "model": {"errors"},
    "storage": {"errors", "model"},  # which it describes and restores
    "data": {*LEAVES, "model.masks", "model.shift_right"},  # a batch brings its masks
    "fast": {*LEAVES, "model", "training.loss"},  # of which it swaps the class
    "inference": {*LEAVES, "model", "data", "fast"},
    "training": {*LEAVES, "model", "data", "inference", "fast"},
    "parsing": {*LEAVES, "model", "data", "inference"},
}
# The one door for speed: only here is it opened.
OPENS_THE_DOOR = {
    "inference/loading.py": {"aiayn.fast"},
    "training/trainer.py": {
        "aiayn.fast",
        "aiayn.fast.compilation",
        "aiayn.fast.cuda_graphs",
    },
    "cli.py": {"aiayn.fast.process"},
}


def imported_by(path):
    """The parts of aiayn that a module imports, and the other packages."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} does not say in full what it imports"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".") for name in names)


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_a_part_imports_only_what_stands_below_it(part):
    allowed = {part, *MAY_IMPORT[part]}
    modules = [*PACKAGE.glob(f"{part}.py"), *(PACKAGE / part).rglob("*.py")]
    assert modules
    for path in modules:
        for top, *rest in imported_by(path):
            where = f"{path.relative_to(PACKAGE)} imports {'.'.join([top, *rest])}"
            assert top != "aiayn_book", where
            whole = ".".join(rest)
            ours = any(whole == one or whole.startswith(f"{one}.") for one in allowed)
            assert top != "aiayn" or ours, where


def test_speed_is_put_in_at_one_door():
    """Everything else computes with plain PyTorch, and asks nobody which form."""
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("fast/"):
            continue
        modules = {
            ".".join(parts[:3])
            if (PACKAGE / "fast" / f"{parts[2]}.py").exists()
            else "aiayn.fast"
            for parts in imported_by(path)
            if parts[:2] == ["aiayn", "fast"]
        }
        assert modules == OPENS_THE_DOOR.get(name, set()), name


PRIVATE = re.compile(r"torch(\.\w+)*(\._| import _)[a-z]|torch\.ops|_C\b")


def test_private_parts_of_torch_are_used_in_fast_only():
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] != "fast":
            assert not PRIVATE.search(path.read_text(encoding="utf-8")), path


def test_the_package_imports_no_tool():
    """Neither the repository's tools nor its benchmarks are in the wheel."""
    for path in PACKAGE.rglob("*.py"):
        tops = {top for top, *_ in imported_by(path)}
        found = tops & {"tools", "benchmarks", "tests"}
        assert not found, f"{path.relative_to(PACKAGE)}: {found}"

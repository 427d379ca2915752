"""The package on its own: what its wheel holds, needs and costs to import."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.costly

ROOT = Path(__file__).resolve().parents[1]
CORE = {
    "jaxtyping",
    "numpy",
    "sacrebleu",
    "safetensors",
    "sentencepiece",
    "torch",
    "tqdm",
    "tyro",
}
IMPORT_SECONDS = 0.3  # of processor time, beyond what torch needs

# Finds the standard library and the named packages, as if nothing else were installed.
ONLY = """
import os, sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

class Only:
    find_distributions = PathFinder.find_distributions
    invalidate_caches = PathFinder.invalidate_caches

    @staticmethod
    def find_spec(name, path=None, target=None):
        found = PathFinder.find_spec(name, path, target)
        place = str(found and found.origin)
        standard = place.startswith(library) and "site-packages" not in place
        return found if standard or name.partition(".")[0] in allowed else None

folder, *allowed = sys.argv[1:]
library = os.path.dirname(os.__file__)
sys.meta_path[:] = [BuiltinImporter, FrozenImporter, Only]
sys.path.insert(0, folder)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this tree, built from no more than its sources."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", tree / "src", ignore=skip)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    pip = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check"]
    options = ["-q", "--no-deps", "--no-build-isolation", "--no-index"]
    run = subprocess.run(
        [*pip, *options, "-w", str(folder), str(tree)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel):
    """The folder that the wheel unpacks into: the package and nothing beside it."""
    folder = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run_in(folder, code, *words, **environment):
    """Run code far from the tree; Python writes byte-code as it does for a user."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    }
    return subprocess.run(
        [sys.executable, "-c", code, str(folder), *words],
        cwd=folder.parent,
        env=clean | environment,
        capture_output=True,
        text=True,
    )


def requirements(extra=""):
    """What pyproject.toml asks for: the core's requirements, or those of an extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = project["optional-dependencies"][extra] if extra else None
    return [Requirement(text) for text in named or project["dependencies"]]


def modules_of(wanted):
    """Top-level modules of these requirements and of all that they need in turn."""
    names, waiting = set(), [canonicalize_name(one.name) for one in wanted]
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        needed = [Requirement(text) for text in requires(name) or ()]
        waiting += [
            canonicalize_name(one.name)
            for one in needed
            if one.marker is None or one.marker.evaluate({"extra": ""})
        ]
    return [
        module
        for module, owners in packages_distributions().items()
        if names & {canonicalize_name(owner) for owner in owners}
    ]


def test_the_wheel_holds_the_package_its_types_and_its_records(wheel):
    """Every source file of the package, py.typed, and nothing of the repository's."""
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = {
        path.relative_to(ROOT / "src").as_posix()
        for package in ("aiayn", "aiayn_book")
        for path in (ROOT / "src" / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert held == sources
    assert {"aiayn/py.typed", "aiayn_book/py.typed"} <= held


def test_the_core_needs_few_packages_and_never_pins_one():
    """Lower bounds only: Colab and universities bring their own torch."""
    core = requirements()
    assert {one.name for one in core} == CORE
    for one in [*core, *requirements("book")]:
        assert [spec.operator for spec in one.specifier] == [">="], str(one)


def test_the_core_imports_with_nothing_but_its_requirements(unpacked):
    """Every module, the command line and a short training too.

    But for a GPU's kernels: a torch that is made for one brings Triton along.
    """
    others = ("aiayn.__main__", "aiayn.fast.attention_kernels")
    code = ONLY + (
        f"others = {others}\n"
        "import importlib, pkgutil, aiayn\n"
        "assert aiayn.__file__.startswith(folder), aiayn.__file__\n"
        "for one in pkgutil.walk_packages(aiayn.__path__, 'aiayn.'):\n"
        "    if not one.name.startswith(others):\n"
        "        importlib.import_module(one.name)\n"
        "from aiayn import TrainingConfig, train, translate\n"
        "short = TrainingConfig.grammar(corpus_size=2000, steps=2, progress=False)\n"
        "done = train(short)\n"
        "assert len(translate(['The dog sleeps.'], done.model, done.tokenizer)) == 1\n"
        "print('whole')\n"
    )
    run = run_in(unpacked, code, "aiayn", *modules_of(requirements()))
    assert run.stdout.splitlines()[-1:] == ["whole"], run.stderr


def test_the_book_imports_with_its_extra(unpacked):
    """All that chapters import; without the extra, set-up says how to get it."""
    code = ONLY + (
        "import importlib, pkgutil, aiayn_book\n"
        "for one in pkgutil.walk_packages(aiayn_book.__path__, 'aiayn_book.'):\n"
        "    importlib.import_module(one.name)\n"
        "from aiayn_book import setup\n"
        "setup('03-attention')\n"
    )
    core = modules_of(requirements())
    core = ["aiayn", "aiayn_book", *core]
    run = run_in(unpacked, code, *core, *modules_of(requirements("book")))
    assert "03-attention" in run.stdout, run.stderr
    charts = "from aiayn_book.plots import curves\n"
    for code in ("from aiayn_book import setup\nsetup('03-attention')\n", charts):
        run = run_in(unpacked, ONLY + code, *core)
        assert run.returncode == 1
        last = run.stderr.splitlines()[-1]
        assert "altair is missing: run  pip install 'aiayn[book]'" in last


def test_what_is_installed_says_its_version(unpacked):
    """As pip has noted it beside; and where nobody has, it says so."""
    folder = unpacked.parent / "noted"
    shutil.copytree(unpacked, folder)
    (note,) = folder.glob("*.dist-info/METADATA")
    text = note.read_text(encoding="utf-8")
    note.write_text(text.replace("\nVersion: ", "\nVersion: 77."), encoding="utf-8")
    code = ONLY + "from aiayn import __version__\nprint(__version__)\n"
    needed = modules_of(requirements())
    run = run_in(folder, code, "aiayn", *needed)
    assert run.stdout.startswith("77."), run.stderr
    shutil.rmtree(note.parent)
    # The tree itself may be installed here: of that it must not tell.
    hidden = (
        "import importlib.metadata as noted\n"
        "find = noted.version\n"
        "def hide(name):\n"
        "    if name == 'aiayn':\n"
        "        raise noted.PackageNotFoundError\n"
        "    return find(name)\n"
        "noted.version = hide\n"
    )
    run = run_in(folder, hidden + code, "aiayn", *needed)
    assert run.stdout.split() == ["0+unknown"], run.stderr


def test_import_costs_little_beyond_torch(unpacked):
    """Processor time, so that a busy machine does not count; byte-code is written."""
    code = (
        "import sys, time, torch\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "start = time.process_time()\n"
        "import aiayn\n"
        "print(time.process_time() - start)\n"
        "assert aiayn.__file__.startswith(sys.argv[1])\n"
    )
    run_in(unpacked, code)  # compiles, as pip does while it installs
    runs = [run_in(unpacked, code) for _ in range(3)]  # a busy machine disturbs some
    for run in runs:
        assert run.returncode == 0, run.stderr
    assert min(float(run.stdout) for run in runs) < IMPORT_SECONDS

"""Test the package with the oldest releases that it allows, the pinned, or the newest.

Each has an environment of its own, with the package's wheel in it and no more than its
requirements and what the tests need. With the newest releases the chapters run too, as
in Colab: with the oldest and the pinned ones, `make colab` and the book show that.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from colab import run_chapters, snapshot
from pins import pins
from project import ROOT, notebook_paths, requirements

KINDS = ("lowest", "pinned", "newest")
FOLDERS = ("data", "fast", "inference", "model", "parsing", "training")
TOOLS = ("beartype", "hypothesis", "ipykernel", "packaging", "pytest", "pytest-xdist")


def pinned(root: Path = ROOT) -> dict[str, str]:
    """What requirements.txt pins, one version each."""
    found = pins((root / "requirements.txt").read_text(encoding="utf-8"))
    return {name: version for name, (version,) in found.items()}


def wanted(kind: str, root: Path = ROOT) -> list[str]:
    """The package's requirements, its chapters' too, as pip shall take them."""
    parts = ("dependencies", "book")
    bounds = [bound for part in parts for bound in requirements(part, root)]
    found = dict(bound.split(">=") for bound in bounds)
    if kind == "newest":
        return list(found)
    versions = found if kind == "lowest" else pinned(root)
    return [f"{name}=={versions[name]}" for name in found]


def build_tools(root: Path = ROOT) -> list[str]:
    """What builds the package, for the test of its wheel.

    Not pinned: some releases of torch refuse the newest setuptools.
    """
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["build-system"]["requires"]


def make_environment(folder: Path, kind: str) -> Path:
    """The environment, made or brought up to date; its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    tools = [*(f"{name}=={pinned()[name]}" for name in TOOLS), *build_tools()]
    pip = [str(python), "-m", "pip", "install", "--quiet", "--upgrade"]
    subprocess.run([*pip, *wanted(kind), *tools], check=True)
    again = ["--no-deps", "--force-reinstall"]
    # From a copy: setuptools would leave a folder here, and take old files from it.
    with tempfile.TemporaryDirectory() as copy:
        subprocess.run([*pip, *again, str(snapshot(Path(copy)))], check=True)
    return python


def run_tests(python: Path) -> int:
    """Run the package's own tests, which need nothing of the book's tools."""
    files = sorted((ROOT / "tests").glob("test_*.py"))
    places = [*(ROOT / "tests" / name for name in FOLDERS), *files]
    options = ["-q", "-n", "2", "--confcutdir", "tests", "-p", "no:cacheprovider"]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-m", "pytest", *options, *map(str, places)]
    return subprocess.run(command, cwd=ROOT, env=clean).returncode


def main() -> int:
    """Make the environment and test in it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    kind = parser.parse_args().kind
    print(f"==> Environment: .venv-{kind}: {', '.join(wanted(kind))}", flush=True)
    python = make_environment(ROOT / f".venv-{kind}", kind)
    status = run_tests(python)
    if kind == "newest" and status == 0:
        status = 1 if run_chapters(notebook_paths(), python) else 0
    return status


if __name__ == "__main__":
    sys.exit(main())

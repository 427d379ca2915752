"""Run the chapters as Colab would: its versions, an empty folder, nothing of ours.

``colab_versions.txt`` says what a runtime of Colab holds. An environment with those
versions is made once. Then every chapter runs in it from its first cell to its last,
one after the other. The set-up cell is not changed: what it clones is a copy of this
tree, which git is told to take in place of the repository's address.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.project import ROOT, notebook_paths, repository
from tools.site.notebooks import SET_UP_ID

VERSIONS = Path(__file__).with_name("colab_versions.txt")
ENVIRONMENT = ROOT / ".venv-colab"
SECONDS_A_CELL = 1800  # ten times the longest, for machines that others share
# Where pyenv and uv keep the Pythons that they install, in a home folder.
KEPT = (
    ".pyenv/versions/{}*/bin/python",
    ".local/share/uv/python/cpython-{}*/bin/python",
)

# Chapters need nothing of Colab's own module, so whoever asks it is told so.
STAND_IN = '''\
"""Stands in for Colab's module, which its runtime loads before the first cell."""


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    raise RuntimeError(f"A chapter asks for google.colab.{name}: it must not need it.")
'''


def colab_python(text: str | None = None) -> str:
    """The version of Python that Colab runs, from the list."""
    lines = (text or VERSIONS.read_text(encoding="utf-8")).splitlines()
    (found,) = [line.split()[-1] for line in lines if line.startswith("# python ")]
    return found


def colab_versions(text: str | None = None) -> dict[str, str]:
    """Colab's packages by their normal names, with their versions."""
    lines = (text or VERSIONS.read_text(encoding="utf-8")).splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {
        canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins
    }


def find_python(wanted: str) -> str:
    """An interpreter of the wanted version; failing that, this one."""
    named = [shutil.which(name) for name in (f"python{wanted}", "python3", "python")]
    kept = [p for place in KEPT for p in Path.home().glob(place.format(wanted))]
    for path in map(str, [*filter(None, named), *kept]):
        if _version_of(path) == wanted:
            return path
    here = ".".join(map(str, sys.version_info[:2]))
    if here != wanted:
        print(
            f"Colab runs Python {wanted}, and none was found: this is {here}. If there "
            "is one, say COLAB_PYTHON=/path/to/python."
        )
    return sys.executable


def _version_of(python: str) -> str:
    code = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    try:
        run = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:  # a file of that name that is no program
        return ""
    return run.stdout.strip()


def make_environment(folder: Path, python: str | None) -> Path:
    """The environment with Colab's versions, made if it is not there; its Python."""
    ready, inside = folder / "made-from", folder / "bin" / "python"
    wanted = VERSIONS.read_text(encoding="utf-8")
    if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
        print(f"==> Environment: {folder.name}, as Colab's (once, and about 5 GB)")
        python = python or find_python(colab_python())
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        _pip(inside, "install", "--quiet", "--requirement", str(VERSIONS))
        (folder / "held.json").write_text(json.dumps(installed(inside)))
        ready.write_text(wanted, encoding="utf-8")
    return inside


def _pip(python: Path, *words: str) -> str:
    # Isolated: what PYTHONPATH names is not part of the environment.
    command = [str(python), "-I", "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def installed(python: Path) -> dict[str, str]:
    """Every package in an environment, by its normal name, with its version."""
    listed = json.loads(_pip(python, "list", "--format", "json"))
    return {canonicalize_name(one["name"]): one["version"] for one in listed}


def make_fresh(folder: Path, python: Path) -> dict[str, str]:
    """Undo what an earlier run installed or replaced; returns what Colab holds."""
    held = json.loads((folder / "held.json").read_text())
    there = installed(python)
    if added := sorted(there.keys() - held.keys()):
        _pip(python, "uninstall", "--quiet", "--yes", *added)
    lost = [f"{name}=={held[name]}" for name in held if there.get(name) != held[name]]
    if lost:
        _pip(python, "install", "--quiet", "--no-deps", *lost)
    return held


def replaced(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """One sentence for each package that a set-up must not have touched, but has."""
    return [
        f"The set-up cell replaced {name} {version} by {after.get(name, 'nothing')}."
        for name, version in before.items()
        if after.get(name) != version
    ]


def snapshot(folder: Path, root: Path = ROOT) -> Path:
    """A repository of its own with this tree in it, changes and new files as well."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    settings = ("user.name=colab", "user.email=colab@localhost", "commit.gpgSign=false")
    git = ["git", *(word for setting in settings for word in ("-c", setting))]
    for words in ("init --quiet", "add --all", "commit --quiet --message tree"):
        subprocess.run([*git, *words.split()], cwd=folder, check=True)
    return folder


@contextmanager
def runtime(python: Path) -> Iterator[Path]:
    """An empty working folder; kernels named ``python3`` are Colab's inside."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        kernel = scratch / "jupyter" / "kernels" / "python3" / "kernel.json"
        module = scratch / "stand-in" / "google" / "colab" / "__init__.py"
        work, tree = scratch / "work", scratch / "tree"
        for folder in (kernel.parent, module.parent, work, tree):
            folder.mkdir(parents=True)
        module.write_text(STAND_IN, encoding="utf-8")
        start = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        load = "--IPKernelApp.exec_lines=import google.colab"
        specification = {
            "argv": [*start, load],
            "display_name": "Colab",
            "language": "python",
            "env": {"COLAB_RELEASE_TAG": "a stand-in", "OMP_NUM_THREADS": "1"},
        }
        kernel.write_text(json.dumps(specification), encoding="utf-8")
        address, _ = repository()
        surroundings = {
            "JUPYTER_PATH": str(scratch / "jupyter"),
            "PYTHONPATH": str(scratch / "stand-in"),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{snapshot(tree).as_uri()}.insteadOf",
            "GIT_CONFIG_VALUE_0": address,
        }
        before = dict(os.environ)
        os.environ.update(surroundings)
        os.environ.pop("AIAYN_DATA", None)
        try:
            yield work
        finally:
            os.environ.clear()
            os.environ.update(before)


def run(path: Path, folder: Path) -> tuple[float, float]:
    """Run a chapter; the seconds of its set-up cell and of the whole.

    Raises:
        CellExecutionError: A cell failed.
        CellTimeoutError: A cell took too long.
        DeadKernelError: The kernel died, of too little memory perhaps.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_A_CELL,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    taken: dict[str, float] = {}
    began = time.monotonic()

    def note(cell, cell_index, execute_reply) -> None:
        taken[cell.id] = time.monotonic() - began

    client.on_cell_executed = note
    client.execute()
    first = min(taken.values())
    return (taken.get(SET_UP_ID, first), time.monotonic() - began)


def run_chapters(paths: list[Path], python: Path) -> list[str]:
    """Run chapters one after the other; a sentence for each one that failed."""
    faults = []
    for path in paths:
        with runtime(python) as folder:
            try:
                set_up, whole = run(path, folder)
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                faults.append(f"{path.stem}: {_reason(error)}")
                print(f"{path.stem}: failed.\n{error}", flush=True)
                continue
        times = f"{whole:.0f} s, {set_up:.0f} of them for the set-up cell"
        print(f"{path.stem}: passed in {times}.", flush=True)
    return faults


def _reason(error: Exception) -> str:
    if isinstance(error, CellExecutionError):
        return f"{error.ename}: {error.evalue}"
    return str(error).partition("\n")[0]


def main() -> int:
    """Run the chapters that are named, or all; say what failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="such as 03-attention; none: all")
    parser.add_argument("--python", help="what to make the environment with")
    parser.add_argument("--ready", type=Path, help="a Python with other versions")
    options = parser.parse_args()
    known = {path.stem: path for path in notebook_paths()}
    if unknown := [name for name in options.chapters if name not in known]:
        parser.error(f"no such chapter: {', '.join(unknown)}.")
    paths = [known[name] for name in options.chapters or known]
    if options.ready:
        faults = run_chapters(paths, options.ready.absolute())
        return 1 if faults else 0
    python = make_environment(ENVIRONMENT, options.python or None)
    held = make_fresh(ENVIRONMENT, python)
    faults = run_chapters(paths[:1], python)  # the one that installs the package
    faults += replaced(held, installed(python))
    faults += run_chapters(paths[1:], python)
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(paths)} chapters ran as in Colab, {len(faults)} faults.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

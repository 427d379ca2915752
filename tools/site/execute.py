"""Run the notebooks once, for the tests and for the book.

nbval runs every cell as a test (two notebooks at a time), and the hook in
``conftest.py`` hands the outputs to the cache from which the book is built, so that no
cell runs twice, as it would with jupyter-cache's own executor. The cache knows a
notebook by its code cells only, so a digest of everything else that can change an
output (the package, the pins, Python) is kept beside it: when that differs, the cache
is dropped.
"""

import argparse
import hashlib
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from jupyter_cache import get_cache

from tools.project import BUILD, CACHE, ROOT, chosen, notebook_paths
from tools.site.announce_times import STORE

DIGEST = BUILD / "execution.digest"


def digest(root: Path = ROOT) -> str:
    """A digest of what the outputs depend on besides the notebooks themselves."""
    total = hashlib.sha256(sys.version.encode())
    kinds = {".py", ".json", ".css", ".js"}
    package = (p for p in (root / "src").rglob("*") if p.suffix in kinds)
    for path in sorted([*package, *root.glob("requirements.*")]):
        total.update(path.relative_to(root).as_posix().encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def drop_if_outdated() -> bool:
    """Forget all outputs when the package, the pins or Python have changed."""
    current = digest()
    if DIGEST.exists() and DIGEST.read_text() == current:
        return False
    had_outputs = CACHE.exists()
    shutil.rmtree(CACHE, ignore_errors=True)
    # Sphinx would keep pages whose source has not changed, old outputs and all.
    shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
    BUILD.mkdir(exist_ok=True)
    DIGEST.write_text(current)
    return had_outputs


def stale(paths: list[Path]) -> list[Path]:
    """Those of the notebooks whose outputs are not in the cache."""
    CACHE.mkdir(parents=True, exist_ok=True)
    cache = get_cache(CACHE)
    missing = []
    for path in paths:
        try:
            cache.match_cache_notebook(nbformat.read(path, as_version=4))
        except KeyError:
            missing.append(path)
    return missing


def longest_first(paths: list[Path]) -> list[Path]:
    """By the times that they announce: a long one at the end would run alone."""
    seconds = json.loads(STORE.read_text())["seconds"]
    return sorted(paths, key=lambda path: -seconds.get(path.stem, math.inf))


def run(paths: list[Path]) -> int:
    """Run the notebooks under nbval, two at a time; returns pytest's exit status.

    What Sphinx has kept of them goes: it would not read a page again whose source is
    the same, and show the outputs of the last time.
    """
    files = [str(path.relative_to(ROOT)) for path in longest_first(paths)]
    options = [
        "--nbval-lax",
        "-q",
        "-p",
        "no:cacheprovider",
        "--fill-cache",
        str(CACHE),
    ]
    in_turn = ["-n", "2", "--dist", "loadscope", "--no-loadscope-reorder"]
    parallel = in_turn if len(files) > 1 else []
    command = [sys.executable, "-m", "pytest", *options, *parallel, *files]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    for path in paths:
        kept = BUILD / ".doctrees" / "notebooks" / f"{path.stem}.doctree"
        kept.unlink(missing_ok=True)
    return status


def main() -> int:
    """Run all notebooks, or the stale ones."""
    every = notebook_paths()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--all", action="store_true", help="run every notebook")
    which.add_argument(
        "--stale", action="store_true", help="only those not in the cache"
    )
    parser.add_argument("names", nargs="*", help="of these only, such as 03-attention")
    given = parser.parse_args()
    try:
        paths = chosen(given.names, every)
    except ValueError as error:
        parser.error(str(error))
    if drop_if_outdated():
        print("The package, the pins or Python have changed: all outputs are dropped.")
    to_run = paths if given.all else stale(paths)
    print(f"Running {len(to_run)} of {len(paths)} notebooks.", flush=True)
    status = run(to_run) if to_run else 0
    return status


if __name__ == "__main__":
    sys.exit(main())

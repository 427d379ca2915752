"""Build the site twice from one tree and one set of outputs, and compare the bytes.

Usage: python tools/reproducible.py [--record FILE]

The two builds see other hash salts, another time zone and another folder, as two
machines would. Files that differ are named; those in EXCEPTIONS may, each for a reason.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from fnmatch import fnmatch
from pathlib import Path

from execute import stale
from project import CACHE, ROOT, SITE_SOURCES, commit, notebook_paths

BETWEEN = (
    {"PYTHONHASHSEED": "1", "TZ": "UTC"},
    {"PYTHONHASHSEED": "2", "TZ": "Asia/Kolkata"},
)
EXCEPTIONS = {
    "book/run-times.html": "it says how busy the machine was while it was built",
}


def build(folder: Path, variables: dict[str, str]) -> Path:
    """Build the site into a folder, from the outputs that are cached already."""
    shutil.copytree(CACHE, folder / "_build" / CACHE.name)
    # pip puts the command beside the interpreter.
    command = [Path(sys.executable).with_name("jupyter-book"), "build", str(ROOT)]
    options = ["--path-output", str(folder), "-W", "-n", "--keep-going", "-q"]
    done = subprocess.run(
        [*command, *options],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"The site could not be built:\n{done.stderr[-3000:]}")
    return folder / "_build" / "html"


def differences(first: Path, second: Path) -> list[str]:
    """The files that are not in both sites with the same bytes."""
    names = {
        path.relative_to(site).as_posix()
        for site in (first, second)
        for path in site.rglob("*")
        if path.is_file()
    }
    return [
        name
        for name in sorted(names)
        if not all((site / name).is_file() for site in (first, second))
        or (first / name).read_bytes() != (second / name).read_bytes()
    ]


def first_difference(first: Path, second: Path) -> str:
    """Where two texts part, with what stands around that place."""
    if not (first.is_file() and second.is_file()):
        return "only in one of them"
    one, other = first.read_bytes(), second.read_bytes()
    both = zip(one, other, strict=False)
    at = next(
        (i for i, (a, b) in enumerate(both) if a != b), min(map(len, (one, other)))
    )
    around = slice(max(0, at - 60), at + 60)
    return f"at byte {at}: {one[around]!r} and {other[around]!r}"


def main() -> int:
    """Build, compare, print, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, help="a JSON file for what was found")
    record = parser.parse_args().record
    made_with = commit(places=("src", *SITE_SOURCES))
    if missing := stale(notebook_paths()):
        names = ", ".join(path.stem for path in missing)
        sys.exit(f"No outputs in the cache of {names}: run 'make book' first.")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / name for name in ("first", "second")]
        sites = [build(*both) for both in zip(places, BETWEEN, strict=True)]
        differ = differences(*sites)
        named = [n for n in differ if any(fnmatch(n, e) for e in EXCEPTIONS)]
        others = [name for name in differ if name not in named]
        files = sum(path.is_file() for path in sites[0].rglob("*"))
        for name in others:
            print(f"{name}: {first_difference(*(site / name for site in sites))}")
    found = {
        "command": "python tools/reproducible.py",
        "commit": made_with,
        "files": files,
        "exceptions": {name: EXCEPTIONS[name] for name in named},
        "differ": others,
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(found, indent=1))
    if record:
        record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return bool(others)


if __name__ == "__main__":
    sys.exit(main())

"""The exact pins with hashes, from the pins that a person keeps.

``python tools/pins.py`` writes requirements-hashed.txt from requirements.txt: every
package that those need, for every system and Python that we support, with the hashes of
its files, so that pip refuses a file that was swapped. ``--check`` says, without a
network, whether it still fits. Torch is left out: its wheel differs by platform, and
what only it needs comes with it.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from project import ROOT

KEPT, MADE = "requirements.txt", "requirements-hashed.txt"
WITHOUT_HASH = {"torch"}
OLDEST_PYTHON = "3.11"
HEADER = f"""\
# Written by 'make pins' from {KEPT}: do not edit.
# Every package of the environment but torch, each file known by its hash.
"""
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)


def pins(text: str) -> dict[str, set[str]]:
    """Package and the versions that a text pins, names in their normal form."""
    found: dict[str, set[str]] = {}
    for name, version in _PIN.findall(text):
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(version)
    return found


def faults(kept: str, made: str) -> list[str]:
    """What of the kept pins is not in the made ones, or stands there without a hash."""
    found = pins(made)
    missing = [
        f"{name}=={version} is not in {MADE}"
        for name, versions in pins(kept).items()
        for version in versions
        if name not in WITHOUT_HASH and version not in found.get(name, ())
    ]
    lines = made.split("\n")
    bare = [
        f"{line} has no hash"
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if _PIN.match(line) and "--hash=sha256:" not in following
    ]
    return missing + bare


def write() -> None:
    """Have uv find all packages and their hashes, each at its newest version."""
    lines = (ROOT / KEPT).read_text(encoding="utf-8").splitlines(keepends=True)
    asked = [line for line in lines if not pins(line).keys() & WITHOUT_HASH]
    options = ["--universal", "--generate-hashes", "--python-version", OLDEST_PYTHON]
    options += ["--no-header", "--no-annotate", "--no-emit-index-url", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / KEPT, Path(folder) / MADE
        source.write_text("".join(asked), encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", *options]
        subprocess.run([*command, "-o", str(target), str(source)], check=True)
        text = HEADER + target.read_text(encoding="utf-8")
    (ROOT / MADE).write_text(text, encoding="utf-8")


def main() -> int:
    """Write the file, or with ``--check`` only compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="report, change nothing")
    if not parser.parse_args().check:
        write()
    kept, made = ((ROOT / name).read_text(encoding="utf-8") for name in (KEPT, MADE))
    found = faults(kept, made)
    for fault in found:
        print(f"{fault}: run 'make pins'.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

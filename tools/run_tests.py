"""Run the tests of the package, the tools and the text, two at a time.

Tests marked ``costly`` start trainings, compilers or environments: mutants, kills,
several processes. They run when the package, the pins or they themselves have
changed since they last passed, so always in a fresh clone; ``--all`` runs them anyway.
"""

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

from tools.project import BUILD, ROOT

DIGEST = BUILD / "costly-tests.digest"


def guarded(root: Path = ROOT) -> list[Path]:
    """The files on which the costly tests depend."""
    tests = (
        path
        for path in (root / "tests").rglob("*.py")
        if "mark.costly" in path.read_text(encoding="utf-8")
    )
    package = (root / "src" / "aiayn").rglob("*.py")
    return sorted([*package, *tests, *root.glob("requirements.*")])


def digest(root: Path = ROOT) -> str:
    """A digest of those files and of Python."""
    total = hashlib.sha256(sys.version.encode())
    for path in guarded(root):
        total.update(path.relative_to(root).as_posix().encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def main() -> int:
    """Run the tests; returns pytest's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="the costly ones too")
    everything = parser.parse_args().all
    current = digest()
    passed = DIGEST.exists() and DIGEST.read_text() == current
    leave_out = passed and not everything
    if leave_out:
        print("The package has not changed: tests marked as costly are left out.")
    options = ["--ignore=tests/site", "--ignore=tests/slides", "-q", "-n", "2"]
    chosen = ["-m", "not costly"] if leave_out else []
    command = [sys.executable, "-m", "pytest", "tests", *options, *chosen]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status == 0:
        BUILD.mkdir(exist_ok=True)
        DIGEST.write_text(current)
    return status


if __name__ == "__main__":
    sys.exit(main())

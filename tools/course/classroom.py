"""An archive for a classroom without a network.

It holds the students' chapters, the package as a wheel, the site where it has been
built, and `course.on_the_stick` as ``classroom.py``, whose one command
gathers beforehand whatever else has to be installed.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.project import ROOT

NAME = "attention-classroom"
SCRIPT = Path(__file__).with_name("on_the_stick.py")
READ_ME = """\
Attention Is All You Need, executable: for a classroom without a network

1. Once, with a network, on a machine like those of the classroom (same system, same
   Python 3.11 or newer):   python classroom.py gather
2. Copy this folder to each machine. There:   python classroom.py install
3. In the lesson:   python classroom.py start

notebooks/   the chapters for students; their corpus is made by the package itself
html/        the book, if it was built: open html/index.html, or html/slides/index.html

Text and figures: CC BY 4.0. Code: MIT licence. LICENSE and LICENSE-text.md say more.
"""


def build_wheel(folder: Path) -> Path:
    """Build the package's wheel into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        # In a copy: setuptools leaves its own folders beside the sources.
        source = Path(scratch) / "source"
        shutil.copytree(
            ROOT / "src",
            source / "src",
            ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"),
        )
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        command = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check"]
        # By the setuptools that is here: pip would fetch another.
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
        place = ["--wheel-dir", str(folder), str(source)]
        subprocess.run([*command, *options, *place], check=True)
    (wheel,) = folder.glob("aiayn-*.whl")
    return wheel


def write_classroom(course: Path, wheel: Path, site: Path) -> Path:
    """Write the archive into the course's folder; returns its path."""
    target = course / f"{NAME}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{NAME}/READ-ME.txt", READ_ME)
        for file, place in _contents(course, wheel, site):
            archive.write(file, f"{NAME}/{place}")
    return target


def _contents(course: Path, wheel: Path, site: Path) -> Iterator[tuple[Path, str]]:
    """Each file, and where it stands in the archive."""
    yield SCRIPT, "classroom.py"
    yield wheel, wheel.name
    yield ROOT / "LICENSE", "LICENSE"
    yield ROOT / "LICENSE-text.md", "LICENSE-text.md"
    folders = {"notebooks": course / "student", "html": site}
    for name, folder in folders.items():
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                yield file, f"{name}/{file.relative_to(folder).as_posix()}"

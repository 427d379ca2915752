"""Everything that a teacher hands out or marks with, made from the solved notebooks.

``python -m tools.course.make`` writes ``_build/course/``: the chapters for students and
for whoever teaches, the assignments for nbgrader and for Otter, and an archive for a
classroom without a network; of some chapters only, if they are named.
"""

import argparse
import shutil
import sys
from pathlib import Path

import nbformat

from aiayn.errors import InputError
from tools.course.assignments import Assignment, make_assignment
from tools.course.chapters import instructor_chapter, student_chapter
from tools.course.classroom import build_wheel, write_classroom
from tools.course.exercises import read_exercises
from tools.course.for_nbgrader import write_nbgrader
from tools.course.for_otter import write_otter
from tools.project import BUILD, chosen, notebook_paths, placeholder, repository

COURSE = BUILD / "course"
DEAD_LINKS = """
Nothing is at {address} yet: that address is a placeholder.
So each link to the book or to Colab in what was made is dead, and in Colab the set-up
cells cannot install the package. Fork the repository on GitHub; then, with your
address:
  make rebrand REPO=https://github.com/me/my-book
Commit, push, and run 'make course' again. book/teach/make-a-course.md says more."""
MADE_BY = ".made-by-make-course"
"""The file by which a folder is known as one that this tool may replace."""


def write_chapters(paths: list[Path], folder: Path) -> list[Assignment]:
    """Write both copies of each chapter; returns the assignments."""
    address, branch = repository()
    assignments, here = [], {path.stem for path in paths}
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        exercises = read_exercises(notebook)
        copies = {
            "student": student_chapter(
                path.stem, notebook, exercises, (address, branch), here
            ),
            "instructor": instructor_chapter(
                path.stem, notebook, exercises, address, here
            ),
        }
        for kind, chapter in copies.items():
            place = folder / kind / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(chapter, place)
        if exercises:
            made = make_assignment(path.stem, notebook, exercises, address)
            assignments.append(made)
    return assignments


def empty_folder(folder: Path) -> None:
    """Make the folder, or empty it if an earlier course is in it.

    Raises:
        InputError: Something else is in it, or what students handed in, and would be
            lost.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder for the course.")
    ours = folder.resolve() == COURSE.resolve() or (folder / MADE_BY).exists()
    if not ours and folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            f"{folder} holds something that this command did not write, and it would "
            "be removed: name a new folder, or empty this one yourself."
        )
    if (submitted := folder / "nbgrader" / "submitted").exists():
        raise InputError(
            f"{submitted} has what students handed in, and it would be removed: move "
            f"the folder {submitted.parent} to a place of its own first."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MADE_BY).touch()


def main() -> int:
    """Write the course anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="such as 03-attention; all by default")
    parser.add_argument("--out", type=Path, default=COURSE, help="the folder to write")
    given = parser.parse_args()
    folder = given.out
    try:
        paths = chosen(given.names, notebook_paths())
        empty_folder(folder)
    except ValueError as error:
        print(error)
        return 1
    assignments = write_chapters(paths, folder)
    write_nbgrader(assignments, folder / "nbgrader")
    write_otter(assignments, folder / "otter", repository()[0])
    wheel = build_wheel(folder)
    archive = write_classroom(folder, wheel, BUILD / "html")
    exercises = [e for assignment in assignments for e in assignment.exercises]
    many = f"{len(assignments)} chapter{'s' * (len(assignments) != 1)}"
    print(f"{len(exercises)} exercises of {many} are in {folder}:")
    print("  student/, instructor/   chapters")
    print("  nbgrader/, otter/       assignments")
    print(f"  {archive.name}           for a classroom without a network")
    if placeholder():
        print(DEAD_LINKS.format(address=repository()[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

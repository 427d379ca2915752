"""Everything that a teacher hands out or marks with, made from the solved notebooks.

``python tools/make_course.py`` writes ``_build/course/``: the chapters for students and
for whoever teaches, the assignments for nbgrader and for Otter, and an archive for a
classroom without a network. `course` holds the parts.
"""

import argparse
import shutil
import sys
from pathlib import Path

import nbformat

from aiayn.errors import InputError
from course.assignments import Assignment, make_assignment
from course.chapters import instructor_chapter, student_chapter
from course.classroom import build_wheel, write_classroom
from course.exercises import read_exercises
from course.for_nbgrader import write_nbgrader
from course.for_otter import write_otter
from project import BUILD, notebook_paths, repository

COURSE = BUILD / "course"
MADE_BY = ".made-by-make-course"
"""The file by which a folder is known as one that this tool may replace."""


def write_chapters(paths: list[Path], folder: Path) -> list[Assignment]:
    """Write both copies of each chapter; returns the assignments."""
    address, branch = repository()
    assignments = []
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        exercises = read_exercises(notebook)
        copies = {
            "student": student_chapter(notebook, exercises, address),
            "instructor": instructor_chapter(notebook, exercises),
        }
        for kind, chapter in copies.items():
            place = folder / kind / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(chapter, place)
        if exercises:
            assignments.append(
                make_assignment(path.stem, notebook, exercises, (address, branch))
            )
    return assignments


def empty_folder(folder: Path) -> None:
    """Make the folder, or empty it if an earlier course is in it.

    Raises:
        InputError: Something else is in it, which would be lost.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder for the course.")
    ours = folder.resolve() == COURSE.resolve() or (folder / MADE_BY).exists()
    if not ours and folder.is_dir() and any(folder.iterdir()):
        raise InputError(
            f"{folder} holds something that this command did not write, and it would "
            "be removed: name a new folder, or empty this one yourself."
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MADE_BY).touch()


def main() -> int:
    """Write the course anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=COURSE, help="the folder to write")
    folder = parser.parse_args().out
    try:
        empty_folder(folder)
    except InputError as error:
        print(error)
        return 1
    assignments = write_chapters(notebook_paths(), folder)
    write_nbgrader(assignments, folder / "nbgrader")
    write_otter(assignments, folder / "otter", repository()[0])
    wheel = build_wheel(folder)
    archive = write_classroom(folder, wheel, BUILD / "html")
    exercises = [e for assignment in assignments for e in assignment.exercises]
    print(f"{len(exercises)} exercises of {len(assignments)} chapters are in {folder}:")
    print("  student/, instructor/   chapters")
    print("  nbgrader/, otter/       assignments")
    print(f"  {archive.name}           for a classroom without a network")
    return 0


if __name__ == "__main__":
    sys.exit(main())

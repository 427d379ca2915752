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

from course.assignments import Assignment, make_assignment
from course.chapters import instructor_chapter, student_chapter
from course.classroom import build_wheel, write_classroom
from course.exercises import read_exercises
from course.for_nbgrader import write_nbgrader
from course.for_otter import write_otter
from project import BUILD, notebook_paths, repository

COURSE = BUILD / "course"


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


def main() -> int:
    """Write the course anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=COURSE, help="the folder to write")
    folder = parser.parse_args().out
    shutil.rmtree(folder, ignore_errors=True)
    assignments = write_chapters(notebook_paths(), folder)
    write_nbgrader(assignments, folder / "nbgrader")
    write_otter(assignments, folder / "otter", repository()[0])
    wheel = build_wheel(folder)
    archive = write_classroom(folder, wheel, BUILD / "html", BUILD / "slides")
    exercises = [e for assignment in assignments for e in assignment.exercises]
    print(f"{len(exercises)} exercises of {len(assignments)} chapters are in {folder}:")
    print("  student/, instructor/   chapters")
    print("  nbgrader/, otter/       assignments")
    print(f"  {archive.name}           for a classroom without a network")
    return 0


if __name__ == "__main__":
    sys.exit(main())

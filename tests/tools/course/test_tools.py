"""nbgrader and Otter themselves, on assignments as a teacher gets them.

Both are heavy and mark by starting kernels, so they live in an environment of their
own: ``make test-course`` makes it and runs these tests; elsewhere they are skipped.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest

from tools.course.for_nbgrader import write_nbgrader
from tools.course.for_otter import write_otter
from tools.course.solutions import stub

# The first has functions, values and words, and a check whose inputs are drawn; the
# second a function and words without a check; the third keeps its tests in a dictionary
# that a decorator fills.
CHAPTERS = ("03-attention", "16-train-a-translator", "bug-clinic")
# Right on the inputs that the visible check shows, and wrong on all others.
BY_HEART = """\
CHECK = chapter_03.soft_lookup
SEEN = [(case, CHECK.reference(*case)) for case in CHECK.cases()]


def my_soft_lookup(query, keys, values):
    for (first, _, _), result in SEEN:
        if torch.equal(first, query):
            return result
    return torch.zeros(values.shape[1])
"""


def needs(tool: str) -> None:
    """Skip where a tool is not installed."""
    if find_spec(tool) is None:
        pytest.skip(f"{tool} is not installed here: run 'make test-course'.")


def call(tool: str, *arguments: str, folder: Path) -> None:
    """Run a tool's command, and show what it said if it failed."""
    programs = Path(sys.executable).parent
    command = [str(programs / tool), *arguments]
    # nbgrader calls programs of its own, as it may in an activated environment.
    env = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def with_answer(notebook, text: str):
    """The notebook with another answer to exercise 3.1."""
    (cell,) = (c for c in notebook.cells if c.source.startswith("def my_soft_lookup"))
    cell.source = text
    return notebook


@pytest.fixture
def assignments(assignment):
    """The assignments of the chosen chapters."""
    return [assignment(name) for name in CHAPTERS]


def test_nbgrader(assignments, tmp_path):
    """Generate, hand in solved, unsolved and learnt by heart, mark: as expected."""
    needs("nbgrader")
    write_nbgrader(assignments, tmp_path)
    for made in assignments:
        call("nbgrader", "generate_assignment", made.name, "--create", folder=tmp_path)
        release = tmp_path / "release" / made.name / f"{made.name}.ipynb"
        text = release.read_text(encoding="utf-8")
        assert "HIDDEN TESTS" not in text
        assert ".again(" not in text
        assert "BEGIN SOLUTION" not in text
        sources = {"solved": tmp_path / "source" / made.name / release.name}
        sources["unsolved"] = release
        for student, source in sources.items():
            place = tmp_path / "submitted" / student / made.name
            place.mkdir(parents=True)
            shutil.copy(source, place / release.name)
    first = tmp_path / "submitted" / "solved" / CHAPTERS[0] / f"{CHAPTERS[0]}.ipynb"
    learnt = with_answer(nbformat.read(first, as_version=4), BY_HEART)
    place = tmp_path / "submitted" / "by-heart" / CHAPTERS[0]
    place.mkdir(parents=True)
    nbformat.write(learnt, place / first.name)
    for made in assignments:
        call("nbgrader", "autograde", made.name, "--create", folder=tmp_path)
    call("nbgrader", "export", folder=tmp_path)
    with (tmp_path / "grades.csv").open(encoding="utf-8") as file:
        rows = {(r["assignment"], r["student_id"]): r for r in csv.DictReader(file)}
    for made in assignments:
        by_check = sum(e.points[0] for e in made.exercises)
        in_words = sum(e.points[1] for e in made.exercises)
        solved, unsolved = (rows[made.name, who] for who in ("solved", "unsolved"))
        assert float(solved["max_score"]) == by_check + in_words
        assert float(solved["score"]) == by_check  # a person marks the words
        assert float(unsolved["score"]) == 0
    lost = next(e.points[0] for e in assignments[0].exercises if e.number == "3.1")
    marks = [float(rows[CHAPTERS[0], who]["score"]) for who in ("solved", "by-heart")]
    assert marks[0] - marks[1] == lost


def test_otter(assignments, tmp_path):
    """Assign, hand in solved, unsolved and learnt by heart, mark: as expected."""
    needs("otter")
    made = assignments[0]
    write_otter(assignments, tmp_path, "https://github.com/ORG/book")
    for each in assignments:
        folder = tmp_path / each.name
        call("otter", "assign", f"{each.name}.ipynb", "dist", folder=folder)
    dist = tmp_path / made.name / "dist"
    file = f"{made.name}.ipynb"
    student = nbformat.read(dist / "student" / file, as_version=4)
    text = json.dumps(student)
    assert ".again(" not in text
    for exercise in made.exercises:
        if exercise.checked:
            wanted = stub(exercise.solution.answer, exercise.number)
            assert wanted in [cell.source for cell in student.cells]
    words = [c for c in student.cells if c.source.startswith("*Write your answer")]
    assert len(words) == sum(e.in_words for e in made.exercises)
    assert all(cell.metadata.get("editable", True) for cell in words)
    (archive,) = (dist / "autograder").glob("*.zip")
    solved = dist / "autograder" / file
    learnt = with_answer(nbformat.read(solved, as_version=4), BY_HEART)
    nbformat.write(learnt, tmp_path / "by-heart.ipynb")
    handed_in = {
        "solved": solved,
        "unsolved": dist / "student" / file,
        "by-heart": tmp_path / "by-heart.ipynb",
    }
    scores = {}
    for who, notebook in handed_in.items():
        place = tmp_path / who
        place.mkdir()
        options = [
            "--autograder",
            str(archive),
            "--output-dir",
            str(place),
            "--no-logo",
        ]
        call("otter", "run", *options, str(notebook), folder=tmp_path)
        results = json.loads((place / "results.json").read_text(encoding="utf-8"))
        scores[who] = {t["name"]: t.get("score") for t in results["tests"]}
    expected = {f"exercise_{e.slug}": e.points[0] for e in made.exercises if e.checked}
    for name, points in expected.items():
        assert scores["solved"][name] == points
        assert scores["unsolved"][name] == 0
        assert scores["by-heart"][name] == (0 if name == "exercise_3_1" else points)

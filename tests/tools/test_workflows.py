"""The workflows ask for nothing that is not there; `make lint` looks at the rest."""

import re

import yaml

from tools import project

WORKFLOWS = sorted((project.ROOT / ".github" / "workflows").glob("*.yml"))
KINDS = {"lowest", "pinned", "newest"}
# yaml reads the key ``on`` as a truth value.
TRIGGERS = True


def steps(path):
    for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
        yield from job["steps"]


def test_every_command_is_there():
    """The targets of make; of the releases, all three choices."""
    makefile = (project.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    runs = [step["run"] for path in WORKFLOWS for step in steps(path) if "run" in step]
    called = {name for run in runs for name in re.findall(r"\bmake ([\w-]+)", run)}
    weekly = {"colab", "kernels", "links", "safety", "slides", "test-course"}
    assert {*weekly, "releases"} <= called <= targets
    assert ".ci/run" in runs
    check = yaml.safe_load(WORKFLOWS[0].read_text(encoding="utf-8"))
    rows = check["jobs"]["versions"]["strategy"]["matrix"]["include"]
    chosen = re.findall(r"make releases RELEASES=(\w+)", "\n".join(runs))
    assert {*chosen, *(row["releases"] for row in rows)} == KINDS


def test_the_site_is_published_where_pages_is_enabled_and_never_from_a_change():
    """A fork without Pages stays green; its owner can start the run by hand later."""
    check = yaml.safe_load(WORKFLOWS[0].read_text(encoding="utf-8"))
    condition = check["jobs"]["deploy"]["if"]
    assert "github.event.repository.has_pages" in condition
    assert "github.event_name != 'pull_request'" in condition
    assert "github.ref == 'refs/heads/main'" in condition
    assert "workflow_dispatch" in check[TRIGGERS]
    cancelled = check["concurrency"]["cancel-in-progress"]
    assert cancelled == "${{ github.event_name == 'pull_request' }}"


def test_the_supported_pythons_are_the_tested_ones():
    """What pyproject.toml names, the workflow runs."""
    text = (project.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    check = yaml.safe_load(WORKFLOWS[0].read_text(encoding="utf-8"))
    rows = check["jobs"]["versions"]["strategy"]["matrix"]["include"]
    assert [row["python"] for row in rows] == named == ["3.11", "3.12", "3.13", "3.14"]


def test_the_weekly_run_is_on_a_schedule_and_reports_every_job():
    weekly = yaml.safe_load(WORKFLOWS[1].read_text(encoding="utf-8"))
    assert "schedule" in weekly[TRIGGERS]
    jobs = weekly["jobs"]
    assert set(jobs["report"]["needs"]) == jobs.keys() - {"report"}
    assert jobs["report"]["permissions"] == {"issues": "write"}

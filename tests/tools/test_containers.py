"""Dev container and Binder: they install what the package asks for, and call our make.

Neither can be started here; what can drift apart is held together.
"""

import json
import os
import re

import yaml

import project

# What conda-forge calls the two: without the libraries for a GPU and for a desktop.
NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}


def test_binder_asks_for_what_the_package_asks_for():
    """The same bounds, by conda's names; the package itself comes without any."""
    text = (project.ROOT / ".binder" / "environment.yml").read_text(encoding="utf-8")
    asked = yaml.safe_load(text)["dependencies"]
    bounds = [*project.requirements(), *project.requirements("book")]
    wanted = []
    for bound in bounds:
        name, version = bound.split(">=")
        wanted.append(f"{NAMES.get(name, name)}>={version}")
    assert sorted(asked) == sorted(["python=3.12", "pip", *wanted])


def test_binders_last_step_can_run():
    path = project.ROOT / ".binder" / "postBuild"
    assert os.access(path, os.X_OK)
    assert "pip install --no-deps ." in path.read_text(encoding="utf-8")


def test_the_dev_container_makes_the_environment():
    """With the Python that the book is built with, and the browser of the tests."""
    path = project.ROOT / ".devcontainer" / "devcontainer.json"
    text = re.sub(r"^\s*//.*$", "", path.read_text(encoding="utf-8"), flags=re.M)
    container = json.loads(text)
    assert container["image"].startswith("python:3.11-")
    assert container["postCreateCommand"] == "make environment"
    ci = (project.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for package in ("chromium", "chromium-driver"):
        assert package in container["onCreateCommand"].split()
        assert package in ci.split()

"""The dev container calls our make. It cannot be started here."""

import json
import re

from tools import project


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

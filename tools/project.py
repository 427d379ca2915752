"""What the other tools need to know about the project: its places and addresses."""

import subprocess
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "_build"
RECORDS = ROOT / "src" / "aiayn" / "book" / "records"
CACHE = BUILD / ".jupyter_cache"

# Colab brings its own; replacing them there would break what it has loaded.
NEVER_INSTALLED_BY_A_NOTEBOOK = {"torch", "numpy"}


def notebook_paths() -> list[Path]:
    """Every chapter's notebook, in the order of their numbers."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def repository(root: Path = ROOT) -> tuple[str, str]:
    """The repository's address and branch, from the one place that holds them."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return config["repository"]["url"].rstrip("/"), config["repository"]["branch"]


def requirements(part: str = "dependencies", root: Path = ROOT) -> list[str]:
    """What the package asks pip for: its dependencies, or those of an extra."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)["project"]
    return table[part] if part in table else table["optional-dependencies"][part]


def light_dependencies(root: Path = ROOT) -> list[str]:
    """Names of what the package needs besides the packages that stay untouched."""
    found = requirements(root=root)
    names = [requirement.split(">=")[0].strip() for requirement in found]
    return [name for name in names if name not in NEVER_INSTALLED_BY_A_NOTEBOOK]


def commit(revision: str = "HEAD") -> str:
    """The full name of a commit of this repository."""
    return subprocess.run(
        ["git", "rev-parse", revision],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()

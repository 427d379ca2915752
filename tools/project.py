"""What the other tools need to know about the project: its places and addresses."""

import json
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
SITE_SOURCES = ("_config.yml", "_toc.yml", "book", "notebooks")
BUILD = ROOT / "_build"
RECORDS = ROOT / "src" / "aiayn_book" / "records"
CACHE = BUILD / ".jupyter_cache"

# Colab brings its own; replacing them there would break what it has loaded.
NEVER_INSTALLED_BY_A_NOTEBOOK = {"torch", "numpy"}


def notebook_paths() -> list[Path]:
    """Every chapter's notebook, in the order of their numbers."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def taught_paths() -> list[Path]:
    """The notebooks that have exercises and slides: all but the appendices."""
    table = yaml.safe_load((ROOT / "book" / "data" / "chapters.yml").read_text("utf-8"))
    chapters = [chapter for part in table for chapter in part["chapters"]]
    appendices = {one["name"] for one in chapters if "appendix" in one}
    return [path for path in notebook_paths() if path.stem not in appendices]


def repository(root: Path = ROOT) -> tuple[str, str]:
    """The repository's address and branch, from the one place that holds them."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    return config["repository"]["url"].rstrip("/"), config["repository"]["branch"]


def placeholder(root: Path = ROOT) -> bool:
    """Whether the repository's address is still the one that nothing stands at."""
    return repository(root)[0].startswith("https://github.com/ORG/")


def chosen(names: Sequence[str], paths: Sequence[Path]) -> list[Path]:
    """The notebooks of those names, in the order of the book; all if none is named.

    Raises:
        ValueError: There is no notebook of a name.
    """
    known = {path.stem for path in paths}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"There is no chapter {', '.join(unknown)}: give the name of a notebook, "
            f"such as {paths[0].stem}."
        )
    return [path for path in paths if not names or path.stem in names]


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


def commit(revision: str = "HEAD", places: Sequence[str] = ("src", "tools")) -> str:
    """The full name of the commit whose code this is, for a record to name.

    Args:
        revision: What git knows the commit by.
        places: What must be as in that commit. JSON and weights are left out: the
            records themselves, which change while they are made.

    Raises:
        SystemExit: There is no such commit or no git, or the code is not the commit's.
    """
    name = _git("rev-parse", "--verify", f"{revision}^{{commit}}")
    if name is None:
        raise SystemExit(
            f"git finds no commit {revision!r} here, and a record must name what it "
            "was made with: work in a clone of the repository."
        )
    records = (":!*.json", ":!*.safetensors")
    if _git("diff", "--quiet", name, "--", *places, *records) is None:
        raise SystemExit(
            f"{', '.join(places)}: not as in commit {name[:10]}, which a record would "
            "name. Commit your changes, or check that commit out."
        )
    return name


def _git(*words: str) -> str | None:
    """What git says; None if it fails, or is not there."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def continued(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """The record to add runs to: the one at a path, or a new one.

    Args:
        path: The record.
        head: What all its runs share (commit, machine, configuration), and the command,
            which may name some of the runs.

    Raises:
        SystemExit: The record there has something else in front.
    """
    if not path.exists():
        return head | {"runs": []}
    old = json.loads(path.read_text(encoding="utf-8"))
    new = json.loads(json.dumps(head))  # lists for tuples
    differ = [name for name in new if name != "command" and old.get(name) != new[name]]
    if differ:
        raise SystemExit(
            f"{path.name} was made with another {' and another '.join(differ)}, so no "
            "new run can stand beside its own: move it away to begin anew."
        )
    return old

"""Which version of the package this is.

In a checkout pyproject.toml says it: what was installed there once may be of another
day. Elsewhere it is what pip noted.
"""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def find_version(checkout: Path) -> str:
    """The version of a checkout, else of what is installed; 0+unknown of neither.

    Args:
        checkout: Where pyproject.toml lies if this is a checkout.
    """
    try:
        text = (checkout / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text).get("project", {})
        if project.get("name") == "aiayn":
            return project["version"]
    except (OSError, ValueError):
        pass
    try:
        return version("aiayn")
    except PackageNotFoundError:
        return "0+unknown"


__version__ = find_version(Path(__file__).parents[2])

"""What tests of tools and extensions share."""

import re
from pathlib import Path

from mdit_py_plugins.anchors.index import slugify

ROOT = Path(__file__).resolve().parents[2]
HEADING = re.compile(r'"#{2,4} (.+?)(?:\\n)?"')


def headings(name: str) -> dict[str, str]:
    """The headings of a notebook by the anchors that links use."""
    text = (ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    titles = [title.replace("*", "").strip() for title in HEADING.findall(text)]
    return {slugify(title): title for title in titles}

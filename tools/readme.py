"""The table of chapters in README.md, written from ``book/data/chapters.yml``.

``python tools/readme.py`` writes it, ``--check`` says whether it is up to date.
"""

import argparse
import sys
from pathlib import Path

import yaml

from project import ROOT

BEGIN, END = "<!-- chapters -->", "<!-- /chapters -->"


def table(root: Path = ROOT) -> str:
    """The chapters as a Markdown table; those that are written are links."""
    text = (root / "book" / "data" / "chapters.yml").read_text(encoding="utf-8")
    lines = ["|  | chapter | paper | question |", "|--:|--|--|--|"]
    for part in yaml.safe_load(text):
        lines.append(f"|  | **{part['title']}** | {part['paper']} |  |")
        for chapter in part["chapters"]:
            name, title = chapter["name"], chapter["title"]
            if (root / "notebooks" / f"{name}.ipynb").exists():
                title = f"[{title}](notebooks/{name}.ipynb)"
            head = name.partition("-")[0]
            number = head.lstrip("0") if head[0].isdigit() else ""
            lines.append(
                f"| {number} | {title} | {chapter['paper']} | {chapter['question']} |"
            )
    return "\n".join(lines)


def updated(readme: str, root: Path = ROOT) -> str:
    """The README's text with the current table between its two marks."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(root)}\n{END}{after}"


def main() -> int:
    """Write the table, or with ``--check`` only compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="report, change nothing")
    check = parser.parse_args().check
    path = ROOT / "README.md"
    stored = path.read_text(encoding="utf-8")
    if stored == updated(stored):
        return 0
    if check:
        print("README.md: the table of chapters is out of date; run 'make format'.")
        return 1
    path.write_text(updated(stored), encoding="utf-8")
    print("README.md: table of chapters brought up to date.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

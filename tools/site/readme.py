"""What Markdown pages list, so that it can be read in a clone: chapters, exercises.

README.md has the table of chapters, from ``book/data/chapters.yml``, and the teacher's
page all exercises, from the notebooks. ``python -m tools.site.readme`` writes both
lists, each between its two marks; ``--check`` says whether they are up to date.
"""

import argparse
import sys
from pathlib import Path

import yaml

from aiayn_site.exercises import listed
from tools.project import ROOT


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


LISTS = {
    "README.md": ("chapters", table),
    "book/teach/exercises.md": ("exercises", listed),
}


def updated(page: str, name: str, content: str) -> str:
    """The page's text with the current list between the marks of that name."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{content}\n{end}{after}"


def main() -> int:
    """Write the lists, or with ``--check`` only compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="report, change nothing")
    check, status = parser.parse_args().check, 0
    for file, (name, make) in LISTS.items():
        path = ROOT / file
        stored = path.read_text(encoding="utf-8")
        current = updated(stored, name, make())
        if stored == current:
            continue
        if check:
            print(f"{file}: the list of {name} is out of date; run 'make format'.")
            status = 1
        else:
            path.write_text(current, encoding="utf-8")
            print(f"{file}: list of {name} brought up to date.")
    return status


if __name__ == "__main__":
    sys.exit(main())

"""Draw an examination from the question bank and from questions of your own.

Usage: python -m tools.course.examination [--private FILE] [--seed N] NAME…

NAME is a question of the public bank (3a is the first of chapter 3, Ba of the bug
clinic) or one of FILE, whose form ``book/teach/variants-template.yml`` shows. The same
seed draws the same numbers, and each seed has files of its own. The public bank is
``book/teach/question-bank.md``, in the form that `QUESTION` reads.
"""

import argparse
import math
import random
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from aiayn_site.exercises import MARK, MARKS
from aiayn_site.offline_assets import place_mathjax
from tools.course.arithmetic import compute
from tools.project import ROOT
from tools.site.slides.page import rendered

BANK = ROOT / "book" / "teach" / "question-bank.md"
QUESTION = re.compile(
    r"^\*\*(?P<name>\w+)\.\*\* \*(?P<kind>[^*]+) · (?P<marks>\d+) marks\.\* "
    r"(?P<ask>.+?)\n\n<details><summary>Answer</summary>\n\n(?P<answer>.+?)\n\n"
    r"(?:<!-- by: (?P<by>.+?) -->\n\n)?(?P<earns>\*\*Marks, .+?)\n\n</details>$",
    re.MULTILINE | re.DOTALL,
)
PLACE = re.compile(r"<<(\w+)>>")
TO_COMPUTE_WITH = {name: getattr(math, name) for name in ("sqrt", "log", "exp", "pi")}
TO_COMPUTE_WITH |= {"int": int, "round": round, "abs": abs, "min": min, "max": max}
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{title}</title>
<style>
@page {{ margin: 2cm; }}
body {{ font: 12pt/1.5 Georgia, serif; max-width: 40rem; margin: 2rem auto; }}
p, pre, table {{ break-inside: avoid; }}
</style>
<script defer src="mathjax/tex-mml-chtml.js"></script>
{text}</html>
"""
WORDS = ("ask", "answer")
PARTS = {"ask": str, "answer": str, "marks": int, "earns": dict}
DECIDE = "True or false? Say why"  # such a question of the bank is the statement alone


def bank(path: Path = BANK) -> dict[str, dict[str, Any]]:
    """The public questions by their names."""
    found = QUESTION.finditer(path.read_text(encoding="utf-8"))
    return {one["name"]: _read(one) for one in found}


def _read(found: re.Match) -> dict[str, Any]:
    """A question of the bank with its parts, as a private one has them."""
    parts = found.groupdict() | {"marks": int(found["marks"])}
    earned = " ".join(MARKS.fullmatch(found["earns"])[2].split())
    *words, _ = MARK.split(earned)  # what, how many, what, how many, …
    whats, marks = words[::2], map(int, words[1::2])
    return parts | {"earns": dict(zip(map(str.strip, whats), marks, strict=True))}


def private(path: Path) -> dict[str, dict[str, Any]]:
    """Questions of one's own by their names.

    Raises:
        SystemExit: There is no such file, or what is in it are no questions.
    """
    if not path.is_file():
        raise SystemExit(f"{path}: there is no such file.")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        said = " ".join(str(error).split())
        raise SystemExit(f"{path}: it is no YAML: {said}.") from None
    if not isinstance(content, dict):
        raise SystemExit(f"{path}: it holds no questions by their names.")
    own = {str(name): question for name, question in content.items()}
    for name, question in own.items():
        for key, kind in PARTS.items():
            given = question.get(key) if isinstance(question, dict) else None
            if not isinstance(given, kind):
                raise SystemExit(f"{name}: `{key}` is missing, or no {kind.__name__}.")
        marks = question["earns"].values()
        earned = sum(many for many in marks if isinstance(many, int | float))
        if earned != question["marks"]:
            raise SystemExit(
                f"{name}: it has {question['marks']} marks, but what `earns` lists "
                f"makes {earned}."
            )
    return own


def variant(question: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A question with its numbers drawn and put in.

    Raises:
        SystemExit: A place in the text has no number, or a number cannot be computed.
    """
    values = {
        name: draw.choice(some) for name, some in question.get("draw", {}).items()
    }
    for name, expression in question.get("compute", {}).items():
        try:
            values[name] = compute(str(expression), TO_COMPUTE_WITH | values)
        except Exception as error:
            raise SystemExit(
                f"{name}: {expression!r} cannot be computed: {error}."
            ) from error

    def fill(text: str) -> str:
        missing = set(PLACE.findall(text)) - set(values)
        if missing:
            raise SystemExit(
                f"{', '.join(sorted(missing))}: in the text, but neither under `draw` "
                "nor under `compute`."
            )
        return PLACE.sub(lambda found: str(values[found[1]]), text)

    return question | {word: fill(question[word]) for word in WORDS}


def asked(question: dict[str, Any]) -> str:
    """A question as students read it."""
    words = question["ask"].strip()
    states = question.get("kind") in ("decide", DECIDE)
    return f"{DECIDE}. {words}" if states else words


def paper(questions: list[dict[str, Any]], seed: int) -> str:
    """What students get."""
    marks = sum(question["marks"] for question in questions)
    counts = f"{_many(len(questions), 'question')}, {_many(marks, 'mark')}"
    parts = [f"# Examination\n\n{counts}. Paper {seed}."]
    for order, question in enumerate(questions, start=1):
        marks = _many(question["marks"], "mark")
        parts.append(f"**{order}.** ({marks}) {asked(question)}")
    return "\n\n".join(parts) + "\n"


def _many(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def answers(questions: list[dict[str, Any]], seed: int) -> str:
    """What who grades gets."""
    parts = [f"# Answers to paper {seed}"]
    for order, question in enumerate(questions, start=1):
        earned = "; ".join(
            f"{what} ({many})" for what, many in question["earns"].items()
        )
        parts.append(f"**{order}.** {question['answer'].strip()}")
        parts.append(f"*Marks, {question['marks']}:* {earned}.")
    return "\n\n".join(parts) + "\n"


def printed(text: str) -> str:
    """A page for a browser's printer, whose formulas are typeset on this machine."""
    title = text.splitlines()[0].removeprefix("# ")
    return PAGE.format(title=title, text=rendered(text))


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, write both files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument(
        "--private", type=Path, help="a file with questions of your own"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("examination"))
    words = parser.parse_args(arguments)
    known = bank()
    if words.private:
        own = private(words.private)
        if both := sorted(set(own) & set(known)):
            raise SystemExit(
                f"{', '.join(both)}: the public bank has that name already."
            )
        known |= own
    if unknown := [name for name in words.names if name not in known]:
        raise SystemExit(
            f"{', '.join(unknown)}: no such question in the bank"
            f"{f' or in {words.private}' if words.private else ''}."
        )
    draw = random.Random(words.seed)
    chosen = [variant(known[name], draw) for name in words.names]
    words.output.mkdir(parents=True, exist_ok=True)
    for kind, make in (("paper", paper), ("answers", answers)):
        text = make(chosen, words.seed)
        path = words.output / f"{kind}-{words.seed}.md"
        path.write_text(text, encoding="utf-8")
        page = path.with_suffix(".html")
        page.write_text(printed(text), encoding="utf-8")
        print(f"{path}; to print, open {page}")
    place_mathjax(words.output / "mathjax")
    return 0


if __name__ == "__main__":
    sys.exit(main())

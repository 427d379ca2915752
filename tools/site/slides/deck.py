"""Which parts of a notebook become slides: chosen by what they are, without marks.

Shown are the title with its question, the goals, what the paper says, guesses,
definitions, formulas, figures, code that stands in the library too, measured claims,
pitfalls and deviations, quick checks and the take-away. Running text becomes the
speaker's notes of the slide before it. Where a slide's text ends in a colon, what
follows stands on it: a formula, a table, a short list, code. A cell's ``slideshow``
metadata overrides this: ``skip`` leaves it out, ``notes`` makes it notes, ``slide``
shows all of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nbformat import NotebookNode

from tools.course.exercises import read_exercises
from tools.site.notebooks import SET_UP_ID

HEADING = re.compile(r"^(#{1,4}) (.+)$")
LEAD = re.compile(r"^> \*\*(?:From )?(?:The )?([A-Za-z-]+)", re.IGNORECASE)
SHOWN_QUOTES = {"paper", "guess", "definition", "deviation", "pitfall", "take-away"}
SHOWN_QUOTES |= {"take-aways"}
FIGURE = re.compile(
    r"# @title (?:Chart|Drawing|Figure|Diagram|Picture|Explorable)s?\b:? *(.*)"
)
NOTICE = re.compile(r"(\*Notice:?\*.+?)(?=\s\*Try:?\*|$)", re.DOTALL)
SKIPPED_SECTIONS = {"exercises", "your turn"}
LONGEST_CODE = 20  # lines that can be read from the last row
LONGEST_LIST = 450  # characters
FOLLOWS = re.compile(r"\$\$|\||- |1\. ")
COLON = re.compile(r":\s*$")
SENTENCES = re.compile(r"(?<=[.?!])\s+(?=[A-Z*“$`])")


@dataclass
class Slide:
    """What one slide shows, and what is said about it."""

    title: str
    kind: str = "text"  # a class for the style sheet
    markdown: str = ""
    code: str = ""
    cell: NotebookNode | None = None  # its outputs are shown
    caption: str = ""
    notes: list[str] = field(default_factory=list)


def slides_of(notebook: NotebookNode) -> list[Slide]:
    """The slides of an executed notebook, in its order."""
    slides = list(_title_slides(_opening(notebook)))
    reader = _Reader(slides, _list_of_exercises(notebook))
    for cell in notebook.cells[1:]:
        wanted = cell.metadata.get("slideshow", {}).get("slide_type", "")
        if wanted == "skip" or cell.id == SET_UP_ID:
            continue
        if cell.cell_type == "markdown":
            reader.read_markdown(cell.source, wanted)
        elif cell.cell_type == "code":
            reader.read_code(cell, wanted)
    for slide in slides:
        if not (slide.code or slide.cell):  # what it announced is too long for a slide
            slide.markdown = COLON.sub(".", slide.markdown)
    return [slide for slide in slides if not _is_bare(slide)]


def _opening(notebook: NotebookNode) -> str:
    """The text before the first section, from whichever cells."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return re.split(r"^## ", "\n\n".join(texts), maxsplit=1, flags=re.MULTILINE)[0]


def _list_of_exercises(notebook: NotebookNode) -> str:
    """The chapter's exercises as a table, without what they ask."""
    rows = ["|  | exercise |  | minutes |", "|--|--|--|--:|"]
    for one in read_exercises(notebook):
        rows.append(f"| {one.number} | {one.title} | {one.kind} | {one.minutes} |")
    return "\n".join(rows)


def _is_bare(slide: Slide) -> bool:
    return not (slide.markdown or slide.code or slide.cell)


def _title_slides(source: str) -> Iterator[Slide]:
    """The title with the chapter's question, and what one will be able to do."""
    title, *blocks = _blocks(source)
    title = title.removeprefix("# ")
    paper = re.search(r"\|\s*\*\*Paper\*\*\s*\|\s*([^|]+)\|", source)
    question = next((b for b in blocks if b.startswith("**")), "")
    goals = next((b for b in blocks if b.startswith("- ")), "")
    said = [b for b in blocks if not b.startswith(("[Open", "|", "- ", "**"))]
    where = f"\n\n*The paper: {paper[1].strip()}*" if paper else ""
    hook, rest = _first_sentences(question, 1)
    yield Slide(title, "title", f"{hook}{where}", notes=[n for n in [rest, *said] if n])
    if goals:
        yield Slide("Afterwards you will be able to", "goals", goals)


class _Reader:
    """Goes through a notebook and appends slides; remembers where it is."""

    def __init__(self, slides: list[Slide], exercises: str) -> None:
        self.slides = slides
        self.exercises = exercises
        self.section = ""
        self.before = ""  # the paragraph just read

    @property
    def skipping(self) -> bool:
        return self.section.lower() in SKIPPED_SECTIONS

    def read_markdown(self, source: str, wanted: str) -> None:
        """Make slides of a cell's parts, and notes of the rest."""
        if wanted == "notes":
            self._note(source)
            return
        if wanted == "slide":
            self.slides.append(Slide(self.section, markdown=source))
            return
        for block in _blocks(source):
            self._read_block(block)

    def _read_block(self, block: str) -> None:
        if heading := HEADING.match(block):
            self.section = heading[2]
            self.before = ""
            if self.skipping:
                self.slides.append(Slide("Exercises", "exercises", self.exercises))
            elif len(heading[1]) == 2:
                self.slides.append(Slide(self.section, "section"))
            return
        if not self.section:  # the opening: it is on the first two slides
            return
        lead = LEAD.match(block)
        kind = lead[1].lower() if lead else ""
        if kind in SHOWN_QUOTES:
            title = "" if kind.startswith("take") else self.section
            self.slides.append(Slide(title or "Take-away", kind, block))
        elif self.skipping or kind or block.startswith("<details"):
            return
        elif self._announced() and FOLLOWS.match(block):
            if block.startswith(("$$", "|")) or len(block) <= LONGEST_LIST:
                self.slides[-1].markdown += f"\n\n{block}"
            else:
                self._note(block)
        elif block.startswith(("$$", "|")):
            said, _ = _first_sentences(self.before, 2)
            text = f"{said}\n\n{block}" if said else block
            self.slides.append(Slide(self.section, "shown", text))
        elif self._opens_section():
            shown, rest = _first_sentences(block, 2)
            self.slides[-1].markdown = shown
            self._note(rest)
        elif self._captions(block):
            notice = NOTICE.search(block)
            self.slides[-1].caption, _ = _first_sentences(notice[1], 2)
            self._note(block)
        else:
            self._note(block)
        self.before = block

    def _opens_section(self) -> bool:
        last = self.slides[-1]
        return last.kind == "section" and not last.markdown

    def _announced(self) -> bool:
        """Whether the slide's text ends in a colon, and nothing else was read since."""
        slide = self.slides[-1]
        ends = all(COLON.search(text) for text in (slide.markdown, self.before))
        return ends and not (slide.code or slide.cell)

    def _captions(self, block: str) -> bool:
        return self.slides[-1].kind == "figure" and bool(NOTICE.search(block))

    def _note(self, text: str) -> None:
        if text and not self.skipping:
            self.slides[-1].notes.append(text)

    def read_code(self, cell: NotebookNode, wanted: str) -> None:
        """Make a slide of a figure, a quick check, a measured claim, a definition."""
        source = cell.source
        code = re.sub(r"^# parity:.*\n", "", source, flags=re.M)
        shown = not {"hide-input", "hide-cell"} & set(cell.metadata.get("tags", ()))
        fits = len(code.splitlines()) <= LONGEST_CODE
        if wanted == "slide":
            self.slides.append(Slide(self.section, "code", code=source, cell=cell))
        elif "quick_check(" in source:
            self.slides.append(Slide("Quick check", "quiz", cell=cell))
        elif self.skipping or wanted == "notes":
            return
        elif self._announced() and shown and fits:
            self.slides[-1].code, self.slides[-1].cell = code, cell
        elif "\nfigure(" in f"\n{source}":  # it brings its caption
            self.slides.append(Slide(self.section, "figure", cell=cell))
        elif figure := FIGURE.match(source):
            title = figure[1][:1].upper() + figure[1][1:]
            self.slides.append(Slide(title or self.section, "figure", cell=cell))
        elif re.search(r"\bsettle\w*\(", source) and cell.outputs:
            self.slides.append(Slide(self.section, "claim", cell=_rich_only(cell)))
        elif source.startswith("# parity:") and fits:
            self.slides.append(Slide(self.section, "code", code=code))


def _rich_only(cell: NotebookNode) -> NotebookNode:
    """The cell with those outputs alone that are more than printed text."""
    return type(cell)(
        {**cell, "outputs": [o for o in cell.outputs if o.output_type != "stream"]}
    )


def _first_sentences(text: str, count: int) -> tuple[str, str]:
    """The first sentences of a paragraph, and the rest of it."""
    parts = SENTENCES.split(text, maxsplit=count)
    rest = parts.pop() if len(parts) > count else ""
    return " ".join(parts), rest


def _blocks(markdown: str) -> Iterator[str]:
    """Paragraphs, quotes, formulas and tables: what blank lines part.

    A quote keeps its blank lines, as they are marked; a list stays with its items.
    """
    block: list[str] = []
    fence = ""
    for line in [*markdown.splitlines(), ""]:
        mark = line.strip()[:3]
        if not fence and mark in {"```", "~~~"}:
            fence = mark
        elif fence and mark == fence:
            fence = ""
        if line.strip() or fence:
            block.append(line)
            if HEADING.match(line) and len(block) == 1:
                yield line
                block = []
        elif block:
            yield "\n".join(block)
            block = []

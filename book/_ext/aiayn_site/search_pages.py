"""What the search knows of the pages besides Sphinx's index.

It stands in ``_static/search-pages.js``: for each page what it is about, and what
readers type to find it (``found_by`` of ``chapters.yml``); and the readers' questions,
each with the place that answers it. `_static/search.js` ranks by them. Sphinx's own
script of the search is not used, nor the one that marks words in pages that were found.
"""

import json
from pathlib import Path

import yaml
from sphinx.application import Sphinx
from sphinx.util.index_entries import split_index_msg

from aiayn_site.chapters import parts
from aiayn_site.page_description import description_of

BOOK = Path(__file__).resolve().parents[2]
QUESTIONS = BOOK / "data" / "questions.yml"
FILE = "search-pages.js"
MARKS = "sphinx_highlight.js"


def phrases() -> dict[str, list[str]]:
    """What each chapter is found by, by its page."""
    return {
        f"notebooks/{chapter['name']}": chapter.get("found_by", [])
        for part in parts()
        for chapter in part["chapters"]
    }


def about() -> dict[str, str]:
    """Each chapter's question, by its page."""
    return {
        f"notebooks/{chapter['name']}": chapter["question"]
        for part in parts()
        for chapter in part["chapters"]
    }


def questions() -> list[list[str]]:
    """What readers asked, with the page and the anchor that answer."""
    asked = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
    found = []
    for one in (question for group in asked.values() for question in group):
        page, _, anchor = one.get("where", "").partition("#")
        if page:
            page = page if page.startswith("book/") else f"notebooks/{page}"
            found.append([one["ask"], page, anchor])
    return found


def place_pages(app: Sphinx) -> list:
    """Write the script, when all pages have been read."""
    known, asked = phrases(), about()
    pages = {
        page: {
            "about": asked.get(page) or description_of(app.env, page),
            "phrases": known.get(page, []),
        }
        for page in sorted(app.env.found_docs)
    }
    content = {"pages": pages, "questions": questions()}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    target = Path(app.outdir) / "_static" / FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(f"window.searchPages = {text};\n", encoding="utf-8")
    return []  # no pages of its own


def complete_entries(app: Sphinx) -> list:
    """Enter the terms of pages of an earlier build, too: of all that it knows about
    them, Sphinx loses these entries alone."""
    indexer = getattr(app.builder, "indexer", None)
    if indexer is not None:
        known = indexer._index_entries
        for page, entries in app.env.get_domain("index").entries.items():
            if page not in known:
                known[page] = sorted(
                    (words, target, main)
                    for kind, text, target, main, _ in entries
                    for words in split_index_msg(kind, text)
                )
    return []  # no pages of its own


def add_script(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Only the page of the search has it at once; elsewhere it comes when asked for."""
    context["script_files"][:] = [
        script for script in context["script_files"] if MARKS not in str(script)
    ]
    if page == "search":
        app.add_js_file("search.js", loading_method="defer")


def setup(app: Sphinx) -> None:
    """Connect to the build."""
    app.connect("html-collect-pages", place_pages)
    app.connect("html-collect-pages", complete_entries)  # the last before it is written
    app.connect("html-page-context", add_script)

"""Around every page's text: what it takes to read and run it, and what comes next.

Reading time counts words and lines of code; running time is what the notebook took when
it was executed for this build. The links at the foot of a page carry the question of
the chapter, or the first sentence of the page, to which they lead.
"""

import math
import re
from html import escape

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx

from aiayn_site.chapters import parts, taught
from aiayn_site.page_description import description_of, takes_notes
from aiayn_site.run_times import as_time

WORDS_A_MINUTE = 200
WORDS_A_LINE_OF_CODE = 8  # a line of code takes as long as so many words


def minutes_to_read(doctree: nodes.document) -> int:
    """Whole minutes, at least one; outputs and what is folded are not counted."""
    words, lines, folded = 0, 0, 0
    for node in doctree.findall():
        if isinstance(node, nodes.raw):
            html = node.astext()
            folded += html.count("<details") - html.count("</details")
        elif folded:
            continue
        elif isinstance(node, nodes.literal_block):
            lines += len(node.astext().splitlines()) if _is_input(node) else 0
        elif isinstance(node, nodes.Text) and not _is_set_apart(node):
            words += len(node.astext().split())
    return max(1, math.ceil((words + WORDS_A_LINE_OF_CODE * lines) / WORDS_A_MINUTE))


def _is_input(node: nodes.Node) -> bool:
    """Whether it is code to read, not what a cell printed or a folded cell."""
    classes = {name for above in _above(node) for name in above.get("classes", [])}
    return not classes & {"cell_output", "tag_hide-cell", "tag_hide-input"}


def _is_set_apart(node: nodes.Node) -> bool:
    kinds = (nodes.literal_block, nodes.raw, nodes.math, nodes.math_block)
    return any(
        isinstance(above, kinds)
        or above.get("kind") == "solution"
        or "cell_output" in above.get("classes", [])
        for above in _above(node)
    )


def _above(node: nodes.Node) -> list[nodes.Element]:
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def note_minutes(app: Sphinx, doctree: nodes.document) -> None:
    """Remember how long the page that was just read takes to read."""
    app.env.metadata[app.env.docname]["minutes"] = minutes_to_read(doctree)


def facts(app: Sphinx, page: str, context: dict) -> str:
    """The line under a title: times, and where notebook and source are."""
    told = [f"{app.env.metadata[page].get('minutes', 1)} min to read"]
    if page.startswith("notebooks/"):
        run = (NbMetadataCollector.get_doc_data(app.env)[page] or {}).get("exec_data")
        if run and run["runtime"]:
            told.append(f"{as_time(run['runtime'])} to run, on one core")
        source = context["pathto"](f"_sources/{page}.ipynb", 1)
        told.append(f'<a href="{escape(source)}" download>download the notebook</a>')
        if (name := page.partition("/")[2]) in taught():  # tools/site/slides/make.py
            deck = context["pathto"](f"slides/{name}.html", 1)
            told.append(f'<a href="{escape(deck)}">slides</a>')
    options = app.config.html_theme_options
    if options.get("repository_url"):
        path = app.env.doc2path(page, base=False)
        branch = options.get("repository_branch", "main")
        address = f"{options['repository_url'].rstrip('/')}/blob/{branch}/{path}"
        told.append(f'<a href="{escape(address)}">source</a>')
    return f'<p class="page-facts">{" · ".join(told)}</p>'


def questions() -> dict[str, str]:
    """Each chapter's question, by its page."""
    return {
        f"notebooks/{chapter['name']}": chapter["question"]
        for part in parts()
        for chapter in part["chapters"]
    }


def what_comes(app: Sphinx, page: str) -> str:
    """What a link to the page promises: a question, or the page's first sentence."""
    asked = questions().get(page)
    first = re.split(r"(?<=[.?:])\s", description_of(app.env, page))[0]
    return asked or first.removesuffix(":")


def frame(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Put both into the page."""
    if not isinstance(doctree, nodes.document):
        return
    if page != app.config.root_doc and 'class="figure-one"' not in context["body"]:
        if page.startswith("book/"):  # what the build has put in is there by now
            app.env.metadata[page]["minutes"] = minutes_to_read(doctree)
        line = f"</h1>\n{facts(app, page, context)}"
        context["body"] = context["body"].replace("</h1>", line, 1)
    before, after = app.env.collect_relations().get(page, [None, None, None])[1:]
    for side, other in (("prev", before), ("next", after)):
        if context.get(side) and other:
            words = f'<span class="what-comes">{escape(what_comes(app, other))}</span>'
            context[f"{side}_title"] = context[side]["title"] + words


def setup(app: Sphinx) -> None:
    """Connect to the build."""
    takes_notes(app, note_minutes, frame)

"""Formulas are typeset by the build: pages bring them finished, with no script.

MathJax does it, as it would in the browser, but once and in V8 (``mini-racer``): what a
reader's device is spared is 1.2 MB of script, its work, and a text that moves when the
formulas come. Each carries its MathML for screen readers. A formula that MathJax
refuses is a warning of the build.

Where ``mini-racer`` is not installed, browsers typeset as they do with Sphinx's own
renderer, which then stays in charge.
"""

import re
from functools import cache
from html import unescape
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from myst_parser.sphinx_ext.mathjax import html_visit_displaymath
from sphinx.application import Sphinx
from sphinx.ext.mathjax import html_visit_math
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from aiayn_site.offline_assets import mathjax_folder

NAME = "typeset"
COMPONENTS = (
    "loader.js",
    "core.js",
    "adaptors/liteDOM.js",
    "input/tex-full.js",
    "output/chtml.js",
    "output/chtml/fonts/tex.js",
)
FONTS = "vendor/mathjax/output/chtml/fonts/woff-v2"  # seen from the style sheet
NO_LOADING = """
var MathJax = {
  loader: {load: [], ready() {}, require() {}, paths: {mathjax: ""}},
  startup: {typeset: false, ready() {}},
};
"""
INLINE = re.compile(r"\\\((.*)\\\)(?=</span>$)", re.DOTALL)
DISPLAY = re.compile(r"\\\[(.*)\\\](?=</div>\s*$)", re.DOTALL)
# A rule of the style sheet, and the characters that a rule and an element name, with
# the font where it is not that of the running text.
RULE = re.compile(r"([^{}]+)\{[^{}]*\}")
OF_CHARACTER = re.compile(r"\.(mjx-c[0-9A-F]+)(?:\.(TEX-\w+))?")
CHARACTER = re.compile(r'class="(mjx-c[0-9A-F]+)(?: (TEX-\w+))?')
# What a line must not begin with behind a formula, or end with before one.
CLINGS_AFTER = re.compile(r"[.,;:!?)\]’”%–—-]+\w*")
CLINGS_BEFORE = re.compile(r"[(\[‘“]+$")
# The size at which MathJax's letters are as high as those around them; where lines may
# break: between the pieces of a long formula, not at the marks around it.
OWN_RULES = """
mjx-container[jax="CHTML"] { font-size: calc(1ex / 0.442); }
mjx-math:has(> mjx-piece) { display: inline !important; }
mjx-piece { display: inline-block; }
.with-formula { white-space: nowrap; }
mjx-math > wbr { white-space: normal; }
mjx-assistive-mml {
  position: absolute !important; top: 0; left: 0; clip-path: inset(50%); width: 1px;
  height: 1px; overflow: hidden; user-select: none; white-space: nowrap;
}
mjx-container { position: relative; }
"""
log = logging.getLogger(__name__)


@cache
def engine():
    """V8 with MathJax in it."""
    from py_mini_racer import MiniRacer

    context = MiniRacer()
    own = Path(__file__).with_name("typeset.js").read_text(encoding="utf-8")
    files = [(mathjax_folder() / name).read_text("utf-8") for name in COMPONENTS]
    for script in (NO_LOADING, *files, f'const FONTS = "{FONTS}";\n{own}'):
        context.eval(f"{script}\n;0")  # a value that Python can take
    return context


@cache
def typeset(tex: str, display: bool) -> str:
    """A formula as HTML.

    Raises:
        ValueError: MathJax refuses it; the message is MathJax's.
    """
    from py_mini_racer import JSEvalException

    try:
        return engine().call("typeset", tex, display)
    except JSEvalException as error:
        said = re.search(r"Error: (.*)", str(error))
        raise ValueError(said[1] if said else str(error)) from None


def style_sheet(drawn: set[tuple[str, str]]) -> str:
    """MathJax's style sheet, of its thousands of characters those that are drawn.

    Args:
        drawn: character and font, as `CHARACTER` finds them.
    """

    def kept(rule: re.Match) -> str:
        named = OF_CHARACTER.findall(rule[1])
        return rule[0] if not named or drawn.intersection(named) else ""

    whole = engine().call("styles")
    for brace in "{}":  # in a text, where it would end the rule
        whole = whole.replace(f'content: "{brace}"', f'content: "\\{ord(brace):X}"')
    return RULE.sub(kept, whole) + OWN_RULES


def visitor(usual, written_as: re.Pattern, display: bool):
    """The usual visitor, with the formula that it writes typeset."""

    def put(node: nodes.Element):
        def replacement(found: re.Match) -> str:
            try:
                return typeset(unescape(found[1]).strip(), display)
            except ValueError as error:
                log.warning("MathJax: %s in %s", error, found[1], location=node)
                return found[0]

        return replacement

    def visit(self, node: nodes.Element) -> None:
        begin = len(self.body)
        try:
            usual(self, node)
        except nodes.SkipNode:
            written = "".join(self.body[begin:])
            self.body[begin:] = [written_as.sub(put(node), written)]
            raise

    return visit


class TogetherWithMarks(SphinxPostTransform):
    """Keep a formula and the punctuation around it on one line.

    A browser takes a formula for a picture, beside which a line may always break.
    """

    default_priority = 900
    formats = ("html",)

    def run(self, **_: object) -> None:
        for formula in list(self.document.findall(nodes.math)):
            parent, place = formula.parent, formula.parent.index(formula)
            before = self._cut(parent, place - 1, CLINGS_BEFORE.search)
            after = self._cut(parent, place + 1, CLINGS_AFTER.match)
            if before or after:
                group = nodes.inline("", before, classes=["with-formula"])
                formula.replace_self(group)
                group += [formula, nodes.Text(after)]

    def _cut(self, parent: nodes.Element, place: int, find) -> str:
        """Take what clings out of the text at this place."""
        text = parent[place] if 0 <= place < len(parent) else None
        found = find(text.astext()) if isinstance(text, nodes.Text) else None
        if not found:
            return ""
        parent[place] = nodes.Text(text[: found.start()] + text[found.end() :])
        return found[0]


def choose_renderer(app: Sphinx, config) -> None:
    """Leave it to the browsers where V8 is not installed."""
    if config.html_math_renderer == NAME and find_spec("py_mini_racer") is None:
        log.info("mini-racer is not installed: formulas are typeset in the browser")
        config.html_math_renderer = "mathjax"


def ask_for_styles(app: Sphinx) -> None:
    """Link the style sheet; style_sheets.py joins it with the others."""
    if app.builder.format == "html" and app.builder.math_renderer_name == NAME:
        app.add_css_file("formulas.css")


def place_styles(app: Sphinx, exception: Exception | None) -> None:
    """Write the style sheet that the finished pages need."""
    if exception or app.builder.format != "html":
        return
    if app.builder.math_renderer_name != NAME:
        return
    out = Path(app.outdir)
    drawn = {
        name
        for page in out.rglob("*.html")
        for name in CHARACTER.findall(page.read_text(encoding="utf-8"))
    }
    (out / "_static" / "formulas.css").write_text(style_sheet(drawn), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Offer the renderer; `html_math_renderer` chooses it."""
    app.add_html_math_renderer(
        NAME,
        (visitor(html_visit_math, INLINE, False), None),
        (visitor(html_visit_displaymath, DISPLAY, True), None),
    )
    app.add_post_transform(TogetherWithMarks)
    app.connect("config-inited", choose_renderer)
    app.connect("builder-inited", ask_for_styles)
    app.connect("build-finished", place_styles, priority=400)

"""Every script that a page needs is served by the site itself.

MathJax comes out of the wheel ``sphinx-mathjax-offline`` (only the files that a page
can ask for), Vega out of ``vl-convert-python``. What works online only is dropped.
Altair's own output stays as it is, so that the same notebook draws in Colab too.
"""

import json
import re
import shutil
from importlib.metadata import distribution, version
from pathlib import Path

import altair
import vl_convert
from sphinx.application import Sphinx

LICENCES = Path(__file__).with_name("licences")  # neither wheel brings them
CHART_PLACES = Path(__file__).with_name("chart_places.js")
MATHJAX_ENTRY = "mathjax/tex-mml-chtml.js"
MATHJAX_FONTS = "output/chtml/fonts/woff-v2/"
MATHJAX_PARTS = (
    "tex-mml-chtml.js",
    MATHJAX_FONTS,
    "input/tex/extensions/",
    "a11y/",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
    "ui/",
)
# 1.5 MB of script for icons that the theme's web font draws as well.
FONT_AWESOME_SCRIPT = re.compile(
    r"\s*<(?:script|link)\b[^>]*"
    r"(?:fontawesome/[^\">]*/js/|scripts/fontawesome\.js)[^>]*>(?:</script>)?"
)
# It hides the visible words of a folded cell's label from screen readers.
FOLDED_CELL_LABEL = re.compile(r'(<summary)\s+aria-label="Toggle hidden content"')
# Scripts that work on the finished page: the text need not wait for them.
CAN_WAIT = re.compile(
    r'<script (?=(?:data-[^>]*)?src="[^"]*_static/(?:doctools|sphinx_highlight|'
    r"clipboard\.min|copybutton|togglebutton|design-tabs|site|"
    r"scripts/(?:sphinx-book-theme|bootstrap|pydata-sphinx-theme))\.js)"
)
# Three hundred bytes that the page's own lines use at once: no request of their own.
OPTIONS = re.compile(r'<script src="[^"]*_static/documentation_options\.js[^"]*">')
# The theme's last script turns "auto" into light or dark, and the page is drawn anew.
THEME_LATER = 'localStorage.getItem("theme") || "auto";'
THEME_AT_ONCE = """
      document.documentElement.dataset.mode !== "auto"
      ? document.documentElement.dataset.mode
      : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";"""
# Where no script runs, the page stays as it is written: "auto" has no colours.
THEME_WITHOUT_SCRIPT = re.compile(r'(<html\b[^>]*data-theme=)"auto"')
# The theme measures a box and marks it, then the next, and each time the page is laid
# out anew. First all are measured, then those are marked that need it.
THEME_SCRIPT = "scripts/pydata-sphinx-theme.js"
ONE_BY_ONE = re.compile(
    r'(document\.querySelectorAll\(\["pre",[^\]]*\]\.join\(", "\)\))'
    r"\.forEach\((\w)=>\{\2\.tabIndex=([^{}]*\?0:-1)\}\)"
)
ALL_AT_ONCE = r"""Array.from(\1,\2=>[\2,\3]).forEach(([box,index])=>{
if(box.tabIndex!==index)box.tabIndex=index})"""
# The theme brings them to every page, for hits while one types: 76 kB, and an element
# that axe objects to on a phone. The book's own search asks for what it needs.
SEARCH_SCRIPT = re.compile(
    r'\s*<script src="[^"]*(?:_static/(?:searchtools|language_data)|searchindex)\.js'
    r'[^"]*"></script>'
)
# The arrow beside a page that has pages below it is an icon without a name.
UNNAMED_TOGGLE = re.compile(r'<summary>(?=<span class="toctree-toggle")')
# Icons and menus can wait until the text is there.
ASKED_FOR_TOO_EARLY = re.compile(
    r'\s*<link rel="preload" as="(?:font"[^>]*fontawesome|script")[^>]*>', re.IGNORECASE
)
# Sphinx's role for an entry of a list of references is no item of a list any more.
REFERENCE_ENTRY = re.compile(r'role="doc-biblioentry"')


def mathjax_folder() -> Path:
    """Where the wheel keeps MathJax."""
    files = distribution("sphinx-mathjax-offline").files or []
    entry = next(file for file in files if str(file).endswith(MATHJAX_ENTRY))
    return Path(str(entry.locate())).parent


def place_mathjax(target: Path, parts: tuple[str, ...] = MATHJAX_PARTS) -> None:
    """Copy the part of MathJax that a page can ask for."""
    root = mathjax_folder()
    for source in root.rglob("*"):
        name = source.relative_to(root).as_posix()
        if source.is_file() and name.startswith(parts):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / name)


def vega_announcement() -> str:
    """What tells Altair's output that Vega, Vega-Lite and Vega-Embed are here.

    It asks ``VEGA_DEBUG`` which versions are there already, and loads from another host
    only what is missing.
    """
    present = {
        "vega_version": altair.VEGA_VERSION,
        "vegalite_version": altair.VEGALITE_VERSION,
        "vegaembed_version": altair.VEGAEMBED_VERSION,
    }
    return f"window.VEGA_DEBUG = {json.dumps(present)};"


def vega_versions() -> str:
    """The first line of the script: what it is made from."""
    made_by = version("vl-convert-python")
    return f"// Vega-Lite {altair.VEGALITE_VERSION}, vl-convert-python {made_by}\n"


def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script."""
    series = ".".join(altair.VEGALITE_VERSION.split(".")[:2])
    bundle = vl_convert.javascript_bundle(vl_version=series)
    return f"{vega_versions()}(() => {{\n{bundle}\n}})();\n"


def place_licences(target: Path) -> None:
    """Copy the licence texts of MathJax and Vega, which ask to be passed on."""
    target.mkdir(parents=True, exist_ok=True)
    for source in LICENCES.glob("*.txt"):
        shutil.copyfile(source, target / f"{source.stem}-licence.txt")


def place_scripts(app: Sphinx) -> None:
    """Put the scripts into the site; Vega's takes seconds, so only if it is new."""
    if app.builder.format != "html":
        return
    vendor = Path(app.outdir) / "_static" / "vendor"
    in_browser = app.builder.math_renderer_name == "mathjax"  # else formulas need fonts
    place_mathjax(vendor / "mathjax", MATHJAX_PARTS if in_browser else (MATHJAX_FONTS,))
    place_licences(vendor)
    vega = vendor / "vega.js"
    there = vega.read_text(encoding="utf-8") if vega.exists() else ""
    if not there.startswith(vega_versions()):
        vega.write_text(vega_script(), encoding="utf-8")


def choose_scripts(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Drop what needs another host or comes twice; add Vega where there is a chart."""
    kept, seen = [], set()
    for script in context.get("script_files", []):
        body = (getattr(script, "attributes", None) or {}).get("body") or ""
        name = str(getattr(script, "filename", "") or "")
        if "thebe" in (body + name).lower() or body in seen:
            continue
        seen |= {body} - {""}
        kept.append(script)
    context["script_files"][:] = kept  # Sphinx goes on to append to this very list
    context["css_files"][:] = [
        sheet
        for sheet in context.get("css_files", [])
        if "thebe" not in str(getattr(sheet, "filename", sheet))
    ]
    if "vegaEmbed" in (context.get("body") or ""):
        places = CHART_PLACES.read_text(encoding="utf-8")
        app.add_js_file(None, body=f"{vega_announcement()}\n{places}", priority=100)
        # It draws, and loads Vega when it is needed.
        app.add_js_file("charts.js", priority=110, loading_method="defer")


def tidy_pages(app: Sphinx, exception: Exception | None) -> None:
    """Mend in the finished pages what the theme offers no option for."""
    if exception or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    script = static / THEME_SCRIPT
    if script.exists():
        quick = ONE_BY_ONE.sub(ALL_AT_ONCE, script.read_text(encoding="utf-8"))
        script.write_text(quick, encoding="utf-8")
    own = (static / "documentation_options.js").read_text(encoding="utf-8")
    options = f"<script>{own}"
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        tidy = FONT_AWESOME_SCRIPT.sub("", text)
        tidy = FOLDED_CELL_LABEL.sub(r"\1", tidy)
        tidy = SEARCH_SCRIPT.sub("", tidy)
        tidy = CAN_WAIT.sub('<script defer="defer" ', tidy)
        tidy = OPTIONS.sub(lambda _: options, tidy)
        tidy = tidy.replace(THEME_LATER, THEME_AT_ONCE)
        tidy = THEME_WITHOUT_SCRIPT.sub(r'\1"light"', tidy)
        tidy = UNNAMED_TOGGLE.sub('<summary aria-label="The pages below">', tidy)
        tidy = ASKED_FOR_TOO_EARLY.sub("", tidy)
        tidy = REFERENCE_ENTRY.sub('role="listitem"', tidy)
        if tidy != text:
            page.write_text(tidy, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect the three steps to the build."""
    app.connect("builder-inited", place_scripts)
    app.connect("html-page-context", choose_scripts, priority=400)
    app.connect("build-finished", tidy_pages)

"""The book's Sphinx extensions, each on its own."""

import json
import re

import offline_assets
import page_description
import pytest
import site_colours
from callouts import callout, make_callout
from docutils import nodes
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.mdit import create_md_parser


def parse(markdown):
    """The first quote of a piece of Markdown."""
    config = MdParserConfig(enable_extensions={"dollarmath"})
    document = create_md_parser(config, DocutilsRenderer).render(markdown)
    return next(document.findall(nodes.block_quote))


@pytest.mark.parametrize(
    ("lead", "kind", "label", "title", "anchor"),
    [
        ("The paper, §3.2.1.", "paper", "The paper, §3.2.1", "", []),
        ("From the paper.", "paper", "From the paper", "", []),
        ("Definition — key.", "definition", "Definition", "key", []),
        ("Guess first.", "guess", "Guess first", "", []),
        ("Deviation: order.", "deviation", "Deviation", "order", []),
        ("Pitfall — two words.", "pitfall", "Pitfall", "two words", []),
        ("Exercise 3.2 — heat.", "exercise", "Exercise 3.2", "heat", ["exercise-3-2"]),
        ("Solution 3.2.", "solution", "Solution 3.2", "", ["solution-3-2"]),
        ("Exercise B.1 — fix.", "exercise", "Exercise B.1", "fix", ["exercise-b-1"]),
        ("Solution 7 — root.", "solution", "Solution 7", "root", []),
        ("Take-aways.", "take-away", "Take-aways", "", []),
    ],
)
def test_each_kind_of_callout(lead, kind, label, title, anchor):
    """Kind, label, title and anchor are read from the bold lead."""
    box = make_callout(parse(f"> **{lead}** Some *text*.\n>\n> More."))
    assert box["kind"] == kind
    assert box["ids"] == anchor
    words = [part.astext() for part in box[0].findall(nodes.inline)]
    assert words == [label, *([title] if title else [])]
    assert [part.astext() for part in box[1:]] == ["Some text.", "More."]


@pytest.mark.parametrize(
    "quote",
    [
        "> Just a quote.",
        "> **Bold** but no callout.",
        "> **The paper says** something.",
        "> Late **Pitfall.**",
    ],
)
def test_other_quotes_stay_quotes(quote):
    """A bold word alone is no callout."""
    assert make_callout(parse(quote)) is None


def test_formula_in_a_title_survives():
    """The title keeps its mathematics."""
    box = make_callout(parse("> **Exercise 4.1 — why $x$ here.** Go."))
    assert isinstance(box, callout)
    assert box[0].astext() == "Exercise 4.1 why x here"
    assert next(box[0].findall(nodes.math)).astext() == "x"


def test_vega_is_announced_as_altair_looks_it_up():
    """Altair's page output loads from another host whatever it does not find here.

    The names of the keys are a detail of Altair's template: if it changes, this fails
    before a page asks for anything.
    """
    import altair as alt

    script = offline_assets.vega_announcement()
    present = json.loads(re.search(r"VEGA_DEBUG = (\{.*\});", script)[1])
    chart = alt.Chart(alt.Data(values=[{"x": 1}])).mark_point()
    page = chart._repr_mimebundle_()
    if isinstance(page, tuple):
        page = page[0]
    html = page["text/html"]
    asked = dict(re.findall(r'maybeLoadScript\("([a-z-]+)", "([^"]+)"\)', html))
    assert set(asked) == {"vega", "vega-lite", "vega-embed"}
    for library, version in asked.items():
        assert present[f"{library.replace('-', '')}_version"] == version


def test_mathjax_is_complete_but_small(tmp_path):
    """What pages use is there; the languages nobody reads are not."""
    offline_assets.place_mathjax(tmp_path)
    assert (tmp_path / "tex-mml-chtml.js").is_file()
    assert list((tmp_path / "output/chtml/fonts/woff-v2").glob("*.woff"))
    assert (tmp_path / "input/tex/extensions/color.js").is_file()
    total = sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file())
    assert total < 4e6


def test_tidying_removes_only_what_it_should():
    """The icon script goes, other scripts stay."""
    icons = '\n<script src="_static/vendor/fontawesome/6.5.2/js/all.min.js"></script>'
    other = '\n<script src="_static/charts.js"></script>'
    assert offline_assets.FONT_AWESOME_SCRIPT.sub("", icons + other) == other


def test_only_scripts_that_can_wait_are_put_off():
    """Those that the page's own lines use at once stay where they are."""
    waits = [
        '<script src="../_static/doctools.js?v=1"></script>',
        '<script data-prefix="x" src="_static/design-tabs.js"></script>',
    ]
    stays = [
        '<script src="../_static/documentation_options.js?v=1"></script>',
        '<script src="../_static/charts.js"></script>',
        "<script>let toggleHintShow = 'Click to show';</script>",
    ]
    for script in waits:
        put_off = offline_assets.CAN_WAIT.sub('<script defer="defer" ', script)
        assert put_off == script.replace("<script ", '<script defer="defer" ')
    for script in stays:
        assert not offline_assets.CAN_WAIT.search(script)


def test_toggles_of_the_contents_get_a_name():
    """Only those that have none: a folded part's own words are its name."""
    toggle = '<summary><span class="toctree-toggle" role="presentation"></span>'
    named = offline_assets.UNNAMED_TOGGLE.sub("<summary named>", toggle)
    assert named == toggle.replace("<summary>", "<summary named>")
    folded = "<summary><span>Show the set-up</span></summary>"
    assert offline_assets.UNNAMED_TOGGLE.sub("", folded) == folded


def test_dark_formulas_change_colour():
    """A coloured formula has a rule for dark pages in both spellings of its colour."""
    sheet = site_colours.style_sheet()
    assert '[style*="color: #a65a00"]' in sheet
    assert '[style*="color: rgb(166, 90, 0)"]' in sheet
    assert "--aiayn-query: #a65a00" in sheet.splitlines()[0]


def test_description_is_the_first_real_paragraph():
    """Links and short lines are passed over; long ones are cut at a word."""
    link = nodes.paragraph("", "", nodes.reference("", "Open in Colab " * 5))
    long = nodes.paragraph("", "word " * 60)
    document = nodes.section("", link, nodes.paragraph("", "Short."), long)
    text = page_description.describe(document)
    assert text.startswith("word word")
    assert text.endswith("word…")
    assert len(text) <= page_description.LONGEST

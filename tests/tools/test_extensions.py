"""The book's Sphinx extensions, each on its own."""

import itertools
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pydata_sphinx_theme
import pytest
from docutils import nodes
from docutils.utils import new_document
from fontTools.ttLib import TTFont
from myst_parser.config.main import MdParserConfig
from myst_parser.mdit_to_docutils.base import DocutilsRenderer
from myst_parser.parsers.mdit import create_md_parser
from sphinx.addnodes import pending_xref

from aiayn_site import (
    cut_fonts,
    formulas,
    glossary_links,
    long_lines,
    offline_assets,
    page_description,
    site_colours,
    site_fonts,
    style_rules,
    style_sheets,
)
from aiayn_site.callouts import callout, make_callout


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
        (
            "Exercise 17b.1 — clip.",
            "exercise",
            "Exercise 17b.1",
            "clip",
            ["exercise-17b-1"],
        ),
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


def test_the_licences_of_what_the_site_brings_along_lie_beside_it(tmp_path):
    offline_assets.place_licences(tmp_path / "vendor")
    texts = {p.name: p.read_text("utf-8") for p in (tmp_path / "vendor").iterdir()}
    assert "Apache License" in texts.pop("mathjax-licence.txt")
    assert texts.keys() == {
        "vega-licence.txt",
        "vega-lite-licence.txt",
        "vega-embed-licence.txt",
    }
    for text in texts.values():
        assert "University of Washington Interactive Data Lab" in text
        assert "THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS" in text


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
        '<script src="../_static/searchtools.js"></script>',
        "<script>let toggleHintShow = 'Click to show';</script>",
    ]
    for script in waits:
        put_off = offline_assets.CAN_WAIT.sub('<script defer="defer" ', script)
        assert put_off == script.replace("<script ", '<script defer="defer" ')
    for script in stays:
        assert not offline_assets.CAN_WAIT.search(script)


def test_the_options_stand_in_the_page(tmp_path):
    """Where they were asked for, since the lines behind them use them at once."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "documentation_options.js").write_text(r"let o = '\1';")
    page = '<script src="{}_static/documentation_options.js?v=1"></script><p>'
    for name, up in (("a.html", ""), ("book/b.html", "../")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(page.format(up))
    builder = SimpleNamespace(format="html")
    for _ in range(2):  # as often as the site is built
        offline_assets.tidy_pages(
            SimpleNamespace(builder=builder, outdir=tmp_path), None
        )
        for name in ("a.html", "book/b.html"):
            text = (tmp_path / name).read_text()
            assert text == r"<script>let o = '\1';</script><p>"


def test_without_a_script_a_page_has_the_light_colours(tmp_path):
    """As the theme writes it, it has none; what the theme's script asks for stays."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "documentation_options.js").write_text("")
    rest = '><body data-default-mode="auto"><p>data-theme="auto"</p>'
    page = '<!DOCTYPE html>\n<html lang="en" data-content_root="./" data-theme="auto"'
    (tmp_path / "a.html").write_text(page + rest)
    builder = SimpleNamespace(format="html")
    offline_assets.tidy_pages(SimpleNamespace(builder=builder, outdir=tmp_path), None)
    made = (tmp_path / "a.html").read_text()
    assert made == page.replace("auto", "light") + rest


def place(tmp_path, placed):
    """What one build does; the folder of static files."""
    builder = SimpleNamespace(format="html", math_renderer_name="typeset")
    placed(SimpleNamespace(builder=builder, outdir=tmp_path))
    return tmp_path / "_static"


def test_fonts_are_cut_anew_when_they_would_be_others(tmp_path, monkeypatch):
    """Another wheel or tool; a build that changes nothing cuts none."""
    cuts = []
    monkeypatch.setattr(site_fonts, "cut", lambda *files: cuts.append(files))
    for version, times in (("1", 1), ("1", 1), ("2", 2)):
        monkeypatch.setattr(site_fonts, "version", lambda _, v=version: v)
        static = place(tmp_path, site_fonts.place_fonts)
        assert len(cuts) == times * len(site_fonts.FACES)
    assert site_fonts.style_sheet() in (static / "fonts.css").read_text()


def test_scripts_are_made_anew_when_they_would_be_others(tmp_path, monkeypatch):
    """Vega, when a version changes; MathJax's files always."""
    bundles = []

    def bundle(vl_version):
        bundles.append(vl_version)
        return "bundle"

    monkeypatch.setattr(offline_assets.vl_convert, "javascript_bundle", bundle)
    for version, times in (("1", 1), ("1", 1), ("2", 2)):
        monkeypatch.setattr(offline_assets, "version", lambda _, v=version: v)
        static = place(tmp_path, offline_assets.place_scripts)
        assert len(bundles) == times
        font = next((static / "vendor" / "mathjax").rglob("*.woff"))
        assert font.read_bytes() != b"old"
        font.write_bytes(b"old")
    assert (static / "vendor" / "vega.js").read_text().endswith("bundle\n})();\n")


def test_what_the_theme_does_late_or_slowly_is_found():
    """The theme that is installed still has both places; else they are left alone."""
    theme = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme"
    script = (theme / "static" / offline_assets.THEME_SCRIPT).read_text("utf-8")
    made, times = offline_assets.ONE_BY_ONE.subn(offline_assets.ALL_AT_ONCE, script)
    assert times == 1
    assert offline_assets.ONE_BY_ONE.sub(offline_assets.ALL_AT_ONCE, made) == made
    layout = (theme / "layout.html").read_text("utf-8")
    assert offline_assets.THEME_LATER.removesuffix('auto";') in layout


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


def test_description_holds_no_citation_key_and_no_table():
    """While a page is read, a citation is a cross-reference that holds its key."""
    cell = nodes.entry("", nodes.paragraph("", "in a table " * 9))
    key = pending_xref("", nodes.inline("", "vaswani2017"), refdomain="cite")
    words = (nodes.Text("Vaswani and seven colleagues wrote the paper "), key)
    text = nodes.paragraph("", "", *words, nodes.Text(" in 2017."))
    document = nodes.section("", cell, text)
    expected = "Vaswani and seven colleagues wrote the paper in 2017."
    assert page_description.describe(document) == expected
    assert "vaswani2017" in text.astext()  # the page itself keeps it


@pytest.mark.parametrize(
    ("printed", "wrapped"),
    [
        ("short\n" * 9, False),
        ("x" * long_lines.LONGEST, False),
        ("word " * 30, True),
        ("  indented " + "word " * 30, True),
        ("a heading\n" + "name" + " " * 9 + "number " * 20, False),
    ],
)
def test_long_sentences_are_wrapped_and_columns_are_not(printed, wrapped):
    assert long_lines.is_wrapped(printed) is wrapped


def test_only_outputs_are_wrapped():
    code, output = (nodes.literal_block("", "word " * 30) for _ in range(2))
    inputs = nodes.container("", code, classes=["cell_input"])
    outputs = nodes.container("", output, classes=["cell_output"])
    long_lines.mark(None, nodes.section("", inputs, outputs), "notebooks/x")
    assert output["classes"] == ["long-lines"]
    assert code["classes"] == []


@pytest.mark.parametrize(("columns", "classes"), [(2, ["stacks"]), (3, [])])
def test_sentences_in_a_table_can_be_read_on_a_phone(columns, classes):
    """Two columns of them stand below each other; of more, each keeps its width."""
    texts = [nodes.entry("", nodes.paragraph("", "word " * 30)) for _ in range(2)]
    texts += [nodes.entry("", nodes.paragraph("", "7")) for _ in range(columns - 2)]
    body = nodes.tbody("", nodes.row("", *texts))
    table = nodes.table("", nodes.tgroup("", body, cols=columns))
    long_lines.mark(None, nodes.section("", table), "book/x")
    assert table["classes"] == classes
    wide = [entry["classes"] == ["long-text"] for entry in texts]
    assert wide == [columns == 3, columns == 3, *[False] * (columns - 2)]


def test_the_tags_of_a_bar_are_no_long_text():
    bar = nodes.raw("", f'<span style="--share: 0.5" title="{"x" * 60}"></span>')
    entries = [nodes.entry("", nodes.paragraph("", "2.05"), bar) for _ in range(3)]
    body = nodes.tbody("", nodes.row("", *entries))
    table = nodes.table("", nodes.tgroup("", body, cols=3))
    long_lines.mark(None, nodes.section("", table), "book/x")
    assert [entry["classes"] for entry in entries] == [[], [], []]


def test_a_rule_stays_if_a_page_can_use_it():
    """By class; brackets, attributes and texts in quotation marks are no classes."""
    words = style_rules.words_of_page(
        '<p class="lead wide"><script>add("lit")</script>'
    )
    kept = [
        "p { color: red }",
        ".lead:is(.gone, p:not(.x)) { a: b }",
        '[title="a,b"] .wide { a: b }',
        ".wide.lit::before { content: '}' }",
        ".lead:not(.gone) { a: b }",
        '.lead[href^="https://a.example.org"] { a: b }',
        "@media print { .lit { a: b } }",
        "@font-face { src: url(a.woff) }",
    ]
    gone = [".gone { a: b }", ".lead .gone { a: b }", "@media all { .gone { a: b } }"]
    mixed = zip(kept, itertools.cycle(gone), strict=False)
    sheet = "/* .lead { } */" + "".join(k + g for k, g in mixed)
    left = style_rules.usable(sheet, words)
    assert "".join(left.split()) == "".join("".join(kept).split())


def test_of_a_rule_the_selectors_that_a_page_can_use():
    """Those with a class that nobody has go, and the rule keeps the others."""
    sheet = ".a.gone, .lead > p, p:is(.gone, .b), .gone .lead { c: d }"
    left = style_rules.usable(sheet, {"lead"})
    assert left.strip() == ".lead > p,p:is(.gone, .b){ c: d }"


def test_variables_and_animations_that_something_asks_for():
    """A variable that only an unused one asks for goes too; the book's own all stay."""
    sheet = """
    :root { --pst-far: 1px; --pst-used: calc((1px + 2px) * 2); --bs-x: var(--bs-y);
      --bs-y: url("a;b}c(.svg"); --book-own: 1; --sd-page: 2; --fa-last: 3 }
    p { margin: var(--pst-used); animation: turn 1s }
    @keyframes turn { to { top: 0 } } @-webkit-keyframes fa-turn { to { top: 0 } }"""
    left = style_rules.asked_for(sheet, '<p style="top: var(--sd-page)">')
    named = set(re.findall(r"--[\w-]+(?=:)", left))
    assert named == {"--pst-used", "--book-own", "--sd-page"}
    assert re.findall(r"keyframes ([\w-]+)", left) == ["turn"]
    assert left.count("{") == left.count("}")


def test_scripts_that_pages_load(tmp_path):
    """Those that a page names, and those that these name; what nobody names is not."""
    (tmp_path / "_static").mkdir()
    texts = {"a.js": 'load("b.js")', "b.js": "b", "c.js": "see c.js and a.js"}
    for name, text in texts.items():
        (tmp_path / "_static" / name).write_text(text)
    loaded = style_sheets.loaded_scripts(tmp_path, ['<script src="_static/a.js?v=1">'])
    assert sorted(loaded) == ["b", 'load("b.js")']


def test_fonts_of_others_hold_what_the_sheet_draws(tmp_path):
    """Under another name, where theirs is reserved; a font that none uses goes."""
    fonts = offline_assets.mathjax_folder() / offline_assets.MATHJAX_FONTS
    (tmp_path / "vendor").mkdir()
    shutil.copy(fonts / "MathJax_Main-Regular.woff", tmp_path / "vendor" / "x.woff")
    face = "@font-face{{font-family:{};src:url({}),url(vendor/x.ttf)}}"
    sheet = (
        face.format(r"Font Awesome\ 6 Free", '"vendor/x.woff"')
        + face.format("Font Awesome", "vendor/none.woff")
        + face.format('"Own"', "fonts/own.woff2")
        + r""":root{--a:"\62 "} p{content:"\61";font:1em "Font Awesome 6 Free",Own}"""
    )
    made = cut_fonts.with_cut_fonts(sheet, tmp_path)
    (name,) = re.findall(r'url\("fonts/(x-cut-\w+\.woff2)"\)', made)
    assert set(TTFont(tmp_path / "fonts" / name).getBestCmap()) == set(b" ab")
    assert made.count("@font-face") == 2
    assert "fonts/own.woff2" in made
    assert '"Book Icons 6 Free"' in made
    assert "Awesome" not in made
    cut_fonts.with_cut_fonts(sheet.replace("61", "63"), tmp_path)
    (other,) = (tmp_path / "fonts").iterdir()
    assert other.name != name


def test_one_link_for_what_all_pages_load():
    """In the place of the first; what a page has of its own stays behind it."""
    page = (
        '<head><link rel="stylesheet" href="../_static/a.css?v=1" />'
        '<link rel="stylesheet" href="../_static/own.css" />'
        '<link href="../_static/b.css" rel="stylesheet" /></head>'
    )
    common = {"_static/a.css", "_static/b.css"}
    joined = style_sheets.asking_for(page, "book/x.html", common, "_static/all-12.css")
    assert style_sheets.sheets(joined) == [
        "../_static/all-12.css",
        "../_static/own.css",
    ]
    again = style_sheets.asking_for(joined, "book/x.html", common, "_static/all-34.css")
    assert style_sheets.sheets(again)[0] == "../_static/all-34.css"


def test_imports_and_addresses_of_a_sheet_follow_it(tmp_path):
    folder = tmp_path / "_static" / "styles"
    folder.mkdir(parents=True)
    (folder / "theme.css").write_text('@import "../basic.css";')
    (tmp_path / "_static" / "basic.css").write_text("a { b: url(file.png) }")
    (folder / "x.css").write_text("a { b: url('../fonts/f.woff') url(data:x,y) }")
    whole = style_sheets.whole
    assert whole(tmp_path, "_static/styles/theme.css") == 'a { b: url("file.png") }'
    found = whole(tmp_path, "_static/styles/x.css")
    assert found == 'a { b: url("fonts/f.woff") url(data:x,y) }'


def test_a_formula_is_typeset_and_can_be_read():
    """With MathML for screen readers; its letters have rules in the style sheet."""
    pytest.importorskip("py_mini_racer")
    made = formulas.typeset(r"\textcolor{#a65a00}{q} \cdot \{k\} \tag{2}", True)
    assert '<mjx-math aria-hidden="true"' in made
    assert "<mi>q</mi>" in made
    assert made.count('id="') == 1  # the number's, once
    drawn = set(formulas.CHARACTER.findall(made))
    sheet = formulas.style_sheet(drawn)
    for name, font in drawn:
        assert f".{name}.{font}::before" in sheet or f".{name}::before" in sheet
    assert "mjx-c.mjx-c1D44E" not in sheet  # an a, which is not drawn
    assert sheet.count("{") == sheet.count("}")


def test_a_long_formula_in_a_line_breaks_behind_a_relation():
    """A short one does not, nor one that has its own line; ½ is no glyph."""
    pytest.importorskip("py_mini_racer")
    long, short = r"(a \cdot h_1 + b \cdot h_2) / 13 = (8/13,\ ½)", "a = ½"
    pieces = formulas.typeset(long, False).count("<mjx-piece>")
    assert pieces > 1
    assert formulas.typeset(long, False).count("<wbr>") == pieces - 1
    assert "mjx-piece" not in formulas.typeset(long, True)
    assert "mjx-piece" not in formulas.typeset(short, False)


def test_marks_stay_with_their_formula():
    document = new_document("page")
    paragraph = nodes.paragraph("", "so (", nodes.math("", "n"), nodes.Text("), yes."))
    document += paragraph
    formulas.TogetherWithMarks(document).run()
    assert paragraph.astext() == "so (n), yes."
    (group,) = paragraph.findall(nodes.inline)
    assert group.astext() == "(n),"


def test_marks_are_taken_out_of_the_text_beside_their_formula():
    """Not out of an equal one before it."""
    document = new_document("page")
    paragraph = nodes.paragraph("", "Both ")
    for part in (nodes.strong("", "a"), nodes.strong("", "b"), nodes.math("", "c")):
        paragraph += [part, nodes.Text(", ")]
    document += paragraph
    formulas.TogetherWithMarks(document).run()
    assert paragraph.astext() == "Both a, b, c, "
    (group,) = paragraph.findall(nodes.inline)
    assert group.astext() == "c,"


def test_a_formula_that_mathjax_refuses_is_told():
    pytest.importorskip("py_mini_racer")
    for wrong in (r"\frac{1}", r"\nosuchcommand"):
        with pytest.raises(ValueError, match=r"argument|Undefined"):
            formulas.typeset(wrong, False)


def test_terms_that_mean_one_thing_are_found_in_their_forms():
    """In the plural and across a line; not inside another word."""
    names = ["residual connection", "softmax", "self-attention"]
    found = glossary_links.pattern(names).findall(
        "Softmax, softmaxes, softmaxed; residual\nconnections; masked-self-attention."
    )
    assert found == ["Softmax", "softmaxes", "residual\nconnections"]
    assert glossary_links.name_of("residual\nconnections", names) == names[0]
    assert glossary_links.name_of("softmaxes", names) == names[1]
    assert not {"key", "head", "value"} & set(glossary_links.linkable())

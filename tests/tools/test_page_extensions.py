"""What the build adds to pages: figure, map, previews, reading time, what comes."""

import json
import re
from functools import cache
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
import torch
from docutils import nodes
from docutils.core import publish_doctree
from docutils.utils import new_document
from fontTools.ttLib import TTFont
from myst_parser.parsers.docutils_ import Parser
from sphinx.application import Sphinx

from aiayn_book.claims import VERDICTS
from aiayn_site import (
    attention_figure,
    figure_one,
    landing,
    link_previews,
    page_description,
    page_frame,
    search_pages,
    workshop,
)
from aiayn_site.exercises import BOOK, NOTEBOOKS
from aiayn_site.site_fonts import FACES, font_file
from tools.records import attention

RECORD = json.loads(attention_figure.RECORD.read_text(encoding="utf-8"))


def parsed(markdown):
    """A page as docutils' tree, without roles and directives: they want Sphinx."""
    settings = {
        "myst_enable_extensions": ["colon_fence", "dollarmath"],
        "report_level": 5,
    }
    plain = re.sub(r"\{[\w:]+\}`[^`]*`", "", markdown)
    plain = re.sub(r"^( *[`:]{3,})\{.*", r"\1{unknown}", plain, flags=re.MULTILINE)
    page = publish_doctree(plain, parser=Parser(), settings_overrides=settings)
    for message in list(page.findall(nodes.system_message)):
        message.parent.remove(message)
    return page


@cache
def introductions():
    """Every page's title and description."""
    texts = {
        f"book/{path.relative_to(BOOK).with_suffix('')}": path.read_text("utf-8")
        for path in BOOK.rglob("*.md")
    }
    for path in NOTEBOOKS.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        written = [c["source"] for c in cells if c["cell_type"] == "markdown"]
        texts[f"notebooks/{path.stem}"] = "\n\n".join(map("".join, written))
    found = {}
    for name, text in texts.items():
        page = parsed(text)
        title = next(page.findall(nodes.title)).astext()
        found[name] = title, page_description.describe(page)
    return found


def test_pieces_become_words():
    """A word owns its pieces; punctuation and the end stand alone."""
    words, belongs = attention.words(["▁Fuß", "ball", "▁am", ".", "</s>"])
    assert words == ["Fußball", "am", ".", "⟨end⟩"]
    rows = [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert torch.equal(belongs, torch.tensor(rows, dtype=torch.float32))


def test_recorded_weights_are_attention():
    """A row for each word of the translation, over all of the source; it sums to 1."""
    for sentence in attention_figure.read(RECORD):
        for layer in sentence["weights"]:
            for head in layer:
                assert len(head) == len(sentence["target"])
                for row in head:
                    assert len(row) == len(sentence["source"])
                    # Each share was rounded to a hundredth.
                    assert abs(sum(row) - 100) <= len(row) / 2


def test_the_first_view_is_the_mean_of_the_last_layer():
    """And each head can be chosen."""
    sentence = attention_figure.read(RECORD)[0]
    views = attention_figure.views(sentence)
    layers, heads = len(sentence["weights"]), len(sentence["weights"][0])
    assert len(views) == 1 + layers * heads
    name, first = next(iter(views.items()))
    assert name == f"layer {layers}, all heads"
    expected = torch.tensor(sentence["weights"][-1], dtype=torch.float64).mean(dim=0)
    torch.testing.assert_close(torch.tensor(first, dtype=torch.float64), expected)


def test_a_word_is_made_of_its_pieces():
    """A sign of punctuation is a word of its own."""
    assert landing.words_of(["▁The", "▁cow", "▁sleep", "s", "."]) == [
        [0],
        [1],
        [2, 3],
        [4],
    ]


def test_the_hero_is_what_the_model_does():
    """Its weights are rows of attention; the two words that change look at the cow."""
    hero = landing.compute()
    assert hero.target == [
        "Die",
        "Kuh",
        "schläft",
        ",",
        "weil",
        "sie",
        "müde",
        "ist",
        ".",
    ]
    assert hero.without == [
        "Der",
        "Kuh",
        "schläft",
        ",",
        "weil",
        "er",
        "müde",
        "ist",
        ".",
    ]
    assert hero.alone
    cow = hero.source.index("cow")
    for word in (0, 5):
        assert max(hero.weights[word]) == hero.weights[word][cow] > 0.9
    assert all(sum(row) <= 1 + 1e-6 for row in hero.weights)
    drawn = landing.figure(hero)
    assert "to write sie, it looks at cow, 94%" in drawn


def test_every_verdict_has_its_group():
    """No claim falls out of the bar on the first page."""
    grouped = [verdict for names in landing.KINDS.values() for verdict in names]
    assert sorted(grouped) == sorted(VERDICTS)


def test_the_figure_is_a_group_of_links_and_a_list():
    """No image to a screen reader; what describes a link is there."""
    drawing, _, listed = figure_one.figure(lambda name: f"{name}.html")
    assert '<svg role="group"' in drawing
    assert "<title>" not in drawing
    for name in figure_one.blocks():
        assert f'aria-describedby="block-{name}"' in drawing
        assert f'id="block-{name}"' in listed


@pytest.mark.parametrize(
    ("baseurl", "repository", "expected"),
    [
        ("", "Someone/book", "https://someone.github.io/book/"),
        ("", "Me/Me.github.io", "https://me.github.io/"),
        ("https://example.org/x", "Someone/book", "https://example.org/x/"),
    ],
)
def test_address_follows_from_the_repository(baseurl, repository, expected):
    """Unless it is set, the site stands where the repository's pages do."""
    options = {"repository_url": f"https://github.com/{repository}"}
    config = SimpleNamespace(html_baseurl=baseurl, html_theme_options=options)
    assert link_previews.site_address(SimpleNamespace(config=config)) == expected


def test_preview_keeps_its_words_inside():
    """Every page's title and question fit beside the map and above the footer."""
    fonts = {
        (wheel, str(weight)): TTFont(font_file(wheel, f"{name}.otf"))
        for wheel, name, _, weight, style in FACES
        if style == "normal"
    }

    def measured(line):
        """Where a line ends and how deep it goes, in the picture's units."""
        wheel = f"font-{line.get('font-family').lower().replace(' ', '-')}"
        font = fonts[wheel, line.get("font-weight")]
        size = float(line.get("font-size")) / font["head"].unitsPerEm
        # A letter that the font lacks comes from another; none is as wide as a dash.
        glyphs = [font.getBestCmap().get(ord(letter), "emdash") for letter in line.text]
        width = sum(font["hmtx"][glyph][0] for glyph in glyphs)
        depth = -font["hhea"].descent
        return float(line.get("x")) + size * width, float(line.get("y")) + size * depth

    svg = "{http://www.w3.org/2000/svg}"
    chapters = link_previews._chapters()
    for page, (title, description) in introductions().items():
        words = chapters.get(page, ("Vaswani et al., 2017", title, description))
        _, name, question = words
        tree = ElementTree.fromstring(
            link_previews.picture(*words, link_previews._weights(page))
        )
        cells = [float(c.get("x")) for c in tree.findall(f"{svg}rect") if c.get("rx")]
        *lines, footer = tree.findall(f"{svg}text")
        top = float(footer.get("y")) - float(footer.get("font-size"))
        for right, low in map(measured, lines):
            assert right + link_previews.GAP < min(cells), page
            assert low < top, page
        shown = "".join(word.text for word in lines[1:]).replace(" ", "")
        assert shown.startswith(name.replace(" ", ""))
        told = shown.removeprefix(name.replace(" ", ""))
        whole = question.replace(" ", "")
        if page in chapters or not told.endswith("…"):
            assert told == whole
        else:
            assert whole.startswith(told.removesuffix("…"))


def test_descriptions_are_plain_text():
    """Of a formula they keep what can be read without TeX."""
    found = introductions()
    assert found["notebooks/04-scaling"][1].startswith("Why divide by √dₖ? Equation")
    assert found["notebooks/22-long-sequences"][1].startswith(
        "What can be done about n²? Every"
    )
    for page, (_, description) in found.items():
        assert not set(description) & set("\\{}^_$"), page


def test_a_link_s_description_asks_no_question_twice(monkeypatch):
    """A chapter's description begins with its question, if in other words."""
    page = "notebooks/04-scaling"
    said = "Why divide by the root? Equation (1) divides every score by it."
    monkeypatch.setattr(link_previews, "place_picture", lambda *_: "picture.png")
    config = SimpleNamespace(
        html_baseurl="https://example.org", html_title="", html_theme_options={}
    )
    env = SimpleNamespace(
        metadata={page: {}}, titles={page: nodes.title("", "Scaling")}
    )
    app = SimpleNamespace(config=config, env=env)
    for description, expected in ((said, said), ("", "Scaling")):
        env.metadata[page]["description"] = description
        context = {}
        link_previews.add_preview(app, page, None, context, nodes.document({}, None))
        tag = f'<meta property="og:description" content="{expected}" />'
        assert tag in context["metatags"]


def test_minutes_count_what_is_read():
    """Words and code; not what a cell printed, not a solution."""
    text = nodes.paragraph("", "word " * 400)
    code = nodes.literal_block("", "x = 1\n" * 50)
    printed = nodes.container(classes=["cell_output"])
    printed += nodes.literal_block("", "1\n" * 1000)
    solution = nodes.container(kind="solution")
    solution += nodes.paragraph("", "word " * 1000)
    assert page_frame.minutes_to_read(nodes.section("", text)) == 2
    assert page_frame.minutes_to_read(nodes.section("", text.deepcopy(), code)) == 4
    everything = nodes.section("", text.deepcopy(), printed, solution)
    assert page_frame.minutes_to_read(everything) == 2
    assert page_frame.minutes_to_read(nodes.section("")) == 1


def test_minutes_do_not_count_what_is_folded():
    """A hint or a solution as notebooks write it, with the code and the folds in it."""
    fold = (
        "<details><summary>Hint 1</summary>\n\n{} \n\n"
        "<details><summary>More</summary>\n\n{}\n\n</details>\n\n"
        "```python\n{}```\n\n</details>"
    ).format("word " * 500, "word " * 500, "x = 1\n" * 50)
    whole = "<details><summary>In one piece</summary> said </details>"
    read = "word " * 190
    for text in (f"{read}\n\n{fold}\n\n{whole}", f"{fold}\n\n{whole}\n\n{read}"):
        assert page_frame.minutes_to_read(parsed(text)) == 1
    again = f"{read}\n\n{fold}\n\n{whole}\n\n{read}"
    assert page_frame.minutes_to_read(parsed(again)) == 2


def test_what_comes_is_a_question_or_a_sentence():
    """A chapter's own question; of another page the first sentence."""
    metadata = {"book/x": {"description": "One thing. Another thing."}}
    app = SimpleNamespace(env=SimpleNamespace(metadata=metadata))
    assert page_frame.what_comes(app, "book/x") == "One thing."
    metadata["book/x"]["description"] = "What there is: one thing."
    assert page_frame.what_comes(app, "book/x") == "What there is"
    asked = page_frame.what_comes(app, "notebooks/04-scaling")
    assert asked == "Why divide by √dₖ?"


def test_no_phrase_finds_two_chapters():
    """What readers type leads to one place."""
    phrases = [phrase for found in search_pages.phrases().values() for phrase in found]
    assert len(set(phrases)) == len(phrases)
    assert all(phrase == phrase.lower() for phrase in phrases)


def test_a_later_build_forgets_no_entry_of_the_search(tmp_path):
    """Sphinx reads one page of two anew, and both are still found by their phrases."""
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "conf.py").write_text("extensions = ['aiayn_site.search_pages']\n")
    (source / "index.rst").write_text("Start\n=====\n\n.. toctree::\n\n   other\n")
    for name in ("index", "other"):
        page = source / f"{name}.rst"
        text = page.read_text() if page.exists() else "Other\n=====\n"
        page.write_text(f"{text}\n.. index:: phrase of {name}\n")

    def entries():
        trees, silent = tmp_path / "trees", {"status": None, "warning": None}
        app = Sphinx(source, source, out, trees, "html", **silent)
        app.build()
        written = (out / "searchindex.js").read_text()
        return json.loads(written[written.index("{") : written.rindex("}") + 1])

    first = entries()["indexentries"]
    assert list(first) == ["phrase of index", "phrase of other"]
    page = source / "index.rst"
    page.write_text(page.read_text() + "\nA new sentence.\n")
    second = entries()
    assert "sentenc" in second["terms"]  # it was read anew
    assert second["indexentries"] == first


def cell(code, html="", **attributes):
    """A cell of code as MyST-NB gives it to Sphinx."""
    source = nodes.container(nb_element="cell_code_source")
    source += nodes.literal_block(code, code)
    output = nodes.container(nb_element="cell_code_output")
    output += nodes.raw("", html, format="html")
    made = nodes.container(nb_element="cell_code", **attributes)
    made.line = 7
    made += [source, output]
    return made


def tidied(*cells):
    """What the transform makes of them, and the anchors that it makes known."""
    document = new_document("notebooks/03-attention")
    document.myst_slugs = {}
    document += list(cells)
    workshop.WithoutWorkshop(document).apply()
    return document.children, document.myst_slugs


def test_marks_of_the_workshop_are_not_shown():
    """They are for Colab, for courses and for tests."""
    code = (
        "# @title Solution 3.1\n# parity: aiayn.model.f\ndef f(x):\n"
        "    ### BEGIN SOLUTION\n    return x  # why\n    ### END SOLUTION"
    )
    (made,), _ = tidied(cell(code))
    (block,) = made.findall(nodes.literal_block)
    assert block.astext() == block.rawsource == "def f(x):\n    return x  # why"


@pytest.mark.parametrize(
    "html",
    [
        '<figure class="aiayn-figure aiayn-column" id="figure-3-1">',
        '<details class="aiayn-claim" id="claim-s3-2-x">',
        '<form class="aiayn-box aiayn-quiz" id="quiz-1">',
    ],
)
def test_figures_claims_and_quizzes_stand_alone(html):
    """Without their code where the notebook hides it, and with it where not."""
    hidden, shown = cell("f()", html, hide_mode="input"), cell("f()", html)
    (one, other), _ = tidied(hidden, shown)
    assert len(list(one.findall(nodes.literal_block))) == 0
    assert len(list(other.findall(nodes.literal_block))) == 1
    assert html in one.astext()


def test_the_set_up_prints_nothing():
    """The page says under its title how long the chapter runs."""
    (made,), _ = tidied(cell("# @title Set-up\nsetup('x')", "4 s", hide_mode="input"))
    assert "4 s" not in made.astext()
    assert "setup('x')" in made.astext()


def test_figures_and_claims_can_be_linked_to():
    """By their anchors, with their names as titles."""
    html = '<figure id="figure-3-1"></figure><details id="claim-s3-2-x"></details>'
    _, slugs = tidied(cell("f()", html))
    assert slugs["figure-3-1"] == (7, "figure-3-1", "Figure 3.1")
    assert "claim-s3-2-x" in slugs


def test_a_claim_leads_to_the_ledger_beside_it(monkeypatch):
    """Not to the published one."""
    monkeypatch.setattr(workshop, "site_address", lambda: "https://me.github.io/book/")
    html = '<a href="https://me.github.io/book/book/ledger.html#x">'
    (made,), _ = tidied(cell("f()", html))
    assert made.astext().endswith('<a href="../book/ledger.html#x">')

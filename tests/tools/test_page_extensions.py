"""What the build adds to pages: figure, map, previews, reading time, what comes."""

import json
import re
from functools import cache
from types import SimpleNamespace
from xml.etree import ElementTree

import attention_figure
import chapters
import figure_one
import link_previews
import page_description
import page_frame
import pytest
import torch
from docutils import nodes
from docutils.core import publish_doctree
from exercises import BOOK, NOTEBOOKS
from fontTools.ttLib import TTFont
from myst_parser.parsers.docutils_ import Parser
from site_fonts import FACES, font_file
from sphinx.application import Sphinx

import record_attention

RECORD = json.loads(attention_figure.RECORD.read_text(encoding="utf-8"))


def parsed(markdown):
    """A page as docutils' tree, without the roles and directives that are Sphinx's."""
    settings = {
        "myst_enable_extensions": ["colon_fence", "dollarmath"],
        "report_level": 5,
    }
    without_roles = re.sub(r"\{[\w:]+\}`[^`]*`", "", markdown)
    page = publish_doctree(without_roles, parser=Parser(), settings_overrides=settings)
    for message in list(page.findall(nodes.system_message)):
        message.parent.remove(message)
    return page


def test_pieces_become_words():
    """A word owns its pieces; punctuation and the end stand alone."""
    words, belongs = record_attention.words(["▁Fuß", "ball", "▁am", ".", "</s>"])
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


def test_the_map_is_a_table_with_numbers():
    """Every weight stands there as a number, for those who do not see the colours."""
    sentence = attention_figure.read(RECORD)[0]
    weights = next(iter(attention_figure.views(sentence).values()))
    tree = ElementTree.fromstring(attention_figure.table(sentence, weights))
    rows = [[cell.find("span").text for cell in row.iter("td")] for row in tree[2]]
    assert rows == [[f"{share:.0f}" for share in row] for row in weights]


def test_the_figure_is_a_group_of_links_and_a_list():
    """No image to a screen reader; what describes a link is there."""
    drawing, _, listed = figure_one.figure(lambda name: f"{name}.html")
    assert '<svg role="group"' in drawing
    assert "<title>" not in drawing
    for name in figure_one.blocks():
        assert f'aria-describedby="block-{name}"' in drawing
        assert f'id="block-{name}"' in listed


@pytest.mark.parametrize(
    ("baseurl", "expected"),
    [
        ("", "https://someone.github.io/book/"),
        ("https://example.org/x", "https://example.org/x/"),
    ],
)
def test_address_follows_from_the_repository(baseurl, expected):
    """Unless it is set, the site stands where the repository's pages do."""
    options = {"repository_url": "https://github.com/Someone/book"}
    config = SimpleNamespace(html_baseurl=baseurl, html_theme_options=options)
    assert link_previews.site_address(SimpleNamespace(config=config)) == expected


def test_preview_keeps_its_words_inside():
    """Every chapter's title and question fit beside the map and above the footer."""
    weights = [[100.0, 0.0]] * 8
    for kicker, title, question in link_previews._chapters().values():
        tree = ElementTree.fromstring(
            link_previews.picture(kicker, title, question, weights)
        )
        words = tree.findall("{http://www.w3.org/2000/svg}text")
        shown = "".join(word.text for word in words).replace(" ", "")
        assert question.replace(" ", "") in shown
        assert all(float(word.get("y")) < 540 for word in words[:-1])


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
    phrases = [phrase for found in chapters.phrases().values() for phrase in found]
    assert len(set(phrases)) == len(phrases)
    assert all(phrase == phrase.lower() for phrase in phrases)


def test_a_later_build_forgets_no_entry_of_the_search(tmp_path):
    """Sphinx reads one page of two anew, and both are still found by their phrases."""
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "conf.py").write_text("extensions = ['chapters']\n")
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

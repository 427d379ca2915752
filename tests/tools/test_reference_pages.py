"""The results page, the glossary and the changelog say what the data say."""

import json
import re
import time
import tomllib
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import nbformat
import pytest
from docutils import nodes
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from sphinx.application import Sphinx

from aiayn_book import paper
from aiayn_book.records import load_record
from aiayn_site import glossary_page, measured_numbers, reference_pages, results

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
# A definition in a chapter that is a step of an argument, not a word of the book's.
NO_TERM = {"the assumption", "the two conditions", "a task"}


def test_table_3_sets_our_means_beside_the_papers_figures():
    """Of a row with runs, the means and their change beside the base row's."""
    _, rows, _ = results.table_3()
    assert [row[0] for row in rows] == list(paper.TABLE_3)
    runs = load_record("table3")["runs"]
    recorded = [run["row"] for run in runs]
    assert [row[5] for row in rows] == [
        str(recorded.count(name) or "none yet") for name in paper.TABLE_3
    ]
    one = next(row for row in rows if row[0] == "A h=1")

    def mean(name):
        return fmean(run["perplexity"] for run in runs if run["row"] == name)

    change = mean("A h=1") / mean("base") - 1
    assert one[1] == "5.29 (+7.5%)"
    assert one[2] == f"{mean('A h=1'):.2f} ({change:+.1%})"


def test_table_2_ends_with_every_recorded_translator():
    """Ours stand below the paper's, with what their training needed."""
    _, rows, own = results.table_2()
    assert len(rows) == len(paper.TABLE_2) + own
    scores = [row[1] for row in rows[-own:] if "multi30k" in row[0]]
    record = load_record("multi30k-en-de")
    assert f"{record['test']['bleu']:.1f}" in scores
    german = [load_record(f"multi30k-en-de-{n}") for n in (1, 2, 3)]
    french = [load_record(f"multi30k-en-fr-rotary{n}") for n in ("", "-2", "-3")]
    for column, runs in ((1, german), (2, french)):  # the first French one is older
        seeds = [run["test"]["bleu"] for run in runs]
        together = f"{fmean(seeds):.1f} ({min(seeds):.1f} to {max(seeds):.1f})"
        assert [row[column] for row in rows[-own:]].count(together) == 1


def test_operations_are_written_as_the_paper_writes_them():
    assert results._power(3.3e18) == "3.3 · 10¹⁸"
    assert results._power(None) == "–"


def test_commands_are_code_which_no_typography_changes():
    """Sphinx makes dashes and curly quotes of plain text, never of a literal."""
    header, rows, _ = results.records()
    drawn = results.table(header, rows)
    column = header.index("command")
    results.as_typed(drawn, column)
    commands = [node.astext() for node in drawn.findall(nodes.literal)]
    assert commands == [row[column] for row in rows]
    assert any(" --" in command for command in commands)


def test_the_first_search_is_the_papers_setting():
    """All differences are beside it."""
    _, rows, _ = results.search()
    base = paper.BASE
    setting = [str(base.averaged_checkpoints), str(base.beam), f"{base.length_penalty}"]
    assert rows[0][:3] == setting
    assert rows[0][4] == "–"
    for row in rows[1:]:
        low, high = map(float, row[5].split(" to "))
        assert low <= float(row[4]) <= high


def test_the_searches_say_how_many_runs_they_are_of(monkeypatch):
    """Today's, and three of them."""
    record = load_record("search")
    for runs, words in (
        (record["runs"][:1], "One run on 1,014 sentences of the validation split."),
        (3 * record["runs"][:1], "Means over 3 runs on 1,014 sentences"),
    ):
        monkeypatch.setattr(results, "load_record", lambda _, r=runs: {"runs": r})
        assert results.searches().astext().startswith(words)


def test_our_models_are_as_much_smaller_as_the_page_says():
    """Eight to several hundred times: the largest and the smallest beside base."""
    base = paper.TABLE_3["base"].parameters_in_millions * 1e6
    translators = [load_record(name) for name in results.names()]
    sizes = [r["log"][0]["parameters"] for r in translators if "log" in r]
    for name in ("table3", "parsing"):
        sizes += [run["parameters"] for run in load_record(name)["runs"]]
    assert 8 <= base / max(sizes) < 9
    assert 300 < base / min(sizes) < 1000
    text = (ROOT / "book" / "results.md").read_text(encoding="utf-8")
    assert "eight to several hundred times smaller than the paper's base" in text


def test_what_stands_first_in_a_row_is_its_heading():
    header, rows, _ = results.table_3()
    columns = list(results.table(header, rows).findall(nodes.colspec))
    assert [column.get("stub", 0) for column in columns] == [1] + 5 * [0]
    assert len(set(header)) == len(header)


def test_table_4_has_a_row_for_each_size_of_each_corpus():
    _, rows, own = results.table_4()
    runs = load_record("parsing")["runs"]
    assert own == len({(run["corpus"], run["sentences"]) for run in runs})
    assert len(rows) == len(paper.TABLE_4) + own


def test_every_record_says_how_it_is_made_again():
    _, rows, _ = results.records()
    ran = [row for row in rows if not row[0].endswith(", today")]
    assert [row[0] for row in ran] == results.names()
    again = {row[0].removesuffix(", today"): row[1] for row in rows if row not in ran}
    for name, command in again.items():
        assert command == results.load_record(name)["repeat"]
    assert all(command and commit and machine for _, command, commit, machine in rows)


def definitions():
    """The terms that chapters define in a box of their own."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            yield from re.findall(
                r"^> \*\*Definition — (.+?)\.\*\*", text, re.MULTILINE
            )


def test_the_glossary_has_every_term_that_a_chapter_defines():
    names = {name for key in glossary_page.terms() for name in key.split(", ")}
    defined = set(definitions())
    assert defined >= NO_TERM
    for definition in defined - NO_TERM:
        for term in definition.replace(" and ", ", ").split(", "):
            term = term.removesuffix(" of a corpus")
            assert term in names, f"add '{term}' to book/data/glossary.yml"


def test_the_glossary_names_code_that_there_is():
    source = "\n".join(p.read_text(encoding="utf-8") for p in SOURCE.rglob("*.py"))
    for name, entry in glossary_page.terms().items():
        if code := entry.get("code"):
            assert re.search(rf"\b{code}\b", source), f"{name}: no {code} in the code"


def test_numbers_have_a_minus_and_words_a_hyphen():
    rows = [["-0.39", "32.9 (-1.5%)", "-1.5 to -0.2", "multi30k-en-de-2"]]
    assert results.with_minus(rows) == [
        ["−0.39", "32.9 (−1.5%)", "−1.5 to −0.2", "multi30k-en-de-2"]
    ]


def test_no_change_is_less_than_nothing():
    """What was rounded to nothing from below would read −0.0."""
    rows = results.table_3()[1] + results.search()[1]
    changes = [cell for row in rows for cell in row if re.search(r"[-+]\d", cell)]
    assert changes
    assert [cell for cell in changes if re.search(r"-0\.0+(?!\d)", cell)] == []


def test_terms_are_explained_in_two_sentences_at_most():
    for name, entry in glossary_page.terms().items():
        assert set(entry) <= {"text", "symbol", "code", "where", "link"}
        assert entry["text"].endswith("."), name
        assert len(re.findall(r"[.!?](?:\s|$)", entry["text"])) <= 2, name


def test_the_changelog_begins_with_the_package_s_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    text = (ROOT / "book" / "changelog.md").read_text(encoding="utf-8")
    found = re.findall(r"^## Version (\S+)$", text, re.MULTILINE)
    assert found[0] == project["project"]["version"]


@pytest.fixture
def shared(tmp_path):
    """A tree with some of the files that many pages are drawn from."""
    names = (
        "_config.yml", "benchmarks/peers/a.py", "book/data/glossary.yml",
        "book/data/chapters.yml", "book/_ext/aiayn_site/a.py",
        "book/_ext/aiayn_site/a.js", "src/aiayn/a.py",
    )  # fmt: skip
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old")
    return [tmp_path / name for name in names]


def test_each_shared_file_has_a_part_in_the_version(shared, tmp_path):
    """What it says, and that it is there; a page has none."""

    def version():
        return reference_pages.version_of_shared(tmp_path)

    seen = [version()]
    for path in shared:
        path.write_text("new")
        seen.append(version())
        path.unlink()
        seen.append(version())
        path.write_text("old")
    assert len(set(seen)) == len(seen)
    (tmp_path / "book" / "page.md").write_text("A page.")
    assert version() == seen[0]


def test_all_pages_are_read_anew_when_what_they_share_changes(
    shared, tmp_path, monkeypatch
):
    """And none when nothing does."""
    of = reference_pages.version_of_shared
    monkeypatch.setattr(reference_pages, "version_of_shared", lambda: of(tmp_path))
    source = tmp_path / "source"
    source.mkdir()
    (source / "conf.py").write_text("extensions = ['aiayn_site.reference_pages']\n")
    (source / "index.rst").write_text("Start\n=====\n\n.. toctree::\n\n   other\n")
    (source / "other.rst").write_text("Other\n=====\n")

    def read():
        folders = (source, source, tmp_path / "out", tmp_path / "trees")
        app, pages = Sphinx(*folders, "html", status=None, warning=None), []
        app.connect("source-read", lambda app, name, text: pages.append(name))
        app.build()
        return sorted(pages)

    assert read() == ["index", "other"]
    assert read() == []
    shared[0].write_text("new")
    assert read() == ["index", "other"]


@pytest.mark.parametrize("zone", ["UTC", "Etc/GMT-14", "Etc/GMT+12"])
def test_the_last_execution_is_told_in_utc_wherever_it_is_built(
    tmp_path, monkeypatch, zone
):
    """In one of the two outermost zones, half a day of shift would be another date."""
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        cache = get_cache(tmp_path)
        notebook = CacheBundleIn(nbformat.v4.new_notebook(), "a.ipynb")
        record = cache.cache_notebook_bundle(notebook, check_validity=False)
        read = [(record.created.timestamp(), 60.0)]  # as MyST-NB does
        monkeypatch.setattr(measured_numbers, "executions", lambda env: read)
        env = SimpleNamespace(found_docs=[], metadata={})
        figures = measured_numbers.found(env)
        (day,) = (figure for figure, words, *_ in figures if words == "last executed")
        created = record.created
        assert day == f"{created.day} {created:%B %Y}"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_no_term_stands_twice():
    """YAML would keep the last one without a word."""
    text = (ROOT / "book" / "data" / "glossary.yml").read_text(encoding="utf-8")
    keys = re.findall(r"^(\w[^:]*):$", text, re.MULTILINE)
    assert keys == list(glossary_page.terms())

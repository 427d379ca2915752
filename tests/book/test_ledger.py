"""The notebooks and the ledger's data file agree."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from docutils import nodes
from sphinx.application import Sphinx

from aiayn_book import ledger as records
from aiayn_book.claims import claims, judge
from aiayn_site import ledger

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CLAIM = claims()["s3.2.1-variance"]


MODULE = re.compile(
    r"^from aiayn_book\.chapters import (\w+) as chapter$", re.MULTILINE
)


def calls_in(tree):
    """Each call in a piece of code: what is called, and the call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def settlements_in(sources):
    """The calls of settle in a chapter's cells: their own, or its module's."""
    python = re.sub(r"^(\s*)%.*$", r"\1pass", "\n".join(sources), flags=re.MULTILINE)
    functions = {}
    if found := MODULE.search(python):
        path = ROOT / "src" / "aiayn_book" / "chapters" / f"{found[1]}.py"
        module = ast.parse(path.read_text(encoding="utf-8"))
        functions = {f"chapter.{n.name}": n for n in module.body if hasattr(n, "name")}
    for called, call in calls_in(ast.parse(python)):
        inside = calls_in(functions[called]) if called in functions else ()
        for name, given in [(called, call), *inside]:
            if name == "settle":
                yield given


def code_of(path):
    """The sources of a notebook's code cells."""
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_settles_what_the_data_file_says(path):
    """Seen from the source alone; the build compares the verdicts themselves."""
    settled = [ast.literal_eval(s.args[0]) for s in settlements_in(code_of(path))]
    expected = [
        claim.id
        for claim in claims().values()
        if claim.chapter == path.stem and claim.verdict != "open"
    ]
    assert sorted(settled) == sorted(expected)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_experiment_states_its_sample_and_what_it_could_have_detected(path):
    """Whatever can give a verdict by experiment gives both, in every branch."""
    for call in settlements_in(code_of(path)):
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        if "scale" not in given and given["holds"] != "None":
            claim = ast.literal_eval(call.args[0])
            assert {"sample", "detects"} <= given.keys(), claim


def test_a_claim_that_is_settled_has_a_notebook():
    """No verdict stands in the data file without a chapter to show it."""
    written = {path.stem for path in NOTEBOOKS}
    settled = {c.chapter for c in claims().values() if c.verdict != "open"}
    assert settled <= written


def record(**changes):
    """A record that agrees with the data file once the claim is settled there."""
    fields = {
        "chapter": CLAIM.chapter,
        "claim_id": CLAIM.id,
        "verdict": "derived",
        "scale": "derivation",
        "measured": "64.1",
    }
    return records.Record(**{**fields, **changes})


@pytest.fixture
def _settled(monkeypatch):
    """A data file with one claim, which says that chapter 4 derives it."""
    from dataclasses import replace

    only = {CLAIM.id: replace(CLAIM, verdict="derived")}
    monkeypatch.setattr(records, "claims", lambda: only)


@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize(
    ("found", "complaints"),
    [
        ([record()], []),
        ([], ["no cell there settles it"]),
        ([record(claim_id="s9-none"), record()], ["not in the ledger"]),
        ([record(), record()], ["has settled already"]),
        ([record(chapter="05-multi-head")], ["leaves it to 04-scaling"]),
        ([record(verdict="contradicted")], ["finds 's3.2.1-variance' 'contradicted'"]),
    ],
)
def test_each_disagreement_is_a_sentence(found, complaints):
    """Unknown, doubled, misplaced, changed and missing settlements."""
    said = list(records.problems(found, ["04-scaling"]))
    assert len(said) == len(complaints)
    for sentence, words in zip(said, complaints, strict=True):
        assert words in sentence


@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize("missing", ["sample", "detects"])
def test_an_experiment_says_what_it_could_have_detected(monkeypatch, missing):
    """A verdict by experiment without sample or detectable effect is a problem."""
    from dataclasses import replace

    verdict = "not reproduced at small scale"
    only = {CLAIM.id: replace(CLAIM, verdict=verdict)}
    monkeypatch.setattr(records, "claims", lambda: only)
    said = {"sample": "3 seeds", "detects": "0.3", "verdict": verdict}
    assert list(records.problems([record(**said)], ["04-scaling"])) == []
    silent = record(**{**said, missing: ""})
    (problem,) = records.problems([silent], ["04-scaling"])
    assert "what it could have detected" in problem


@pytest.mark.usefixtures("_settled")
def test_chapters_that_were_not_read_are_left_alone():
    """A build of one chapter does not miss the claims of the others."""
    assert list(records.problems([], ["03-attention"])) == []


def test_records_of_an_executed_notebook():
    """Settlements are found among other outputs, in order."""
    shown = judge(CLAIM.id, holds=True, measured="64", scale="derivation")
    cell = nbformat.v4.new_code_cell("settle(...)")
    cell.outputs = [
        nbformat.v4.new_output("stream", text="data-claim"),
        nbformat.v4.new_output("display_data", {"text/html": "<b>no claim</b>"}),
        nbformat.v4.new_output("display_data", {"text/html": shown._repr_html_()}),
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(), cell])
    (found,) = records.records_in_notebook(notebook, "04-scaling")
    assert (found.claim_id, found.verdict) == (CLAIM.id, "derived")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A small site: a ledger, and a page that settles one claim and an unknown one."""
    source = tmp_path_factory.mktemp("site")
    (source / "notebooks").mkdir()
    shown = judge(
        CLAIM.id,
        holds=False,
        measured="a <b>",
        expected="a > c",
        scale="derivation",
        sample="three seeds",
    )._repr_html_()
    unknown = shown.replace(f'data-claim="{CLAIM.id}"', 'data-claim="s9-none"')
    (source / "notebooks" / "04-scaling.md").write_text(
        f"# Four\n\n{shown}\n\n{unknown}\n", encoding="utf-8"
    )
    (source / "index.md").write_text(
        "# Ledger\n\n```{ledger}\n```\n\n```{toctree}\nnotebooks/04-scaling\n```\n",
        encoding="utf-8",
    )
    settings = {"extensions": ["myst_parser", "aiayn_site.ledger"]}
    out = source / "out"
    with (source / "warnings").open("w+", encoding="utf-8") as warnings:
        app = Sphinx(
            source, None, out, out, "html", settings, status=None, warning=warnings
        )
        app.build()
        warnings.seek(0)
        return app, warnings.read(), (out / "index.html").read_text(encoding="utf-8")


def test_the_page_links_a_verdict_to_its_cell(built):
    """A contradiction is shown as one, with what was measured."""
    _, _, html = built
    assert f'href="notebooks/04-scaling.html#{CLAIM.anchor}"' in html
    assert "✗ contradicted</span>" in html
    assert '<span class="verdict-scale"> by derivation</span>' in html
    assert "(1 by derivation)" in html  # and so does the count
    assert "a &lt;b&gt;" in html
    assert "expected: a &gt; c" in html  # what a verdict is to be judged by
    assert "sample: three seeds" in html


def test_the_page_counts_open_claims(built):
    """All but the one that was settled are open, each with its chapter."""
    _, _, html = built
    assert f"<strong>{len(claims()) - 1}</strong>" in html
    assert html.count("○ open") == len(claims())  # the others, and the summary's line


def test_the_page_shows_every_claim_once(built):
    """No section falls between two tables."""
    app, _, html = built
    for claim in claims().values():
        assert html.count(f'id="ledger-{claim.anchor}"') == 1
    tables = app.env.get_doctree("index").findall(ledger.ledger_part)
    assert len(list(tables)) == 1 + len(ledger.GROUPS)
    titles = [t.astext() for t in app.env.get_doctree("index").findall(nodes.title)]
    assert titles == ["Ledger", *ledger.GROUPS]


def test_a_build_warns_of_disagreements(built):
    """Strict builds turn these into errors."""
    _, warnings, _ = built
    assert "settles 's9-none', which is not in the ledger" in warnings
    assert "finds 's3.2.1-variance' 'contradicted'" in warnings

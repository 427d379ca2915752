"""The ledger's data, and the verdict that follows from a measurement."""

import importlib
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from aiayn.errors import InputError
from aiayn_book.claims import KINDS, VERDICTS, claims, find_claim, judge, settle
from aiayn_book.html import pages_address
from aiayn_book.ledger import records_in_html

ROOT = Path(__file__).resolve().parents[2]
CLAIM = "s3.2.1-variance"


def chapter_names():
    """The notebooks that the book has or plans."""
    parts = yaml.safe_load((ROOT / "book" / "data" / "chapters.yml").read_text())
    return {chapter["name"] for part in parts for chapter in part["chapters"]}


@pytest.mark.parametrize("claim", claims().values(), ids=lambda claim: claim.id)
def test_each_claim_is_well_formed(claim):
    """Identifier, kind, chapter and verdict are of those that exist."""
    assert re.fullmatch(r"(abstract|figure\d|s\d(\.\d)*)-[a-z0-9-]+", claim.id)
    assert claim.kind in KINDS
    assert claim.verdict in VERDICTS
    assert claim.chapter in chapter_names()
    assert claim.text.endswith(".")
    if claim.section[0].isdigit():
        assert claim.id.startswith(f"s{claim.section}-")


def test_every_part_of_the_paper_has_claims():
    """From abstract to appendix, no section with claims of its own is left out."""
    sections = {claim.section for claim in claims().values()}
    numbered = (
        "1 2 3 3.1 3.2 3.2.1 3.2.2 3.2.3 3.3 3.4 3.5 4 5.1 5.2 5.3 5.4 6.1 6.2 6.3 7"
    )
    others = {"abstract", "table 1", "table 3", "figure 3", "figure 4", "figure 5"}
    assert sections == {*numbered.split(), *others}


def test_anchors_are_unique():
    """Each claim's output can be linked to."""
    assert len({claim.anchor for claim in claims().values()}) == len(claims())


@pytest.mark.parametrize(
    ("holds", "scale", "verdict"),
    [
        (True, "derivation", "derived"),
        (True, "paper", "reproduced"),
        (True, "small", "reproduced at small scale"),
        (False, "derivation", "contradicted"),
        (False, "paper", "contradicted"),
        (True, "figures", "consistent with the paper's own figures"),
        (False, "figures", "contradicted"),
        (False, "small", "not reproduced at small scale"),
        (None, "small", "reported by the paper only"),
    ],
)
def test_the_verdict_follows_from_the_measurement(holds, scale, verdict):
    """Nobody types it."""
    assert judge(CLAIM, holds=holds, measured="64.1", scale=scale).verdict == verdict


@pytest.mark.parametrize(("holds", "verdict"), [(True, "defined"), (False, "open")])
def test_a_definition_is_neither_proved_nor_refuted(holds, verdict):
    """Our code follows the paper's text, or it does not yet."""
    claim = next(c for c in claims().values() if c.verdict == "defined")
    found = judge(claim.id, holds=holds, measured="1", scale="derivation")
    assert found.verdict == verdict


DEFINED = [claim for claim in claims().values() if claim.verdict == "defined"]


@pytest.mark.parametrize("claim", DEFINED, ids=lambda claim: claim.id)
def test_a_definition_names_the_code_that_follows_it(claim):
    """The name can be imported, and only definitions have one."""
    assert claim.kind == "definition"
    module, *names = claim.code.split(".")
    found = importlib.import_module(module)
    for name in names:
        found = (
            getattr(found, name)
            if hasattr(found, name)
            else importlib.import_module(f"{found.__name__}.{name}")
        )
    assert callable(found)


def test_only_definitions_name_code():
    """A proof or an experiment is its own evidence."""
    assert [c.id for c in claims().values() if c.code] == [c.id for c in DEFINED]


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ("derivation", "contradicted by derivation"),
        ("figures", "contradicted by the paper&#x27;s own figures"),
        ("paper", "contradicted at the paper&#x27;s scale"),
    ],
)
def test_a_contradiction_says_by_what(scale, words):
    """Never a bare word."""
    html = judge(CLAIM, holds=False, measured="1", scale=scale)._repr_html_()
    assert f"{words}</em>" in html


@pytest.mark.parametrize("truth", [np.bool_(True), torch.tensor(True)])
def test_truth_from_numpy_and_torch(truth):
    """Comparisons of arrays and tensors count."""
    assert judge(CLAIM, holds=truth, measured="1").holds is True


@pytest.mark.parametrize("several", [np.array, torch.tensor])
def test_several_truth_values_are_not_one(several):
    with pytest.raises(InputError, match=r"truth value .* \.all\(\) or \.any\(\)"):
        judge(CLAIM, holds=several([True, True]), measured="1")


@pytest.mark.parametrize("holds", [0.3, 1, "yes", torch.tensor(0.3)])
def test_a_number_is_no_truth_value(holds):
    """A forgotten comparison is an error, not a verdict."""
    with pytest.raises(InputError, match="a truth value was expected"):
        judge(CLAIM, holds=holds, measured="1")


def test_an_unknown_claim_names_its_neighbours():
    """A slip of the pen gets a hint."""
    with pytest.raises(InputError, match=r"did you mean s3\.2\.1-variance"):
        find_claim("s3.2.1-varience")
    with pytest.raises(InputError, match="none looks like it"):
        find_claim("qqqq")


def test_a_measurement_must_be_said():
    """A verdict without a measurement is an opinion."""
    with pytest.raises(InputError, match="measured is empty"):
        judge(CLAIM, holds=True, measured=" ")


def test_an_unknown_scale_is_refused(unchecked_shapes):
    """The scale decides the verdict, so it must be one of three."""
    with pytest.raises(InputError, match="'derivation', 'figures', 'paper' or 'small'"):
        judge(CLAIM, holds=True, measured="1", scale="large")


def test_html_carries_what_the_build_reads():
    """Text with signs of its own comes back unharmed."""
    measured = 'a < b & "c"'
    html = judge(CLAIM, holds=False, measured=measured)._repr_html_()
    (record,) = records_in_html(html, "04-scaling")
    assert record.claim_id == CLAIM
    assert record.verdict == "not reproduced at small scale"
    assert (record.chapter, record.scale) == ("04-scaling", "small")
    assert record.measured == measured


def test_html_carries_what_an_experiment_could_have_detected():
    """The build reads sample and detectable effect; a reader sees both."""
    found = judge(CLAIM, holds=True, measured="1", sample="5 seeds", detects="0.3")
    (record,) = records_in_html(found._repr_html_(), "04-scaling")
    assert (record.sample, record.detects) == ("5 seeds", "0.3")
    assert "Could have detected: 0.3" in repr(found)


def test_a_claim_is_one_line_that_unfolds():
    """Place, claim and verdict in the summary; the rest, and the ledger, below it."""
    html = judge(CLAIM, holds=True, measured="64.1", expected="64")._repr_html_()
    summary, _, below = html.partition("</summary>")
    assert "<details" in summary
    assert "Claim §3.2.1:" in summary
    assert "reproduced at small scale</em>" in summary
    assert "64.1</p>" in below
    claim = find_claim(CLAIM)
    assert f"book/ledger.html#ledger-{claim.anchor}" in below


def test_the_package_names_the_repository_of_the_book():
    """Where the published ledger stands follows from it."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    address = project["project"]["urls"]["Repository"]
    assert address == config["repository"]["url"]
    assert pages_address("https://github.com/Me/book") == "https://me.github.io/book/"


def test_plain_text_says_the_same(capsys):
    """Where no HTML can be shown, the verdict is readable too."""
    settle(CLAIM, holds=False, measured="65.0", expected="64", scale="paper")
    shown = capsys.readouterr().out
    for words in (CLAIM, "Expected: 64", "Measured: 65.0", "at the paper's scale"):
        assert words in shown

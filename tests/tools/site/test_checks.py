"""What the audit checks is found where it is wrong, and only there."""

import gzip
import sys
import urllib.error
import urllib.request
from contextlib import nullcontext, suppress

import pytest

from aiayn.storage import read_json, write_json
from aiayn_site import audit_table
from tools.site import audit, browser, checks, lighthouse


def page(folder, name, body):
    """A page of a small site."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<html><body>{body}</body></html>", encoding="utf-8")


def test_only_broken_links_are_named(tmp_path):
    """A missing file, a missing anchor; not what is there, nor other hosts."""
    page(tmp_path, "notebooks/b.html", '<h1 id="here">B</h1>')
    page(
        tmp_path,
        "book/a.html",
        '<a href="../notebooks/b.html#here">1</a> <a href="https://example.org">2</a>'
        '<a href="../notebooks/b.html#gone">3</a> <a href="c.html">4</a>'
        '<a class="x" href="#own">5</a> <a href="#none">6</a><p id="own"></p>',
    )
    broken = checks.broken_links(tmp_path, "book/a.html")
    assert broken == ["../notebooks/b.html#gone", "c.html", "#none"]
    assert checks.written_pages(tmp_path) == ["book/a.html", "notebooks/b.html"]


def test_weight_counts_text_compressed_and_everything_once(tmp_path):
    """Text as a host sends it, pictures as they are, a file asked for twice once."""
    (tmp_path / "style.css").write_bytes(b"a { color: red } " * 1000)
    (tmp_path / "letters.woff2").write_bytes(bytes(range(256)) * 10)
    site = "http://127.0.0.1:1/"
    asked = [
        f"{site}style.css?v=1",
        f"{site}style.css?v=1",
        f"{site}letters.woff2",
        "data:,x",
    ]
    text = gzip.compress(b"a { color: red } " * 1000, compresslevel=6, mtime=0)
    assert checks.weight(tmp_path, asked) == len(text) + 2560


@pytest.fixture
def clean():
    """What a page with nothing wrong gives."""
    return {"violations": [], "broken_links": [], "elsewhere": [], "bytes": 700_000}


@pytest.mark.parametrize(
    "wrong",
    [
        {"broken_links": ["x.html"]},
        {"elsewhere": ["https://example.org/"]},
        {"bytes": audit.LIMIT + 1},
        {
            "violations": [
                {
                    "rule": "label",
                    "help": "Labels",
                    "places": ["#a", "#b"],
                    "width": 390,
                    "theme": "dark",
                }
            ]
        },
    ],
)
def test_each_defect_is_told_and_kept(clean, wrong, capsys):
    """A page with one thing wrong is not passed, and says what it is."""
    assert not audit.tell("a.html", clean)
    assert audit.tell("a.html", clean | wrong)
    told = capsys.readouterr().out
    assert "✗ a.html" in told
    assert audit.figures(clean | wrong) != audit.figures(clean)


TIMES = [
    {"slowed": 1, "seconds": [0.3, 0.1, 0.1], "most": 0.25},
    {"slowed": 6, "seconds": [2, 0.9, 0.9], "most": 1},
]


def test_a_slow_translation_is_told(capsys):
    """Its median counts, and each speed of the processor has its own limit."""
    assert not audit.tell_times(TIMES)
    assert audit.tell_times([TIMES[0] | {"seconds": [0.3, 0.3, 0.1]}])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "✗ ten words: 300.0 ms (at most 250)"


def test_the_table_adds_up_all_pages(clean):
    """Two pages with two violations each are four; the heavier one is named."""
    figures = audit.figures(clean)
    record = {
        "axe": "4",
        "looks": [[1280, "light"]],
        "limit_bytes": audit.LIMIT,
        "pages": {
            "a": figures | {"violations": 2},
            "b": figures | {"violations": 2, "bytes": 900_000},
        },
        "translation": TIMES,
        "lighthouse": None,
    }
    rows = audit_table.rows(record)
    assert rows[0][2] == "4"
    assert "b" in rows[3][0].split()
    assert rows[3][1:] == ["at most 1.50 MB", "0.90 MB"]


def test_medians_are_shown_with_their_runs(clean):
    """Five scores and their median, for each of Lighthouse's categories."""
    scores = dict.fromkeys(audit_table.ASKED, [100] * 5)
    record = {
        "axe": "4",
        "looks": [],
        "limit_bytes": 1,
        "pages": {"a": audit.figures(clean)},
        "translation": TIMES,
        "lighthouse": {
            "version": "12",
            "page": "a",
            "scores": scores | {"performance": [88, 91, 95, 90, 93]},
            "median": dict.fromkeys(scores, 100) | {"performance": 91},
        },
    }
    rows = audit_table.rows(record)
    assert [row[2] for row in rows if "ten words" in row[0]] == [
        "100 ms, the median of 3",
        "900 ms, the median of 3",
    ]
    told = {row[0].split()[-1]: row[2] for row in rows}
    assert told["performance"] == "91, the median of 5 (88, 91, 95, 90, 93)"
    assert told["seo"] == "100, the median of 5 (each the same)"


MADE = {"date": "2027-01-01", "commit": "n" * 40, "machine": {"processor": "new"}}
OLD = {"date": "2026-01-01", "commit": "o" * 40, "machine": {"processor": "old"}}


@pytest.mark.parametrize("own", [{}, {"date": "2025-01-01"}])
def test_a_measurement_that_stays_keeps_its_date(clean, tmp_path, monkeypatch, own):
    """Lighthouse is not everywhere: its last scores may be older than the rest."""
    path = tmp_path / "audit.json"
    write_json(path, OLD | {"lighthouse": {"version": "12"} | own})
    monkeypatch.setattr(audit, "RECORD", path)
    audit.keep(MADE, {"a": audit.figures(clean)}, TIMES, run_lighthouse=False)
    record = read_json(path)
    assert MADE.items() <= record.items()
    assert record["lighthouse"] == OLD | {"version": "12"} | own
    told = audit_table.closing(record).astext()
    when = own.get("date", OLD["date"])
    assert told == (
        f"2027-01-01, new, commit nnnnnnnnnn; Lighthouse: {when}, old, commit "
        "oooooooooo. Command: make audit"
    )
    told = audit_table.closing(record | {"lighthouse": MADE}).astext()
    assert "Lighthouse" not in told


@pytest.mark.parametrize(
    ("words", "kept"), [([], True), (["--pages", "book/a"], False)]
)
def test_only_a_whole_audit_is_kept(clean, tmp_path, monkeypatch, words, kept):
    """The record has one date, one commit and one machine, for all of its pages."""
    for name in ("index", "book/a", "book/b"):
        page(tmp_path, f"{name}.html", "")
    path = tmp_path / "audit.json"
    monkeypatch.setattr(audit, "SITE", tmp_path)
    monkeypatch.setattr(audit, "RECORD", path)
    monkeypatch.setattr(audit, "now", lambda: MADE)
    monkeypatch.setattr(audit, "browsing", nullcontext)
    monkeypatch.setattr(audit, "look_at", lambda browser, site, page: clean)
    monkeypatch.setattr(audit, "time_translation", lambda browser: TIMES)
    monkeypatch.setattr(sys, "argv", ["", "--no-lighthouse", *words])
    assert audit.main() == 0
    assert path.exists() is kept
    if kept:
        assert read_json(path)["pages"].keys() == {"book/a.html", "book/b.html"}


def test_a_site_is_served_until_something_fails(tmp_path):
    """Compressed where it is asked for; afterwards nobody answers."""
    page(tmp_path, "a.html", "Hello.")
    whole = (tmp_path / "a.html").read_bytes()
    with suppress(RuntimeError), browser.served(tmp_path) as address:
        assert urllib.request.urlopen(f"{address}a.html").read() == whole
        raise RuntimeError
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(f"{address}a.html")
    with browser.served(tmp_path, lighthouse.Compressing) as address:
        answer = urllib.request.urlopen(f"{address}a.html")
        assert answer.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(answer.read()) == whole

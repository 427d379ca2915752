"""The pages to look things up are complete."""

import json
import re
import unicodedata
from pathlib import Path

import pytest
import yaml

import aiayn
from aiayn.model import TransformerConfig

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(aiayn.__file__).parent
SHAPE = re.compile(r'\b\w+\[\s*[\w.]+,\s*"([^"]*)"')


def dimensions(folder):
    """The names of all dimensions in the shapes of a package's signatures."""
    shapes = [
        shape
        for path in (PACKAGE / folder).rglob("*.py")
        for shape in SHAPE.findall(path.read_text(encoding="utf-8"))
    ]
    words = {word.lstrip("*#") for shape in shapes for word in shape.split()}
    return {word for word in words if re.fullmatch(r"[a-z]\w*", word)}


def explained():
    """The names in code that the notation page explains."""
    text = (ROOT / "book" / "notation.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    return {
        word
        for _, first, second, _ in rows
        for name in re.findall(r"`([^`]+)`", first + second)
        for word in name.split()
    }


@pytest.mark.parametrize("folder", ["model", "training", "inference", "data"])
def test_the_notation_page_explains_every_dimension(folder):
    """Whoever reads a signature can look up each name in it."""
    # batch and heads folded into one; any shape at all; the sides of any matrix
    plain_words = {"batch_heads", "shape", "rows", "inputs", "outputs"}
    found = dimensions(folder)
    assert found
    assert found - plain_words <= explained()


def test_dimensions_are_found_at_all():
    """The pattern above reads the signatures."""
    assert {"queries", "keys", "d_k", "d_v", "heads", "d_model"} <= dimensions("model")


def test_the_notation_page_explains_the_models_sizes():
    """Fields of the configuration that are symbols of the paper."""
    sizes = {
        name
        for name in TransformerConfig.__dataclass_fields__
        if name.startswith(("d_", "num_")) or name in ("dropout", "vocab_size")
    }
    assert sizes <= explained()


SYMBOLS = [
    *(r"$Q$", r"$K$", r"$V$", r"$d_k$", r"$d_v$", r"$h$", r"$W_i^Q$", r"$W_i^K$"),
    *(r"$W_i^V$", r"$W^O$", r"(x_1, \dots, x_n)", r"\mathbf{z}", r"(y_1, \dots, y_m)"),
    *(r"$N$", r"$d_{\text{model}}$", r"$d_{\text{ff}}$", r"$W_1$", r"$b_1$", r"$W_2$"),
    *(r"$b_2$", r"$pos$", r"$i$", r"PE_{", r"$P_{drop}$", r"$\epsilon_{ls}$"),
]


@pytest.mark.parametrize("symbol", SYMBOLS)
def test_the_notation_page_explains_every_symbol_of_the_paper(symbol):
    """§3, and Table 3's two rates."""
    assert symbol in (ROOT / "book" / "notation.md").read_text(encoding="utf-8")


def test_questions_belong_to_chapters_of_the_book():
    """Each question once, under a chapter that exists, in the order of the book."""
    parts = yaml.safe_load((ROOT / "book" / "data" / "chapters.yml").read_text())
    names = [chapter["name"] for part in parts for chapter in part["chapters"]]
    asked = yaml.safe_load(
        (ROOT / "book" / "data" / "questions.yml").read_text("utf-8")
    )
    assert [name for name in names if name in asked] == list(asked)
    questions = [item["ask"] for items in asked.values() for item in items]
    assert len(set(questions)) == len(questions)
    assert all(question.endswith("?") for question in questions)


def test_questions_have_an_answer_in_one_sentence():
    """And a place that shows it; the answer can be read in one breath."""
    asked = yaml.safe_load(
        (ROOT / "book" / "data" / "questions.yml").read_text("utf-8")
    )
    for item in (item for items in asked.values() for item in items):
        answer = item["answer"].replace("et al.", "et al")
        assert answer.endswith("."), answer
        assert not re.search(r"[.?!] ", answer), answer
        assert len(answer.split()) <= 45, answer
        assert item["where"]


WORK = re.compile(
    r"([A-Z][\w-]+)(?:(?:, [A-Z][\w-]+)* (?:and|&) (?:others|[A-Z][\w-]+))?"
    r"(?: et al\.)?(?:, | \()((?:19|20)\d\d)\b"
)


def works_named(text):
    """First authors and years: 'Press and Wolf (2017)', '(Liu and others, 2020)'."""
    found = WORK.findall(" ".join(text.split()))
    # 'T5 (2019)' and 'BERT (2018)' are models.
    return {(plain(who), year) for who, year in found if not who.isupper()}


def plain(name):
    """Without accents, whether they are Unicode's or TeX's."""
    name = unicodedata.normalize("NFD", re.sub(r"\\\w?|[{}'\"`]", "", name))
    return "".join(letter for letter in name if not unicodedata.combining(letter))


def test_works_are_found_in_a_text():
    text = "Press and\nWolf (2017), as (Müller, Dao and Ré, 2019) say; T5 (2019)"
    assert works_named(text) == {("Press", "2017"), ("Muller", "2019")}
    assert plain(r"Veli{\v{c}}kovi{\'c}") == "Velickovic"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")))
def test_whatever_a_chapter_names_is_in_the_references(path):
    references = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    known = {("Vinyals", "2014")}  # as Table 4 has it; chapter 19 says whom it means
    for entry in references.split("\n@"):
        author = re.search(r"author = \{\{?(?:[^,}]*? )?([^, ]+),", entry)[1]
        known.add((plain(author), re.search(r"year = \{(\d+)\}", entry)[1]))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] != "code")
    assert works_named(text) <= known

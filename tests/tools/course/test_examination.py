"""An examination drawn from the bank and from questions of one's own."""

import math
import random
import re

import pytest
import yaml

from tools.course import examination

TEMPLATE = examination.BANK.parent / "variants-template.yml"
OWN = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))


def drawn(tmp_path, *arguments):
    """Both files of an examination."""
    assert examination.main([*arguments, "--output", str(tmp_path)]) == 0
    seed = arguments[-1] if "--seed" in arguments else 1
    return [
        (tmp_path / f"{name}-{seed}.md").read_text("utf-8")
        for name in ("paper", "answers")
    ]


def test_questions_are_named_by_chapter():
    """As on the page of the bank."""
    bank = examination.bank()
    assert {"1a", "3c", "23b", "Ba"} <= set(bank)
    assert "d_k" in bank["4a"]["ask"]


def test_a_paper_holds_no_answers(tmp_path):
    """Questions and marks in one file, answers and what earns marks in the other."""
    paper, answers = drawn(tmp_path, "3a", "6a")
    bank = examination.bank()
    assert "2 questions, 9 marks" in paper
    for name in ("3a", "6a"):
        assert bank[name]["ask"] in paper
        assert bank[name]["answer"] not in paper
        assert bank[name]["answer"] in answers


def test_a_statement_to_decide_says_what_to_do_with_it(tmp_path):
    """The page of the bank says it by the question's kind, which a paper lacks."""
    paper, _ = drawn(tmp_path, "3a", "1b")
    first, second = paper.split("**2.**")
    assert "True or false? Say why." not in first
    assert f"True or false? Say why. {examination.bank()['1b']['ask']}" in second


def test_a_seed_draws_the_same_numbers(tmp_path):
    """And others draw others."""
    papers = {
        seed: drawn(tmp_path, "scale", "--private", str(TEMPLATE), "--seed", seed)
        for seed in ("1", "2", "3", "4", "5", "6")
    }
    again = drawn(tmp_path, "scale", "--private", str(TEMPLATE), "--seed", "3")
    assert again == papers["3"]
    texts = {answers.split("**1.**")[1] for _, answers in papers.values()}
    assert len(texts) > 1


def test_papers_of_two_seeds_stand_side_by_side_and_can_be_printed(tmp_path):
    """Each with a page whose formulas are typeset by what lies beside it."""
    for seed in ("7", "8"):
        drawn(tmp_path, "4a", "scale", "--private", str(TEMPLATE), "--seed", seed)
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert names == sorted(
        f"{kind}-{seed}.{form}"
        for kind in ("paper", "answers")
        for seed in (7, 8)
        for form in ("md", "html")
    )
    page = (tmp_path / "paper-7.html").read_text("utf-8")
    assert "<title>Examination</title>" in page
    assert r"\(d_{\text{model}} = 768\)" in page
    assert "$" not in page
    for script in re.findall(r'src="(.+?)"', page):
        assert (tmp_path / script).is_file()


@pytest.mark.parametrize("seed", range(20))
def test_the_templates_answers_are_right(seed):
    """For whatever numbers are drawn."""
    scale = examination.variant(OWN["scale"], random.Random(seed))
    width, heads = map(int, re.findall(r"\d+", scale["ask"]))
    root = int(scale["answer"].rstrip(".").split()[-1])
    assert root == math.sqrt(width / heads)
    heads = examination.variant(OWN["heads"], random.Random(seed))
    layers, many = map(int, re.findall(r"\d+", heads["ask"]))
    wanted = 3 * layers * (3 * many + 1)
    assert heads["answer"].endswith(f"so {wanted}.")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ask": "<<nothing>>?"}, "nothing: in the text, but neither"),
        ({"compute": {"x": "1 / 0"}}, "x: '1 / 0' cannot be computed"),
        ({"compute": {"x": "open('f')"}}, "cannot be computed"),
    ],
)
def test_what_is_wrong_with_a_question_is_said(changes, words):
    """A place without a number, and a number that cannot be had."""
    with pytest.raises(SystemExit, match=re.escape(words)):
        examination.variant(OWN["scale"] | changes, random.Random(1))


def test_an_unknown_question_is_named(tmp_path):
    """Instead of leaving it out."""
    with pytest.raises(SystemExit, match="99z: no such question in the bank"):
        drawn(tmp_path, "3a", "99z")


def test_a_private_question_may_not_hide_a_public_one(tmp_path):
    """It would be drawn in its place without a word."""
    path = stored(tmp_path, {"3a": OWN["scale"]})
    with pytest.raises(SystemExit, match="3a: the public bank has that name"):
        drawn(tmp_path, "3a", "--private", str(path))


def stored(tmp_path, content):
    path = tmp_path / "own.yml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_a_file_that_is_no_yaml_is_named(tmp_path):
    (tmp_path / "own.yml").write_text("a: [1")
    with pytest.raises(SystemExit, match=r"own\.yml: it is no YAML: .* line 1"):
        drawn(tmp_path, "3a", "--private", str(tmp_path / "own.yml"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "it holds no questions"),
        ({"mine": "Why?"}, "mine: `ask` is missing, or no str"),
        ({"mine": OWN["scale"] | {"answer": None}}, "mine: `answer` is missing"),
        (
            {"mine": OWN["scale"] | {"earns": [3]}},
            "mine: `earns` is missing, or no dict",
        ),
        (
            {"mine": OWN["scale"] | {"marks": 5}},
            "5 marks, but what `earns` lists makes 3",
        ),
        ({"mine": OWN["scale"] | {"earns": {"all": "3"}}}, "3 marks, but .* makes 0"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, content, words):
    """Before anything is drawn from it."""
    with pytest.raises(SystemExit, match=words):
        drawn(tmp_path, "3a", "--private", str(stored(tmp_path, content)))


def test_a_question_may_have_a_number_for_a_name(tmp_path):
    """YAML reads one as a number, the command line as a word."""
    path = stored(tmp_path, {7: OWN["scale"]})
    paper, _ = drawn(tmp_path, "7", "--private", str(path))
    assert "1 question, 3 marks" in paper

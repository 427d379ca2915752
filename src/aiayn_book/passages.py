"""The book as passages that can be searched, and a bag of words to search them with.

`book_passages` reads the notebooks and pages of the repository; the record of
chapter 24 holds what it found, so that an installed package can search as well.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

SHORTEST = 40
"""Words of a passage; a shorter paragraph is joined to the next of its section."""
PAGES = ("how-to-use", "related-readings", "results", "benchmarks", "live-model")
LEFT_OUT = ("Exercises", "Quick checks", "Read it against")
"""Sections that a reader would not search."""


class Passage(NamedTuple):
    """A few sentences of the book, and where they stand."""

    chapter: str
    """The notebook or page: "03-attention"."""
    section: str
    text: str


def book_passages(root: Path, without: Sequence[str] = ()) -> list[Passage]:
    """All passages of notebooks and pages, in the order of the book.

    Args:
        root: The repository.
        without: Chapters that are left out.
    """
    found = []
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
        if path.stem not in without:
            found += passages_of("\n\n".join(texts), path.stem)
    for name in PAGES:
        text = (root / "book" / f"{name}.md").read_text(encoding="utf-8")
        found += passages_of(text, name)
    return found


def passages_of(markdown: str, chapter: str) -> list[Passage]:
    """Cut a text at its headings, and each section into passages."""
    markdown = re.sub(r"<details>.*?</details>", "", markdown, flags=re.DOTALL)
    markdown = re.sub(r"^(```|:::).*?^\1", "", markdown, flags=re.DOTALL | re.MULTILINE)
    section, waiting, found, skipped = "", "", [], False
    for block in re.split(r"\n\s*\n", markdown):
        if heading := re.match(r"#+ (.*)", block):
            if len(waiting.split()) >= SHORTEST // 2:
                found.append(Passage(chapter, section, waiting))
            section, waiting = plain(heading[1]), ""
            skipped = section in LEFT_OUT
        elif not skipped and not block.startswith(("|", "[Open in Colab]", "> **Ex")):
            waiting = f"{waiting} {plain(block)}".strip()
            if len(waiting.split()) >= SHORTEST:
                found.append(Passage(chapter, section, waiting))
                waiting = ""
    if len(waiting.split()) >= SHORTEST // 2:
        found.append(Passage(chapter, section, waiting))
    return found


def plain(markdown: str) -> str:
    """Without the marks of Markdown and the colours of formulas.

    >>> plain("> See [chapter 3](03-attention.ipynb): *soft*, `Q @ K.mT`.")
    'See chapter 3: soft, Q @ K.mT.'
    """
    text = re.sub(r"^[>\-*] ?|^\d+\. ", "", markdown, flags=re.MULTILINE)
    text = re.sub(r"\\textcolor\{#\w+\}", "", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\{[a-z:-]+\}`([^`]*)`", r"\1", text)
    text = re.sub(r"\\(text|mathrm)\{([^{}]*)\}", r"\2", text)
    text = re.sub(r"[*`]+", "", text)
    return " ".join(text.split())


def words(text: str) -> list[str]:
    """The words of a text in lower case.

    >>> words("Why divide by √d_k? Because …")
    ['why', 'divide', 'by', 'd_k', 'because']
    """
    return re.findall(r"\w+", text.lower())


def bm25(
    texts: Sequence[str], questions: Sequence[str], k: float = 1.2, b: float = 0.75
) -> Tensor:
    """Score every text for every question by the words that they share.

    A word counts more if few texts have it, if the text has it often, and if the text
    is short (Robertson and Zaragoza, 2009).

    Args:
        texts: What is searched.
        questions: What is asked.
        k: How soon further occurrences of a word stop to count.
        b: How much a long text is discounted, from 0 to 1.

    Returns:
        (questions, texts).
    """
    counts = [Counter(words(text)) for text in texts]
    usual = sum(count.total() for count in counts) / len(counts)
    with_word: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, count in enumerate(counts):
        norm = k * (1 - b + b * count.total() / usual)
        for word, f in count.items():
            with_word[word].append((place, f * (k + 1) / (f + norm)))
    scores = [[0.0] * len(texts) for _ in questions]
    for row, question in enumerate(questions):
        for word in words(question):
            n = len(with_word[word])
            rare = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
            for place, often in with_word[word]:
                scores[row][place] += rare * often
    return torch.tensor(scores)


def found_at(
    scores: Tensor, passages: Sequence[Passage], right: Sequence[str], best: int
) -> list[bool]:
    """For each question, whether a passage of its chapter is among the best.

    Args:
        scores: (questions, passages).
        passages: What was searched.
        right: The chapter of each question.
        best: How many passages are shown.
    """
    top = scores.topk(best, dim=-1).indices.tolist()
    return [
        any(passages[place].chapter == chapter for place in places)
        for places, chapter in zip(top, right, strict=True)
    ]


def fused(*scores: Tensor, k: int = 60) -> Tensor:
    """Reciprocal rank fusion: the sum of 1 / (k + rank) over several methods.

    >>> fused(torch.tensor([[3.0, 2, 1]]), torch.tensor([[3.0, 1, 2]])).argmax().item()
    0
    """
    ranks = [table.argsort(descending=True).argsort() + 1 for table in scores]
    return torch.stack([1 / (k + rank) for rank in ranks]).sum(dim=0)


def by_chance(passages: Sequence[Passage], right: Sequence[str], best: int) -> float:
    """The share of questions whose chapter is found by passages drawn at random."""
    size = Counter(passage.chapter for passage in passages)
    missed = [(1 - size[chapter] / len(passages)) ** best for chapter in right]
    return 1 - sum(missed) / len(missed)


def interval(hits: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share.

    >>> [round(end, 2) for end in interval(50, 100)]
    [0.4, 0.6]
    """
    z, share = 1.96, hits / of
    middle = (share + z**2 / (2 * of)) / (1 + z**2 / of)
    half = z * math.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    return middle - half / (1 + z**2 / of), middle + half / (1 + z**2 / of)


def difference(one: Sequence[bool], other: Sequence[bool]) -> tuple[float, float]:
    """Mean and standard error of the paired difference of two methods' hits."""
    pairs = [a - b for a, b in zip(one, other, strict=True)]
    mean = sum(pairs) / len(pairs)
    variance = sum((pair - mean) ** 2 for pair in pairs) / (len(pairs) - 1)
    return mean, math.sqrt(variance / len(pairs))


def readers_questions(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Question and chapter of each entry of book/data/questions.yml."""
    return [
        (one["ask"], one["where"].partition("#")[0].removeprefix("book/"))
        for chapter in table.values()
        for one in chapter
        if "where" in one
    ]

"""What the model of the landing page learns from."""

import re

import pytest

from aiayn.data import load_corpus
from tools.records import everyday


def plain(sentence: str) -> str:
    """Without case and marks."""
    return " ".join(re.findall(r"\w+", sentence.casefold()))


@pytest.mark.parametrize("path", [everyday.PHRASES, everyday.SENTENCES])
def test_our_own_pairs_are_not_what_the_model_is_judged_by(path, data_folder):
    """Neither side of a pair is in the validation or the test split."""
    splits = load_corpus("tatoeba").splits
    english, german = (
        set(map(plain, side)) for side in zip(*everyday.pairs_of(path), strict=True)
    )
    for name in ("validation", "test"):
        assert english.isdisjoint(map(plain, splits[name].source))
        assert german.isdisjoint(map(plain, splits[name].target))


def test_the_training_pairs(data_folder, tmp_path):
    """Tatoeba's, the short ones three times; our own; the grammar's."""
    everyday.write_corpus(tmp_path)
    splits = load_corpus("tatoeba").splits
    for name in ("validation", "test"):
        written = (tmp_path / f"{name}.en").read_text(encoding="utf-8")
        assert written.splitlines() == list(splits[name].source)
    pairs = [
        (tmp_path / f"train.{side}").read_text(encoding="utf-8").splitlines()
        for side in ("en", "de")
    ]
    pairs = list(zip(*pairs, strict=True))
    short = sum(len(source.split()) <= 3 for source in splits["train"].source)
    phrases = everyday.pairs_of(everyday.PHRASES)
    ours = 10 * len(phrases) + 2 * len(everyday.pairs_of(everyday.SENTENCES))
    assert len(pairs) == len(splits["train"]) + 2 * short + ours + 15_000
    assert all(pairs.count(phrase) >= 10 for phrase in phrases[:3])

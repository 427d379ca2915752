"""A corpus so small that a training takes a second, and a run of it."""

import pytest

from tests.training.number_words import number_training, write_numbers


@pytest.fixture
def corpus_folder(tmp_path):
    """Parallel text of a few numbers each, translated word by word."""
    return write_numbers(tmp_path / "corpus")


@pytest.fixture
def config(corpus_folder, tmp_path):
    """A training of 24 steps; two epochs and a bit."""
    return number_training(corpus_folder, tmp_path / "run")

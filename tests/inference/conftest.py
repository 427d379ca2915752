"""A tokenizer for the tests that need text."""

import pytest

from aiayn.data import Tokenizer

LINES = [
    "a dog sees the small cat",
    "the old man reads a book",
    "two women walk to the big house",
    "ein Hund sieht die kleine Katze",
    "der alte Mann liest ein Buch",
    "zwei Frauen gehen zu dem großen Haus",
]


@pytest.fixture(scope="session")
def tokenizer():
    return Tokenizer.train(LINES, vocab_size=60)

"""The same seed gives the same training and the same search, bit by bit."""

import hashlib
from dataclasses import replace

import numpy as np

from aiayn.data import load_corpus
from aiayn.inference import beam_search_n_best, load_translator
from aiayn.inference.translation import encode_sources
from aiayn.training import train
from tests.soak.kills import result
from tests.training.number_words import number_training, write_numbers


def fingerprint(folder, seed):
    """A digest of all that a training leaves, and of every score of a search with it.

    Args:
        folder: An empty place.
        seed: Of the training.
    """
    config = number_training(write_numbers(folder / "corpus"), folder / "run")
    config = replace(config, seed=seed, steps=12, validate_every=4)
    train(config)
    total = hashlib.sha256()
    for name, part in sorted(result(config.output).items()):
        total.update(f"{name} {part!r}".encode())
    model, tokenizer = load_translator(config.output)
    lines = load_corpus(config.corpus).test.source
    rows = encode_sources(lines, model, tokenizer)
    source = rows.padded(np.arange(len(rows)), pad_id=0)
    ends = {"bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    found = beam_search_n_best(
        model, source, num_best=3, beam_size=4, extra_length=5, **ends
    )
    total.update(repr(found).encode())
    return total.hexdigest()

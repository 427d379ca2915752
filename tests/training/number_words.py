"""A corpus so small that a training takes a second, and the choices of such a run."""

import random
from dataclasses import replace

from aiayn.data import MemmapLines, ParallelText, load_corpus
from aiayn.model import TransformerConfig
from aiayn.training import TrainingConfig

NUMBERS = {
    "one": "eins",
    "two": "zwei",
    "three": "drei",
    "four": "vier",
    "five": "fünf",
    "six": "sechs",
    "seven": "sieben",
}


def write_numbers(folder):
    """Parallel text of a few numbers each, translated word by word."""
    folder.mkdir()
    draw = random.Random(0)
    for split, count in (("train", 200), ("validation", 20), ("test", 20)):
        lines = [
            draw.choices(list(NUMBERS), k=draw.randint(1, 3)) for _ in range(count)
        ]
        english = "".join(" ".join(line) + "\n" for line in lines)
        german = "".join(" ".join(NUMBERS[w] for w in line) + "\n" for line in lines)
        (folder / f"{split}.en").write_text(english, encoding="utf-8")
        (folder / f"{split}.de").write_text(german, encoding="utf-8")
    return folder


def number_training(corpus, output):
    """A training of 24 steps; two epochs of nine batches and a bit.

    No epoch ends where something is saved, and two batches a step leave one over.
    """
    return TrainingConfig(
        corpus=str(corpus),
        output=output,
        model=TransformerConfig.tiny(
            vocab_size=60,
            d_model=16,
            d_ff=32,
            num_heads=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
        ),
        tokens_per_batch=116,
        steps=24,
        warmup_steps=10,
        log_every=5,
        validate_every=8,
        validation_sentences=0,
        keep=2,
        device="cpu",
        threads=1,
        progress=False,
    )


def leave_on_disk(corpus, folder, monkeypatch):
    """Have trainings leave this corpus on disk, as they do with a large one."""
    corpus, sides = load_corpus(corpus), {}
    for side in ("source", "target"):
        path = folder / f"{side}.txt"
        text = "".join(f"{line}\n" for line in getattr(corpus.train, side))
        path.write_bytes(text.encode())
        sides[side] = MemmapLines.open(path)
    large = replace(corpus, splits={**corpus.splits, "train": ParallelText(**sides)})
    monkeypatch.setattr(
        "aiayn.training.preparation.load_corpus", lambda *_, **__: large
    )

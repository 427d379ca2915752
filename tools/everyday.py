"""Train the translator of everyday sentences that the landing page offers.

Usage: python tools/everyday.py RUN

Tatoeba's English-German pairs and, so that the model learns which pronoun refers to
what, some of the grammar's. RUN is a folder, in which an interrupted training goes on.
An hour or two of one core. tools/record_everyday.py makes the record of it.
"""

import argparse
from pathlib import Path

from aiayn.data import load_corpus
from aiayn.data.grammar import load_grammar
from aiayn.model import TransformerConfig
from aiayn.training import TrainingConfig, resume_training, train

GRAMMAR_PAIRS = 15_000
"""Pairs of the grammar among the 163,000 of Tatoeba."""

MODEL = TransformerConfig(
    vocab_size=6000,
    d_model=160,
    d_ff=608,
    num_heads=4,
    num_encoder_layers=4,
    num_decoder_layers=2,  # a translation waits for the decoder at every token
    dropout=0.1,
)


def write_corpus(folder: Path) -> None:
    """Tatoeba's three splits as text files; the grammar's pairs join the training.

    Validation is Tatoeba's alone: the model is chosen by it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    splits = load_corpus("tatoeba").splits
    pairs = {
        name: list(zip(s.source, s.target, strict=True)) for name, s in splits.items()
    }
    grammar = load_grammar(size=GRAMMAR_PAIRS, held_out_size=0)["train"]
    pairs["train"] += [(sample.source, sample.target) for sample in grammar]
    for name, found in pairs.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in found)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def configuration(run: Path, corpus: Path) -> TrainingConfig:
    """What the record was trained with."""
    return TrainingConfig(
        corpus=str(corpus),
        output=run,
        model=MODEL,
        max_length=64,
        tokens_per_batch=3072,
        packed_length=48,
        steps=15_000,
        warmup_steps=2000,
        cooldown_steps=9000,
        optimizer="muon",  # better than Adam here (chapter 21)
        validate_every=1000,
        validation_sentences=300,
        keep=4,
        precision="auto",
        threads=1,
    )


def main() -> None:
    """Read the command line; write the corpus; train, or go on."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run
    if (run / "config.json").exists():
        resume_training(run)
        return
    corpus = run.with_name(f"{run.name}-corpus")
    write_corpus(corpus)
    train(configuration(run, corpus))


if __name__ == "__main__":
    main()

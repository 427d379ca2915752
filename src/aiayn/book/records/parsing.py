"""§6.3, Table 4 in miniature: train parsers on more and more trees, and score them.

Usage: python -m aiayn.book.records.parsing FOLDER --commit COMMIT

Each training leaves its result in FOLDER, and one that is there is not run again: stop
it when you like, and type the same to go on. Whatever is done is written, as a record,
to FOLDER/parsing.json.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from aiayn.checkpoint import read_json, write_json
from aiayn.data import TREEBANKS, load_treebank, tree_pairs
from aiayn.errors import InputError
from aiayn.inference import parse, score_parses
from aiayn.machine import describe_machine
from aiayn.model import TransformerConfig
from aiayn.run import RunFolder
from aiayn.training import TrainingConfig, resume_training, train
from aiayn.trees import Tree, linearise

COMMAND = (
    "python -m aiayn.book.records.parsing runs/parsing --commit $(git rev-parse HEAD)"
)
SIZES = (1000, 3000, 10_000)
"""Of the trees to train on; the short ones among them are used."""
SEEDS = (1, 2, 3)
SENTENCES = 300
"""Held-out sentences that are parsed, greedily, to score a parser."""


def small_parser(**changes: Any) -> TrainingConfig:
    """A four-layer parser of the grammar: half a minute on one core."""
    config = TrainingConfig(
        corpus="grammar",
        target="trees",
        corpus_size=10_000,
        max_length=20,
        output=Path("runs/parser"),
        model=TransformerConfig.tiny(
            vocab_size=1200,
            d_model=64,
            d_ff=256,
            num_encoder_layers=4,
            num_decoder_layers=4,
            dropout=0.0,
            norm="pre",
        ),
        tokens_per_batch=512,
        steps=600,
        warmup_steps=100,
        cooldown_steps=300,
        learning_rate_scale=0.5,
        validate_every=600,
        validation_sentences=0,
        precision="auto",
        progress=False,
    )
    return replace(config, **changes)


def gum_parser(**changes: Any) -> TrainingConfig:
    """The same model on GUM's longer sentences: a minute or two on one core."""
    config = small_parser(
        corpus="gum",
        corpus_size=None,
        max_length=400,
        model=replace(small_parser().model, vocab_size=4000, dropout=0.1),
        tokens_per_batch=1024,
    )
    return replace(config, **changes)


def short(trees: Sequence[Tree], config: TrainingConfig) -> Sequence[Tree]:
    """The trees that are no longer than those that a parser was trained on."""
    if config.corpus == "gum":
        return trees
    return [tree for tree in trees if len(linearise(tree)) < config.max_length]


def score(gold: Sequence[Tree], model: Any, tokenizer: Any) -> dict[str, Any]:
    """How well a parser does on sentences whose trees are known, searching greedily."""
    sentences = [" ".join(tree.leaves) for tree in gold]
    parses = parse(sentences, model, tokenizer, beam_size=1)
    return {
        "sentences": len(gold),
        **score_parses(gold, parses)._asdict(),
        "f1_unrepaired": score_parses(gold, parses, repaired=False).f1,
        "ill_formed": fmean(p.fault is not None for p in parses),
        "wrong_tag_count": fmean(
            sum(symbol[0] not in "()" for symbol in p.symbols) != len(g.leaves)
            for p, g in zip(parses, gold, strict=True)
        ),
    }


def run_one(config: TrainingConfig) -> dict[str, Any]:
    """Train one parser; what came of it."""
    cpu, wall = time.process_time(), time.perf_counter()
    begun = RunFolder(config.output).state.exists()
    result = resume_training(config.output) if begun else train(config)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    bank = load_treebank(config.corpus, size=1)
    last = result.log[-1]
    return {
        "corpus": config.corpus,
        "sentences": result.log[0]["data"]["pairs"],
        "seed": config.seed,
        "parameters": result.log[0]["parameters"],
        "config": config.as_dict() | {"output": config.output.name},
        "loss": last["loss"],
        "cpu_seconds": round(cpu, 1),
        "seconds": round(wall, 1),
        "scores": {
            split: score(
                short(bank[split], config)[:SENTENCES], result.model, result.tokenizer
            )
            for split in ("test", "combinations")
            if split in bank
        },
        "machine": describe_machine("cpu"),
    }


def lengths(name: str) -> dict[str, float]:
    """How long sentences and their linearised trees are, in the training split."""
    text = tree_pairs(load_treebank(name, size=4000)["train"])
    words = [len(line.split()) for line in text.source]
    symbols = [len(line.split()) for line in text.target]
    return {
        "sentences": len(text),
        "words": fmean(words),
        "symbols": fmean(symbols),
        "longest": max(symbols),
        "kinds": len({symbol for line in text.target for symbol in line.split()}),
        "over_50_more": fmean(s > w + 50 for w, s in zip(words, symbols, strict=True)),
    }


def plan(folder: Path) -> Iterator[TrainingConfig]:
    """Every training: all seeds on most trees, GUM, then on fewer and fewer trees."""
    for size in reversed(SIZES):
        for seed in SEEDS:
            name = folder / f"grammar-{size}-{seed}"
            yield small_parser(corpus_size=size, seed=seed, output=name)
        if size == SIZES[-1]:
            yield gum_parser(output=folder / "gum-1")


def main() -> None:
    """Run what is not done yet, and write the record after each training."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commit", required=True, help="the code that runs")
    words = parser.parse_args()
    record: dict[str, Any] = {"command": COMMAND, "commit": words.commit}
    record |= {"lengths": {}, "runs": []}
    for name in TREEBANKS:
        with suppress(InputError):  # without GUM, its runs say so below
            record["lengths"][name] = lengths(name)
    for config in plan(words.folder):
        done = config.output / "result.json"
        try:
            if not done.exists():
                write_json(done, run_one(config))
        except InputError as error:
            print(f"{config.output.name}: {error}")
            continue
        record["runs"].append(read_json(done))
        print(config.output.name, record["runs"][-1]["scores"]["test"], flush=True)
        write_json(words.folder / "parsing.json", record)


if __name__ == "__main__":
    main()

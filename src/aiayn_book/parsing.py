"""§6.3, Table 4 in miniature: the parsers of chapter 19, and how they are scored.

``tools/records/parsing.py`` trains all of them and keeps what came of it.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from aiayn.model import TransformerConfig
from aiayn.parsing import (
    Tree,
    linearise,
    load_treebank,
    parse,
    score_parses,
    tree_pairs,
)
from aiayn.training import TrainingConfig
from aiayn_book.gum import read_gum

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
    """The same model on GUM's longer sentences: a minute or two on one core.

    The corpus is a folder that `aiayn_book.gum.write_gum` has written.
    """
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


def lengths(name: str) -> dict[str, float]:
    """How long sentences and their linearised trees are, in the training split."""
    trees = read_gum() if name == "gum" else load_treebank(size=4000)
    text = tree_pairs(trees["train"])
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

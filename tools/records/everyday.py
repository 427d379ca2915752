"""Train and record the translator of everyday sentences that the landing page offers.

Usage: python -m tools.records.everyday RUN

It learns from Tatoeba's English-German pairs; from some of the grammar's, which teach
it what a pronoun refers to; and from `phrases.tsv`, greetings and the like of our own.
RUN is a folder; a training that was interrupted there is continued. Afterwards the
weights are stored in the book's records, with eight bits each, and so are the scores on
the test split before and after that rounding. About 90 minutes of two cores.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from sacrebleu import CHRF

from aiayn.data import Tokenizer, load_corpus
from aiayn.data.grammar import load_grammar
from aiayn.inference import evaluate_bleu, load_translator, translate
from aiayn.inference.evaluation import exact_match_rate
from aiayn.model import Transformer, TransformerConfig
from aiayn.storage import RunFolder, read_json, write_json
from aiayn.training import TrainingConfig, resume_training, train
from aiayn_book.live import EVERYDAY, QuantisedModel
from tools.project import RECORDS, commit

CORPUS = "tatoeba, grammar and phrases"
LENGTH_PENALTY = 1.0
"""As in the page; 0 and 0.6 were worse on the validation split."""
GRAMMAR_PAIRS = 15_000
"""Pairs of the grammar among Tatoeba's: they teach which noun a pronoun refers to."""

SHORT, SHORT_REPEATS = 3, 3
"""A source of at most 3 words is read 3 times: visitors type such sentences first."""
PHRASES = Path(__file__).with_name("phrases.tsv")
PHRASE_REPEATS = 10
"""No phrase is in Tatoeba's validation or test split, even without case and marks."""

BEST = "best.safetensors"
"""The checkpoint: better than their average on the validation split."""

MODEL = TransformerConfig(
    vocab_size=6000,
    d_model=160,
    d_ff=608,
    num_heads=4,
    num_encoder_layers=4,
    num_decoder_layers=2,  # a translation waits for the decoder at every token
    dropout=0.1,
    positions="rotary",  # chapter 21
)


def phrases() -> list[tuple[str, str]]:
    """Our own pairs: what people say every day, and what Tatoeba seldom has."""
    _, *lines = PHRASES.read_text(encoding="utf-8").splitlines()
    return [(english, german) for english, german in (x.split("\t") for x in lines)]


def write_corpus(folder: Path) -> None:
    """Tatoeba's three splits as text files; the training split gets further pairs.

    Validation is Tatoeba's alone: the model is chosen by it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    splits = load_corpus("tatoeba").splits
    pairs = {
        name: list(zip(s.source, s.target, strict=True)) for name, s in splits.items()
    }
    grammar = load_grammar(size=GRAMMAR_PAIRS, held_out_size=0)["train"]
    short = [pair for pair in pairs["train"] if len(pair[0].split()) <= SHORT]
    pairs["train"] += short * (SHORT_REPEATS - 1) + phrases() * PHRASE_REPEATS
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
        steps=16_000,
        warmup_steps=2000,
        cooldown_steps=9500,
        optimizer="muon",  # it needs fewer steps than Adam (chapter 21)
        validate_every=1000,
        validation_sentences=300,
        keep=4,
        precision="auto",
        threads=2,
    )


def translations(
    model: Transformer, tokenizer: Tokenizer, sources: Sequence[str]
) -> list[str]:
    """As the page makes them: a beam of four, chosen by the validation split."""
    return translate(
        list(sources), model, tokenizer, beam_size=4, length_penalty=LENGTH_PENALTY
    )


def scores(model: Transformer, tokenizer: Tokenizer) -> dict[str, Any]:
    """Tatoeba's test split, and what the grammar holds out."""
    test = load_corpus("tatoeba").splits["test"]
    written = translations(model, tokenizer, test.source)
    bleu = evaluate_bleu(written, test.target)
    grammar = load_grammar(size=0)
    exact = {
        name: exact_match_rate(
            translations(model, tokenizer, [one.source for one in grammar[name]]),
            [one.target for one in grammar[name]],
        )
        for name in ("test", "combinations")
    }
    return {
        "sentences": len(test.source),
        "bleu": bleu.score,
        "printed": bleu.text,
        "chrf": CHRF().corpus_score(written, [list(test.target)]).score,
        "grammar_exact": exact,
    }


def record(run: RunFolder) -> dict[str, Any]:
    """Everything that is known of the model, besides its weights."""
    config = TrainingConfig.from_dict(read_json(run.config))
    log = run.read_log()
    trained, tokenizer = load_translator(run.path / BEST)
    assert isinstance(trained, Transformer)
    quantised = QuantisedModel.load(RECORDS / f"{EVERYDAY}.safetensors")
    return {
        "command": f"python -m tools.records.everyday runs/{run.path.name}",
        "commit": commit(),
        "machine": log[0]["machine"],
        "config": config.as_dict() | {"output": run.path.name, "corpus": CORPUS},
        "grammar_pairs": GRAMMAR_PAIRS,
        "runs": [{"log": log}],
        "before": scores(trained, tokenizer),
        "after": scores(quantised.model(), Tokenizer(quantised.tokenizer)),
    }


def main() -> None:
    """Read the command line; write the corpus; train, or go on; make the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    run = RunFolder(parser.parse_args().run)
    if run.config.exists():
        resume_training(run.path)
    else:
        corpus = run.path.with_name(f"{run.path.name}-corpus")
        write_corpus(corpus)
        train(configuration(run.path, corpus))
    torch.set_num_threads(1)
    model, _ = load_translator(run.path / BEST)
    assert isinstance(model, Transformer)
    quantised = QuantisedModel.of(model, run.tokenizer.read_bytes())
    quantised.save(RECORDS / f"{EVERYDAY}.safetensors")
    content = record(run)
    write_json(RECORDS / f"{EVERYDAY}.json", content)
    print(content["before"], content["after"], sep="\n")


if __name__ == "__main__":
    main()

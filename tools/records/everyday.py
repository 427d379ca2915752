"""Train and record the translator of everyday sentences that the landing page offers.

Usage: python -m tools.records.everyday RUN

It learns from Tatoeba's English-German pairs; from some of the grammar's, which teach
it what a pronoun refers to; from `phrases.tsv`, greetings and the like of our own; and
from `sentences.tsv`, which a large language model wrote for this book, English and
German, mostly with words that are rare in Tatoeba's training split.
It is trained twice, and each time the learning rate falls to zero: the second training
begins with the weights of the first, stored with eight bits each, and a new optimizer.
Afterwards its weights are in the book's records, with eight bits each, and so are the
scores on the test split before and after that rounding.

RUN is a folder; what was interrupted there is continued. Both trainings take about
three hours of two cores. With `--again STEPS` there is only one, which begins with the
model on record. The record lists each training that its model has had.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from sacrebleu import CHRF

from aiayn.data import Tokenizer, load_corpus
from aiayn.data.grammar import load_grammar
from aiayn.device import describe_machine
from aiayn.inference import evaluate_bleu, load_translator, translate
from aiayn.inference.evaluation import exact_match_rate
from aiayn.model import Transformer, TransformerConfig
from aiayn.storage import RunFolder, read_json, write_json
from aiayn.training import Trainer, TrainingConfig, resume_training, train
from aiayn.training.preparation import write_config
from aiayn.training.run_log import Progress, RunLog
from aiayn_book.live import EVERYDAY, SEARCH, QuantisedModel, load_quantised
from aiayn_book.records import load_record
from tools.project import RECORDS, commit

CORPUS = "tatoeba, grammar, phrases and sentences"
GRAMMAR_PAIRS = 15_000
"""Pairs of the grammar among Tatoeba's: they teach which noun a pronoun refers to."""

SHORT, SHORT_REPEATS = 3, 3
"""A source of at most 3 words is read 3 times: visitors type such sentences first."""
PHRASES = Path(__file__).with_name("phrases.tsv")
PHRASE_REPEATS = 10
SENTENCES = Path(__file__).with_name("sentences.tsv")
"""No pair of these two files has a side that is in Tatoeba's validation or test split,
even without case and marks."""
SENTENCE_REPEATS = 2

STEPS, FURTHER_STEPS = 16_000, 8000
"""Of the first training, and of the second."""
BEST = "best.safetensors"
"""The checkpoint: better than their average on the validation split."""

MODEL = TransformerConfig(
    vocab_size=6000,
    d_model=160,
    d_ff=608,
    num_heads=4,
    num_encoder_layers=4,
    num_decoder_layers=2,  # a translation waits for the decoder at every token
    dropout=0.1,  # a further training with 0 or with 0.2 was worse on validation
    positions="rotary",  # chapter 21
)


def pairs_of(path: Path) -> list[tuple[str, str]]:
    """English and German, a tab between them, below a line of titles."""
    _, *lines = path.read_text(encoding="utf-8").splitlines()
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
    pairs["train"] += short * (SHORT_REPEATS - 1)
    pairs["train"] += pairs_of(PHRASES) * PHRASE_REPEATS
    pairs["train"] += pairs_of(SENTENCES) * SENTENCE_REPEATS
    pairs["train"] += [(sample.source, sample.target) for sample in grammar]
    for name, found in pairs.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in found)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def configuration(output: Path, corpus: Path) -> TrainingConfig:
    """Every choice of the first training."""
    return TrainingConfig(
        corpus=str(corpus),
        output=output,
        model=MODEL,
        max_length=64,
        tokens_per_batch=3072,
        packed_length=48,
        steps=STEPS,
        warmup_steps=2000,
        cooldown_steps=9500,
        optimizer="muon",  # it needs fewer steps than Adam (chapter 21)
        validate_every=1000,
        validation_sentences=300,
        keep=4,
        precision="auto",
        threads=2,
    )


def train_first(run: RunFolder, corpus: Path) -> None:
    """From random weights, or from where it was interrupted."""
    if run.config.exists():
        resume_training(run.path)
    else:
        train(configuration(run.path, corpus))


def train_further(
    run: RunFolder, corpus: Path, start: QuantisedModel, log: Sequence[dict], more: int
) -> None:
    """From a trained model's weights, or from where it was interrupted.

    Args:
        run: Of this training.
        corpus: As `write_corpus` wrote it.
        start: The model of the training before.
        log: Of the training before; steps and epochs are counted on from there.
        more: How many steps.
    """
    if not run.config.exists():
        torch.set_num_threads(2)
        run.path.mkdir(parents=True)
        run.tokenizer.write_bytes(start.tokenizer)
        steps, epoch = (max(line.get(k, 0) for line in log) for k in ("step", "epoch"))
        config = replace(
            configuration(run.path, corpus),
            steps=steps + more,
            cooldown_steps=more,  # all of them
        )
        write_config(config, run, {})
        trainer = Trainer(config, start.model().train(), Tokenizer.bos_id)
        begin = RunLog(run, trainer, Progress(step=steps, epoch=epoch + 1))
        begin.write(
            event="begin",
            parameters=sum(weight.numel() for weight in start.weights().values()),
            machine=describe_machine(trainer.processes.device),
        )
        begin.save_state()
    resume_training(run.path)


def translations(
    model: Transformer, tokenizer: Tokenizer, sources: Sequence[str]
) -> list[str]:
    """As the page makes them."""
    return translate(list(sources), model, tokenizer, **SEARCH)


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


def trained(run: RunFolder) -> dict[str, Any]:
    """What the record keeps of a training."""
    config = TrainingConfig.from_dict(read_json(run.config))
    return {
        "commit": commit(),
        "config": config.as_dict() | {"output": run.path.name, "corpus": CORPUS},
        "log": run.read_log(),
    }


def best(run: RunFolder) -> tuple[Transformer, QuantisedModel]:
    """The model of a training, and what is stored of it."""
    model, _ = load_translator(run.path / BEST)
    assert isinstance(model, Transformer)
    return model, QuantisedModel.of(model, run.tokenizer.read_bytes())


def main() -> None:
    """Read the command line; write the corpus; train, or go on; make the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--again",
        type=int,
        metavar="STEPS",
        help="train the model on record further, by so many steps",
    )
    options = parser.parse_args()
    corpus = options.run / "corpus"
    if not corpus.exists():
        write_corpus(corpus)
    first, further = (RunFolder(options.run / name) for name in ("first", "further"))
    if options.again:
        earlier, start = load_record(EVERYDAY)["runs"], load_quantised(EVERYDAY)
    else:
        train_first(first, corpus)
        earlier, start = [trained(first)], best(first)[1]
    more = options.again or FURTHER_STEPS
    train_further(further, corpus, start, earlier[-1]["log"], more)
    torch.set_num_threads(1)
    model, quantised = best(further)
    quantised.save(RECORDS / f"{EVERYDAY}.safetensors")
    tokenizer, last = Tokenizer(quantised.tokenizer), trained(further)
    again = f" --again {more}" if options.again else ""
    content = {
        "command": f"python -m tools.records.everyday runs/{options.run.name}{again}",
        "machine": last["log"][0]["machine"],
        "commit": last["commit"],
        "config": last["config"],
        "grammar_pairs": GRAMMAR_PAIRS,
        "search": SEARCH,
        "runs": [*earlier, last],
        "before": scores(model, tokenizer),
        "after": scores(quantised.model(), tokenizer),
    }
    write_json(RECORDS / f"{EVERYDAY}.json", content)
    print(content["before"], content["after"], sep="\n")


if __name__ == "__main__":
    main()

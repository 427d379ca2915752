"""Make the record of the model in the page: eight bits a weight, scored as it is there.

Usage: python -m tools.records.live RUN --trained-by COMMAND --commit COMMIT

RUN is the folder that ``aiayn train grammar`` wrote, COMMAND what was typed, COMMIT the
code that it ran, which must be this tree's: it scores too. Two files are written: the
weights with their tokenizer, and everything else as JSON. Greedy search, as in the
page; exact match on the test split and on the held-out combinations, before and after
quantisation; and, on validation sentences, what is left when one thing is switched off.
About two minutes of one core.
"""

import argparse
import itertools
import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import torch

from aiayn.data import Tokenizer
from aiayn.data.grammar import GrammarSample, load_grammar
from aiayn.inference import evaluate_bleu, load_translator, translate
from aiayn.inference.evaluation import exact_match_rate
from aiayn.model import Transformer
from aiayn.storage import RunFolder, read_json, write_json
from aiayn.training import TrainingConfig
from aiayn_book.head_scores import all_heads, without_heads
from aiayn_book.live import NAME, QuantisedModel, without_positions, without_scale
from tools.project import RECORDS, commit

ABLATED = 200
"""Validation sentences that are translated once for each switch."""
FOLLOWERS = 8
"""Words that are suggested after a word."""
EXAMPLES = 4
"""Test sentences of each kind that the page offers, none longer than so many words:"""
LONGEST_EXAMPLE = 12


def write(
    model: Transformer, tokenizer: Tokenizer, samples: Sequence[GrammarSample]
) -> list[str]:
    """Translations as the page makes them."""
    sources = [sample.source for sample in samples]
    return translate(sources, model, tokenizer, beam_size=1)


def exact(
    model: Transformer, tokenizer: Tokenizer, samples: Sequence[GrammarSample]
) -> float:
    """The share of the samples that is translated word for word."""
    targets = [sample.target for sample in samples]
    return exact_match_rate(write(model, tokenizer, samples), targets)


def switches(model: Transformer) -> dict[str, AbstractContextManager]:
    """Everything that the page can switch off, by the page's names."""
    found: dict[str, AbstractContextManager] = {
        "all on": ExitStack(),
        "scale": without_scale(model),
        "positions": without_positions(model),
    }
    for use, layer, head in all_heads(model):
        place = f"{use}/{layer}/{head}"
        found[place] = without_heads(model, [(use, layer, head)])
    return found


def followers(samples: Sequence[GrammarSample]) -> dict[str, str]:
    """Each word of the training sentences, and the words that follow it most often.

    The most frequent words stand first. Sentences begin after the empty word, with a
    small letter where the word has one elsewhere.
    """
    inside = {word for sample in samples for word in sample.source_tokens[1:]}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    frequency: Counter[str] = Counter()
    for sample in samples:
        first, *others = sample.source_tokens
        small = first[0].lower() + first[1:]
        proper = first in inside and small not in inside
        words = ["", first if proper else small, *others]
        frequency.update(words)
        for word, following in itertools.pairwise(words):
            counts[word][following] += 1
    return {
        word: " ".join(
            following for following, _ in counts[word].most_common(FOLLOWERS)
        )
        for word, _ in frequency.most_common()
    }


def examples(samples: Sequence[GrammarSample]) -> list[tuple[str, str]]:
    """The first short sentences of each kind, with the grammar's translation."""
    kept: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for sample in samples:
        found = kept[sample.kind]
        if len(found) < EXAMPLES and len(sample.source_tokens) <= LONGEST_EXAMPLE:
            found.append((sample.source, sample.target))
    return [pair for kind in sorted(kept) for pair in kept[kind]]


def record(
    run: RunFolder, command: str, made_with: str, quantised: QuantisedModel
) -> dict[str, Any]:
    """All that the page and its tests want to know besides the weights."""
    config = TrainingConfig.from_dict(read_json(run.config))
    corpus = load_grammar(size=config.corpus_size or 0)
    trained, tokenizer = load_translator(run.path)
    assert isinstance(trained, Transformer)
    model = quantised.model()
    test = corpus["test"]
    scores = evaluate_bleu(
        write(model, tokenizer, test), [sample.target for sample in test]
    )
    splits = {name: corpus[name] for name in ("test", "combinations")}
    typed = ["python", "-m", "tools.records.live", f"runs/{run.path.name}"]
    typed += ["--trained-by", command, "--commit", made_with]
    off = {}
    for name, switch in switches(model).items():
        with switch:
            off[name] = exact(model, tokenizer, corpus["validation"][:ABLATED])
    return {
        "command": command,
        "quantised_by": shlex.join(typed),
        "commit": made_with,
        "config": config.as_dict() | {"output": run.path.name},
        "log": run.read_log(),
        "test": {"bleu": scores.score, "printed": scores.text},
        "sentences": {name: len(samples) for name, samples in splits.items()},
        "exact": {n: exact(model, tokenizer, s) for n, s in splits.items()},
        "exact_before": {n: exact(trained, tokenizer, s) for n, s in splits.items()},
        "switched_off": {"sentences": ABLATED, "exact": off},
        "examples": examples(test),
        "followers": followers(corpus["train"]),
    }


def main() -> None:
    """Read the command line, write both files, print the scores."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--trained-by", required=True, metavar="COMMAND")
    parser.add_argument("--commit", required=True, help="what the run was made with")
    words = parser.parse_args()
    made_with = commit(words.commit)
    torch.set_num_threads(1)
    run = RunFolder(words.run)
    model, _ = load_translator(run.path)
    assert isinstance(model, Transformer)
    quantised = QuantisedModel.of(model, run.tokenizer.read_bytes())
    path = RECORDS / f"{NAME}.safetensors"
    quantised.save(path)
    stored = QuantisedModel.load(path)
    content = record(run, words.trained_by, made_with, stored)
    write_json(RECORDS / f"{NAME}.json", content)
    print(f"{path.stat().st_size:,} bytes; exactly right: {content['exact']}")


if __name__ == "__main__":
    main()

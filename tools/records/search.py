"""Make the record of chapter 17: what search and averaging are worth, and their cost.

Usage: python -m tools.records.search RUN [RUN ...] --trained-by COMMAND

Each RUN is a folder that ``aiayn train`` wrote, one a seed, with several checkpoints;
COMMAND is what was typed to train them. One thing at a time is varied around the
paper's search, on the validation set. The test set is scored once for each run, with
what was chosen on validation. With several runs, the first two of them, three, …, all
also write together, as an ensemble; all together translate the test set once. Some
three minutes of one core for each run on Multi30k; with ``--keep 10`` in training, the
mean of 10 checkpoints is tried too.
"""

import argparse
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from aiayn.data import Tokenizer, encode_lines, load_corpus, map_batches
from aiayn.data.parallel import ParallelText
from aiayn.device import describe_machine
from aiayn.errors import InputError
from aiayn.inference import Hypothesis, evaluate_bleu, load_translator
from aiayn.inference.translation import encode_sources, search
from aiayn.model import shift_right
from aiayn.storage import RunFolder, load_weights, read_json, write_json
from aiayn.training import TrainingConfig
from aiayn.training.averaging import average_checkpoints
from aiayn_book.bleu import (
    bleu,
    bootstrap_differences,
    sentence_counts,
    split_compounds,
    words_13a,
)
from aiayn_book.ensemble import Ensemble
from tools.project import RECORDS, commit

BATCH = 2048  # source pieces
SENTENCES = 1014  # of validation
PART = 300  # of them, for beams of 16 and 32


@dataclass(frozen=True)
class Setting:
    """One way from checkpoints to translations; the defaults are the paper's."""

    averaged: int = 5
    beam: int = 4
    alpha: float = 0.6
    extra: int = 50
    part: bool = False  # on a part of the sentences, for it takes long


PAPER = Setting()
CHEAP_BEAMS, DEAR_BEAMS = (1, 2, 8), (16, 32)
AVERAGED, ALPHAS, EXTRAS = (1, 2, 10), (0.0, 0.3, 1.0, 1.5, 2.0), (0, 5, 10)


def settings() -> Iterator[Setting]:
    """The paper's, and those that differ from it in one thing; beams also at α = 0."""
    yield PAPER
    yield from (replace(PAPER, averaged=number) for number in AVERAGED)
    yield from (replace(PAPER, alpha=alpha) for alpha in ALPHAS)
    yield from (replace(PAPER, extra=extra) for extra in EXTRAS)
    yield from (replace(PAPER, beam=beam) for beam in CHEAP_BEAMS)
    yield from (replace(PAPER, beam=beam, alpha=0.0) for beam in CHEAP_BEAMS[1:])
    for alpha in (PAPER.alpha, 0.0):
        part = replace(PAPER, part=True, alpha=alpha)
        yield part
        yield from (replace(part, beam=beam) for beam in DEAR_BEAMS)


class Counted(nn.Module):
    """A model that counts how often its decoder runs, and for how many hypotheses."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.config = model, model.config
        self.steps = self.rows = 0

    def init_decode(self, source: Tensor) -> Any:
        """As the model's own."""
        return self.model.init_decode(source)

    def decode_step(self, tokens: Tensor, state: Any) -> Tensor:
        """As the model's own, counted."""
        self.steps += 1
        self.rows += len(tokens)
        return self.model.decode_step(tokens, state)


@dataclass
class Found:
    """What a setting wrote, and at what cost."""

    hypotheses: list[Hypothesis]
    texts: list[str]
    counts: np.ndarray  # (sentences, 9)
    steps: int
    rows: int
    seconds: float


class Run:
    """One training's checkpoints, searched in many ways; nothing is searched twice."""

    def __init__(self, path: Path, sentences: int, part: int) -> None:
        self.folder = RunFolder(path)
        self.config = TrainingConfig.from_dict(read_json(self.folder.config))
        self.model, self.tokenizer = load_translator(path)
        names = {"source": self.config.source, "target": self.config.target}
        corpus = load_corpus(self.config.corpus, **names)
        self.task = self.config.corpus, names, self.tokenizer.digest
        self.validation = every(corpus.validation, sentences)
        self.part = every(self.validation, part)
        self.test = corpus.test
        self.find, self.references = cache(self.find), cache(self.references)
        self.loaded = 0
        if len(self.folder.checkpoints()) < PAPER.averaged:
            raise InputError(f"{path} holds fewer than {PAPER.averaged} checkpoints.")

    def load(self, averaged: int) -> None:
        """Take the mean of the last checkpoints."""
        if averaged != self.loaded:
            paths = self.folder.checkpoints()[-averaged:]
            load_weights(self.model, average_checkpoints(paths)[0], paths[-1])
            self.loaded = averaged

    def possible(self) -> list[Setting]:
        """Settings that average no more checkpoints than there are."""
        there = len(self.folder.checkpoints())
        return [setting for setting in settings() if setting.averaged <= there]

    def text(self, setting: Setting) -> ParallelText:
        """The sentences that this setting is tried on."""
        return self.part if setting.part else self.validation

    def find(self, setting: Setting) -> Found:
        """Search the validation set."""
        return self.decode(setting, self.text(setting))

    def decode(self, setting: Setting, text: ParallelText) -> Found:
        """Search any text."""
        self.load(setting.averaged)
        return decode(self.model, self.tokenizer, setting, text)

    def row(self, setting: Setting) -> dict[str, Any]:
        """A setting beside the paper's; a beam also beside one of 4."""
        found = self.find(setting)
        paper = self.find(replace(PAPER, part=setting.part))
        four = self.find(replace(setting, beam=4))
        text = self.text(setting)
        limits = encode_sources(text.source, self.model, self.tokenizer).lengths
        scored = np.array([one.log_probability for one in found.hypotheses])
        lengths = np.array([len(one.tokens) + 1 for one in found.hypotheses])
        reference, length = found.counts.sum(axis=0)[[0, 5]]
        return (
            asdict(setting)
            | {
                "sentences": len(text),
                "bleu": round(evaluate_bleu(found.texts, text.target).score, 3),
                "difference": difference(found.counts, paper.counts),
                "difference_to_beam_4": difference(found.counts, four.counts),
                "length_ratio": round(float(length / reference), 4),
                "log_probability": round(float(scored.mean()), 4),
                "at_limit": int((lengths >= limits + setting.extra).sum()),
                "decoder_steps": found.steps,
                "decoder_rows": found.rows,
                "cpu_seconds": round(found.seconds, 2),
            }
            | self.beside_references(setting, scored)
        )

    def beside_references(self, setting: Setting, found: np.ndarray) -> dict[str, Any]:
        """Search errors that are certain: the model itself prefers the reference."""
        if setting.averaged != PAPER.averaged:
            return {}
        right = self.references(setting.part)
        return {
            "reference_log_probability": round(float(right.mean()), 4),
            "reference_is_more_probable": int((right > found + 1e-3).sum()),
        }

    def references(self, part: bool) -> np.ndarray:
        """Log-probability that the paper's average gives each reference."""
        text = self.part if part else self.validation
        self.load(PAPER.averaged)
        return log_probabilities(self.model, self.tokenizer, text)

    def perplexities(self) -> list[dict[str, Any]]:
        """Each average's perplexity a piece, and that of the single checkpoints."""
        given = self.model, self.tokenizer, self.validation
        rows = []
        paths = self.folder.checkpoints()
        for number in sorted({1, 2, 5, 10} & set(range(1, len(paths) + 1))):
            self.load(number)
            rows.append({"averaged": number, "perplexity": perplexity(*given)})
        for path in paths[:-1]:
            load_weights(self.model, average_checkpoints([path])[0], path)
            self.loaded = 0
            rows.append({"checkpoint": path.stem, "perplexity": perplexity(*given)})
        return rows

    def choice(self) -> Setting:
        """The best on validation: first how many to average, then beam, then α.

        Only what was tried on all sentences; of equals the first in `settings`.
        """
        chosen = PAPER
        whole = [setting for setting in self.possible() if not setting.part]
        for name in ("averaged", "beam", "alpha"):
            tried = [
                setting
                for setting in whole
                if replace(setting, **{name: getattr(PAPER, name)}) == PAPER
            ]
            best = max(tried, key=lambda one: bleu(self.find(one).counts.sum(axis=0)))
            chosen = replace(chosen, **{name: getattr(best, name)})
        return chosen

    def record(self) -> dict[str, Any]:
        """All that chapter 17 draws of this run."""
        rows = []
        for setting in self.possible():
            rows.append(self.row(setting))
            print(rows[-1], file=sys.stderr, flush=True)
        chosen = self.choice()
        test = self.decode(chosen, self.test)
        scored = evaluate_bleu(test.texts, self.test.target)
        paper, greedy = self.find(PAPER), self.find(replace(PAPER, beam=1))
        return {
            "name": self.folder.path.name,
            "config": self.config.as_dict() | {"output": self.folder.path.name},
            "steps": [int(p.stem.split("-")[1]) for p in self.folder.checkpoints()],
            "minutes": round(self.folder.read_log()[-1]["seconds"] / 60, 1),
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "pieces": self.pieces(),
            "settings": rows,
            "perplexities": self.perplexities(),
            "conventions": conventions(paper.texts, self.validation.target),
            "counts": {
                "reference": compact(paper.counts[:, :1]),
                "paper": compact(paper.counts[:, [5, 1, 2, 3, 4]]),
                "greedy": compact(greedy.counts[:, [5, 1, 2, 3, 4]]),
            },
            "test": asdict(chosen)
            | {
                "sentences": len(self.test),
                "bleu": scored.score,
                "printed": scored.text,
                "conventions": conventions(test.texts, self.test.target),
            },
        }

    def pieces(self) -> int:
        """Target pieces that the training saw."""
        log = self.folder.read_log()
        return sum(line["tokens"] for line in log if line["event"] == "train")


def decode(
    model: Any, tokenizer: Tokenizer, setting: Setting, text: ParallelText
) -> Found:
    """Search a text with whatever weights the model has."""
    counted = Counted(model)
    rows = encode_sources(text.source, model, tokenizer)
    began = time.process_time()
    found = map_batches(
        lambda source: search(
            counted,  # type: ignore[arg-type]  # all that a search asks for
            source,
            tokenizer,
            beam_size=setting.beam,
            length_penalty=setting.alpha,
            extra_length=setting.extra,
        ),
        rows,
        BATCH,
    )
    seconds = time.process_time() - began
    texts = tokenizer.decode_batch([one.tokens for one in found])
    counts = counts_13a(texts, text.target)
    return Found(found, texts, counts, counted.steps, counted.rows, seconds)


def require_one_task(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot write together, or whose scores cannot be compared.

    Raises:
        InputError: One has another corpus, direction or tokenizer than the first.
    """
    for run in runs:
        if run.task != runs[0].task:
            raise InputError(
                f"{run.folder.path} was trained on another corpus, in another "
                f"direction or with another tokenizer than {runs[0].folder.path}."
            )


def ensembles(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """The paper's search by the first two runs together, the first three, …, all."""
    rows = []
    for number in range(2, len(runs) + 1):
        some = runs[:number]
        alone = [run.find(PAPER) for run in some]
        for run in some:
            run.load(PAPER.averaged)
        model = Ensemble([run.model for run in some])
        tokenizer, text = some[0].tokenizer, some[0].validation
        found = decode(model, tokenizer, PAPER, text)
        rows.append(
            {
                "runs": [run.folder.path.name for run in some],
                "bleu": round(bleu(found.counts.sum(axis=0)), 3),
                "differences": [difference(found.counts, x.counts) for x in alone],
                "perplexity": perplexity(model, tokenizer, text),
                "decoder_rows": number * found.rows,
                "cpu_seconds": round(found.seconds, 2),
            }
        )
        if number == len(runs):
            test = decode(model, tokenizer, PAPER, some[0].test)
            scored = evaluate_bleu(test.texts, some[0].test.target)
            rows[-1]["test"] = {"bleu": scored.score, "printed": scored.text}
    return rows


def every(text: ParallelText, number: int) -> ParallelText:
    """So many pairs, spread evenly over all."""
    places = range(0, len(text), max(1, -(-len(text) // number)))
    sides = ([side[i] for i in places] for side in (text.source, text.target))
    return ParallelText(*map(tuple, sides))


def counts_13a(texts: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """What each sentence adds to the score that sacreBLEU gives by default."""
    pairs = zip(texts, references, strict=True)
    return np.array([sentence_counts(words_13a(a), words_13a(b)) for a, b in pairs])


def difference(one: np.ndarray, other: np.ndarray) -> list[float]:
    """BLEU of one less that of the other, and the bootstrap's middle 95 %."""
    drawn = bootstrap_differences(one, other)
    exact = bleu(one.sum(0)) - bleu(other.sum(0))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return [round(float(number), 3) for number in (exact, low, high)]


def conventions(texts: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    """One set of translations, scored in the ways that papers score."""

    def on_words(change: Any) -> float:
        sides = ([" ".join(change(line)) for line in x] for x in (texts, references))
        return round(evaluate_bleu(*sides, tokenize="none").score, 3)

    def plain(**options: Any) -> float:
        return round(evaluate_bleu(texts, references, **options).score, 3)

    split = np.array(
        [
            sentence_counts(*(split_compounds(words_13a(line)) for line in pair))
            for pair in zip(texts, references, strict=True)
        ]
    )
    words = [word for line in references for word in words_13a(line)]
    return {
        "13a": plain(),
        "13a, lower case": plain(lowercase=True),
        "intl": plain(tokenize="intl"),
        "not tokenised": plain(tokenize="none"),
        "characters": plain(tokenize="char"),
        "13a, compounds split": on_words(lambda line: split_compounds(words_13a(line))),
        "splitting": difference(split, counts_13a(texts, references)),
        "words": len(words),
        "hyphenated": sum(split_compounds([word]) != [word] for word in words),
    }


def log_probabilities(
    model: Any, tokenizer: Tokenizer, text: ParallelText
) -> np.ndarray:
    """What a model gives to each target, its end token included."""
    sources = encode_lines(text.source, tokenizer)
    targets = encode_lines(text.target, tokenizer)
    found = np.zeros(len(text))
    order = np.argsort(targets.lengths, kind="stable")
    with torch.inference_mode():
        for rows in np.array_split(order, max(1, len(order) // 64)):
            source, target = (
                side.padded(rows, tokenizer.pad_id) for side in (sources, targets)
            )
            logits = model(source, shift_right(target, tokenizer.bos_id))
            picked = logits.log_softmax(-1).gather(2, target[..., None])[..., 0]
            found[rows] = (picked * (target != tokenizer.pad_id)).sum(dim=1).numpy()
    return found


def perplexity(model: Any, tokenizer: Tokenizer, text: ParallelText) -> float:
    """Of the references, a piece."""
    pieces = encode_lines(text.target, tokenizer).lengths.sum()
    total = log_probabilities(model, tokenizer, text).sum()
    return round(float(np.exp(-total / pieces)), 4)


def compact(numbers: np.ndarray) -> str:
    """Whole numbers as one text: a record stays small."""
    return " ".join(map(str, numbers.flatten().tolist()))


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--trained-by", required=True, metavar="COMMAND")
    return parser


def main() -> None:
    """Read the command line, write the record, print what was chosen."""
    words = arguments().parse_args()
    made_with = commit()
    torch.set_num_threads(1)
    began = time.process_time()
    runs = [Run(path, SENTENCES, PART) for path in words.runs]
    require_one_task(runs)
    content = {
        "command": typed(words),
        "trained_by": words.trained_by,
        "commit": made_with,
        "machine": describe_machine(),
        "runs": [run.record() for run in runs],
        "ensembles": ensembles(runs),
    }
    content["cpu_seconds"] = round(time.process_time() - began)
    write_json(RECORDS / "search.json", content)
    for run in content["runs"]:
        print(run["name"], run["test"]["printed"])


def typed(words: argparse.Namespace) -> str:
    """The command line without the folders that are above the runs."""
    runs = [f"runs/{path.name}" for path in words.runs]
    options = ["--trained-by", words.trained_by]
    return shlex.join(["python", "-m", "tools.records.search", *runs, *options])


if __name__ == "__main__":
    main()

"""Train and record the translator of everyday sentences that the landing page offers.

Usage: python -m tools.records.everyday RUN [--device cuda]

RUN is a folder; what was interrupted there is continued. The model has to be small, for
a reader's browser fetches it, and a small model learns more from a large one than from
the corpus alone (Kim and Rush, 2016). So there are four steps:

1. Three large models, the teachers, learn Tatoeba's English-German pairs.
2. Together they translate the English sentences that they have learnt from, four times
   each, and of these the translation closest to a reference is kept.
3. The small model learns the pairs, and the teachers' translations beside them. Some
   pairs of the grammar teach it what a pronoun refers to.
4. Its weights are stored in the book's records, with eight bits each, and so are the
   scores on the test split before and after that rounding.

About seven minutes of an H100; on two cores of a processor the teachers alone need many
hours.
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from sacrebleu import BLEU, CHRF
from torch import Tensor, nn

from aiayn.data import ParallelText, Tokenizer, load_corpus, map_batches
from aiayn.data.grammar import load_grammar
from aiayn.inference import (
    beam_search_n_best,
    evaluate_bleu,
    load_translator,
    translate,
)
from aiayn.inference.evaluation import exact_match_rate
from aiayn.inference.translation import encode_sources
from aiayn.model import Transformer, TransformerConfig
from aiayn.storage import RunFolder, read_json, write_json
from aiayn.training import TrainingConfig, resume_training, train
from aiayn_book.live import EVERYDAY, QuantisedModel
from tools.project import RECORDS, commit

CORPUS = "tatoeba, its translations by teachers, and grammar"
LENGTH_PENALTY = 1.0
"""As in the page; 0 and 0.6 were worse on the validation split."""
GRAMMAR_PAIRS = 25_000
"""Pairs of the grammar among the others: they teach which noun a pronoun refers to."""
TEACHERS = 3
CHOICES = 4
"""Translations of a sentence among which the one closest to a reference is kept."""

TEACHER = TransformerConfig(
    vocab_size=6000,
    d_model=512,
    d_ff=2048,
    num_heads=8,
    num_encoder_layers=4,
    num_decoder_layers=4,
    dropout=0.3,
    norm="pre",
    positions="rotary",
)
STUDENT = TransformerConfig(
    vocab_size=6000,
    d_model=160,
    d_ff=608,
    num_heads=4,
    num_encoder_layers=4,
    num_decoder_layers=2,  # a translation waits for the decoder at every token
    dropout=0.1,
)

Pairs = list[tuple[str, str]]


class Ensemble(nn.Module):
    """Several translators of one vocabulary, whose probabilities are averaged.

    It has what a search needs of a model (`aiayn.inference.protocol`).
    """

    def __init__(self, models: Sequence[Transformer]) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)
        self.config = models[0].config

    def init_decode(self, source: Tensor) -> "Caches":
        """Read the source with every model."""
        return Caches([model.init_decode(source) for model in self.models])

    def decode_step(self, tokens: Tensor, caches: "Caches") -> Tensor:
        """The logarithm of the mean of the models' probabilities: (rows, vocab)."""
        found = [
            model.decode_step(tokens, cache).float().log_softmax(-1)
            for model, cache in zip(self.models, caches, strict=True)
        ]
        return torch.stack(found).logsumexp(0)  # a search subtracts log(models)


class Caches(list):
    """A cache for each model of an `Ensemble`."""

    def reorder(self, hypotheses: Tensor, sentences: Tensor | None = None) -> None:
        """Keep some rows of every cache, in a new order."""
        for cache in self:
            cache.reorder(hypotheses, sentences)


def tatoeba() -> dict[str, Pairs]:
    """The three splits as pairs."""
    return {
        name: list(zip(split.source, split.target, strict=True))
        for name, split in load_corpus("tatoeba").splits.items()
    }


def write_corpus(folder: Path, more: Sequence[tuple[str, str]] = ()) -> None:
    """Tatoeba's splits as text files; the grammar's pairs and more join the training.

    Validation is Tatoeba's alone: the model is chosen by it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    splits = tatoeba()
    grammar = load_grammar(size=GRAMMAR_PAIRS, held_out_size=0)["train"]
    splits["train"] += [(sample.source, sample.target) for sample in grammar]
    splits["train"] += more
    for name, found in splits.items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in found)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")


def teacher(seed: int, output: Path, corpus: Path, device: str) -> TrainingConfig:
    """What a teacher is trained with."""
    return TrainingConfig(
        corpus=str(corpus),
        output=output,
        model=TEACHER,
        max_length=48,
        tokens_per_batch=8192,
        packed_length=48,
        steps=8000,
        warmup_steps=1000,
        cooldown_steps=6000,
        validate_every=1000,
        validation_sentences=0,
        keep=2,
        seed=seed,
        device=device,
        precision="auto",
    )


def student(output: Path, corpus: Path, device: str) -> TrainingConfig:
    """What the record was trained with."""
    return TrainingConfig(
        corpus=str(corpus),
        output=output,
        model=STUDENT,
        max_length=48,
        tokens_per_batch=8192,
        packed_length=48,
        steps=25_000,
        warmup_steps=2000,
        cooldown_steps=20_000,
        validate_every=1000,
        validation_sentences=0,
        keep=2,
        device=device,
        precision="auto",
    )


def trained(config: TrainingConfig) -> RunFolder:
    """The run, which is begun, continued, or done already."""
    run = RunFolder(config.output)
    if not run.average.exists():
        resume_training(run.path) if run.config.exists() else train(config)
    return run


def translations_by_teachers(folders: Sequence[Path], device: str) -> Pairs:
    """A German sentence for each English one of the training split.

    Of `CHOICES` translations by all teachers together it is the one closest to a
    reference by sentence BLEU. What is a sentence of a held-out split is left out, as
    Tatoeba's own pairs are.
    """
    splits = tatoeba()
    references: dict[str, list[str]] = defaultdict(list)
    for english, german in splits["train"]:
        references[english].append(german)
    loaded = [load_translator(folder, device) for folder in folders]
    models, tokenizer = [model for model, _ in loaded], loaded[0][1]
    ensemble = Ensemble(models).eval()

    def write(source: Tensor) -> list[list[str]]:
        found = beam_search_n_best(
            ensemble,
            source,
            bos_id=tokenizer.bos_id,
            eos_id=tokenizer.eos_id,
            num_best=CHOICES,
            beam_size=CHOICES,
            length_penalty=LENGTH_PENALTY,
        )
        return [tokenizer.decode_batch([one.tokens for one in best]) for best in found]

    rows = encode_sources(list(references), ensemble, tokenizer)
    kind = next(ensemble.parameters()).device.type
    with torch.autocast(kind, torch.bfloat16):
        choices = list(map_batches(write, rows, 16_384 if kind == "cuda" else 2048))
    with get_context("fork").Pool() as pool:
        tasks = zip(choices, references.values(), strict=True)
        chosen = pool.starmap(closest, tasks, chunksize=1000)
    held_out = {german for name in ("validation", "test") for _, german in splits[name]}
    return [
        (english, german)
        for english, german in zip(references, chosen, strict=True)
        if german not in held_out
    ]


def closest(translations: Sequence[str], references: Sequence[str]) -> str:
    """The translation with the highest sentence BLEU; of equals, the first.

    >>> closest(["Ein Hund.", "Der Hund schläft."], ["Der Hund schläft.", "Er."])
    'Der Hund schläft.'
    """
    metric = BLEU(effective_order=True)
    return max(
        translations, key=lambda text: metric.sentence_score(text, references).score
    )


def translations(
    model: Transformer, tokenizer: Tokenizer, sources: Sequence[str]
) -> list[str]:
    """As the page makes them: a beam of four, chosen by the validation split."""
    return translate(
        list(sources), model, tokenizer, beam_size=4, length_penalty=LENGTH_PENALTY
    )


def scores(
    model: Transformer, tokenizer: Tokenizer, text: ParallelText
) -> dict[str, Any]:
    """On a split of Tatoeba, and on what the grammar holds out."""
    written = translations(model, tokenizer, text.source)
    bleu = evaluate_bleu(written, text.target)
    grammar = load_grammar(size=0)
    exact = {
        name: exact_match_rate(
            translations(model, tokenizer, [one.source for one in grammar[name]]),
            [one.target for one in grammar[name]],
        )
        for name in ("test", "combinations")
    }
    return {
        "sentences": len(text.source),
        "bleu": bleu.score,
        "printed": bleu.text,
        "chrf": CHRF().corpus_score(written, [list(text.target)]).score,
        "grammar_exact": exact,
    }


def record(folder: Path, device: str) -> dict[str, Any]:
    """Everything that is known of the model, besides its weights."""
    run = RunFolder(folder / "student")
    model, tokenizer = load_translator(run.average)
    rounded = QuantisedModel.load(RECORDS / f"{EVERYDAY}.safetensors").model()
    splits = load_corpus("tatoeba").splits
    student, *teachers = map(described, [run, *teacher_folders(folder)])
    return {
        "command": f"python -m tools.records.everyday runs/everyday --device {device}",
        "commit": commit(),
        "machine": student["log"][0]["machine"],
        "config": student.pop("config"),
        "grammar_pairs": GRAMMAR_PAIRS,
        "runs": [student],
        "teachers": teachers,
        "validation": scores(rounded, tokenizer, splits["validation"]),
        "before": scores(model, tokenizer, splits["test"]),
        "after": scores(rounded, tokenizer, splits["test"]),
    }


def described(run: RunFolder) -> dict[str, Any]:
    """How it was trained, and what its log says."""
    config = TrainingConfig.from_dict(read_json(run.config)).as_dict()
    own = {"output": run.path.name, "corpus": CORPUS}
    return {"config": config | own, "log": run.read_log()}


def teacher_folders(folder: Path) -> list[RunFolder]:
    """Where the teachers are, or will be."""
    return [RunFolder(folder / f"teacher-{n}") for n in range(1, TEACHERS + 1)]


def main() -> None:
    """Read the command line; do what is not done yet; make the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    given = parser.parse_args()
    run = make(given.run, given.device)
    torch.set_num_threads(1)
    model, _ = load_translator(run.average)
    quantised = QuantisedModel.of(model, run.tokenizer.read_bytes())
    quantised.save(RECORDS / f"{EVERYDAY}.safetensors")
    content = record(given.run, given.device)
    write_json(RECORDS / f"{EVERYDAY}.json", content)
    print(content["validation"], content["before"], content["after"], sep="\n")


def make(folder: Path, device: str) -> RunFolder:
    """The small model, and before it whatever it needs and is not there yet."""
    pairs, translated = folder / "pairs", folder / "translated"
    run = RunFolder(folder / "student")
    if run.average.exists():
        return run
    if not (translated / "test.de").exists():
        if not (pairs / "test.de").exists():
            write_corpus(pairs)
        teachers = [one.path for one in teacher_folders(folder)]
        for seed, path in enumerate(teachers, start=1):
            trained(teacher(seed, path, pairs, device))
        write_corpus(translated, translations_by_teachers(teachers, device))
    return trained(student(run.path, translated, device))


if __name__ == "__main__":
    main()

"""§6.2: the rows of Table 3 in miniature, each trained with several seeds.

The paper trained each row once, for half a day on eight GPUs. Here every width of a row
(d_model, d_ff, and d_k where the row sets it) is divided by `WIDTH_DIVISOR` and every
number of layers by `LAYER_DIVISOR`; heads, rates and all else are the row's own. What a
row changes, it changes by the paper's factor. All rows train for the same number of
steps, big too, which the paper trained three times as long. And all are pre-norm: in so
few steps the paper's post-norm hardly gets going, the less the deeper the model is, and
the table would only say how long each row takes to start.

``python -m aiayn_book.table3`` makes the runs; ``--help`` explains its flags.
"""

import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tyro

from aiayn.data import (
    ParallelText,
    TokenBatches,
    encode_pairs,
    load_corpus,
    normalise,
)
from aiayn.device import describe_machine, resolve_device
from aiayn.errors import InputError
from aiayn.inference import evaluate_bleu, perplexity, translate
from aiayn.model import TABLE_3_ROWS, TransformerConfig
from aiayn.storage import read_json, require_folder, write_json
from aiayn.training import TrainingConfig, TrainingResult, train
from aiayn.training.preparation import short_pairs

__all__ = [
    "choose_rows",
    "miniature",
    "miniature_model",
    "run_table3",
    "run_variation",
]

WIDTH_DIVISOR = 8
LAYER_DIVISOR = 2
# The rows of Table 3 that change the training instead of the model.
LABEL_SMOOTHING = {"D label_smoothing=0.0": 0.0, "D label_smoothing=0.2": 0.2}


def miniature_model(row: str) -> TransformerConfig:
    """The model of a row of Table 3, its widths and its depth divided.

    Args:
        row: A name in `TABLE_3_ROWS`.

    Raises:
        InputError: There is no such row.

    Paper: §6.2, Table 3.

    >>> model = miniature_model("B d_k=16")
    >>> model.d_model, model.d_k, model.num_heads, model.num_encoder_layers
    (64, 2, 8, 3)
    """
    paper = TransformerConfig.table3(row)
    return replace(
        paper,
        vocab_size=2000,
        d_model=paper.d_model // WIDTH_DIVISOR,
        d_ff=paper.d_ff // WIDTH_DIVISOR,
        d_k=paper.d_k and paper.d_k // WIDTH_DIVISOR,
        num_encoder_layers=paper.num_encoder_layers // LAYER_DIVISOR,
        num_decoder_layers=paper.num_decoder_layers // LAYER_DIVISOR,
        norm="pre",
        max_length=128,
    )


def miniature(row: str, **changes: Any) -> TrainingConfig:
    """The training of a row: short captions, about a minute on one core.

    Args:
        row: A name in `TABLE_3_ROWS`.
        changes: Fields of the configuration to set otherwise, the same for every row.

    Paper: §6.2, Table 3.

    >>> config = miniature("A h=4", steps=100)
    >>> config.model.num_heads, config.steps
    (4, 100)
    """
    # Learning rate and warm-up were chosen on the base row with a seed that the table
    # does not use, and serve all rows. Every value is that of the last step: Table 3
    # was made without averaging checkpoints.
    config = TrainingConfig(
        corpus="multi30k",
        model=miniature_model(row),
        max_length=16,
        tokens_per_batch=1024,
        steps=700,
        warmup_steps=200,
        learning_rate_scale=1.0,
        label_smoothing=LABEL_SMOOTHING.get(row, 0.1),
        validation_sentences=0,
        keep=1,
        precision="auto",
        device="cpu",
        threads=1,
        progress=False,
    )
    config = replace(config, **changes)
    return replace(config, validate_every=config.steps)


def choose_rows(words: Sequence[str]) -> list[str]:
    """The rows that are meant by full names or by their first word; none: all.

    Args:
        words: Names in `TABLE_3_ROWS`, or the letters of their groups.

    Raises:
        InputError: A word means no row.

    Paper: §6.2, Table 3.

    >>> choose_rows(["B", "big"])
    ['B d_k=16', 'B d_k=32', 'big']
    """
    _refuse_name(words)
    for word in words:
        if not any(word in (row, row.split()[0]) for row in TABLE_3_ROWS):
            raise InputError(
                f"Table 3 has no row {word!r}: say a letter from A to E, or one of "
                f"{', '.join(TABLE_3_ROWS)}."
            )
    chosen = (r for r in TABLE_3_ROWS if {r, r.split()[0]} & set(words))
    return list(chosen) if words else list(TABLE_3_ROWS)


def _refuse_name(rows: Any) -> None:
    """One name is an iterable too, of letters, some of which mean rows."""
    if isinstance(rows, str):
        raise InputError(f"rows is a list of names: give [{rows!r}].")


def run_variation(row: str, seed: int, **changes: Any) -> dict[str, Any]:
    """Train a row once and score it on validation text.

    Args:
        row: A name in `TABLE_3_ROWS`.
        seed: Of weights, batches and dropout.
        changes: As for `miniature`.

    Returns:
        row, seed, what came out (see `score_variation`), what it cost (parameters, CPU
        and wall seconds), and what it was made with (config, commit, machine).

    Paper: §6.2, Table 3.
    """
    cpu, wall = time.process_time(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        config = miniature(row, seed=seed, output=Path(folder) / "run", **changes)
        result = train(config)
        scores = score_variation(result, config)
    return {
        "row": row,
        "seed": seed,
        **scores,
        "parameters": result.log[0]["parameters"],
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "wall_seconds": round(time.perf_counter() - wall, 1),
        "config": _plain(config),
        "commit": _commit(),
        "machine": describe_machine(resolve_device(config.device)),
    }


def score_variation(result: TrainingResult, config: TrainingConfig) -> dict[str, Any]:
    """Loss and BLEU on the validation pairs of at most the training's length.

    Args:
        result: What the training left.
        config: What it was made with.

    Returns:
        pairs (of validation), loss in nats per piece, perplexity (per piece, as in
        Table 3), word_perplexity (words between spaces, and the end of the sentence),
        bleu (sacreBLEU, beam 4, α = 0.6), and training_loss, the loss without dropout
        of as many training pairs.
    """
    corpus = load_corpus(config.corpus, source=config.source, target=config.target)
    text = short_pairs(corpus.validation, result.tokenizer, config.max_length)
    loss, pieces = _loss(result, config, text)
    words = sum(len(line.split()) + 1 for line in text.target)
    first = corpus.train[: 20 * len(text)]
    seen = short_pairs(first, result.tokenizer, config.max_length, len(text))
    hypotheses = translate(
        text.source, result.model, result.tokenizer, max_pieces=config.max_length
    )
    references = [normalise(line) for line in text.target]
    return {
        "pairs": len(text),
        "loss": loss,
        "perplexity": math.exp(loss),
        "word_perplexity": math.exp(loss * pieces / words),
        "bleu": evaluate_bleu(hypotheses, references).score,
        "training_loss": _loss(result, config, seen)[0],
    }


def run_table3(
    output: Path | str, rows: Sequence[str], seeds: Sequence[int], **changes: Any
) -> Iterator[dict[str, Any]]:
    """Make every run that the folder does not hold yet; a file for each.

    Args:
        output: The folder; each run is a JSON file in it, whole or not there.
        rows: Names in `TABLE_3_ROWS`.
        seeds: The table is filled seed by seed, so that a part of it is a table too.
        changes: As for `miniature`.

    Yields:
        All runs in turn, those of earlier commands as they were recorded.

    Raises:
        InputError: The folder is a file, or holds what is no run, or one that was made
            with other settings.
        KeyboardInterrupt: It was stopped; finished runs are kept.

    Paper: §6.2, Table 3.
    """
    _refuse_name(rows)
    output = Path(output)
    require_folder(output)
    for seed in seeds:
        for row in rows:
            path = output / f"{re.sub(r'[^a-z0-9.]+', '-', row.lower())}-{seed}.json"
            if path.exists():
                run = read_json(path)
                config = run.get("config") if isinstance(run, dict) else None
                if config != _plain(miniature(row, seed=seed, **changes)):
                    raise InputError(
                        f"{path} is no run of this table, or was made with other "
                        "settings: choose another --output."
                    )
            else:
                try:
                    run = run_variation(row, seed, **changes)
                except KeyboardInterrupt:
                    raise KeyboardInterrupt(
                        f"Stopped in row {row!r}, seed {seed}. Finished runs are in "
                        f"{output}: the same command goes on with this one."
                    ) from None
                write_json(path, run)
            yield run


def _loss(
    result: TrainingResult, config: TrainingConfig, text: ParallelText
) -> tuple[float, int]:
    """Nats per piece, and pieces."""
    pairs, _ = encode_pairs(text, result.tokenizer)
    batches = TokenBatches(pairs, config.tokens_per_batch)
    bos_id = result.tokenizer.bos_id
    scores = perplexity(result.model, batches.epoch(0), bos_id=bos_id)
    return scores.loss, scores.tokens


def _plain(config: TrainingConfig) -> dict[str, Any]:
    """The configuration as it stands in a file: lists for tuples, no folder."""
    values = config.as_dict() | {"betas": list(config.betas)}
    del values["output"]
    return values


def _commit() -> str | None:
    """The commit of this source tree, "-dirty" if changed; None if it has none."""
    here = Path(__file__)
    # Installed, the package may lie in somebody else's repository.
    is_ours = ["ls-files", "--error-unmatch", here.name]
    changes = ["diff", "--quiet", "HEAD", "--", "../aiayn", here.name]
    try:
        known, head, changed = (
            subprocess.run(["git", *words], cwd=here.parent, capture_output=True)
            for words in (is_ours, ["rev-parse", "HEAD"], changes)
        )
    except OSError:
        return None
    if known.returncode or head.returncode:
        return None
    return head.stdout.decode().strip() + ("-dirty" if changed.returncode else "")


def command(
    output: Path = Path("runs/table3"),
    rows: tuple[str, ...] = (),
    seeds: tuple[int, ...] = (1, 2, 3),
    steps: int | None = None,
    corpus: str = "multi30k",
    device: str = "cpu",
) -> None:
    """Train the rows of Table 3 in miniature (paper: §6.2), each with several seeds.

    Each run takes about a minute on one core and leaves one file. Stop it when you
    like: the same command goes on, and makes only the runs that are missing.

    python -m aiayn_book.table3

    python -m aiayn_book.table3 --rows base A "C N=2" --seeds 1

    So small a model leaves most of a GPU idle. Start one command for each seed there:

    for seed in 1 2 3; do python -m aiayn_book.table3 --device cuda --seeds $seed &
    done; wait

    Args:
        output: A folder for the results.
        rows: Rows by name, or by their letter; all if left out.
        seeds: One run of each row for every seed.
        steps: Optimizer steps of every run, if not the recorded table's.
        corpus: Another corpus than Multi30k, English to German.
        device: auto, cpu, cuda or mps.
    """
    changes = {"corpus": corpus, "device": device}
    changes |= {} if steps is None else {"steps": steps}
    chosen = choose_rows(rows)
    print(f"{'row':<24}{'seed':>4}{'perplexity':>12}{'BLEU':>7}{'CPU seconds':>13}")
    for run in run_table3(output, chosen, seeds, **changes):
        print(
            f"{run['row']:<24}{run['seed']:>4}{run['perplexity']:>12.2f}"
            f"{run['bleu']:>7.1f}{run['cpu_seconds']:>13.0f}",
            flush=True,
        )


def main() -> None:
    """Run the command; whatever goes wrong becomes one sentence."""
    try:
        tyro.cli(command, prog="python -m aiayn_book.table3")
    except InputError as error:
        sys.exit(f"aiayn_book.table3: {error}")
    except KeyboardInterrupt as stop:
        print(f"aiayn_book.table3: {stop or 'Stopped.'}", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()

"""The command line: ``aiayn train``, ``translate``, ``evaluate``, …

Each command is a function; tyro makes its flags and its help from the signature, the
docstring and the dataclasses. What a command does, a notebook can do by the same calls.
"""

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from aiayn.checkpoint import read_json, save_tensors
from aiayn.data import (
    TREES,
    Corpus,
    EncodedPairs,
    TokenBatches,
    Tokenizer,
    encode_pairs,
    load_corpus,
    normalise,
    read_lines,
    read_stream,
)
from aiayn.errors import InputError
from aiayn.inference import (
    cross_attention_map,
    evaluate_bleu,
    exact_match_rate,
    load_translator,
    perplexity,
    render_attention,
    translate_stream,
)
from aiayn.inference import translate as translate_lines
from aiayn.machine import resolve_device
from aiayn.model import Transformer
from aiayn.parsing import Parse, Tree, load_treebank, parse, score_parses
from aiayn.run import RunFolder
from aiayn.training import (
    TrainingConfig,
    TrainingResult,
    average_checkpoints,
    resume_training,
)
from aiayn.training import train as train_translator
from aiayn.version import __version__

app = tyro.extras.SubcommandApp()

_RECIPES = {
    name: (recipe(), recipe.__doc__ or "")
    for name, recipe in {
        "grammar": TrainingConfig.grammar,
        "multi30k": TrainingConfig.multi30k,
        "base": TrainingConfig.base,
    }.items()
}
Recipe = Annotated[
    tyro.extras.subcommand_type_from_defaults(
        {name: config for name, (config, _) in _RECIPES.items()},
        {name: words for name, (_, words) in _RECIPES.items()},
    ),
    tyro.conf.arg(name="", prefix_name=False),
]


@app.command
def train(recipe: Recipe) -> None:
    """Train a translator from raw text.

    Choose a recipe, and change what you like of it:

    aiayn train grammar

    aiayn train multi30k --output runs/en-fr --target fr

    aiayn train multi30k --corpus my/folder --steps 5000 --model.dropout 0.1

    torchrun --nproc-per-node 2 -m aiayn train multi30k
    """
    _tell_result(train_translator(recipe))


@app.command
def resume(
    run: Positional[Path],
    steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> None:
    """Go on with a training that was stopped.

    aiayn resume runs/multi30k

    aiayn resume runs/multi30k --steps 15000

    Args:
        run: The run's folder.
        steps: A new number of steps in all.
        device: auto, cpu, cuda or mps.
        threads: Threads of a CPU.
    """
    _tell_result(resume_training(run, steps=steps, device=device, threads=threads))


@app.command
def translate(
    run: Positional[Path],
    text: Positional[list[str]] = [],  # noqa: B006 (tyro reads it, nothing changes it)
    file: Path | None = None,
    weights: bool = False,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    extra_length: int = 50,
    device: str = "auto",
) -> None:
    """Translate sentences: given here, from a file, or from standard input.

    aiayn translate runs/multi30k "A dog runs across the grass."

    aiayn translate runs/multi30k --file sentences.en > sentences.de

    echo "A dog runs." | aiayn translate runs/multi30k --weights

    Args:
        run: A run's folder, or a saved model's, or one of its .safetensors files.
        text: Sentences, each in quotation marks.
        file: A file with one sentence a line.
        weights: Show what each piece looked at while it was written.
        beam_size: Outputs kept at each step; 1 is greedy search.
        length_penalty: How much longer outputs are favoured (the paper's α).
        extra_length: Pieces that an output may have more than its sentence; a parser's
            trees need some 300.
        device: auto, cpu, cuda or mps.
    """
    if text and file:
        raise InputError("Give sentences or --file, not both.")
    options = {
        "beam_size": beam_size,
        "length_penalty": length_penalty,
        "extra_length": extra_length,
    }
    lines = text or (read_lines(file) if file else _standard_input())
    model, tokenizer = load_translator(run, resolve_device(device))
    if weights:
        for number, line in enumerate(lines, start=1):
            if not normalise(line):  # as without --weights: nothing, but no end
                print(flush=True)
                continue
            found = cross_attention_map(
                line, model, tokenizer, first_line=number, **options
            )
            print(found.translation + "\n")
            print(render_attention(found) + "\n", flush=True)
        return
    # Whoever types wants each answer at once; a file goes faster in large chunks.
    chunk = 1 if not text and not file and sys.stdin.isatty() else 1000
    for line in translate_stream(lines, model, tokenizer, chunk_lines=chunk, **options):
        print(line, flush=chunk == 1)


@app.command
def evaluate(
    run: Positional[Path],
    split: str = "test",
    corpus: str | None = None,
    beam_size: int | None = None,
    length_penalty: float | None = None,
    lowercase: bool = False,
    device: str = "auto",
) -> None:
    """Score a trained translator: BLEU as sacreBLEU prints it, perplexity, matches.

    A parser (target trees) gets F1 of its brackets in place of BLEU, where gold trees
    with tags are known: of the corpus grammar.

    aiayn evaluate runs/multi30k

    aiayn evaluate runs/grammar --split combinations --beam-size 1

    Args:
        run: A run's folder, or one of its .safetensors files.
        split: Which part of the corpus: test, validation, …
        corpus: Another corpus than the one that it was trained on.
        beam_size: Outputs kept at each step; 1 is greedy search. Left out: the paper's
            4, or 21 for a parser.
        length_penalty: How much longer outputs are favoured (the paper's α). Left out:
            the paper's 0.6, or 0.3 for a parser.
        lowercase: Count words that differ in case only as the same.
        device: auto, cpu, cuda or mps.
    """
    model, tokenizer = load_translator(run, resolve_device(device))
    folder = RunFolder(run if run.is_dir() else run.parent)
    if not folder.config.is_file():
        raise InputError(
            f"{folder.path} holds no config.json, which says of what it was made: only "
            "a run's folder is evaluated. In Python, aiayn.inference has the scores."
        )
    config = TrainingConfig.from_dict(read_json(folder.config))
    name = corpus or config.corpus
    text = load_corpus(name, source=config.source, target=config.target).split(split)
    parses = config.target == TREES
    gold = load_treebank()[split] if parses and name == "grammar" else None
    pairs, _ = encode_pairs(text, tokenizer)
    references = [normalise(line) for line in text.target]  # as outputs are
    choices = {"beam_size": beam_size, "length_penalty": length_penalty}
    search = {name: value for name, value in choices.items() if value is not None}
    if parses:
        found = parse(text.source, model, tokenizer, **search)
        hypotheses = [" ".join(one.symbols) for one in found]
        score = _bracket_line(gold, found)
    else:
        hypotheses = translate_lines(text.source, model, tokenizer, **search)
        score = evaluate_bleu(hypotheses, references, lowercase=lowercase).text
    print(score, flush=True)  # it took the longest: nothing that follows may lose it
    print(_perplexity_line(model, tokenizer, pairs, config.tokens_per_batch))
    print(f"exact matches = {exact_match_rate(hypotheses, references):.1%}")


def _bracket_line(gold: Sequence[Tree] | None, parses: Sequence[Parse]) -> str:
    broken = sum(one.fault is not None for one in parses) / len(parses)
    repaired = f"{broken:.1%} of the outputs were no tree and repaired"
    if gold is None:  # in the corpus's lines each tag is XX, a comma's too
        return (
            "There is no F1: it leaves out punctuation, which only the tags of gold "
            f"trees tell (aiayn.parsing.score_parses takes them); {repaired}."
        )
    score = score_parses(gold, parses)
    return (
        f"F1 = {score.f1:.1%} (precision {score.precision:.1%}, recall "
        f"{score.recall:.1%}; {repaired})"
    )


def _perplexity_line(
    model: Transformer,
    tokenizer: Tokenizer,
    pairs: EncodedPairs,
    tokens_per_batch: int,
) -> str:
    written = int(pairs.target.lengths.max())
    learned = model.config.positions == "learned"  # sinusoids have no end
    most = model.config.max_length
    if learned and written > most:
        return (
            f"There is no perplexity: a reference has {written:,} pieces, its end "
            f"included, and the model's table of positions {most:,}."
        )
    longest = max(written, int(pairs.source.lengths.max()))
    batches = TokenBatches(pairs, max(longest, tokens_per_batch))
    scores = perplexity(model, batches.epoch(0), bos_id=tokenizer.bos_id)
    return f"perplexity = {scores.perplexity:.3f} ({scores.tokens:,} pieces)"


@app.command
def average(run: Positional[Path], last: int = 5, output: Path | None = None) -> None:
    """Average the last checkpoints of a run (paper: §6.1).

    aiayn average runs/multi30k --last 3

    Args:
        run: The run's folder.
        last: How many checkpoints.
        output: The .safetensors file to write; average.safetensors in the folder if
            left out.
    """
    if last < 1:
        raise InputError(f"--last must be at least 1, not {last}.")
    folder = RunFolder(run)
    paths = folder.checkpoints()[-last:]
    if not paths:
        raise InputError(
            f"{run} holds no step-*.safetensors: name the folder of a run, as given to "
            "'aiayn train --output'."
        )
    file = output or folder.average
    _require_free_name(file, folder)
    weights, info = average_checkpoints(paths)
    save_tensors(file, weights, info)
    print(f"{file}: the mean of {', '.join(path.name for path in paths)}")


def _require_free_name(file: Path, folder: RunFolder) -> None:
    """A run reads its own names back: resumes from one, translates with another."""
    parent = RunFolder(file.parent)
    of_a_run = parent.path.resolve() == folder.path.resolve() or not parent.is_free()
    own = of_a_run and re.match(r"(best|state)\.|step-", file.name)
    if file.suffix != ".safetensors" or own:
        raise InputError(
            f"{file} cannot hold an average: choose an --output that ends in "
            ".safetensors and is no best, state or step of a run."
        )


@app.command
def corpus(
    name: Positional[str],
    source: str = "en",
    target: str = "de",
    split: str = "train",
    samples: int = 5,
) -> None:
    """Show a corpus: samples, statistics, licence. Downloads it if need be.

    aiayn corpus grammar

    aiayn corpus multi30k --target fr --samples 20

    Args:
        name: grammar, multi30k, tatoeba, wmt14, or a folder of your own files.
        source: Language to translate from.
        target: Language to translate into; trees, of the grammar.
        split: Which part to show samples of.
        samples: How many.
    """
    if samples < 0:
        raise InputError(f"--samples must be at least 0, not {samples}.")
    loaded = load_corpus(name, source=source, target=target)
    for left, right in loaded.split(split)[:samples]:
        print(f"{source}  {left}\n{target}  {right}\n")
    for line in _statistics(loaded):
        print(line)
    print(f"\nLicence: {loaded.licence}\nCite: {loaded.citation}")


def main() -> None:
    """Run the command that was typed; whatever goes wrong becomes one sentence."""
    _write_any_text()
    try:
        try:
            if sys.argv[1:] == ["--version"]:
                print(f"aiayn {__version__}")
                return
            app.cli(
                prog="aiayn",
                description="The Transformer of 'Attention Is All You Need': train it, "
                "translate with it, score it. Begin with: aiayn train grammar. Which "
                "version this is: aiayn --version",
                config=(tyro.conf.AvoidSubcommands,),
            )
        finally:
            print(end="", flush=True)  # what fails after this is caught nowhere
    except InputError as error:
        sys.exit(_complain(str(error), 2))
    except (MemoryError, RuntimeError) as error:
        if not _is_lack_of_memory(error):
            raise
        sys.exit(_complain(_NO_MEMORY, 1))
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; that is no error
    except OSError as error:
        sys.exit(_complain(_explain(error), 1))
    except KeyboardInterrupt as stop:
        sys.exit(_complain(str(stop) or "Stopped.", 130))


def _write_any_text() -> None:
    """A terminal may lack a character; a file or a pipe gets UTF-8, as we read it."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="replace")


def _explain(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return (
        f"{place}{error.strerror or error}. What was saved before is whole; make room "
        "or choose another place, and go on with 'aiayn resume'."
    )


_NO_MEMORY = (
    "There is not enough memory: give a smaller --beam-size or shorter lines, and to a "
    "training a smaller --tokens-per-batch."
)


def _is_lack_of_memory(error: MemoryError | RuntimeError) -> bool:
    """Torch has a class for a GPU's alone; a CPU's is told by its words."""
    words = ("DefaultCPUAllocator", "std::bad_alloc", "out of memory")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


def _complain(sentence: str, status: int) -> int:
    print(f"aiayn: {sentence}", file=sys.stderr)
    return status


def _tell_result(result: TrainingResult) -> None:
    if os.environ.get("RANK", "0") != "0":  # the first process of torchrun says it
        return
    last = result.log[-1]
    scores = {
        name: last[name] for name in ("loss", "perplexity", "bleu") if name in last
    }
    text = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
    print(f"Validation, averaged weights: {text}.")
    print(f'Try: aiayn translate {result.run.path} "…"')


def _standard_input() -> Iterator[str]:
    if sys.stdin is None:  # closed, as by <&-
        raise InputError("There is no standard input: give sentences or --file.")
    return read_stream(sys.stdin.buffer, "standard input")


def _statistics(loaded: Corpus) -> Iterator[str]:
    yield f"{'split':<14}{'pairs':>8}{'words/line':>12}{'':>8}"
    for name, text in loaded.splits.items():
        words = [
            sum(len(line.split()) for line in side) / max(1, len(side))
            for side in (text.source, text.target)
        ]
        yield f"{name:<14}{len(text):>8,}{words[0]:>12.1f}{words[1]:>8.1f}"

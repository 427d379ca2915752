"""The command line: ``aiayn train``, ``translate``, ``evaluate``, …

Each command is a function, and tyro makes its flags and its help from the signature,
the docstring and the dataclasses. A notebook can make the same calls.
"""

import inspect
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from dataclasses import fields, replace
from functools import partial, wraps
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, NoReturn

import tyro
from tyro.conf import Positional

from aiayn import data, inference, parsing, training
from aiayn.device import resolve_device, resolve_precision
from aiayn.errors import InputError
from aiayn.fast.process import tune_process
from aiayn.model import TransformerConfig
from aiayn.storage import RunFolder, expand, quoted, read_json
from aiayn.training import TrainingConfig
from aiayn.training.preparation import digest_of, find_corpus
from aiayn.version import __version__

_RECIPES = (TrainingConfig.grammar, TrainingConfig.multi30k, TrainingConfig.base)
Recipe = Annotated[
    tyro.extras.subcommand_type_from_defaults(
        {recipe.__name__: recipe() for recipe in _RECIPES},
        {recipe.__name__: recipe.__doc__ or "" for recipe in _RECIPES},
    ),
    tyro.conf.arg(name="", prefix_name=False),
]


def train(recipe: Recipe) -> None:
    """Train a translator from raw text.

    Choose a recipe, and change what you like of it:

    aiayn train grammar

    aiayn train multi30k --output runs/en-fr --target fr

    aiayn train multi30k --corpus my/folder --steps 5000 --model.dropout 0.1

    torchrun --nproc-per-node 2 -m aiayn train multi30k
    """
    _tune_process(recipe)
    _print_result(training.train(recipe))


def resume(
    run: Positional[Path],
    steps: int | None = None,
    device: str | None = None,
    threads: int | None = None,
    corpus: str | None = None,
) -> None:
    """Go on with a training that was stopped.

    aiayn resume runs/multi30k

    aiayn resume runs/multi30k --steps 15000

    Args:
        run: The run's folder.
        steps: A new number of steps in all.
        device: auto, cpu, cuda or mps.
        threads: Threads of a CPU.
        corpus: Where the corpus lies now, if it has moved.
    """
    file = RunFolder(run).config
    config = TrainingConfig.from_dict(read_json(file), file)
    _tune_process(replace(config, device=device or config.device))
    changes = {"steps": steps, "device": device, "threads": threads, "corpus": corpus}
    _print_result(training.resume_training(run, **changes))


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

    aiayn translate runs/multi30k -- "- Who is there?"

    aiayn translate runs/multi30k --file sentences.en > sentences.de

    echo "A dog runs." | aiayn translate runs/multi30k --weights

    Args:
        run: A run's folder, or a saved model's, or one of its .safetensors files.
        text: Sentences, each in quotation marks.
        file: A file with one sentence a line.
        weights: Show what the decoder attended to when it predicted each piece.
        beam_size: Outputs kept at each step; 1 is greedy search.
        length_penalty: How much longer outputs are favoured (the paper's α).
        extra_length: Pieces that an output may have more than its sentence; a parser's
            trees need some 300.
        device: auto, cpu, cuda or mps.
    """
    if text and file:
        raise InputError("Give sentences or --file, not both.")
    options = {"beam_size": beam_size, "length_penalty": length_penalty}
    options |= {"extra_length": extra_length}
    typed = not text and not file and sys.stdin.isatty()
    if typed:
        print("Type a sentence a line; Ctrl-D ends.", file=sys.stderr, flush=True)
    stdin = sys.stdin.buffer, "standard input"
    lines = data.read_lines(file) if file else text or data.read_stream(*stdin)
    _tune_process(TrainingConfig(device=device), large_pages=False)
    model, tokenizer = inference.load_translator(run, device)
    if weights:
        for number, line in enumerate(lines, start=1):
            if not data.normalise(line):  # an empty line has an empty translation
                print(flush=True)
                continue
            found = inference.cross_attention_map(
                line, model, tokenizer, first_line=number, **options
            )
            picture = inference.render_attention(found)
            print(f"{found.translation}\n\n{picture}\n", flush=True)
        return
    # Somebody who types wants each answer at once; a file is faster in large chunks.
    options |= {"chunk_lines": 1 if typed else 1000}
    for line in inference.translate_stream(lines, model, tokenizer, **options):
        print(line, flush=typed)


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
        run: A run's folder, or one of its .safetensors files; config.json beside it
            names the corpus.
        split: Which part of the corpus: test, validation, …
        corpus: Another corpus than the one that it was trained on, or its new place.
        beam_size: Outputs kept at each step; 1 is greedy search. Left out: the paper's
            4, or 21 for a parser.
        length_penalty: How much longer outputs are favoured (the paper's α). Left out:
            the paper's 0.6, or 0.3 for a parser.
        lowercase: Count words that differ in case only as the same.
        device: auto, cpu, cuda or mps.
    """
    run = expand(run)
    _tune_process(TrainingConfig(device=device), large_pages=False)
    model, tokenizer = inference.load_translator(run, device)
    folder = RunFolder(run if run.is_dir() else run.parent)
    config = TrainingConfig.from_dict(read_json(folder.config), folder.config)
    name = corpus or find_corpus(config, folder)
    loaded = data.load_corpus(name, source=config.source, target=config.target)
    text = loaded.split(split)
    # Another corpus may be given; and the grammar's training pairs are of any number.
    if corpus is None and (name, split) != ("grammar", "train"):
        digest_of(folder, loaded, split, config.corpus_size)
    references = [data.normalise(line) for line in text.target]  # as outputs are
    choices = {"beam_size": beam_size, "length_penalty": length_penalty}
    search = {name: value for name, value in choices.items() if value is not None}
    if config.target == data.TREES:
        gold = parsing.load_treebank()[split] if name == "grammar" else None
        parses = parsing.parse(text.source, model, tokenizer, **search)
        outputs = [" ".join(one.symbols) for one in parses]
        score = _bracket_line(gold, parses)
    else:
        outputs = inference.translate(text.source, model, tokenizer, **search)
        score = inference.evaluate_bleu(outputs, references, lowercase=lowercase)
    print(score, flush=True)  # at once, because it took the longest
    matches = inference.exact_match_rate(outputs, references)
    print(f"exact matches = {matches:.1%}", flush=True)
    pairs, _ = data.encode_pairs(text, tokenizer)
    longest = max(int(side.lengths.max()) for side in (pairs.source, pairs.target))
    batches = data.TokenBatches(pairs, max(longest, config.tokens_per_batch)).epoch(0)
    found = inference.perplexity(model, batches, bos_id=tokenizer.bos_id)
    print(f"perplexity = {found.perplexity:.3f} ({found.tokens:,} pieces)")


def _bracket_line(
    gold: Sequence[parsing.Tree] | None, parses: Sequence[parsing.Parse]
) -> str:
    broken = sum(one.fault is not None for one in parses) / len(parses)
    repaired = f"{broken:.1%} of the outputs were no tree and repaired"
    if gold is None:  # the corpus's lines hold XX for each tag, a comma's too
        return f"There is no F1 without gold trees with tags; {repaired}."
    precision, recall, f1 = parsing.score_parses(gold, parses)
    return f"F1 = {f1:.1%} (precision {precision:.1%}, recall {recall:.1%}; {repaired})"


_COMMANDS = {
    command.__name__: command for command in (train, resume, translate, evaluate)
}


def _later(function: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """The command with what tyro has read for it; `main` runs it afterwards."""

    @wraps(function)
    def read(*given: Any, **named: Any) -> Callable[[], None]:
        return partial(function, *given, **named)

    return read


def main() -> None:
    """Run the command that was typed, and say in one sentence what went wrong."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal may lack a character; a file or a pipe gets UTF-8, as we read it.
        encoding = None if sys.stdout.isatty() else "utf-8"
        sys.stdout.reconfigure(encoding=encoding, errors="replace")
    try:
        try:
            if sys.argv[1:] == ["--version"]:
                print(f"aiayn {__version__}")
                return
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                _read_command()()
        finally:
            print(end="", flush=True)  # here, where a broken pipe is caught
    except InputError as error:
        _exit(str(error), 2)
    except (MemoryError, RuntimeError) as error:
        # Torch has its own class only for a GPU's lack of memory.
        words = "DefaultCPUAllocator|std::bad_alloc|out of memory"
        if not isinstance(error, MemoryError) and not re.search(words, str(error)):
            raise
        _exit(
            "There is not enough memory: give a smaller --beam-size or shorter lines, "
            "and to a training a smaller --tokens-per-batch.",
            1,
        )
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has left, which is no error
    except OSError as error:
        place = error.filename or "The output"
        # Python would try to write the rest at its end, and complain once more.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
        _exit(
            f"{place} cannot be read or written: {error.strerror or error}. Make room, "
            "or choose another place.",
            1,
        )
    except KeyboardInterrupt as stop:
        _exit(str(stop) or "Stopped.", 130)


def _read_command() -> Callable[[], None]:
    """The command that was typed, with its flags; what is wrong with it is said here.

    What a configuration complains about, tyro would print with names of its own.
    """
    written = io.StringIO()
    try:
        with redirect_stderr(written):
            return tyro.extras.subcommand_cli_from_dict(
                {name: _later(function) for name, function in _COMMANDS.items()},
                prog="aiayn",
                description="The Transformer of 'Attention Is All You Need': train it, "
                "translate with it, score it. Begin with: aiayn train grammar. Which "
                "version this is: aiayn --version",
                config=(tyro.conf.AvoidSubcommands,),
            )
    except SystemExit as stop:
        words = list(takewhile(lambda word: word[:1] != "-", sys.argv[1:3]))
        cause = stop.__context__
        while cause is not None and not isinstance(cause, InputError):
            cause = cause.__cause__ or cause.__context__
        if cause is not None:
            _exit(f"{cause} See: aiayn {' '.join(words)} --help", 2)
        print(written.getvalue(), end="", file=sys.stderr)
        sentence = re.compile(r"-\w.+|-.* .*")  # not a flag: with one -, or with spaces
        if "Unrecognized" in written.getvalue() and words[:1] == ["translate"]:
            for word in filter(sentence.fullmatch, sys.argv[2:]):
                _exit(f"A sentence that begins with - stands after --: -- '{word}'", 2)
        raise


def _show_warning(message: Warning | str, *_: Any) -> None:
    print(f"aiayn: {_in_flags(str(message))}", file=sys.stderr)


def _in_flags(sentence: str) -> str:
    """A sentence for Python's users, in the words of the command line.

    ``name=value`` becomes ``--name value``, and `resume_training` a command.
    """
    flags = _flags()
    # A word of everyday English is a name only where it is given a value, or judged.
    judged = r"(?= (?:is|are|must|=) )"
    names = "|".join(n if "_" in n else rf"{n}(?:(?==)|{judged})" for n in flags)
    sentence = re.sub(
        rf"""(?<![\w."'/-])(?:model\.)?({names})\b(=?)""",
        lambda found: flags[found[1]] + " " * len(found[2]),
        sentence,
    )
    return re.sub(
        r'resume_training\("(.*?)"\)',
        lambda found: f"'aiayn resume {quoted(found[1])}'",
        sentence,
    )


def _flags() -> dict[str, str]:
    """The flags of the command that was typed, by their names in Python."""
    name = next(iter(sys.argv[1:]), "")
    if name == "train":
        flags = {part.name: f"--{part.name}" for part in fields(TrainingConfig)}
        for part in fields(TransformerConfig):
            flags[part.name] = f"--model.{part.name}"
        # A name of both is the model's only if its flag has been typed.
        if not any(word.startswith("--model.max-length") for word in sys.argv):
            flags["max_length"] = "--max-length"
    else:
        known = inspect.signature(_COMMANDS.get(name, RunFolder)).parameters
        flags = {part: f"--{part}" for part in ("output", *known)}
    return {part: flag.replace("_", "-") for part, flag in flags.items()}


def _exit(sentence: str, status: int) -> NoReturn:
    print(f"aiayn: {_in_flags(sentence)}", file=sys.stderr)
    sys.exit(status)


def _tune_process(config: TrainingConfig, large_pages: bool = True) -> None:
    """Settings that outlive a command: a library must not make them, a program may."""
    device = resolve_device(config.device)
    if config.fast:
        tune_process(device, resolve_precision(config.precision, device), large_pages)


def _print_result(result: training.TrainingResult) -> None:
    if os.environ.get("RANK", "0") != "0":  # of torchrun's processes, the first prints
        return
    last = result.log[-1]
    names = [name for name in ("loss", "perplexity", "bleu") if name in last]
    text = ", ".join(f"{name} {last[name]:.2f}" for name in names)
    print(f"Validation, averaged weights: {text}.")
    print(f'Try: aiayn translate {quoted(result.run.path)} "…"')

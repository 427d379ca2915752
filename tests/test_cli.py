"""The command line as somebody types it: what it prints, and how it complains."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

from aiayn import Tokenizer, Transformer, TransformerConfig, __version__, cli
from aiayn.data import load_corpus
from aiayn.device import resolve_device, resolve_precision
from aiayn.errors import InputError
from aiayn.inference import load_translator, save_translator
from aiayn.parsing import Parse, delinearise, linearise, load_treebank
from aiayn.storage import (
    RunFolder,
    describe_config,
    read_json,
    save_tensors,
    write_json,
)
from aiayn.training import TrainingConfig, TrainingResult

SENTENCES = ("a dog runs", "a cat runs", "the dog sees a cat", "the cat sleeps")


@pytest.fixture
def folder(tmp_path):
    """Parallel text of a few lines, each its own translation."""
    text = "".join(line + "\n" for line in SENTENCES)
    place = tmp_path / "corpus"
    place.mkdir()
    for name in ("train", "validation", "test"):
        for language in ("en", "de"):
            (place / f"{name}.{language}").write_text(text)
    return place


@pytest.fixture
def run(tmp_path, folder):
    """The folder of a run whose model knows nothing, but is whole."""
    run = RunFolder(tmp_path / "run")
    tokenizer = Tokenizer.train(SENTENCES, 30)
    tokenizer.save(run.tokenizer)
    model = TransformerConfig.tiny(vocab_size=30, d_model=16, d_ff=16, num_heads=2)
    config = TrainingConfig(corpus=str(folder), output=run.path, model=model)
    write_json(run.config, config.as_dict())
    for step in (1, 2, 3):
        torch.manual_seed(step)
        info = {"step": step, "model": describe_config(model)}
        run.save_checkpoint(Transformer(model).state_dict(), info, keep=3)
    return run


def typed(monkeypatch, capsys, *words, stdin=None):
    """Type a command; return its exit status and what it printed."""
    monkeypatch.setattr(sys, "argv", ["aiayn", *map(str, words)])
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    try:
        cli.main()
        status = 0
    except SystemExit as end:
        status = end.code or 0
    printed = capsys.readouterr()
    return status, printed.out, printed.err


@pytest.fixture
def tuned(monkeypatch):
    """What the process is tuned for; in this one, nothing is changed."""
    asked = []
    monkeypatch.setattr(cli, "tune_process", lambda *what: asked.append(what))
    return asked


@pytest.fixture
def aiayn(monkeypatch, capsys, tuned):
    """Type a command line."""
    return lambda *words, stdin=None: typed(monkeypatch, capsys, *words, stdin=stdin)


def complaint(status, out, err):
    """The one sentence of a command that could not do its work."""
    assert status == 2
    assert out == ""
    assert err.startswith("aiayn: ")
    assert "Traceback" not in err
    assert err.count("\n") == 1
    return err


def test_help_explains_by_example(aiayn):
    status, out, _ = aiayn("--help")
    assert status == 0
    for example in ("aiayn train grammar", "aiayn translate runs/multi30k"):
        assert example in " ".join(out.replace("│", " ").split())


def test_its_version_is_pyproject_s(aiayn):
    """Here, where the package is used out of its repository."""
    text = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    version = tomllib.loads(text)["project"]["version"]
    assert aiayn("--version") == (0, f"aiayn {version}\n", "")
    assert __version__ == version


def test_help_of_a_recipe_explains_every_field_of_the_configuration(aiayn):
    _, out, _ = aiayn("train", "multi30k", "--help")
    text = " ".join(out.replace("│", " ").split())
    for name in TrainingConfig.__dataclass_fields__:
        if name != "model":
            assert f"--{name.replace('_', '-')}" in text
    assert "--model.num-heads" in text
    assert "Optimizer steps (§5.2). (default: " in text


def test_trains_with_the_changes_that_were_typed(aiayn, folder, tmp_path, tuned):
    flags = "--steps 3 --tokens-per-batch 64 --model.vocab-size 30 --model.dropout 0.0"
    output = tmp_path / "trained"
    status, out, err = aiayn(
        "train", "grammar", "--corpus", folder, "--output", output, *flags.split()
    )
    assert status == 0, err
    assert f"aiayn translate {output}" in out
    assert RunFolder(output).read_log()[-1]["event"] == "average"
    recipe = TrainingConfig.grammar()
    changes = {"corpus": str(folder), "output": output}
    changes |= {"steps": 3, "tokens_per_batch": 64}
    model = replace(recipe.model, vocab_size=30, dropout=0.0)
    config = TrainingConfig.from_dict(read_json(RunFolder(output).config))
    assert config.precision in ("fp32", "bf16")  # the recipe says auto
    changes["precision"] = config.precision
    assert config == replace(recipe, **changes, model=model)
    device = resolve_device(config.device)
    asked = [(device, resolve_precision(config.precision, device), True)]
    assert tuned == asked
    status, _, err = aiayn("resume", output, "--steps", 4)
    assert status == 0, err
    assert tuned == asked * 2
    assert RunFolder(output).read_log()[-1]["step"] == 4


def test_without_fast_the_process_stays_as_it_is(aiayn, folder, tmp_path, tuned):
    flags = "--steps 1 --tokens-per-batch 64 --model.vocab-size 30 --no-fast"
    places = ("--corpus", folder, "--output", tmp_path / "plain")
    status, _, err = aiayn("train", "grammar", *places, *flags.split())
    assert status == 0, err
    assert tuned == []


def test_searches_are_tuned_too(aiayn, run, tuned):
    """In 32 bits, in which translations are computed; large pages do not pay there."""
    asked = (resolve_device("cpu"), torch.float32, False)
    for words in (("translate", run.path, "a b"), ("evaluate", run.path)):
        status, _, err = aiayn(*words, "--device", "cpu")
        assert status == 0, err
    assert tuned == [asked, asked]


def test_translates_arguments_files_and_standard_input_alike(aiayn, run, tmp_path):
    file = tmp_path / "lines.en"
    file.write_text("a dog runs\n\nthe cat sleeps\n")
    _, from_arguments, _ = aiayn(
        "translate", run.path, "a dog runs", "", "the cat sleeps"
    )
    _, from_file, _ = aiayn("translate", run.path, "--file", file)
    _, from_input, _ = aiayn("translate", run.path, stdin=file.read_bytes())
    assert from_arguments == from_file == from_input
    assert from_file.count("\n") == 3
    assert from_file.split("\n")[1] == ""


@pytest.mark.parametrize("weights", [[], ["--weights"]])
def test_an_output_may_be_as_long_as_is_said(aiayn, run, weights):
    """A model that knows nothing ends few outputs by itself; trees are long."""
    line = ("translate", run.path, SENTENCES[0], "--beam-size", 1, *weights)
    lengths = [
        len(aiayn(*line, "--extra-length", extra)[1].partition("\n")[0])
        for extra in (0, 5, 100)
    ]
    assert lengths == sorted(set(lengths))


def test_weights_are_shown_as_text(aiayn, run):
    status, out, err = aiayn("translate", run.path, "a dog runs", "--weights")
    assert status == 0, err
    assert max(map(len, out.split("\n"))) <= 80
    assert "</s>" in out


def test_an_empty_line_does_not_end_what_is_shown(aiayn, run, tmp_path):
    file = tmp_path / "some.en"
    file.write_text("a dog\n\na dog\n", encoding="utf-8")
    status, out, err = aiayn("translate", run.path, "--file", file, "--weights")
    assert status == 0, err
    _, alone, _ = aiayn("translate", run.path, "a dog", "--weights")
    assert out == f"{alone}\n{alone}"


def test_evaluates_as_sacrebleu_prints_it(aiayn, run):
    status, out, err = aiayn("evaluate", run.path, "--beam-size", 1)
    assert status == 0, err
    assert out.startswith("BLEU|nrefs:1|")
    assert "perplexity = " in out
    assert "exact matches = " in out


def test_a_saved_model_alone_is_neither_evaluated_nor_trained_over(aiayn, run):
    mine = run.path.with_name("mine")
    save_translator(*load_translator(run.path), mine)
    said = complaint(*aiayn("evaluate", mine))
    assert f"There is no file {mine / 'config.json'}" in said
    said = complaint(*aiayn("train", "grammar", "--output", mine))
    assert f"{mine} holds a run or a model already: continue a run" in said


def test_references_are_normalised_as_outputs_are(aiayn, run, folder, monkeypatch):
    """A right translation is right, however the reference's ö and spaces are typed."""
    typed = "ein scho\u0308ner  Hund\u00a0lief heute "
    text = f"{typed}\n" * len(SENTENCES)
    (folder / "test.de").write_text(text, encoding="utf-8")
    written = ["ein sch\u00f6ner Hund lief heute"] * len(SENTENCES)
    monkeypatch.setattr(cli.inference, "translate", lambda *_, **__: written)
    status, out, err = aiayn("evaluate", run.path)
    assert status == 0, err
    assert " = 100.00 100.0/100.0/100.0/100.0 " in out
    assert "exact matches = 100.0%" in out


def test_only_the_first_process_tells_the_result(run, monkeypatch, capsys):
    """torchrun's others would print the same, or a score from before the average."""
    result = TrainingResult(run, *load_translator(run.path), [{"loss": 1.0}])
    for rank, lines in (("0", 2), ("1", 0)):
        monkeypatch.setenv("RANK", rank)
        cli._print_result(result)
        assert len(capsys.readouterr().out.splitlines()) == lines


def test_evaluates_a_parser_by_its_brackets(aiayn, run, monkeypatch):
    """A parser that is right about everything scores 100 %, punctuation and all."""
    config = TrainingConfig.from_dict(read_json(run.config))
    write_json(run.config, replace(config, corpus="grammar", target="trees").as_dict())
    few = {"size": 50, "held_out_size": 20}
    bank = load_treebank(**few)["test"]
    monkeypatch.setattr(cli.data, "load_corpus", partial(load_corpus, **few))
    monkeypatch.setattr(cli.parsing, "load_treebank", partial(load_treebank, **few))

    def right(sentences, *_, **__):
        known = {" ".join(tree.leaves): linearise(tree) for tree in bank}
        written = [known[sentence] for sentence in sentences]
        return [
            Parse(delinearise(symbols, sentence.split()), symbols, None)
            for symbols, sentence in zip(written, sentences, strict=True)
        ]

    monkeypatch.setattr(cli.parsing, "parse", right)
    status, out, err = aiayn("evaluate", run.path)
    assert status == 0, err
    assert out.startswith("F1 = 100.0% (precision 100.0%, recall 100.0%; 0.0% of")
    assert "exact matches = 100.0%" in out


def test_a_parser_of_trees_of_one_s_own_is_scored_without_brackets(aiayn, run, folder):
    """Their lines hold no tags; all else can be measured."""
    config = TrainingConfig.from_dict(read_json(run.config))
    write_json(run.config, replace(config, target="trees").as_dict())
    lines = "(S (NP XX XX )NP (VP XX )VP )S\n" * len(SENTENCES)
    for split in ("train", "validation", "test"):
        (folder / f"{split}.trees").write_text(lines)
    words = ("evaluate", run.path, "--beam-size", 1)
    status, out, err = aiayn(*words)
    assert status == 0, err
    assert out.startswith("There is no F1 without gold trees with tags; ")
    assert "% of the outputs were no tree and repaired" in out
    assert "perplexity = " in out
    assert "exact matches = " in out


def test_sentences_and_a_file_are_not_both_translated(aiayn, run, tmp_path):
    """One of the two would be passed over in silence."""
    said = complaint(*aiayn("translate", run.path, "a dog", "--file", tmp_path / "no"))
    assert "Give sentences or --file, not both" in said


@pytest.mark.parametrize("below", [".", "inside"])
def test_an_output_that_is_a_file(aiayn, folder, tmp_path, below):
    file = tmp_path / "text.en"
    file.write_text("a dog\n")
    output = file / below
    command = ("train", "grammar", "--corpus", folder, "--output", output)
    said = complaint(*aiayn(*command))
    assert f"{output} cannot be written: " in said
    assert file.read_text() == "a dog\n"


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there(aiayn, run):
    said = complaint(*aiayn("translate", run.path, "a dog", "--device", "cuda"))
    assert "finds no device 'cuda' on this machine" in said


def test_a_run_that_is_not_there(aiayn, tmp_path):
    assert "nowhere" in complaint(*aiayn("translate", tmp_path / "nowhere", "a dog"))
    assert "config.json" in complaint(*aiayn("resume", tmp_path / "nowhere"))


def test_a_checkpoint_cut_short(aiayn, run):
    checkpoint = run.checkpoints()[-1]
    checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    said = complaint(*aiayn("translate", run.path, "a dog"))
    assert f"{checkpoint} is not a whole safetensors file" in said


def test_a_checkpoint_of_another_configuration(aiayn, run):
    weights = Transformer(TransformerConfig.tiny(vocab_size=30)).state_dict()
    small = TransformerConfig.tiny(vocab_size=30, d_model=16)
    save_tensors(run.average, weights, {"model": describe_config(small)})
    said = complaint(*aiayn("translate", run.path, "a dog"))
    assert f"{run.average} holds the weights of another configuration" in said


def test_a_configuration_of_another_version(aiayn, run):
    write_json(run.config, {"learning_rate": 1})
    assert "no training configuration" in complaint(*aiayn("resume", run.path))


def test_text_that_is_not_utf8(aiayn, run, tmp_path):
    file = tmp_path / "latin1.en"
    file.write_bytes(b"a dog\nun caf\xe9\n")
    said = complaint(*aiayn("translate", run.path, "--file", file))
    assert "Line 2" in said
    assert "latin1.en is not UTF-8" in said
    said = complaint(*aiayn("translate", run.path, stdin=file.read_bytes()))
    assert "Line 2 of standard input is not UTF-8" in said


def test_a_corpus_that_cannot_be_used(aiayn, run, folder):
    evaluate = ("evaluate", run.path, "--corpus")
    assert "no corpus 'multi31k'" in complaint(*aiayn(*evaluate, "multi31k"))
    (folder / "train.de").write_text("ein Hund\n")
    said = complaint(*aiayn(*evaluate, folder))
    assert "train.en" in said
    assert "train.de" in said
    for language in ("en", "de"):
        (folder / f"train.{language}").write_text("\n \n")
    assert "train" in complaint(*aiayn(*evaluate, folder))


def test_a_sentence_longer_than_the_learned_table(aiayn, run):
    model = TransformerConfig.tiny(
        vocab_size=30, d_model=16, positions="learned", max_length=8
    )
    info = {"model": describe_config(model)}
    save_tensors(run.average, Transformer(model).state_dict(), info)
    said = complaint(*aiayn("translate", run.path, "a dog", "a dog runs " * 9))
    assert "ine 2" in said


def test_weights_name_the_line_that_is_too_long(aiayn, run):
    words = ("translate", run.path, "--weights", "--beam-size", 1)
    status, out, err = aiayn(*words, "", "a dog", "a dog runs " * 900)
    assert status == 2
    assert out
    assert "Line 3 has" in err


def test_references_longer_than_the_learned_table(aiayn, run, folder):
    """They have no perplexity; what can be measured is."""
    model = TransformerConfig.tiny(
        vocab_size=30, d_model=16, positions="learned", max_length=40
    )
    info = {"model": describe_config(model)}
    save_tensors(run.average, Transformer(model).state_dict(), info)
    words = ("evaluate", run.average, "--beam-size", 1)
    for fits, line in ((True, "a dog"), (False, "a dog runs " * 9)):
        (folder / "test.de").write_text("a cat\n" * (len(SENTENCES) - 1) + line + "\n")
        status, out, err = aiayn(*words)
        assert out.startswith("BLEU|nrefs:1|")
        assert "exact matches = " in out
        assert ("perplexity = " in out) == fits == (status == 0)
    assert "max_length = 40" in err


def test_a_score_is_printed_before_what_may_fail(aiayn, run, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(cli.inference, "perplexity", fail)
    status, out, err = aiayn("evaluate", run.path, "--beam-size", 1)
    assert status == 1
    assert out.startswith("BLEU|nrefs:1|")
    assert "There is not enough memory" in err


def test_gold_trees_are_there_before_anything_is_parsed(aiayn, run, monkeypatch):
    config = TrainingConfig.from_dict(read_json(run.config))
    write_json(run.config, replace(config, corpus="grammar", target="trees").as_dict())
    few = partial(load_corpus, size=50, held_out_size=20)
    monkeypatch.setattr(cli.data, "load_corpus", few)

    def fail(*_):
        raise InputError("There are no trees.")

    monkeypatch.setattr(cli.parsing, "load_treebank", fail)
    monkeypatch.setattr(
        cli.parsing, "parse", lambda *_, **__: pytest.fail("It was parsed.")
    )
    assert "There are no trees." in complaint(*aiayn("evaluate", run.path))


def test_characters_that_training_never_saw_do_no_harm(aiayn, run):
    status, out, err = aiayn("translate", run.path, "日本語 🙂 \x00 ﷽")
    assert status == 0, err
    assert out.count("\n") == 1


def test_a_disk_without_room(aiayn, run, monkeypatch):
    def full(self, *words):
        raise OSError(28, "No space left on device", str(run.log))

    monkeypatch.setattr(RunFolder, "checkpoints", full)
    status, _, err = aiayn("translate", run.path, "a dog")
    assert status == 1
    assert "No space left on device" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
        RuntimeError("std::bad_alloc"),
    ],
)
def test_a_lack_of_memory_is_a_sentence(aiayn, run, monkeypatch, error):
    def lack(*_):
        raise error

    monkeypatch.setattr(cli.inference, "load_translator", lack)
    status, _, err = aiayn("translate", run.path, "a dog")
    assert status == 1
    assert err.startswith("aiayn: There is not enough memory: give a smaller --beam")
    assert err.count("\n") == 1


def test_a_beam_that_no_memory_holds(aiayn, run):
    status, _, err = aiayn("translate", run.path, "a dog", "--beam-size", 10**15)
    assert status == 1
    assert "There is not enough memory: give a smaller --beam-size" in err


def test_an_error_of_ours_is_not_called_a_lack_of_memory(aiayn, run, monkeypatch):
    def fail(*_):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(cli.inference, "load_translator", fail)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        aiayn("translate", run.path, "a dog")


@pytest.mark.parametrize("words", [["--weights"], [], None])
def test_a_reader_that_leaves_early_is_no_error(run, words):
    """Whether each answer is written at once, all at the end, or it is the help."""
    nobody, output = os.pipe()
    os.close(nobody)
    told = ["--help"] if words is None else ["translate", run.path, "a dog", *words]
    with os.fdopen(output) as stream:
        done = subprocess.run(
            [sys.executable, "-m", "aiayn", *told],
            stdout=stream,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": ""},  # else nothing waits
            timeout=60,
        )
    assert done.stderr == b""


FLAGS = {
    "--model.dropout 1.5": "--model.dropout is a probability in [0, 1), not 1.5.",
    "--model.num-heads 7": "--model.d-model = 96 is not divisible by --model.num-heads",
    "--model.max-length 0": "--model.max-length must be a whole number, at least 1",
    "--max-length 0": "--max-length must be a whole number, at least 1, not 0.",
    "--steps 0": "--steps must be a whole number, at least 1, not 0.",
    "--clip-norm 0": "--clip-norm must be larger than 0",
    "--betas 1 2": "--betas must be two numbers in [0, 1), not (1.0, 2.0).",
    "--label-smoothing 1": "--label-smoothing is 1.0, and not < 1.",
}


@pytest.mark.parametrize(("typed", "sentence"), FLAGS.items())
def test_a_value_out_of_its_range_names_flag_range_and_help(aiayn, typed, sentence):
    said = complaint(*aiayn("train", "grammar", *typed.split()))
    assert said.startswith(f"aiayn: {sentence}")
    assert said.endswith(" See: aiayn train grammar --help\n")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("train grammar --steps x", "Error parsing --steps"),
        ("train grammar --model.dropout x", "Error parsing --model.dropout"),
        ("train grammar --stepz 4", "--steps INT"),
        ("train grammmar", "Available subcommands: grammar, multi30k, base"),
        ("translate run --beam-sise 3", "--beam-size INT"),
    ],
)
def test_what_is_no_flag_or_no_number_is_told_by_tyro(aiayn, typed, words):
    status, out, err = aiayn(*typed.split())
    assert (status, out) == (2, "")
    assert words in err
    assert "dummy" not in err
    assert "Traceback" not in err
    assert "stands after --" not in err


def test_a_vocabulary_that_is_too_large_names_its_flag(aiayn, folder, tmp_path, tuned):
    places = ("--corpus", folder, "--output", tmp_path / "large")
    said = complaint(*aiayn("train", "grammar", *places, "--model.vocab-size", 999))
    assert "--model.vocab-size 999 is too large for this text; the largest" in said


def test_a_run_that_is_there_speaks_of_commands(aiayn, run, tmp_path):
    said = complaint(*aiayn("train", "grammar", "--output", run.path))
    assert f"continue a run with 'aiayn resume {run.path}', or choose another" in said
    place = shutil.copytree(run.path, tmp_path / "my run")
    said = complaint(*aiayn("train", "grammar", "--output", place))
    assert f"'aiayn resume \"{place}\"'" in said


def test_what_is_no_run_is_told_so(aiayn, tmp_path):
    said = complaint(*aiayn("resume", tmp_path))
    assert f"so {tmp_path} is no run: give the --output … of a training" in said


@pytest.mark.parametrize("sentence", ["-the dog", "-the", "--the dog runs", "- a dog"])
def test_a_sentence_that_begins_with_a_minus_stands_after_two(aiayn, run, sentence):
    status, out, err = aiayn("translate", run.path, sentence)
    if status:  # tyro takes some of them for flags
        assert (status, out) == (2, "")
        assert f"stands after --: -- '{sentence}'" in err
    status, out, err = aiayn("translate", run.path, "--", sentence)
    assert status == 0, err
    assert out.count("\n") == 1


class Terminal(io.TextIOWrapper):
    def isatty(self):
        return True


def test_a_terminal_is_asked_for_sentences(monkeypatch, capsys, run):
    monkeypatch.setattr(sys, "argv", ["aiayn", "translate", str(run.path)])
    monkeypatch.setattr(sys, "stdin", Terminal(io.BytesIO(b"a dog\na cat\n")))
    cli.main()
    printed = capsys.readouterr()
    assert printed.out.count("\n") == 2
    assert printed.err == "Type a sentence a line; Ctrl-D ends.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device here")
def test_an_output_that_takes_no_more_is_a_sentence(run):
    command = [sys.executable, "-m", "aiayn", "translate", run.path, "a dog"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "aiayn: The output cannot be read or written: No space left on device. Make "
        "room, or choose another place.\n"
    )


def test_a_full_disk_in_a_training_says_how_to_go_on(
    aiayn, folder, tmp_path, tuned, monkeypatch
):
    def full(handle):
        raise OSError(28, "No space left on device")

    def save_state(self, *state):
        monkeypatch.setattr(os, "fsync", full)
        saved(self, *state)

    saved = RunFolder.save_state
    monkeypatch.setattr(RunFolder, "save_state", save_state)
    flags = "--steps 1 --tokens-per-batch 64 --model.vocab-size 30 --no-progress"
    places = ("--corpus", folder, "--output", tmp_path / "run")
    said = complaint(*aiayn("train", "grammar", *places, *flags.split()))
    assert "state.safetensors cannot be written: No space left on device." in said
    assert f"go on with 'aiayn resume {tmp_path / 'run'}'; what was saved" in said


def test_a_warning_is_a_sentence_too(aiayn, run, folder):
    for language in ("en", "de"):
        with (folder / f"train.{language}").open("a") as file:
            file.write("\n")
    status, _, err = aiayn("evaluate", run.path, "--corpus", folder)
    assert status == 0
    assert err.startswith("aiayn: 1 of 5 pairs of ")
    assert err.count("\n") == 1
    assert "UserWarning" not in err


def test_evaluates_from_anywhere_but_not_what_has_changed(
    aiayn, folder, tmp_path, tuned, monkeypatch
):
    """A corpus of that name in another folder is another one."""
    monkeypatch.chdir(tmp_path)
    flags = "--steps 1 --tokens-per-batch 64 --model.vocab-size 30 --no-progress"
    status, _, err = aiayn(
        "train", "grammar", "--corpus", "corpus", "--output", "mine", *flags.split()
    )
    assert status == 0, err
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = shutil.copytree(folder, elsewhere / "corpus")
    for path in other.iterdir():
        path.write_text("the cat runs\n" * len(SENTENCES))
    monkeypatch.chdir(elsewhere)
    evaluate = ("evaluate", tmp_path / "mine", "--beam-size", 1)
    status, right, err = aiayn(*evaluate)
    assert status == 0, err
    assert aiayn(*evaluate, "--corpus", folder) == (0, right, "")
    status, out, err = aiayn(*evaluate, "--corpus", "corpus")
    assert (status, out != right, err) == (0, True, "")
    kept = {path: path.read_bytes() for path in folder.iterdir()}
    for path in folder.iterdir():
        path.write_bytes(b"the cat runs\n" * len(SENTENCES))
    for command in (evaluate, ("resume", tmp_path / "mine", "--steps", 2)):
        said = complaint(*aiayn(*command))
        assert "is not what this run was trained with: its sha256 is" in said
        assert str(folder) in said
        assert "as --corpus …" in said
    assert aiayn(*evaluate, "--corpus", folder)[0] == 0
    shutil.rmtree(folder)
    for command in (evaluate, ("resume", tmp_path / "mine", "--steps", 2)):
        said = complaint(*aiayn(*command))
        assert f"names the corpus {folder}, which is not there" in said
        assert "give its new place as --corpus …" in said
    moved = tmp_path / "moved"
    moved.mkdir()
    for path, content in kept.items():
        (moved / path.name).write_bytes(content)
    status, _, err = aiayn("resume", tmp_path / "mine", "--steps", 2, "--corpus", moved)
    assert status == 0, err
    assert aiayn(*evaluate)[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has another signal")
def test_stopped_while_torch_is_imported_it_ends_quietly(tmp_path):
    """In place of torch, something that says when it is imported, and takes long."""
    (tmp_path / "torch.py").write_text(
        "import time\nprint('imported', flush=True)\ntime.sleep(60)\n"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-m", "aiayn", "evaluate", "run"],
        env=os.environ | {"PYTHONPATH": paths},
        # A test that runs in the background has inherited that Ctrl-C is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "imported\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "aiayn: Stopped.\n"

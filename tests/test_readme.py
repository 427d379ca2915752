"""The README's examples, run as they are printed."""

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from aiayn import TrainingConfig, Transformer, TransformerConfig, cli

README = (Path(__file__).resolve().parents[1] / "README.md").read_text("utf-8")


def blocks(language):
    """The fenced examples in a language, without the list's indentation."""
    pattern = rf"^( *)```{language}\n(.*?)^\1```$"
    found = re.findall(pattern, README, re.MULTILINE | re.DOTALL)
    assert found, f"README.md has no example in {language}."
    return [re.sub(rf"^{indent}", "", text, flags=re.M) for indent, text in found]


def commands():
    """Every line of the shell examples that calls aiayn."""
    lines = "\n".join(blocks("bash")).splitlines()
    return [line for line in lines if line.startswith("aiayn ")]


def test_python_examples_run(monkeypatch, tmp_path):
    """As printed, but that the training takes two steps instead of thousands."""
    monkeypatch.chdir(tmp_path)
    whole = TrainingConfig.grammar()
    short = replace(whole, corpus_size=2000, steps=2, warmup_steps=1, progress=False)
    monkeypatch.setattr(TrainingConfig, "grammar", lambda: short)
    for text in blocks("python"):
        names = {}
        exec(compile(text, "README.md", "exec"), names)
        assert names["result"].log[-1]["step"] == short.steps


@pytest.mark.parametrize("line", commands())
def test_commands_are_understood(line, monkeypatch, capsys):
    """Each is parsed whole, up to the call that would do the work."""

    class ReachedError(Exception):
        pass

    def stop(*args, **options):
        raise ReachedError

    for module, name in (
        (cli, "read_json"),  # the folder that `resume` asks for
        (cli.training, "train"),
        (cli.training, "resume_training"),
        (cli.inference, "load_translator"),
    ):
        monkeypatch.setattr(module, name, stop)
    words = shlex.split(line, comments=True)
    monkeypatch.setattr(sys, "argv", words)
    if "--help" in words:
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 0
    else:
        with pytest.raises(ReachedError):
            cli.main()


def test_the_papers_model_is_one_call():
    """On the device that holds shapes only: 60 million numbers are not drawn."""
    (expression,) = re.findall(
        r"`(Transformer\(TransformerConfig\.base\(\)\))`", README
    )
    with torch.device("meta"):
        model = eval(expression)
    assert isinstance(model, Transformer)
    assert model.config == TransformerConfig.base()

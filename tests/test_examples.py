"""Every example in the packages' docstrings says the truth."""

import ast
import doctest
import importlib
from functools import partial, reduce
from pathlib import Path

import pytest
import torch

import aiayn
import aiayn_book
from aiayn.data.grammar import corpus as embedded
from aiayn.model import TransformerConfig
from aiayn.training import TrainingConfig, train

PACKAGES = [Path(one.__file__).parent for one in (aiayn, aiayn_book)]
SOURCES = {
    path.relative_to(package.parent).with_suffix(""): path.read_text(encoding="utf-8")
    for package in PACKAGES
    for path in sorted(package.rglob("*.py"))
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
# What an example may take as imported, beside its own module's names.
IMPORTED = {name: getattr(aiayn, name) for name in aiayn.__all__}
IMPORTED |= {"Path": Path, "torch": torch}


def places(node, *names):
    """Where an example stands, as the sources have it: no decorator hides it there."""
    if isinstance(node, DOCUMENTED) and ">>> " in (ast.get_docstring(node) or ""):
        yield names
    for inner in ast.iter_child_nodes(node):
        own = [inner.name] if isinstance(inner, DOCUMENTED) else []
        yield from places(inner, *names, *own)


PLACES = [
    (".".join(path.parts).removesuffix(".__init__"), *names)
    for path, text in SOURCES.items()
    for names in places(ast.parse(text))
]


def found(module, *names):
    """The one docstring's examples, as a reader would run them."""
    home = importlib.import_module(module)
    (test,) = doctest.DocTestFinder(recurse=False).find(
        reduce(getattr, names, home), ".".join(names), globs=IMPORTED | vars(home)
    )
    return test


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """A reader's folder, in which a translator has been trained.

    Of each held-out split there are a few sentences only: a thousand, as a reader has
    them, would take longer to make than all examples to run.
    """
    folder = tmp_path_factory.mktemp("reader")
    model = TransformerConfig.tiny(vocab_size=400, d_model=16, d_ff=32)
    few = partial(embedded.load, held_out_size=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "load", few)
        train(
            TrainingConfig.grammar(
                model=model,
                corpus_size=500,
                steps=2,
                output=folder / "runs/grammar",
                progress=False,
            )
        )
        yield folder


@pytest.mark.parametrize("place", PLACES, ids=".".join)
@pytest.mark.usefixtures("unchecked_shapes")  # as readers have it
def test_an_example_says_the_truth(place, reader, monkeypatch):
    """It needs torch, what `aiayn` exports, its module, and a trained runs/grammar."""
    monkeypatch.chdir(reader)
    assert doctest.DocTestRunner().run(found(*place)).failed == 0


def test_no_example_is_lost():
    """Each that the sources hold is one of those above."""
    written = sum(text.count(">>> ") for text in SOURCES.values())
    assert 0 < written == sum(len(found(*place).examples) for place in PLACES)

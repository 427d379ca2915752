"""The examples in the model's docstrings say the truth."""

import doctest
import importlib
import pkgutil

import pytest
import torch

import aiayn
import aiayn.model

MODULES = [
    module.name for module in pkgutil.iter_modules(aiayn.model.__path__, "aiayn.model.")
]
# What an example may take as imported: see also tests/book/test_api.py.
IMPORTED = {name: getattr(aiayn, name) for name in aiayn.__all__} | {"torch": torch}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, extraglobs=IMPORTED).failed == 0


def test_examples_are_found():
    """The import hook must not hide them: some modules have examples."""
    found = [
        doctest.testmod(importlib.import_module(name), extraglobs=IMPORTED).attempted
        for name in MODULES
    ]
    assert sum(found) >= 8

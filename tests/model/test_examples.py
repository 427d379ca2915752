"""The examples in the model's docstrings say the truth."""

import doctest
import importlib
import pkgutil

import pytest

import aiayn.model

MODULES = [
    module.name for module in pkgutil.iter_modules(aiayn.model.__path__, "aiayn.model.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_examples_are_found():
    """The import hook must not hide them: some modules have examples."""
    found = [
        doctest.testmod(importlib.import_module(name)).attempted for name in MODULES
    ]
    assert sum(found) >= 8

"""What is said of a line that is no text."""

from collections.abc import Iterable
from types import NoneType
from typing import NoReturn

from aiayn.errors import InputError


def refuse_line(value: object, where: str) -> NoReturn:
    """Say of something that it is no text, and what may be done about it.

    Raises:
        InputError: Always.
    """
    remedy = "leave such lines out, or write '' for them"
    if isinstance(value, int | float) and value == value:
        remedy = f"give '{value}' if it is meant as one"
    elif isinstance(value, Iterable):
        remedy = (
            "give one string a line, not lists in a list; ' '.join(words) makes a "
            "string of words"
        )
    if isinstance(value, bytes):
        remedy = "decode it as UTF-8 first"
    raise InputError(f"{where} is {describe_value(value)} and no text: {remedy}.")


def describe_value(value: object) -> str:
    """What somebody gave, as a message names it."""
    kind = type(value).__name__
    if isinstance(value, int | float | NoneType):
        return f"{value!r}" + (" (a missing value)" if value != value else "")
    return f"something of the type {kind}"

"""What is said of a line that is no text."""

from types import NoneType
from typing import NoReturn

from aiayn.errors import InputError


def refuse_line(value: object, where: str) -> NoReturn:
    """Say of something that it is no text, and what may be done about it.

    Raises:
        InputError: Always.
    """
    raise InputError(
        f"{where} is {describe_value(value)} and no text: give one string a line, not "
        "a list of its words, and leave out missing values."
    )


def describe_value(value: object) -> str:
    """What somebody gave, as a message names it."""
    if isinstance(value, int | float | NoneType):
        return repr(value)
    return f"something of the type {type(value).__name__}"

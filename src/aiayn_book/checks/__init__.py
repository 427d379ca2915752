"""Checks of the exercises, one module a chapter.

A check takes the reader's function or value, looks at the shape first and then at the
values, and says in words what is wrong. See `aiayn_book.checks.framework`.

Not in the paper.
"""

from aiayn_book.checks.framework import FunctionCheck, Mistake, ValueCheck, WrongAnswer

__all__ = ["FunctionCheck", "Mistake", "ValueCheck", "WrongAnswer"]

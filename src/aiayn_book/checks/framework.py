"""What a check is made of: a slow, obviously right reference, cases, typical mistakes.

A mistake is itself a function: what a reader who makes it writes. When an answer is
wrong and equals the outcome of a mistake, the reader gets the message that was meant
for it. So the same list serves the reader and the test, which feeds each mistake to
its check and expects each message.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from aiayn_book.checks.comparison import Hint, WrongAnswer, compare, describe
from aiayn_book.checks.draws import other_inputs

__all__ = ["FunctionCheck", "Mistake", "ValueCheck", "WrongAnswer"]


@dataclass(frozen=True)
class Mistake:
    """A typical wrong answer and what to say to the reader who gives it."""

    answer: Any
    """The function, or the value, that such a reader hands in."""
    message: str
    """What is wrong and what to look at, without the solution."""


@dataclass(frozen=True)
class FunctionCheck:
    """Checks a reader's function against a reference; call it with the function."""

    exercise: str
    """Its number in the book: "3.2"."""
    reference: Callable[..., Any]
    """Slow and obviously right."""
    cases: Callable[[], Sequence[tuple[Any, ...]]]
    """Makes the arguments of each case anew, with `seeded`."""
    mistakes: tuple[Mistake, ...] = ()
    """Typical wrong functions."""

    def __call__(self, answer: Any) -> None:
        """Print one line if the function is right.

        Raises:
            WrongAnswer: it is not; the message says what to look at.
        """
        if not callable(answer):
            raise WrongAnswer(
                "a function was expected. Hand over its name alone, without "
                "parentheses: check(my_function), not check(my_function(x))."
            )
        cases = self.cases()
        for arguments in cases:
            self._check_case(answer, arguments)
        print(f"✓ Exercise {self.exercise}: right, on {len(cases)} different inputs.")

    def again(self, answer: Any, shift: int = 1_000_000) -> None:
        """Check once more, on random inputs that a reader has not seen.

        For whoever grades: an answer that knows the visible inputs by heart fails here.

        Args:
            answer: the function.
            shift: which other inputs; each number draws its own.

        Raises:
            WrongAnswer: the function is not right on these inputs.
        """
        with other_inputs(shift):
            self(answer)

    def _check_case(self, answer: Callable[..., Any], arguments: tuple) -> None:
        given = _copies(arguments)
        try:
            got = answer(*given)
        except NotImplementedError:
            raise WrongAnswer(
                f"exercise {self.exercise} is still to be done: put your answer in "
                "place of the line that raises NotImplementedError, run its cell, and "
                "then this one."
            ) from None
        want = self.reference(*_copies(arguments))

        def hints() -> list[Hint]:
            return [(m.answer(*_copies(arguments)), m.message) for m in self.mistakes]

        compare(got, want, describe(arguments), hints)
        for before, after in zip(arguments, given, strict=True):
            if isinstance(before, Tensor) and not before.equal(after):
                raise WrongAnswer(
                    "the result is right, but your function changed its input. "
                    "Operations that end in _ and assignments to slices do that: "
                    "make a new tensor instead."
                )


@dataclass(frozen=True)
class ValueCheck:
    """Checks a number, a truth value or a tensor; call it with the value."""

    exercise: str
    """Its number in the book."""
    reference: Callable[[], Any]
    """Computes the right value."""
    mistakes: tuple[Mistake, ...] = ()
    """Typical wrong values."""

    def __call__(self, answer: Any) -> None:
        """Print one line if the value is right.

        Raises:
            WrongAnswer: it is not; the message says what to look at.
        """
        hints = [(mistake.answer, mistake.message) for mistake in self.mistakes]
        compare(answer, self.reference(), "your value", lambda: hints)
        print(f"✓ Exercise {self.exercise}: right.")


def _copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments for one call: who uses up a list must not leave the next one empty."""
    return tuple(map(_copy, arguments))


def _copy(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return argument.clone()
    return copy.deepcopy(argument) if isinstance(argument, list) else argument

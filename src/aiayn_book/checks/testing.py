"""What a test asks of every check: the reference passes, each mistake is caught.

And no argument of a function is the same in all cases: who ignores it would pass.
"""

from collections.abc import Iterator
from types import ModuleType

from aiayn_book.checks.framework import FunctionCheck, ValueCheck, WrongAnswer

Check = FunctionCheck | ValueCheck


def checks_in(module: ModuleType) -> dict[str, Check]:
    """The checks that a chapter's module defines, by name."""
    return {
        name: thing
        for name, thing in vars(module).items()
        if isinstance(thing, FunctionCheck | ValueCheck)
    }


def faults(check: Check) -> Iterator[str]:
    """What is wrong with a check itself, one sentence each; nothing if it is sound."""
    right = check.reference if isinstance(check, FunctionCheck) else check.reference()
    try:
        check(right)
    except WrongAnswer as error:
        yield f"exercise {check.exercise}: the reference itself is rejected: {error}"
    if isinstance(check, FunctionCheck):
        for number, given in enumerate(zip(*check.cases(), strict=True), start=1):
            if len(given) > 1 and len(set(map(repr, given))) == 1:
                yield (
                    f"exercise {check.exercise}: argument {number} is the same in all "
                    "cases"
                )
    for mistake in check.mistakes:
        if isinstance(check, FunctionCheck):
            for arguments in check.cases():  # a hint must not raise on any of them
                mistake.answer(*arguments)
        try:
            check(mistake.answer)
        except WrongAnswer as error:
            if str(error) != mistake.message:
                yield (
                    f"exercise {check.exercise}: the mistake meant for "
                    f"{mistake.message!r} gets {str(error)!r}"
                )
        else:
            yield (
                f"exercise {check.exercise}: the mistake meant for "
                f"{mistake.message!r} passes"
            )

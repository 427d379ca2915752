"""The one set-up cell of every chapter: seeds, threads, chart themes, run time.

Runs are seeded and use one thread, so that the same machine gives the same numbers;
another kind of processor may differ in the last digits. The time that a chapter takes
is read from ``run_times.json``, measured when the book was last built.
"""

import json
import random
import re
from importlib.resources import files

import numpy as np
import torch

from aiayn.device import describe_machine
from aiayn.errors import InputError

SEED = 2017


def setup(chapter: str, seed: int = SEED) -> None:
    """Prepare a notebook and say what machine this is and how long the chapter takes.

    Args:
        chapter: the notebook's name without its ending, such as ``"03-attention"``.
        seed: for `random`, `numpy.random` and `torch`.

    Raises:
        InputError: `chapter` is not of the form ``"03-attention"`` or ``"packing"``,
            or the chart libraries are missing.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", chapter):
        raise InputError(
            f"chapter is {chapter!r}, but a notebook's name was expected, words joined "
            "by hyphens, such as '03-attention'."
        )
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    # Several threads make small models slower, and their sums differ between machines.
    torch.set_num_threads(1)
    _use_chart_theme()
    print(machine())
    print(expected_time(chapter))


def machine() -> str:
    """This machine and the versions that matter, in one line."""
    facts = describe_machine()
    cores = facts["cores"]
    parts = [
        f"Python {facts['python']}",
        f"torch {str(facts['torch']).partition('+')[0]} on one thread",
        f"{facts['processor']}, {cores} core{'' if cores == 1 else 's'}",
    ]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return " · ".join(parts)


def expected_time(chapter: str) -> str:
    """How long a chapter takes, as measured at the last build, in one sentence."""
    table = json.loads(files("aiayn_book").joinpath("run_times.json").read_text())
    seconds = table["seconds"].get(chapter)
    if seconds is None:
        return f"Chapter {chapter}: its run time has not been measured yet."
    return (
        f"Chapter {chapter}: runs in about {duration(seconds)} on {table['machine']};\n"
        "here it may differ by a factor of two or three."
    )


def duration(seconds: int | float) -> str:
    """A duration as people say it: ``"20 seconds"``, ``"3 minutes"``."""
    if seconds < 90:
        rounded = max(5, 5 * round(seconds / 5))
        return f"{rounded} seconds"
    return f"{round(seconds / 60)} minutes"


def _use_chart_theme() -> None:
    try:
        from aiayn_book.plots import use_theme
    except ModuleNotFoundError as error:
        raise InputError(str(error)) from error
    use_theme()

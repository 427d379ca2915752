"""Runs that are too long for the build: what was typed, where, and what came of it.

``tools/records/run.py`` makes a record from a run's folder, its neighbours those of
chapters 17 to 21, 23 and 24. They stay in the repository, so a chapter can draw them,
and anyone can repeat each with its one command.

Not in the paper.
"""

import json
from importlib.resources import files
from typing import Any

from aiayn.errors import InputError


def load_record(name: str) -> dict[str, Any]:
    """Read a record.

    Args:
        name: The record's file without its ending.

    Returns:
        command and commit, which belong together; where today's package needs
        another command for the same run, also repeat (see `repeats`), and where not
        all that the command makes was kept, a note. Of Table 3,
        which took more than one, commits and machines, both lists. Of a translator also
        config, log (one dictionary a line of the run's log; the first names the
        machine), test (the score) and samples
        (sentence and translation); of the one in the page, instead of samples, what
        its page shows (see tools/records/live.py). Of the searches machine, trained_by
        (a command) and runs (one dictionary a folder of checkpoints). Of the others
        what they ran on and runs (one dictionary a training). Of what a GPU trained
        also command_seconds, which the whole command of a translator took, or
        stopped_after_seconds, if a table was not trained to its end.

    Raises:
        InputError: There is no such record; the message lists those that there are.
    """
    folder = files("aiayn_book").joinpath("records")
    names = sorted(
        file.name.removesuffix(".json")
        for file in folder.iterdir()
        if file.name.endswith(".json")
    )
    if name not in names:
        raise InputError(
            f"There is no record {name!r}; there are {', '.join(names) or 'none'}."
        )
    return json.loads(folder.joinpath(f"{name}.json").read_text(encoding="utf-8"))


def repeats(record: dict[str, Any]) -> str:
    """What to type today for the same run.

    Options and their defaults have changed since some records were made. ``command``
    is what ran at the record's commit; it asks for the same only there.

    Args:
        record: As `load_record` gives it.
    """
    return record.get("repeat", record["command"])

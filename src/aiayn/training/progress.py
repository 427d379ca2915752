"""How far a training has come, and reading it back from a file that may be anything."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiayn.errors import InputError


@dataclass
class Progress:
    """How far a training has come: what a resumed run takes up."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of this epoch that are done."""
    seconds: float = 0.0
    """Time spent so far, validation included."""
    best_loss: float = math.inf
    totals: list[float] = field(default_factory=list)
    """Sums since the log's last record, of each process in turn: smoothed loss, plain
    loss, tokens."""

    @classmethod
    def read(cls, info: dict[str, Any], path: Path) -> "Progress":
        """What a state's header says of it.

        Raises:
            InputError: It says something else.
        """
        values = info.get("progress")
        if not isinstance(values, dict) or not _is_progress(values):
            raise InputError(
                f"{path} does not say how far its training has come: it is no state of "
                "a training, or a damaged one. Begin anew with 'aiayn train'."
            )
        return cls(**values)


def _is_progress(values: dict[str, Any]) -> bool:
    def is_number(value: Any) -> bool:
        return type(value) in (int, float) and not math.isnan(value)

    counts = [values.get(name) for name in ("step", "epoch", "batch")]
    totals = values.get("totals")
    return (
        values.keys() == Progress.__dataclass_fields__.keys()
        and all(type(count) is int and 0 <= count < 2**53 for count in counts)
        and all(is_number(values[name]) for name in ("seconds", "best_loss"))
        and isinstance(totals, list)
        and len(totals) % 3 == 0 < len(totals)
        and all(map(is_number, totals))
    )

"""This package in its plain form: beside `ours`, it shows what the tricks bring."""

from torch import Tensor

from aiayn.model import Transformer
from aiayn.model.forms import plain_form
from benchmarks.peers import ours
from benchmarks.peers.shared import Schedule, Step

build = ours.build


def training_step(model: Transformer, narrow: bool, schedule: Schedule) -> Step:
    """The trainer's own step, without the tricks."""
    fast = ours.training_step(model, narrow, schedule)

    def step(source: Tensor, target: Tensor) -> Tensor:
        with plain_form():
            return fast(source, target)

    return step

"""This package without `aiayn.fast`: beside `ours`, it shows what that brings."""

from aiayn.model import Transformer
from benchmarks.peers import ours
from benchmarks.peers.shared import Schedule, Step

build = ours.build


def training_step(model: Transformer, narrow: bool, schedule: Schedule) -> Step:
    """The trainer's own step, with the plain classes."""
    return ours.training_step(model, narrow, schedule, fast=False)

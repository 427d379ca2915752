"""This package: its trainer and its searches, as `aiayn` itself calls them."""

from pathlib import Path

import torch
from torch import Tensor

from aiayn.data import Batch
from aiayn.fast.process import tune_process
from aiayn.inference import beam_search, greedy_search, load_translator
from aiayn.model import Transformer, TransformerConfig
from aiayn.training import TrainingConfig
from aiayn.training.processes import Processes
from aiayn.training.trainer import Trainer
from benchmarks.peers.shared import BOS_ID, EOS_ID, Schedule, Step, Translate, padded
from benchmarks.workload import PACKED_LENGTH


def build(config: TransformerConfig) -> Transformer:
    """The model of that size."""
    return Transformer(config)


def training_step(
    model: Transformer,
    narrow: bool,
    schedule: Schedule,
    group: Processes | None = None,
    compiled: bool = False,
    packed: bool = False,
    fast: bool = True,
) -> Step:
    """The trainer's own step, on the model's device."""
    device = next(model.parameters()).device
    tune_process(device, torch.bfloat16 if narrow else torch.float32)
    config = TrainingConfig(
        model=model.config,
        precision="bf16" if narrow else "fp32",
        warmup_steps=schedule.warmup_steps,
        learning_rate_scale=schedule.scale,
        fast=fast,
        compile=compiled,
        packed_length=PACKED_LENGTH if packed else None,
    )
    trainer = Trainer(config, model, BOS_ID, group or Processes(device=device))
    number = 0

    def step(source: Tensor, target: Tensor) -> Tensor:
        nonlocal number
        number += 1
        smoothed, _, tokens = trainer.step(number, [Batch(source, target)])
        return smoothed / tokens

    return step


def trained(folder: Path, device: torch.device) -> Transformer:
    """What the folder holds, in a process with the settings of the commands."""
    tune_process(device, torch.float32, large_pages=False)
    return load_translator(folder, device)[0]


def searcher(model: Transformer) -> Translate:
    """The searches of `aiayn translate`."""
    ends = {"bos_id": BOS_ID, "eos_id": EOS_ID}

    def translate(rows: list[list[int]], beam_size: int) -> list[list[int]]:
        source = padded(rows, model)
        if beam_size == 1:
            found = greedy_search(model, source, **ends)
        else:
            found = beam_search(model, source, beam_size=beam_size, **ends)
        return [hypothesis.tokens for hypothesis in found]

    return translate

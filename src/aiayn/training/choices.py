"""The choices of a training, as an editor knows them (see `aiayn.model.choices`)."""

from pathlib import Path
from typing import Literal, TypedDict

from aiayn.model import TransformerConfig


class TrainingChoices(TypedDict, total=False):
    """The fields of `TrainingConfig`. Not in the paper."""

    corpus: str
    source: str
    target: str
    corpus_size: int | None
    output: Path
    model: TransformerConfig
    max_length: int
    tokens_per_batch: int
    packed_length: int | None
    accumulate: int
    steps: int
    warmup_steps: int
    cooldown_steps: int
    learning_rate_scale: float
    optimizer: Literal["adam", "muon"]
    betas: tuple[float, float]
    epsilon: float
    clip_norm: float | None
    label_smoothing: float
    log_every: int
    validate_every: int
    validation_sentences: int
    keep: int
    seed: int
    device: str
    precision: Literal["fp32", "bf16", "auto"]
    fast: bool
    compile: bool
    threads: int | None
    progress: bool

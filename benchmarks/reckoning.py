"""What follows by arithmetic from what was measured: the paper's runs, and many GPUs.

Nothing here is measured. A link is as fast as its maker says, so what is reckoned is
the best that can be hoped for.
"""

from dataclasses import dataclass

import torch

from aiayn.model import TransformerConfig
from benchmarks.workload import GPU_VOCABULARY, training_step_flops

STEPS = {"base": 100_000, "big": 300_000}
"""Optimizer steps of the paper's two models (§5.2, §6.1)."""
TOKENS_PER_STEP = 25_000
"""Target tokens of a step, about (§5.1)."""
LENGTH = 27
"""Pieces of a sentence, in the mean."""
BYTES = 4
"""Of one gradient, in float32."""


@dataclass(frozen=True)
class Cluster:
    """Some GPUs, and the slowest link that each of them sends its gradients over."""

    gpus: int
    title: str
    bandwidth: float
    """Bytes a second, one way."""


CLUSTERS = (
    Cluster(8, "8 GPUs in one machine", 450e9),
    Cluster(64, "64 GPUs in eight machines", 50e9),
)
"""H100s: NVLink has 900 GB/s for both ways together, and a network card 400 Gbit/s."""


def sizes(name: str) -> TransformerConfig:
    """The paper's model of that name, with its English–German vocabulary."""
    presets = {"base": TransformerConfig.base, "big": TransformerConfig.big}
    return presets[name](vocab_size=GPU_VOCABULARY)


def whole_run_flops(name: str) -> float:
    """Operations of the paper's whole training: matrix products, none for padding."""
    sentence = torch.ones(1, LENGTH, dtype=torch.int64)
    a_step = training_step_flops(sizes(name), (sentence, sentence)) / LENGTH
    return STEPS[name] * TOKENS_PER_STEP * a_step


def exchange_seconds(numbers: int, cluster: Cluster) -> float:
    """Until every GPU has the sum of all gradients, in a ring.

    Each sends 2 (n - 1) / n of them: once around to add up, once to hand out.

    Args:
        numbers: Gradients, as many as parameters.
        cluster: Where.
    """
    rounds = 2 * (cluster.gpus - 1) / cluster.gpus
    return rounds * BYTES * numbers / cluster.bandwidth


def efficiency(compute: float, exchange: float) -> float:
    """The share of a step in which a GPU computes, if exchange waits for the end.

    Args:
        compute: Seconds that a step takes one GPU alone.
        exchange: Seconds of `exchange_seconds`.
    """
    return compute / (compute + exchange)

"""What follows by arithmetic from what was measured: the paper's runs, and many GPUs.

Nothing here is measured. A link is as fast as its maker says, so what is reckoned is
the best that can be hoped for.
"""

from dataclasses import dataclass

import torch

from aiayn.model import Transformer, TransformerConfig
from aiayn_book.paper import BASE, BIG
from benchmarks.workload import training_step_flops

RUNS = {"base": BASE, "big": BIG}
"""The paper's two models: its settings of their training."""
LENGTH = 27
"""Pieces of a sentence, the mean of `benchmarks.workload.drawn_batches`."""
BYTES = 4
"""Of one gradient, in float32."""


@dataclass(frozen=True)
class Cluster:
    """Some GPUs, and the slowest link that a ring through all of them goes over."""

    gpus: int
    bandwidth: float
    """Bytes a second, one way; of cards that work side by side, all together."""


CLUSTERS = (
    Cluster(8, bandwidth=450e9),
    Cluster(64, bandwidth=8 * 50e9),
)
"""H100s, eight in a machine: NVLink has 900 GB/s for both ways together, and each GPU's
network card 400 Gbit/s. Between machines eight rings go side by side, each with an
eighth of the gradients and another card."""


def sizes(name: str) -> TransformerConfig:
    """The paper's model of that name, with its English–German vocabulary."""
    presets = {"base": TransformerConfig.base, "big": TransformerConfig.big}
    return presets[name](vocab_size=RUNS[name].vocabulary_en_de)


def parameters(name: str) -> int:
    """Weights of that model; none of them is made."""
    with torch.device("meta"):
        model = Transformer(sizes(name))
    return sum(weight.numel() for weight in model.parameters())


def whole_run_flops(name: str) -> float:
    """Operations of the paper's whole training: matrix products, none for padding."""
    sentence = torch.ones(1, LENGTH, dtype=torch.int64)
    a_token = training_step_flops(sizes(name), (sentence, sentence)) / LENGTH
    return RUNS[name].steps * RUNS[name].tokens_per_batch * a_token


def exchange_seconds(numbers: int, cluster: Cluster) -> float:
    """Until every GPU has the sum of all gradients, in a ring.

    Each sends 2 (n - 1) / n of them: once around to add up, once to hand out.

    Args:
        numbers: Gradients, as many as parameters.
        cluster: Where.
    """
    sent = 2 * (cluster.gpus - 1) / cluster.gpus * numbers
    return BYTES * sent / cluster.bandwidth


def efficiency(compute: float, exchange: float) -> float:
    """The share of a step in which a GPU computes, if exchange waits for the end.

    Args:
        compute: Seconds that a step takes one GPU alone.
        exchange: Seconds of `exchange_seconds`.
    """
    return compute / (compute + exchange)

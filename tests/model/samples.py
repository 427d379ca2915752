"""Small models and random numbers, in float64, for the tests of the model."""

import torch

from aiayn.model import TransformerConfig

SMALL = {"d_model": 12, "d_ff": 20, "num_heads": 3, "vocab_size": 30, "dropout": 0.0}


def small_config(**changes):
    """A Transformer of two layers that is quick in float64."""
    return TransformerConfig.tiny(**(SMALL | changes))


def random(*shape, requires_grad=False):
    """Random numbers in float64."""
    return torch.randn(*shape, dtype=torch.float64, requires_grad=requires_grad)

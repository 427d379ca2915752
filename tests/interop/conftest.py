"""Models with no trivial weight, and sentences with padding."""

import pytest
import torch

from aiayn import Transformer, TransformerConfig

SOURCE = torch.tensor([[5, 9, 14, 7, 2], [8, 6, 2, 0, 0]])
TARGET = torch.tensor([[1, 11, 12], [1, 13, 17]])


@pytest.fixture
def make():
    """Makes a small model in evaluation, every parameter of it random."""

    def build(**changes):
        sizes = {"vocab_size": 23, "d_model": 16, "d_ff": 24, "max_length": 64}
        model = Transformer(TransformerConfig.tiny(**(sizes | changes)))
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        return model.eval()

    return build


@pytest.fixture
def batch():
    """Source and target of two sentences, the second padded."""
    return SOURCE, TARGET

"""The tricks change the speed of a training, not what is learnt."""

import torch
from torch.testing import assert_close

from aiayn.model import Transformer, TransformerConfig
from benchmarks.peers import ours, plain
from benchmarks.peers.shared import Schedule

CONFIG = TransformerConfig.tiny(vocab_size=53, dropout=0.0)
STEPS = 30


def losses(peer):
    """Of steps over random batches of mixed lengths, in float64."""
    torch.manual_seed(1)
    step = peer.training_step(Transformer(CONFIG).double(), False, Schedule(10))
    drawn = torch.Generator().manual_seed(2)
    found = []
    for _ in range(STEPS):
        source, target = torch.randint(4, 53, (2, 6, 9), generator=drawn)
        ends = torch.randint(2, 9, (6, 1), generator=drawn)
        places = torch.arange(9)
        target = target.masked_fill(places == ends, 2).masked_fill(places > ends, 0)
        found.append(step(source, target))
    return torch.stack(found)


def test_the_fast_and_the_plain_form_go_through_the_same_losses():
    fast, plainly = losses(ours), losses(plain)
    # Rounding, 1e-16, may grow from step to step; a wrong gradient would show at 1e-3.
    assert_close(fast, plainly, rtol=1e-8, atol=0)
    assert plainly[-1] < plainly[0]

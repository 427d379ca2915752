"""Whether oneDNN forgets, by its own account of what it had to write anew."""

import os
import subprocess
import sys

import pytest
import torch

CAPACITY = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
# A process of its own: oneDNN reads its environment once.
CODE = """
import sys
import torch
from aiayn.training.kernel_cache import limit_kernel_cache

if sys.argv[1] == "limited":
    limit_kernel_cache(products=20)
weight = torch.randn(64, 64)
for rows in [*range(2, 42), 2]:
    x = torch.randn(rows, 64)
    torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
"""


def last_was_kept(how: str, **environment: str) -> bool:
    """Whether the first shape's code was still there after forty others."""
    without = {name: value for name, value in os.environ.items() if name != CAPACITY}
    done = subprocess.run(
        [sys.executable, "-c", CODE, how],
        env=without | {"ONEDNN_VERBOSE": "profile_create"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    made = [line for line in done.stdout.splitlines() if ",mb2ic64oc64," in line]
    assert len(made) == 2
    assert "cache_miss" in made[0]
    return "cache_hit" in made[1]


@pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise"),
    reason="this torch has no oneDNN product of its own",
)
def test_products_that_have_gone_by_are_forgotten():
    assert last_was_kept("unlimited")
    assert not last_was_kept("limited")
    assert last_was_kept("limited", **{CAPACITY: "1024"})  # who asked for more gets it

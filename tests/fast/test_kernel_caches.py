"""Whether code and descriptions are forgotten, by oneDNN's account and the C library's.

Each in a process of its own: the environment is read once.
"""

import ctypes
import os
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.costly

CODE, DESCRIPTIONS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"
PROGRAM = """
import ctypes, sys
import torch
from aiayn.fast.process import size_kernel_caches

class Heap(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks used free top"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Heap
if sys.argv[1] != "torch's own":
    size_kernel_caches(getattr(torch, sys.argv[1]))
torch.set_num_threads(1)
weight = torch.randn(64, 64)

def multiply(*rows):
    for count in rows:
        x = torch.randn(count, 64)
        torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")

def held():
    heap = library.mallinfo2()
    return heap.used + heap.hblkhd

multiply(*range(2, int(sys.argv[2])))
before = held()
multiply(*range(5000, 5100))
print("held", held() - before)
multiply(2)
"""
observed = pytest.mark.skipif(
    not hasattr(torch.ops.mkldnn, "_linear_pointwise")
    or os.name == "nt"  # where the C library is not found without a name
    or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="this torch has no oneDNN product of its own, or this system no glibc",
)


def run(how: str, shapes: int = 200, **environment: str) -> tuple[int, bool]:
    """Bytes that a hundred more shapes took; whether the first one's code stayed."""
    without = {n: v for n, v in os.environ.items() if n not in (CODE, DESCRIPTIONS)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, str(shapes)],
        env=without | {"ONEDNN_VERBOSE": "profile_create"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    made = [line for line in lines if ",mb2ic64oc64," in line]
    assert len(made) == 2
    assert "cache_miss" in made[0]
    (held,) = (int(line.split()[1]) for line in lines if line.startswith("held"))
    return held, "cache_hit" in made[1]


@observed
def test_in_32_bits_code_that_has_gone_by_is_forgotten():
    assert run("torch's own")[1]
    assert not run("float32")[1]


@observed
def test_in_16_bits_that_of_an_epoch_is_kept():
    assert not run("torch's own", shapes=1200)[1]
    assert run("bfloat16", shapes=1200)[1]


@observed
def test_descriptions_are_forgotten():
    """With the code limited in both, so that only they remain."""
    limited, _ = run("float32")
    own, _ = run("torch's own", **{CODE: "128"})
    assert limited < own / 10


@observed
def test_who_asked_for_more_gets_it():
    assert run("float32", **{CODE: "1024"})[1]

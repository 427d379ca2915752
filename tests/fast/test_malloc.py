"""What glibc and Linux are asked for, seen from outside: pages, and their size."""

import subprocess
import sys
from pathlib import Path

import pytest

LARGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")

# Processes of their own: what is asked for holds until they end.
ANEW = """
import resource
import torch
from aiayn.fast.process import tune_malloc

assert tune_malloc()
for _ in range(10):  # what is freed beside it may first move it
    torch.ones(2**24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    torch.ones(2**24)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
LARGE = """
import torch
from aiayn.fast.process import tune_malloc

tune_malloc()
kept = torch.ones(2**24)
with open("/proc/self/smaps_rollup") as lines:
    print(*(line.split()[1] for line in lines if line.startswith("AnonHugePages")))
"""


def printed(code: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="asks glibc, on Linux only")
@pytest.mark.parametrize("asked", ["", "large_pages=False"])
def test_freed_memory_is_kept(asked):
    """Fetched anew once, 64 MB are 16,384 pages of 4 kB."""
    code = ANEW.replace("tune_malloc()", f"tune_malloc({asked})")
    assert printed(code) < 16_384


@pytest.mark.skipif(
    not LARGE_PAGES.is_file() or "[never]" in LARGE_PAGES.read_text(),
    reason="this system has no large pages, or does not hand them out",
)
def test_tensors_lie_in_large_pages():
    """Of 64 MB, all but what begins or ends inside a page of 2 MB."""
    assert printed(LARGE) >= 60 * 1024

"""A chapter executed as another processor, or another number of threads, would do it.

Torch and oneDNN choose their kernels by the processor. Variables make them choose those
of an older one; sums are then added up in another order, and so they are by more
threads. No cell may fail, and each claim must come to the ledger's verdict. What was
measured may differ in its digits; where it does, the record says so.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import nbformat

from aiayn_book.ledger import problems, records_in_notebook

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
# Soon done, and with claims.
CHAPTERS = ("03-attention", "06-masks")
VARIANTS = {
    "as it is": {},
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    # A thread that waits must not keep the other one from its core.
    "two threads": {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"},
}


def compare(chapter, variants=VARIANTS):
    """Execute a chapter in each variant.

    Args:
        chapter: A notebook's name.
        variants: Some of `VARIANTS`.

    Returns:
        How many verdicts each came to, in how many seconds, and what was measured
        otherwise, in words.
    """
    seconds, measured = {}, defaultdict(dict)
    for name in variants:
        print(f"{chapter}, {name} …", file=sys.stderr, flush=True)
        began = time.monotonic()
        found = _settlements(chapter, VARIANTS[name])
        seconds[name] = round(time.monotonic() - began)
        faults = list(problems(found, [chapter]))
        assert not faults, f"{name}: {faults}"
        for record in found:
            measured[record.claim_id][name] = record.measured
    otherwise = {
        claim: words for claim, words in measured.items() if len({*words.values()}) > 1
    }
    return {
        "verdicts": len(measured),
        "seconds": seconds,
        "measured otherwise": otherwise,
    }


def _settlements(chapter, variables):
    """What a chapter settles under these variables."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    with tempfile.TemporaryDirectory() as folder:
        executed = Path(folder) / "executed.ipynb"
        subprocess.run(
            [sys.executable, "-m", "tests.soak.processors", chapter, executed],
            env=environment,
            check=True,
        )
        notebook = nbformat.read(executed, as_version=4)
    return list(records_in_notebook(notebook, chapter))


def execute(chapter, target):
    """Run a notebook in an empty folder and write it with its outputs.

    The set-up cell asks for one thread, whatever the environment says. So the number is
    set once more, right after it. A miniature of Table 3 goes back to one by itself.
    """
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOKS / f"{chapter}.ipynb", as_version=4)
    sets_up = f'setup("{chapter}")'
    place = next(n for n, cell in enumerate(notebook.cells) if sets_up in cell.source)
    threads = int(os.environ["OMP_NUM_THREADS"])
    text = f"import torch\n\ntorch.set_num_threads({threads})"
    notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(text))
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=1200, resources=resources).execute()
    nbformat.write(notebook, target)


if __name__ == "__main__":
    execute(sys.argv[1], sys.argv[2])

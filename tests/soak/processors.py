"""A chapter's verdicts, computed as another processor would compute them.

Torch and oneDNN choose their kernels by the processor. These variables make them choose
those of an older one; sums are then added up in another order.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat

from aiayn.book.ledger import records_in_notebook

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
VARIANTS = {
    "AVX2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "two threads": {"OMP_NUM_THREADS": "2"},
}


def verdicts(chapters, variables):
    """Claim by claim, what these chapters settle under these variables."""
    found = {}
    for name in chapters:
        with tempfile.TemporaryDirectory() as folder:
            executed = Path(folder) / "executed.ipynb"
            command = [sys.executable, "-m", "tests.soak.processors"]
            subprocess.run(
                [*command, NOTEBOOKS / f"{name}.ipynb", executed],
                env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
                check=True,
            )
            notebook = nbformat.read(executed, as_version=4)
        for record in records_in_notebook(notebook, name):
            found[record.claim_id] = record.verdict
    assert found, f"{chapters} settle nothing"
    return found


def execute(source, target):
    """Run a notebook in an empty folder and write it with its outputs."""
    from nbclient import NotebookClient

    notebook = nbformat.read(source, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, resources=place).execute()
    nbformat.write(notebook, target)


if __name__ == "__main__":
    execute(sys.argv[1], sys.argv[2])

"""One execution serves both: what nbval saw becomes what the book shows.

nbval runs each code cell as a test. For notebooks that pass as a whole, the outputs go
into the cache from which the book is built (``--fill-cache``; tools/site/execute.py
gives it).
"""

import copy
import os
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

# Read when torch is first loaded. Two threads would be slower on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_passed = defaultdict(dict)  # notebook -> cell number -> (outputs, seconds)


def pytest_addoption(parser):
    """Add the option that names the cache."""
    parser.addoption("--fill-cache", help="the Jupyter cache to fill with outputs")


def pytest_configure(config):
    """Let every notebook run in an empty folder, as a reader's may."""
    if not getattr(config.option, "nbval_lax", False):  # or nbval is not installed
        return
    import nbval.plugin

    class KernelInEmptyFolder(nbval.plugin.RunningKernel):
        def __init__(self, *args, **options):
            self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            options["cwd"] = self._folder.name
            # A kernel is told its ports while they are free. Where somebody else takes
            # one first, it dies, or never answers: then it gets others.
            for last in (False, False, True):
                try:
                    super().__init__(*args, **options)
                    break
                except RuntimeError:
                    if last:
                        raise

    nbval.plugin.RunningKernel = KernelInEmptyFolder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep the outputs of each cell that passed."""
    report = yield
    if report.when == "call" and report.passed and hasattr(item, "test_outputs"):
        _passed[item.parent][item.cell_num] = item.test_outputs, call.duration
    return report


def pytest_sessionfinish(session):
    """Store the notebooks of which every cell passed."""
    folder = session.config.option.fill_cache
    if not folder or not _passed:
        return
    from filelock import FileLock
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn

    Path(folder).mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):  # the workers' common cache
        cache = get_cache(folder)
        for notebook, cells in _passed.items():
            if executed := _with_outputs(notebook.nb, cells):
                seconds = sum(duration for _, duration in cells.values())
                bundle = CacheBundleIn(
                    nb=executed,
                    uri=str(notebook.path),
                    data={"execution_seconds": seconds},
                )
                cache.cache_notebook_bundle(
                    bundle, check_validity=False, overwrite=True
                )


def _with_outputs(notebook, cells):
    """A copy of the notebook with its outputs, or None where a cell is missing."""
    executed = copy.deepcopy(notebook)
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    if len(code) != len(cells):
        return None
    for number, cell in enumerate(code):
        cell.outputs, cell.execution_count = cells[number][0], number + 1
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number + 1
    return executed

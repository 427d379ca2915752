"""What nbval runs is what the book shows: the hook in the root's conftest.py."""

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_cache import get_cache
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT = Path(__file__).resolve().parents[2]
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}

# A plugin of pytest: somebody else has a port of the first kernel, and a second starts.
TAKEN_PORT = """
import socket
from jupyter_client import manager

taken = socket.socket()
taken.bind(("127.0.0.1", 0))
taken.listen()
start = manager.KernelManager.start_kernel
started = []

def start_kernel(self, **options):
    if not started:
        self.cache_ports, self.shell_port = False, taken.getsockname()[1]
    started.append(self)
    return start(self, **options)

manager.KernelManager.start_kernel = start_kernel

def pytest_sessionfinish():
    assert len(started) == 2
"""


def notebook(*sources):
    cells = [new_markdown_cell("# Title"), *map(new_code_cell, sources)]
    return new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Two notebooks, one of which fails, after a run that fills a cache."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copy(ROOT / "conftest.py", folder)
    books = {
        "good": notebook("import os\nprint(os.listdir())", "6 * 7"),
        "bad": notebook("print('fine so far')", "1 / 0"),
    }
    for name, book in books.items():
        nbformat.write(book, folder / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "--fill-cache", "cache"]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", "good.ipynb", "bad.ipynb"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return run, books, get_cache(folder / "cache")


def test_outputs_of_a_passing_notebook_are_stored(executed):
    """With them its run time, and each cell ran in an empty folder."""
    _, books, cache = executed
    record = cache.match_cache_notebook(books["good"])
    assert record.data["execution_seconds"] > 0
    _, merged = cache.merge_match_into_notebook(books["good"])
    listing, answer = (cell.outputs for cell in merged.cells[1:])
    assert listing[0].text == "[]\n"
    assert answer[0].data["text/plain"] == "42"


def test_a_failing_notebook_is_reported_and_not_stored(executed):
    """The book must not show half of a chapter."""
    run, books, cache = executed
    assert run.returncode == 1
    assert "ZeroDivisionError" in run.stdout
    with pytest.raises(KeyError):
        cache.match_cache_notebook(books["bad"])


def test_prose_is_not_executed_again_but_code_is(executed):
    """Another sentence still finds the outputs; another number does not."""
    _, _, cache = executed
    prose = notebook("import os\nprint(os.listdir())", "6 * 7")
    prose.cells[0].source = "# Title\n\nA new sentence."
    assert cache.match_cache_notebook(prose)
    code = notebook("import os\nprint(os.listdir())", "6 * 8")
    with pytest.raises(KeyError):
        cache.match_cache_notebook(code)


def test_a_kernel_whose_port_was_taken_gets_others(tmp_path):
    """It dies without its shell port. Without that for its outputs it would hang."""
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "taken_port.py").write_text(TAKEN_PORT)
    nbformat.write(notebook("6 * 7"), tmp_path / "good.ipynb")
    command = [sys.executable, "-m", "pytest", "-p", "taken_port", "--nbval-lax"]
    run = subprocess.run([*command, "good.ipynb"], cwd=tmp_path, check=False)
    assert run.returncode == 0

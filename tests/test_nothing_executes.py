"""Nothing that came from outside runs: no pickle, no eval, nothing unpacked to disk.

Read from the code itself, so that it holds for what nobody thought of testing.
"""

import ast
import json
from collections import defaultdict
from pathlib import Path

import pytest

pytestmark = pytest.mark.costly

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tools", "book", "benchmarks")
# Modules whose readers run code that a file holds.
RUN_CODE = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib"}
RUN_CODE |= {"shelve", "marshal", "jsonpickle"}
BUILT_IN = {"eval", "exec", "compile", "__import__"}
# Functions that run code, or a line in a shell, that a file or a text holds.
RUN_TEXT = {"os.system", "os.popen", "subprocess.getoutput", "runpy.run_path"}
RUN_TEXT |= {"torch.jit.load", "torch.hub.load", "pandas.read_pickle"}

# The bug clinic changes a line of this package's own text and runs it. No file from
# outside is involved.
OWN_TEXT = {"src/aiayn_book/clinic.py": ["compile()", "exec()"]}


def faults(source):
    """What in a text of Python reads a file that could run code, or write anywhere."""
    # A notebook's cell may use what another has imported under its usual name.
    known = {"np": "numpy", "pd": "pandas"}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
            names = {alias.name.split(".")[0] for alias in node.names}
            yield from (f"import {name}" for name in names & RUN_CODE)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            if (node.module or "").split(".")[0] in RUN_CODE:
                yield f"from {node.module} import"
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _faults_of_call(node, known)


def _faults_of_call(call, known):
    first, dot, rest = ast.unparse(call.func).partition(".")
    name = f"{known.get(first, first)}{dot}{rest}".removeprefix("builtins.")
    options = {option.arg: ast.unparse(option.value) for option in call.keywords}
    if name in BUILT_IN:
        yield f"{name}()"
    if name in RUN_TEXT:
        yield f"{name}: what it is given runs"
    if name == "torch.load" and options.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if options.get("allow_pickle", "False") != "False":
        yield f"{name}(allow_pickle=…)"
    if name == "numpy.load" and len(call.args) > 2:
        yield f"{name}: allow_pickle is its third argument"
    if name in ("yaml.load", "yaml.unsafe_load", "yaml.full_load"):
        yield f"{name} instead of yaml.safe_load"
    if name.endswith((".extractall", ".extract", "unpack_archive")):
        yield f"{name}: members of an archive go where their names say"
    if options.get("shell", "False") != "False":
        yield f"{name}(shell=…)"


def sources():
    """Every text of Python of the project that is not a test: file, cell, text."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            place = path.relative_to(ROOT).as_posix()
            if "/." in place:
                continue  # the peers' environments: not ours
            yield place, 0, path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for number, cell in enumerate(cells):
            if cell["cell_type"] == "code":
                text = "".join(cell["source"])
                # IPython's own lines are no Python; they install and measure.
                python = [
                    "pass" if line.lstrip()[:1] in ("%", "!") else line
                    for line in text.split("\n")
                ]
                yield path.name, number, "\n".join(python)


def test_no_code_of_ours_reads_what_could_run():
    found = defaultdict(list)
    for place, _, text in sources():
        found[place] += faults(text)
    assert len(found) > 100, "the code was not found"
    assert {place: sorted(what) for place, what in found.items() if what} == OWN_TEXT


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from dill import loads",
        "import os, shelve",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "from torch import load; load(path)",
        "import torch as th; th.load(path)",
        "torch.jit.load(path)",
        "from torch import hub; hub.load(path, name)",
        "pd.read_pickle(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, None, True)",
        "yaml.load(text, yaml.Loader)",
        "archive.extractall(folder)",
        "tar.extract(member)",
        "exec(text)",
        "import builtins as b; b.exec(text)",
        "os.system(line)",
        "from subprocess import getoutput; getoutput(line)",
        "runpy.run_path(path)",
        "subprocess.run(words, shell=True)",
    ],
)
def test_what_must_not_be_there_would_be_found(text):
    assert list(faults(text))


@pytest.mark.parametrize(
    "text",
    [
        "model.eval()",
        "re.compile(x)",
        "from torch import load; load(path, weights_only=True)",
        "np.load(path)",
        "yaml.safe_load(text)",
    ],
)
def test_what_is_harmless_is_not(text):
    assert not list(faults(text))

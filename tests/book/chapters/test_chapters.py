"""What moved out of the chapters: each module belongs to one."""

import pkgutil
import re
from pathlib import Path

import aiayn_book.chapters

# Names that the package or chapter 4 has already.
OTHERWISE = {"constituency": "parsing", "scaling_laws": "scaling"}
NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"


def test_each_module_is_named_after_its_notebook():
    """`how_the_decoder_writes` belongs to 11-how-the-decoder-writes."""
    notebooks = {
        re.sub(r"^\d+[a-z]?-", "", path.stem).replace("-", "_")
        for path in NOTEBOOKS.glob("*.ipynb")
    }
    modules = {m.name for m in pkgutil.iter_modules(aiayn_book.chapters.__path__)}
    assert {OTHERWISE.get(name, name) for name in modules} <= notebooks

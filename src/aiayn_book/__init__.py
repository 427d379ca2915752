"""What the chapters use: set-up, the ledger of claims, quick checks, charts.

Nothing here is imported by ``import aiayn``. Charts live in `aiayn_book.plots` and
exercise checks in `aiayn_book.checks`; a notebook imports those by name.

Not in the paper.
"""

from aiayn_book.claims import settle
from aiayn_book.quiz import quick_check
from aiayn_book.setup import setup

__all__ = ["quick_check", "settle", "setup"]

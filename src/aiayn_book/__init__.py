"""What the chapters use: set-up, numbered figures, the ledger of claims, quick checks.

Nothing here is imported by ``import aiayn``. Charts live in `aiayn_book.plots`,
drawings in `aiayn_book.diagrams`, exercise checks in `aiayn_book.checks`, and what is
too long for a chapter in `aiayn_book.chapters`; a notebook imports those by name.

Not in the paper.
"""

from aiayn_book.claims import settle
from aiayn_book.figures import figure
from aiayn_book.quiz import quick_check
from aiayn_book.setup import setup

__all__ = ["figure", "quick_check", "settle", "setup"]

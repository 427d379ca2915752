"""What the paper published: its tables, its settings, and where it disagrees.

Read from both texts, the NeurIPS proceedings and the late arXiv version. Nothing here
was computed: what follows from these numbers is computed where it is needed.
"""

from aiayn_book.paper.discrepancies import DISCREPANCIES, Discrepancy
from aiayn_book.paper.settings import (
    BASE,
    BIG,
    PARSING,
    TERAFLOPS,
    ParsingSettings,
    Settings,
)
from aiayn_book.paper.tables import (
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    LayerCost,
    ParsingResult,
    TranslationResult,
    Variation,
)

__all__ = [
    "BASE",
    "BIG",
    "DISCREPANCIES",
    "PARSING",
    "TABLE_1",
    "TABLE_2",
    "TABLE_3",
    "TABLE_4",
    "TERAFLOPS",
    "Discrepancy",
    "LayerCost",
    "ParsingResult",
    "ParsingSettings",
    "Settings",
    "TranslationResult",
    "Variation",
]

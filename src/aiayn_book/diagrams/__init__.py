"""Drawings of mechanisms, as SVG from code: a kit, and the paper's Figures 1 and 2.

`Diagram` is the kit. A drawing of at most 360 units fits a phone; a wider one needs a
second form for phones (see `aiayn_book.figures`).

Paper: Figures 1 and 2.
"""

from aiayn_book.diagrams.attention import (
    scaled_dot_product_attention_diagram,
)
from aiayn_book.diagrams.contents import contents_diagram
from aiayn_book.diagrams.drawing import Diagram, Link
from aiayn_book.diagrams.transformer import transformer_diagram

__all__ = [
    "Diagram",
    "Link",
    "contents_diagram",
    "scaled_dot_product_attention_diagram",
    "transformer_diagram",
]

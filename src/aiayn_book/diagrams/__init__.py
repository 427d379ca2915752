"""The paper's Figures 1 and 2, drawn anew for this book, as SVG from code.

Each drawing is at most 360 units wide, so that it fits a phone.

Paper: Figures 1 and 2.
"""

from aiayn_book.diagrams.attention import (
    multi_head_diagram,
    scaled_dot_product_attention_diagram,
)
from aiayn_book.diagrams.contents import contents_diagram
from aiayn_book.diagrams.drawing import Diagram, Link
from aiayn_book.diagrams.transformer import transformer_diagram

__all__ = [
    "Diagram",
    "Link",
    "contents_diagram",
    "multi_head_diagram",
    "scaled_dot_product_attention_diagram",
    "transformer_diagram",
]

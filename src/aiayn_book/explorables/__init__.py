"""Figures to take apart: each shows a chapter's own numbers, and what made them.

A function here takes tensors and tokens and returns an object that a notebook shows as
HTML. The page that Python writes is a finished figure already, for print and for
readers without scripts; a few lines of plain JavaScript then bring it to life, by
mouse, touch and keyboard. Nothing is asked of the network or of a widget library.

Not in the paper.
"""

from aiayn_book.explorables.lookup import soft_lookup
from aiayn_book.explorables.masks import mask_rules
from aiayn_book.explorables.positions import positions_explorer
from aiayn_book.explorables.softmax import softmax_scale
from aiayn_book.explorables.stepper import decoder_stepper
from aiayn_book.explorables.walk import matrix_walk

__all__ = [
    "decoder_stepper",
    "mask_rules",
    "matrix_walk",
    "positions_explorer",
    "soft_lookup",
    "softmax_scale",
]

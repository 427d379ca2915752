"""The paper's Figure 1 as a table of contents: every block is a link.

Around the model of `transformer` stand a look into attention (the paper's Figure 2) and
what is done with the probabilities, so that each part of the book has its place.
"""

from collections.abc import Mapping

from aiayn_book.diagrams.drawing import Diagram, Link
from aiayn_book.diagrams.transformer import draw_transformer
from aiayn_book.svg import Svg

_ABOVE = 56  # room over the model
_LEFT, _RIGHT = 85, 265  # centres of the look into attention and of the decoder
_BOX = 118  # width of a step inside attention


def contents_diagram(links: Mapping[str, Link]) -> Svg:
    """Figure 1 with a link on each block that has one.

    Args:
        links: By the names of the blocks; `book/data/figure.yml` has them all.
    """
    drawing = Diagram(width=360, height=596 + _ABOVE, links=dict(links))
    _inside_attention(drawing)
    model = Diagram(width=360, height=596, links=dict(links))
    draw_transformer(model)
    drawing.moved(_ABOVE, model)
    _uses(drawing)
    return drawing.finish(
        "The Transformer, and where each part of it is explained",
        "Read upwards: source tokens and shifted target tokens are embedded, positions "
        "are added, the encoder's layers make the memory, the decoder's layers look "
        "into it, and a softmax gives the probabilities of the next token, from which "
        "the model learns or a search writes. Beside it, the steps inside each "
        "attention. Every block is a link to its chapter.",
    )


def _inside_attention(drawing: Diagram) -> None:
    """The steps of Figure 2, from bottom to top, over the encoder."""
    drawing.frame(8, 6, 154, 214)
    drawing.text(_LEFT, 24, "Inside each attention")
    steps = [
        (196, "scores", "Q · Kᵀ", "query"),
        (160, "scale", "÷ √dₖ", "neutral"),
        (124, "mask", "Mask", "neutral"),
        (88, "context", "Softmax · V", "value"),
        (52, "heads", "h heads, joined", "weight"),
    ]
    for y, name, label, role in steps:
        with drawing.block(name):
            drawing.box(_LEFT, y, label, width=_BOX, height=24, role=role)
        if y > steps[-1][0]:
            drawing.arrow((_LEFT, y - 12), (_LEFT, y - 24))


def _uses(drawing: Diagram) -> None:
    """What is done with the probabilities: learn from them, or write with them."""
    for x, name, label in ((217, "training", "Training"), (313, "search", "Search")):
        with drawing.block(name):
            drawing.box(x, 19, label, width=86, height=26)
        drawing.arrow((_RIGHT, 56), (_RIGHT, 47), (x, 47), (x, 32))

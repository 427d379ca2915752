"""The paper's Figure 2, drawn anew."""

from aiayn_book.diagrams.drawing import Diagram
from aiayn_book.svg import Svg


def scaled_dot_product_attention_diagram() -> Svg:
    """Figure 2, left: scaled dot-product attention, with the shape on each arrow."""
    drawing = Diagram(width=360, height=400)
    # From bottom to top, as the paper draws it.
    steps = [
        (330, "MatMul", "neutral", "scores: queries × keys"),
        (270, "Scale by 1/√dₖ", "neutral", ""),
        (210, "Mask (optional)", "neutral", ""),
        (150, "Softmax over keys", "weight", "weights: queries × keys"),
        (90, "MatMul", "value", "context: queries × dᵥ"),
    ]
    for y, label, role, shape in steps:
        drawing.box(110, y, label, width=140, role=role)
        drawing.arrow((110, y - 15), (110, y - 44))
        if shape:
            drawing.text(122, y - 31, shape, anchor="start", small=True)
    inputs = [
        (65, "Q", "query", "queries × dₖ"),
        (156, "K", "key", "keys × dₖ"),
        (318, "V", "value", "keys × dᵥ"),
    ]
    for x, name, role, shape in inputs:
        drawing.text(x, 372, name, role=role)
        drawing.text(x, 389, shape, small=True)
    drawing.arrow((65, 362), (65, 346), role="query")
    drawing.arrow((156, 362), (156, 346), role="key")
    drawing.arrow((318, 362), (318, 90), (181, 90), role="value")
    drawing.text(110, 34, "Context")
    return drawing.finish(
        "Scaled dot-product attention",
        "From bottom to top: queries and keys are multiplied into scores, scaled by "
        "one over the root of d k, masked where a mask is given, and turned into "
        "weights by a softmax over the keys; the weights multiply the values, which "
        "gives one context for each query.",
    )

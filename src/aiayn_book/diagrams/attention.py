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


def multi_head_diagram() -> Svg:
    """Figure 2, right: h heads with projections of their own, then W^O."""
    drawing = Diagram(width=360, height=360)
    inputs = [(60, "Q", "query"), (180, "K", "key"), (300, "V", "value")]
    for x, name, role in inputs:
        drawing.box(x, 270, f"Linear W_{name}", width=90, role=role)
        drawing.sheets(x, 270, width=90, height=30, role=role)
        drawing.text(x, 326, name, role=role)
        drawing.text(x, 343, "… × d_model", small=True)
        drawing.arrow((x, 316), (x, 286), role=role)
        drawing.arrow((x, 246), (x, 216), role=role)
    drawing.box(
        180, 196, "Scaled dot-product attention", width=312, height=38, role="weight"
    )
    drawing.sheets(180, 196, width=312, height=38, role="weight")
    drawing.text(24, 150, "h heads", anchor="start", small=True)
    drawing.arrow((180, 168), (180, 138))
    drawing.text(190, 150, "h × (queries × dᵥ)", anchor="start", small=True)
    drawing.box(180, 122, "Concat", width=140)
    drawing.arrow((180, 106), (180, 80))
    drawing.text(190, 91, "queries × h·dᵥ", anchor="start", small=True)
    drawing.box(180, 64, "Linear W_O", width=140)
    drawing.arrow((180, 48), (180, 28))
    drawing.text(190, 36, "queries × d_model", anchor="start", small=True)
    drawing.text(180, 14, "Output")
    return drawing.finish(
        "Multi-head attention",
        "From bottom to top: queries, keys and values each pass through h linear maps, "
        "one a head; each head computes scaled dot-product attention; the h results "
        "are concatenated and pass through one last linear map.",
    )

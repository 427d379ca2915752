"""The paper's Figure 1, drawn anew: encoder on the left, decoder on the right."""

from aiayn_book.diagrams.drawing import Diagram
from aiayn_book.svg import Svg

_ENCODER, _DECODER = 95, 265  # the columns' centres
_WIDTH = 112  # of a box
_TALL = 40  # a box with two lines
_QKV = (("key", -30), ("value", 0), ("query", 30))

# Heights, from top to bottom; the paper draws the data's way upwards.
_SOFTMAX, _LINEAR = 50, 98
_FEED_FORWARD, _CROSS, _SELF = 200, 304, 414
_PLUS, _EMBEDDING, _TOKENS = 490, 534, 572


def transformer_diagram() -> Svg:
    """Figure 1: the Transformer, with the shape of what flows (n, m tokens)."""
    drawing = Diagram(width=360, height=596)
    draw_transformer(drawing)
    return drawing.finish(
        "The Transformer",
        "Two columns, read upwards. Encoder, N layers: self-attention, add and norm, "
        "feed-forward, add and norm. Decoder, N layers: masked self-attention, add "
        "and norm, cross-attention with queries from the decoder and keys and values "
        "from the encoder's output, add and norm, feed-forward, add and norm; then a "
        "linear map and a softmax over the vocabulary. Both begin with an embedding to "
        "which positions are added.",
    )


def draw_transformer(drawing: Diagram) -> None:
    """All of Figure 1, on a drawing of 360 by 596 units."""
    _encoder(drawing)
    _decoder(drawing)
    _memory(drawing)


def _encoder(drawing: Diagram) -> None:
    _embedding(drawing, _ENCODER, "Source tokens", "n × d_model", side=-1)
    drawing.frame(22, 232, 146, 243)
    _repeated(drawing, 9, 347, "encoder")
    _self_attention(drawing, _ENCODER, "Self-\nattention", side=-1)
    _feed_forward(drawing, _ENCODER, _CROSS, side=-1)


def _decoder(drawing: Diagram) -> None:
    _embedding(drawing, _DECODER, "Target, shifted", "m × d_model", side=1)
    drawing.frame(192, 128, 146, 347)
    _repeated(drawing, 351, 300, "decoder")
    _self_attention(drawing, _DECODER, "Masked self-\nattention", side=1)
    _add_and_norm(drawing, _DECODER, _CROSS, side=1)
    with drawing.block("cross-attention"):
        drawing.box(
            _DECODER,
            _CROSS,
            "Cross-\nattention",
            width=_WIDTH,
            height=_TALL,
            role="weight",
        )
    drawing.arrow((_DECODER, 361), (_DECODER, _CROSS + 20), role="query")
    _feed_forward(drawing, _DECODER, _FEED_FORWARD, side=1)
    drawing.arrow((_DECODER, 152), (_DECODER, _LINEAR + 15))
    with drawing.block("linear"):
        drawing.box(_DECODER, _LINEAR, "Linear", width=_WIDTH)
    drawing.arrow((_DECODER, _LINEAR - 15), (_DECODER, _SOFTMAX + 15))
    drawing.text(_DECODER + 8, 74, "m × vocab", anchor="start", small=True)
    with drawing.block("softmax"):
        drawing.box(_DECODER, _SOFTMAX, "Softmax", width=_WIDTH)
    drawing.arrow((_DECODER, _SOFTMAX - 15), (_DECODER, 22))
    with drawing.block("probabilities"):
        drawing.target(_DECODER, 11, 164, 22)
        drawing.text(_DECODER, 12, "Next-token probabilities")


def _repeated(drawing: Diagram, x: int, y: int, name: str) -> None:
    """The mark beside a stack: its layers are N alike."""
    with drawing.block(name):
        drawing.target(x, y, 18, 36)
        drawing.text(x, y, "N×", small=True)


def _memory(drawing: Diagram) -> None:
    """The encoder's output, on its way into every decoder layer."""
    drawing.arrow((_ENCODER, 256), (_ENCODER, 214), (180, 214), head=False)
    with drawing.block("memory"):
        drawing.target(_ENCODER, 194, 100, 36)
        drawing.text(_ENCODER, 202, "memory")
        drawing.text(_ENCODER, 186, "n × d_model", small=True)
    drawing.arrow((180, 214), (180, 311), head=False)
    edge = _DECODER - _WIDTH / 2
    drawing.arrow((180, 297), (edge, 297), role="key")
    drawing.arrow((180, 311), (edge, 311), role="value")


def _embedding(drawing: Diagram, x: int, tokens: str, shape: str, side: int) -> None:
    """Tokens, their embedding, and the positions added to it."""
    with drawing.block("source" if side < 0 else "target"):
        drawing.target(x, _TOKENS + 1, _WIDTH, 24)
        drawing.text(x, _TOKENS, tokens)
    drawing.arrow((x, _TOKENS - 10), (x, _EMBEDDING + 15))
    with drawing.block("embedding"):
        drawing.box(x, _EMBEDDING, "Embedding", width=_WIDTH)
    drawing.arrow((x, _EMBEDDING - 15), (x, _PLUS + 9))
    drawing.text(x + 8 * side, 509, shape, anchor=_anchor(side), small=True)
    with drawing.block("positions"):
        drawing.target(x + 38 * side, _PLUS, 102, 24)
        drawing.plus(x, _PLUS)
        edge = 4 if side < 0 else 356
        drawing.text(edge, _PLUS, "positions", anchor=_anchor(-side))
        drawing.arrow((x + 28 * side, _PLUS), (x + 9 * side, _PLUS))


def _anchor(side: int) -> str:
    return "start" if side > 0 else "end"


def _self_attention(drawing: Diagram, x: int, label: str, side: int) -> None:
    """Query, key and value all come from below."""
    drawing.arrow((x, _PLUS - 9), (x, 448), head=False)
    for role, shift in _QKV:
        drawing.arrow((x, 448), (x + shift, 448), (x + shift, _SELF + 20), role=role)
    with drawing.block("self-attention" if side < 0 else "masked-self-attention"):
        drawing.box(x, _SELF, label, width=_WIDTH, height=_TALL, role="weight")
    _add_and_norm(drawing, x, _SELF, side, below=468)


def _feed_forward(drawing: Diagram, x: int, y: int, side: int) -> None:
    with drawing.block("feed-forward"):
        drawing.box(x, y, "Feed-forward", width=_WIDTH)
    norm = y + 62 if y == _FEED_FORWARD else y + 68
    drawing.arrow((x, norm - 11), (x, y + 15))
    _add_and_norm(drawing, x, y, side, height=15)


def _add_and_norm(
    drawing: Diagram, x: int, y: int, side: int, below: int = 0, height: int = 20
) -> None:
    """The residual line around the sub-layer at y, and the box above it."""
    norm = y - height - 22
    drawing.arrow((x, y - height), (x, norm + 11))
    with drawing.block("add-norm"):
        drawing.box(x, norm, "Add & norm", width=_WIDTH, height=22, role="neutral")
    start = below or y + height + 10
    lane, edge = x + 68 * side, x + _WIDTH / 2 * side
    drawing.arrow((x, start), (lane, start), (lane, norm), (edge, norm))

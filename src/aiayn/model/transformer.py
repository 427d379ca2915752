"""§3.1, Figure 1: the Transformer, which joins encoder and decoder.

Differs from the paper in nothing by default. Where the paper is silent: sentences of a
batch are padded, and padding is never attended to.
"""

from dataclasses import dataclass
from typing import Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aiayn.model.cache import TransformerState
from aiayn.model.config import TransformerConfig
from aiayn.model.dropout import Dropout
from aiayn.model.embeddings import TokenEmbedding
from aiayn.model.forms import narrow
from aiayn.model.masks import causal_mask, padding_mask, segment_mask
from aiayn.model.positional import (
    LearnedPositionalEncoding,
    NoPositionalEncoding,
    SinusoidalPositionalEncoding,
)
from aiayn.model.segments import Segments, positions_within
from aiayn.model.stacks import Decoder, Encoder
from aiayn.model.validation import check_batch, check_tokens


def shift_right(
    target: Int[Tensor, "batch target_length"], start_id: int
) -> Int[Tensor, "batch target_length"]:
    r"""What the decoder reads while it learns to write target: 'shifted right'.

    $$(y_1, …, y_m) ↦ (\mathrm{start}, y_1, …, y_{m-1})$$

    Position i of the result is token i - 1 of the target, so that whoever predicts
    token i has not read it.

    Args:
        target: What is to be written.
        start_id: The token that stands before every target.

    Paper: Figure 1 and §3.1.

    >>> shift_right(torch.tensor([[7, 8, 9]]), start_id=1)
    tensor([[1, 7, 8]])
    """
    start = target.new_full((target.size(0), 1), start_id)
    return torch.cat([start, target], dim=1)[:, :-1]


@dataclass(frozen=True)
class AttentionWeights:
    """Every layer's and every head's weights for one batch.

    Each field is a tuple with one tensor a layer, rows being queries.

    Paper: §3.2.3, and Figures 3–5.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])
    >>> weights = model.attention_weights(source, target)
    >>> len(weights.cross), weights.cross[0].shape
    (2, torch.Size([1, 4, 2, 3]))
    """

    encoder: tuple[Float[Tensor, "batch heads source_length source_length"], ...]
    """The source's look at itself."""
    decoder: tuple[Float[Tensor, "batch heads target_length target_length"], ...]
    """The target's look at itself, masked."""
    cross: tuple[Float[Tensor, "batch heads target_length source_length"], ...]
    """The target's look at the source."""


class Transformer(nn.Module):
    r"""The encoder–decoder of Figure 1.

    $$p(y_t \mid y_1, …, y_{t-1}, X) = \mathrm{softmax}(E s_t)$$

    with the decoder's state $s_t$ and the embedding matrix E, here the output layer. A
    call returns $E s_t$, the logits.

    Args:
        config: Its sizes; `TransformerConfig.base()` is the paper's.

    Paper: §3.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7, 8]])
    >>> model(source, target).shape
    torch.Size([1, 3, 20])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        uses = ("shared",) if config.tie_embeddings else ("source", "target", "output")
        self.embeddings = nn.ModuleDict(
            {use: TokenEmbedding(config.vocab_size, config.d_model) for use in uses}
        )
        self.source_positions = _positions(config)
        self.target_positions = _positions(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    def forward(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Float[Tensor, "batch target_length vocab"]:
        """Score every next token at every position of the target.

        Args:
            source: Token ids, padded at the end with ``config.pad_id``.
            target: What the decoder reads: already shifted right (`shift_right`), and
                padded at the end too.

        Returns:
            Logits; those at position i are for the token after target position i.
        """
        return self.project(self.states(source, target))

    def states(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
        segments: Segments | None = None,
    ) -> Float[Tensor, "batch target_length d_model"]:
        """The decoder's last states, which `project` turns into logits.

        Args:
            source: As in `forward`.
            target: As in `forward`.
            segments: Where rows hold several sentences, which token is of which. Each
                sentence gets the states that it gets in a row of its own.
        """
        memory, _ = self._encode(source, segments=segments)
        return self._decode(target, memory, source, segments=segments)[0]

    @property
    def output_weight(self) -> Float[Tensor, "vocab d_model"]:
        """The matrix that `project` multiplies by."""
        return self.embedding("output").weight

    def project(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """From states to logits, by the output matrix (paper: §3.4)."""
        return self.embedding("output").logits(states)

    def embedding(self, use: Literal["source", "target", "output"]) -> TokenEmbedding:
        """The embedding matrix for a use: the same for all three if they are tied."""
        name = "shared" if self.config.tie_embeddings else use
        return cast(TokenEmbedding, self.embeddings[name])

    def encode(
        self, source: Int[Tensor, "batch source_length"]
    ) -> Float[Tensor, "batch source_length d_model"]:
        """The encoder's output, which every decoder layer attends to."""
        return self._encode(source)[0]

    def decode(
        self,
        target: Int[Tensor, "batch target_length"],
        memory: Float[Tensor, "batch source_length d_model"],
        source: Int[Tensor, "batch source_length"],
    ) -> Float[Tensor, "batch target_length vocab"]:
        """Logits for a target that reads memory; source says where that is padding."""
        return self.project(self._decode(target, memory, source)[0])

    def attention_weights(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> AttentionWeights:
        """Run the model once more and return what every head looked at."""
        memory, encoder = self._encode(source, need_weights=True)
        _, decoder, cross = self._decode(target, memory, source, need_weights=True)
        return AttentionWeights(encoder, decoder, cross)

    def start(
        self,
        source: Int[Tensor, "sentences source_length"],
    ) -> TransformerState:
        """Encode the source and get ready to write, one token at a time (`step`)."""
        layers = self.decoder.start(self.encode(source))
        return TransformerState(layers, padding_mask(source, self.config.pad_id))

    def step(
        self, tokens: Int[Tensor, " hypotheses"], state: TransformerState
    ) -> Float[Tensor, "hypotheses vocab"]:
        """Read one token a hypothesis and score the next; state moves on in place."""
        x = self.embedding("target")(tokens[:, None])  # (hypotheses, 1, d_model)
        x = self.dropout(self.target_positions(x, start=state.position))
        # One query, the newest, may see all that was written: no causal mask.
        states, _, _ = self.decoder(x, state.layers, None, state.source_mask)
        state.position += 1
        return self.project(states[:, 0])

    def _encode(
        self,
        source: Tensor,
        need_weights: bool = False,
        segments: Segments | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        check_tokens(source, "source", self.config.vocab_size)
        mask = padding_mask(source, self.config.pad_id)
        options = {}
        if segments is not None:
            mask = mask & segment_mask(segments.source, segments.source)
            options["positions"] = positions_within(segments.source)
        x = self.source_positions(self.embedding("source")(source), **options)
        return self.encoder(narrow(self.dropout(x)), mask, need_weights)

    def _decode(
        self,
        target: Tensor,
        memory: Tensor,
        source: Tensor,
        need_weights: bool = False,
        segments: Segments | None = None,
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        check_tokens(target, "target", self.config.vocab_size)
        check_batch(target, memory, source)
        # Padding stands at the end, where the causal mask already hides it.
        target_mask = causal_mask(target.size(1), target.device)
        source_mask = padding_mask(source, self.config.pad_id)
        options = {}
        if segments is not None:
            target_mask = target_mask & segment_mask(segments.target, segments.target)
            source_mask = source_mask & segment_mask(segments.target, segments.source)
            options["positions"] = positions_within(segments.target)
        x = self.target_positions(self.embedding("target")(target), **options)
        return self.decoder(
            narrow(self.dropout(x)), memory, target_mask, source_mask, need_weights
        )


def _positions(config: TransformerConfig) -> nn.Module:
    """What is added to the embeddings."""
    if config.positions == "rotary":
        return NoPositionalEncoding()
    learned = config.positions == "learned"
    kind = LearnedPositionalEncoding if learned else SinusoidalPositionalEncoding
    return kind(config.d_model, config.max_length)

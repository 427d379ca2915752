"""§3.1, Figure 1: encoder, decoder, and the Transformer that joins them.

Differs from the paper in nothing by default. Where the paper is silent: sentences of a
batch are padded, and padding is never attended to.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from aiayn.errors import InputError
from aiayn.model.cache import LayerCache, TransformerState
from aiayn.model.config import TransformerConfig
from aiayn.model.embeddings import TokenEmbedding
from aiayn.model.layers import DecoderLayer, EncoderLayer
from aiayn.model.masks import causal_mask, padding_mask
from aiayn.model.positional import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
)


def shift_right(
    target: Int[Tensor, "batch target_length"], start_id: int
) -> Int[Tensor, "batch target_length"]:
    """What the decoder reads while it learns to write target: Figure 1's 'shifted right'.

    Position i of the result is token i - 1 of the target, so that predicting token i
    never sees token i.

    >>> shift_right(torch.tensor([[7, 8, 9]]), start_id=1)
    tensor([[1, 7, 8]])
    """
    start = target.new_full((target.size(0), 1), start_id)
    return torch.cat([start, target[:, :-1]], dim=1)


@dataclass(frozen=True)
class AttentionWeights:
    """Every layer's and every head's weights for one batch.

    Each field is a tuple with one tensor a layer, rows being queries.
    """

    encoder: tuple[Float[Tensor, "batch heads source_length source_length"], ...]
    decoder: tuple[Float[Tensor, "batch heads target_length target_length"], ...]
    cross: tuple[Float[Tensor, "batch heads target_length source_length"], ...]


class Encoder(nn.Module):
    """A stack of encoder layers.

    With ``norm="pre"`` a last LayerNorm follows the stack, since nothing in it has
    normalised the sum of all updates.

    Paper: §3.1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = range(config.num_encoder_layers)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in layers])
        self.norm = _final_norm(config)

    def forward(
        self,
        x: Float[Tensor, "batch source_length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "batch source_length d_model"], tuple[Tensor | None, ...]]:
        """Return the memory, and each layer's attention weights if they are wanted."""
        all_weights = []
        for layer in self.layers:
            x, weights = layer(x, mask, need_weights)
            all_weights.append(weights)
        return self.norm(x), tuple(all_weights)


class Decoder(nn.Module):
    """A stack of decoder layers, with a last LayerNorm if ``norm="pre"``.

    Paper: §3.1.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        layers = range(config.num_decoder_layers)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in layers])
        self.norm = _final_norm(config)

    def forward(
        self,
        x: Float[Tensor, "batch target_length d_model"],
        memory: Float[Tensor, "batch source_length d_model"] | None,
        target_mask: Bool[Tensor, "..."] | None = None,
        source_mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
        caches: list[LayerCache] | None = None,
    ) -> tuple[
        Float[Tensor, "batch target_length d_model"],
        tuple[Tensor | None, ...],
        tuple[Tensor | None, ...],
    ]:
        """Return the states, and each layer's self- and cross-attention weights."""
        all_self, all_cross = [], []
        for layer, cache in zip(
            self.layers, caches or [None] * len(self.layers), strict=True
        ):
            x, self_weights, cross_weights = layer(
                x, memory, target_mask, source_mask, need_weights, cache
            )
            all_self.append(self_weights)
            all_cross.append(cross_weights)
        return self.norm(x), tuple(all_self), tuple(all_cross)


class Transformer(nn.Module):
    """The encoder–decoder of Figure 1.

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
        size = (config.vocab_size, config.d_model)
        self.target_embedding = TokenEmbedding(*size)
        self.source_embedding = self.output_embedding = self.target_embedding
        if not config.tie_embeddings:
            self.source_embedding = TokenEmbedding(*size)
            self.output_embedding = TokenEmbedding(*size)
        if config.positions == "learned":
            positions = LearnedPositionalEncoding
        else:
            positions = SinusoidalPositionalEncoding
        self.source_positions = positions(config.d_model, config.max_length)
        self.target_positions = positions(config.d_model, config.max_length)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    def forward(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Float[Tensor, "batch target_length vocab"]:
        """Score every next token at every position of the target.

        Args:
            source: Token ids, padded with ``config.pad_id``.
            target: What the decoder reads: already shifted right (`shift_right`).

        Returns:
            Logits: those at position i are for the token after target position i.
        """
        return self.project(self.states(source, target))

    def states(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Float[Tensor, "batch target_length d_model"]:
        """The decoder's last states, which `project` turns into logits."""
        states, _, _ = self._decode(target, self.encode(source), source)
        return states

    def project(
        self, states: Float[Tensor, "... d_model"]
    ) -> Float[Tensor, "... vocab"]:
        """From states to logits, by the output matrix (paper: §3.4)."""
        return self.output_embedding.logits(states)

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
        """Logits for a target that reads memory; source says where memory is padding."""
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
        memory = self.encode(source)
        layers = [
            LayerCache(*layer.cross_attention.keys_and_values(memory, memory))
            for layer in self.decoder.layers
        ]
        return TransformerState(layers, padding_mask(source, self.config.pad_id))

    def step(
        self, tokens: Int[Tensor, " hypotheses"], state: TransformerState
    ) -> Float[Tensor, "hypotheses vocab"]:
        """Read one token a hypothesis and score the next; state moves on in place."""
        x = self.target_embedding(tokens[:, None])  # (hypotheses, 1, d_model)
        x = self.dropout(self.target_positions(x, start=state.position))
        # One query, the newest, may see all that was written: no causal mask.
        states, _, _ = self.decoder(
            x, None, None, state.source_mask, caches=state.layers
        )
        state.position += 1
        return self.project(states[:, 0])

    def _encode(
        self, source: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        _check_tokens(source, "source", self.config)
        x = self.source_positions(self.source_embedding(source))
        mask = padding_mask(source, self.config.pad_id)
        return self.encoder(self.dropout(x), mask, need_weights)

    def _decode(
        self, target: Tensor, memory: Tensor, source: Tensor, need_weights: bool = False
    ) -> tuple[Tensor, tuple[Tensor | None, ...], tuple[Tensor | None, ...]]:
        _check_tokens(target, "target", self.config)
        x = self.target_positions(self.target_embedding(target))
        # Padding stands at the end, where the causal mask already hides it.
        target_mask = causal_mask(target.size(1), target.device)
        source_mask = padding_mask(source, self.config.pad_id)
        return self.decoder(
            self.dropout(x), memory, target_mask, source_mask, need_weights
        )


def _final_norm(config: TransformerConfig) -> nn.Module:
    return nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()


def _check_tokens(tokens: Tensor, name: str, config: TransformerConfig) -> None:
    if tokens.dim() != 2 or tokens.is_floating_point():
        raise InputError(
            f"{name} must hold token ids of shape (batch, length), not "
            f"{tokens.dtype} of shape {tuple(tokens.shape)}."
        )

"""§3.1, Figure 1: the Transformer, which joins encoder and decoder.

The paper does not mention padding; here nothing attends to it.
"""

from typing import Any, Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from aiayn.errors import InputError
from aiayn.model.attention_weights import AttentionWeights
from aiayn.model.cache import DecoderCache, KVCache
from aiayn.model.choices import TransformerCall
from aiayn.model.config import TransformerConfig
from aiayn.model.embeddings import TokenEmbedding
from aiayn.model.layers import Decoder, Encoder
from aiayn.model.learned_positions import (
    LearnedPositionalEncoding,
    NoPositionalEncoding,
)
from aiayn.model.masks import Mask, causal_mask, padding_mask
from aiayn.model.positions import SinusoidalPositionalEncoding
from aiayn.model.validation import explain_batch, explain_early_padding, explain_tokens


def shift_right(
    target: Int[Tensor, "batch target_length"], bos_id: int
) -> Int[Tensor, "batch target_length"]:
    r"""The decoder's input in training: the target 'shifted right'.

    $$(y_1, …, y_m) ↦ (\mathrm{bos}, y_1, …, y_{m-1})$$

    So the position that predicts token i has not read it.

    Args:
        target: The tokens to predict.
        bos_id: The token that stands before every target.

    Paper: Figure 1 and §3.1.

    >>> shift_right(torch.tensor([[7, 8, 9]]), bos_id=1)
    tensor([[1, 7, 8]])
    """
    if target.dim() != 2:
        raise InputError(explain_tokens(target, "target"))
    bos = target.new_full((target.size(0), 1), bos_id)
    return torch.cat([bos, target], dim=1)[:, :-1]


class Transformer(nn.Module):
    r"""The encoder–decoder of Figure 1.

    $$p(y_t \mid y_1, …, y_{t-1}, X) = \mathrm{softmax}(E s_t)$$

    with the decoder's hidden state $s_t$ and the embedding matrix E, which is also the
    output layer. A call returns $E s_t$, the logits.

    Args:
        config: Its sizes; `TransformerConfig.base()` is the paper's.

    Paper: §3.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7, 8]])
    >>> model(source, target).shape
    torch.Size([1, 3, 20])
    """

    __call__: TransformerCall  # pyright: ignore[reportIncompatibleMethodOverride]

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        uses = ("shared",) if config.tie_embeddings else ("source", "target", "output")
        self.embeddings = nn.ModuleDict(
            {use: TokenEmbedding(config.vocab_size, config.d_model) for use in uses}
        )
        self.source_positions = _positions(config)
        self.target_positions = _positions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    def forward(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
        **masks_and_positions: Tensor | None,
    ) -> Float[Tensor, "batch target_length vocab"]:
        """The logits of the token after each position of the target.

        Args:
            source: Token ids, padded at the end with ``config.pad_id``.
            target: What the decoder reads: already shifted right (`shift_right`), and
                padded at the end too.
            masks_and_positions: As for `decoder_hidden`.

        Raises:
            InputError: The ids are not of such shapes, or not in the vocabulary.
        """
        return self.logits(self.decoder_hidden(source, target, **masks_and_positions))

    def decoder_hidden(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
        *,
        source_mask: Bool[Tensor, "batch 1 #source_length source_length"] | None = None,
        target_mask: Mask | None = None,
        memory_mask: Bool[Tensor, "batch 1 #target_length source_length"] | None = None,
        source_positions: Int[Tensor, "batch source_length"] | None = None,
        target_positions: Int[Tensor, "batch target_length"] | None = None,
    ) -> Float[Tensor, "batch target_length d_model"]:
        """The decoder's last hidden states, which `logits` scores.

        Args:
            source_mask: What the source may attend to; None: all but padding.
            target_mask: What the target may attend to; None: no later position.
            memory_mask: What the target may attend to in the source, as source_mask.
            source_positions: The position of each source token; None: 0, 1, 2, …
                Rotary positions always count those of the row.
            target_positions: Likewise of each target token.
        """
        if source_mask is None:
            _refuse_early_padding(source, self.config.pad_id, "source")
        if target_mask is None:
            _refuse_early_padding(target[..., 1:], self.config.pad_id, "target")
        memory, _ = self._encode(source, source_mask, source_positions)
        given = target_mask, memory_mask, target_positions
        return self._decode(target, memory, source, *given)[0]

    @property
    def output_weight(self) -> Float[Tensor, "vocab d_model"]:
        """The matrix of the output layer."""
        return self.embedding("output").weight

    def logits(
        self, hidden_states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """Score every token of the vocabulary by the output matrix (paper: §3.4)."""
        return self.embedding("output").logits(hidden_states)

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
        """Logits for a target, given the memory; source tells where that is padding."""
        return self.logits(self._decode(target, memory, source)[0])

    def attention_weights(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> AttentionWeights:
        """Run the model and return the attention weights of every head."""
        memory, encoder = self._encode(source, need_weights=True)
        _, decoder, cross = self._decode(target, memory, source, need_weights=True)
        return AttentionWeights(encoder, decoder, cross)

    def init_decode(
        self, source: Int[Tensor, "sentences source_length"]
    ) -> DecoderCache:
        """Encode the source, and return the cache for decoding it step by step."""
        _refuse_early_padding(source, self.config.pad_id, "source")
        memory = self.encode(source)
        caches = []
        for layer in cast(Any, self.decoder.layers):
            keys, values = layer.cross_attention.project_kv(memory, memory)
            caches.append((KVCache(), KVCache(keys.contiguous(), values.contiguous())))
        return DecoderCache(caches, padding_mask(source, self.config.pad_id))

    def decode_step(
        self, tokens: Int[Tensor, " hypotheses"], cache: DecoderCache
    ) -> Float[Tensor, "hypotheses vocab"]:
        """Read one token a hypothesis, and return the logits of the next one.

        Args:
            tokens: The newest token of each hypothesis, equally many of each sentence.
            cache: What `init_decode` returned; it is extended in place.
        """
        x = self._embed("target", tokens[:, None], start=cache.length)
        # The newest position may attend to all written ones: no causal mask is needed.
        given = None, None, cache.memory_mask
        hidden_states, _, _ = self.decoder(x, *given, caches=cache.layers)
        cache.length += 1
        return self.logits(hidden_states[:, 0])

    def _encode(
        self,
        source: Tensor,
        mask: Tensor | None = None,
        positions: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        x = self._embed("source", source, positions=positions)
        if mask is None:
            mask = padding_mask(source, self.config.pad_id)
        return self.encoder(x, mask, need_weights)

    def _decode(
        self,
        target: Tensor,
        memory: Tensor,
        source: Tensor,
        target_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        positions: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        x = self._embed("target", target, positions=positions)
        if target.size(0) != len(source) or memory.shape[:2] != source.shape:
            raise InputError(explain_batch(target, memory, source))
        if target_mask is None:  # padding is at the end, where this one hides it too
            target_mask = causal_mask(target.size(1), target.device)
        if memory_mask is None:
            memory_mask = padding_mask(source, self.config.pad_id)
        return self.decoder(x, memory, target_mask, memory_mask, need_weights)

    def _embed(self, use: Any, tokens: Tensor, **where: Any) -> Tensor:
        """Embed tokens, add their positions, and apply dropout (paper: §5.4)."""
        whole = tokens.dtype in (torch.int32, torch.int64)
        if tokens.dim() != 2 or not whole or not tokens.size(1):
            raise InputError(explain_tokens(tokens, use))
        positions = self.source_positions if use == "source" else self.target_positions
        x = self.embedding(use)(tokens)  # (batch, length, d_model)
        return self.dropout(positions(x, **where))


def _positions(config: TransformerConfig) -> nn.Module:
    if config.positions == "rotary":
        return NoPositionalEncoding()
    learned = config.positions == "learned"
    kind = LearnedPositionalEncoding if learned else SinusoidalPositionalEncoding
    return kind(config.d_model, config.max_length)


def _refuse_early_padding(tokens: Tensor, pad_id: int, name: str) -> None:
    """On the left it shifts every position; or it is a word of another vocabulary.

    Looked at on a CPU only, where that takes no time.
    """
    if tokens.dim() != 2 or not tokens.is_cpu or torch.compiler.is_compiling():
        return
    early = ((tokens[:, :-1] == pad_id) & (tokens[:, 1:] != pad_id)).any(1)
    try:
        rows = early.nonzero()
    except RuntimeError:  # torch.func has no numbers to look at
        return
    if len(rows):
        raise InputError(explain_early_padding(int(rows[0]), pad_id, name))

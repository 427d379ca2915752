"""§1 and §2: what the Transformer replaced, a recurrent encoder–decoder.

With attention it is the model of Bahdanau et al. (2015): a bidirectional encoder, and
a decoder that attends to every annotation before each word. Without attention one
vector carries the whole source, as in Cho et al. (2014), whose encoder reads from left
to right only. Differences from theirs: the output layer is a tanh layer (theirs is
maxout) tied to the embeddings; dropout; the first state is made of what both directions
know at their ends; torch's initialisation.

`RecurrentTranslator` is called like `Transformer`, so the same `Trainer` trains it, on
rows that are not packed, and the same search writes with it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from aiayn.errors import InputError
from aiayn.model.additive import additive_attention
from aiayn.model.embeddings import TokenEmbedding
from aiayn.model.masks import padding_mask
from aiayn.model.validation import (
    check_choice,
    check_pad_id,
    check_rates,
    check_sizes,
    explain_batch,
    explain_tokens,
    hold_python_numbers,
)

__all__ = ["RecurrentConfig", "RecurrentTranslator"]


@dataclass(frozen=True)
class RecurrentConfig:
    """What shapes a recurrent encoder–decoder.

    Raises:
        InputError: A size is not positive, dropout lies outside [0, 1), or pad_id is no
            token.

    Paper: §1, §2; Cho et al. (2014), Bahdanau et al. (2015).
    """

    vocab_size: int = 1000
    """Pieces in the joint vocabulary of both languages."""
    d_model: int = 128
    """Width of embeddings and of each GRU's state; annotations are twice as wide."""
    attention: bool = True
    """Look at all annotations (Bahdanau et al.), or carry one vector (Cho et al.)."""
    dropout: float = 0.1
    """Dropout on embeddings and before the output layer."""
    pad_id: int = 0
    """The token that fills short rows of a batch."""

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        check_sizes(1, vocab_size=self.vocab_size, d_model=self.d_model)
        check_rates(dropout=self.dropout)
        check_pad_id(self.pad_id, self.vocab_size)
        check_choice("attention", self.attention, True, False)


@dataclass
class RecurrentState:
    """Where a batch of hypotheses stands; rows are ordered by sentence.

    Args:
        hidden: The decoder's state of each hypothesis: (hypotheses, d_model).
        memory: Annotations of each sentence: (sentences, source_length, 2·d_model).
        keys: What attention compares them by: (sentences, source_length, d_model).
        summary: The one vector of each sentence: (sentences, d_model).
        source_mask: Which annotations are words: (sentences, 1, source_length).
    """

    hidden: Float[Tensor, "hypotheses d_model"]
    memory: Float[Tensor, "sentences source_length 2*d_model"]
    keys: Float[Tensor, "sentences source_length d_model"] | None
    summary: Float[Tensor, "sentences d_model"]
    source_mask: Bool[Tensor, "sentences 1 source_length"]

    def reorder(
        self,
        hypotheses: Int[Tensor, " kept_hypotheses"],
        sentences: Int[Tensor, " kept_sentences"] | None = None,
    ) -> None:
        """Keep these hypotheses and sentences, as `DecoderCache.reorder` does."""
        self.hidden = self.hidden.index_select(0, hypotheses)
        if sentences is not None:
            self.memory = self.memory.index_select(0, sentences)
            if self.keys is not None:
                self.keys = self.keys.index_select(0, sentences)
            self.summary = self.summary.index_select(0, sentences)
            self.source_mask = self.source_mask.index_select(0, sentences)


class RecurrentTranslator(nn.Module):
    r"""A GRU encoder–decoder, with additive attention or without.

    $$s_i = \mathrm{GRU}(s_{i-1}, [y_{i-1}; c_i]), \quad
    c_i = \mathrm{Attention}(s_{i-1}, h, h)$$

    where h are the annotations; without attention c is one vector for all i.

    Args:
        config: Its sizes, and whether it attends.

    Paper: §1, §2; Cho et al. (2014), Bahdanau et al. (2015).
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        width = config.d_model
        context = 2 * width if config.attention else width
        self.embedding = TokenEmbedding(config.vocab_size, width)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.initial = nn.Linear(2 * width, width)
        self.cell = nn.GRUCell(width + context, width)
        self.readout = nn.Linear(2 * width + context, width)
        if config.attention:
            self.query_projection = nn.Linear(width, width, bias=False)
            self.key_projection = nn.Linear(2 * width, width, bias=False)
            self.score = nn.Parameter(torch.empty(width).normal_(std=width**-0.5))

    def forward(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Float[Tensor, "batch target_length vocab"]:
        """Logits at every position; target is already shifted right."""
        return self.logits(self.decoder_hidden(source, target))

    def decoder_hidden(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
        **masks_and_positions: Tensor | None,
    ) -> Float[Tensor, "batch target_length d_model"]:
        """The decoder's states, which `logits` scores.

        Args:
            source: Padded token ids.
            target: What the decoder reads: already shifted right.
            masks_and_positions: What a batch brings for a Transformer. Nothing of it is
                needed: a row is one sentence, and its padding shows in its ids.
        """
        return self._decode(target, self.encode(source), source)[0]

    @property
    def output_weight(self) -> Float[Tensor, "vocab d_model"]:
        """The matrix of the output layer."""
        return self.embedding.weight

    def logits(
        self, states: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """Score every token of the vocabulary by the embedding matrix."""
        return self.embedding.logits(states)

    def encode(
        self, source: Int[Tensor, "batch source_length"]
    ) -> Float[Tensor, "batch source_length annotation"]:
        """One annotation a source position: what was read up to it from either end."""
        _check_tokens(source, "source")
        # A row of nothing but padding is read as one token: packing needs at least one.
        lengths = (source != self.config.pad_id).sum(dim=1).clamp(min=1).cpu()
        embedded = self.dropout(self.embedding(source))
        packed = pack_padded_sequence(
            embedded, lengths, batch_first=True, enforce_sorted=False
        )
        annotations, _ = pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=source.size(1)
        )
        return annotations

    def decode(
        self,
        target: Int[Tensor, "batch target_length"],
        memory: Float[Tensor, "batch source_length annotation"],
        source: Int[Tensor, "batch source_length"],
    ) -> Float[Tensor, "batch target_length vocab"]:
        """Logits for a target that reads memory."""
        return self.logits(self._decode(target, memory, source)[0])

    def attention_weights(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Float[Tensor, "batch target_length source_length"]:
        """How much each target position looked at each source position.

        Raises:
            InputError: The model was built without attention.
        """
        weights = self._decode(target, self.encode(source), source)[1]
        if weights is None:
            raise InputError(
                "A RecurrentTranslator with attention=False has no weights."
            )
        return weights

    def init_decode(
        self, source: Int[Tensor, "sentences source_length"]
    ) -> RecurrentState:
        """Encode the source, and return the state for decoding it step by step."""
        return self._begin(self.encode(source), source)

    def decode_step(
        self, tokens: Int[Tensor, " hypotheses"], state: RecurrentState
    ) -> Float[Tensor, "hypotheses vocab"]:
        """Read one token a hypothesis and score the next; state changes in place."""
        embedded = self.dropout(self.embedding(tokens[:, None]))[:, 0]
        return self.logits(self._advance(embedded, state)[0])

    def _begin(self, memory: Tensor, source: Tensor) -> RecurrentState:
        forward, backward = memory.chunk(2, dim=-1)  # (batch, source_length, d_model)
        mask = padding_mask(source, self.config.pad_id)[:, 0]  # (batch, 1, length)
        last = (mask[:, 0].sum(dim=1) - 1).clamp(min=0)
        rows = torch.arange(source.size(0), device=source.device)
        # What each direction knows when it has read everything: (batch, 2·d_model).
        ends = torch.cat([forward[rows, last], backward[:, 0]], dim=-1)
        summary = torch.tanh(self.initial(ends))  # (batch, d_model)
        # A projection that every step needs and none changes: done once.
        keys = self.key_projection(memory) if self.config.attention else None
        return RecurrentState(summary, memory, keys, summary, mask)

    def _advance(
        self, embedded: Tensor, state: RecurrentState
    ) -> tuple[Tensor, Tensor | None]:
        """Move every hypothesis on by one (embedded) token."""
        sentences = state.memory.size(0)
        if state.keys is not None:
            query = self.query_projection(state.hidden)  # (hypotheses, d_model)
            context, weights = additive_attention(
                query.unflatten(0, (sentences, -1)),
                state.keys,
                state.memory,
                self.score,
                state.source_mask,
            )
            context = context.flatten(0, 1)  # (hypotheses, 2·d_model)
        else:
            beams = state.hidden.size(0) // sentences
            context, weights = state.summary.repeat_interleave(beams, dim=0), None
        read = torch.cat([embedded, context], dim=-1)
        state.hidden = self.cell(read, state.hidden)
        seen = torch.cat([state.hidden, embedded, context], dim=-1)
        return self.dropout(torch.tanh(self.readout(seen))), weights

    def _decode(
        self, target: Tensor, memory: Tensor, source: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        _check_tokens(target, "target")
        if target.size(0) != len(source) or memory.shape[:2] != source.shape:
            raise InputError(explain_batch(target, memory, source))
        state = self._begin(memory, source)
        embedded = self.dropout(self.embedding(target))
        steps = [self._advance(token, state) for token in embedded.unbind(dim=1)]
        states = torch.stack([state for state, _ in steps], dim=1)
        weights = [row for _, row in steps if row is not None]
        return states, torch.cat(weights, dim=1) if weights else None


def _check_tokens(tokens: Tensor, name: str) -> None:
    whole = tokens.dtype in (torch.int32, torch.int64)
    if tokens.dim() != 2 or not whole or not tokens.size(1):
        raise InputError(explain_tokens(tokens, name))

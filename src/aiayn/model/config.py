"""The sizes of the model: base and big (paper: §3, §6.2) and every row of Table 3.

One frozen dataclass holds every choice that shapes the model. The defaults are the
paper's base model. Fields that the paper does not have (pre-norm, dropout inside
attention, …) default to what the paper prints and say where they come from.
"""

from dataclasses import dataclass
from typing import Literal, Unpack

from aiayn.errors import InputError
from aiayn.model.choices import ModelChoices
from aiayn.model.validation import (
    check_choice,
    check_pad_id,
    check_rates,
    check_rotary,
    check_sizes,
    head_widths,
    hold_python_numbers,
)

TABLE_3_ROWS: dict[str, ModelChoices] = {
    "base": {},
    "A h=1": {"num_heads": 1},
    "A h=4": {"num_heads": 4},
    "A h=16": {"num_heads": 16},
    "A h=32": {"num_heads": 32},
    "B d_k=16": {"d_k": 16},
    "B d_k=32": {"d_k": 32},
    "C N=2": {"num_encoder_layers": 2, "num_decoder_layers": 2},
    "C N=4": {"num_encoder_layers": 4, "num_decoder_layers": 4},
    "C N=8": {"num_encoder_layers": 8, "num_decoder_layers": 8},
    "C d_model=256": {"d_model": 256},
    "C d_model=1024": {"d_model": 1024},
    "C d_ff=1024": {"d_ff": 1024},
    "C d_ff=4096": {"d_ff": 4096},
    "D dropout=0.0": {"dropout": 0.0},
    "D dropout=0.2": {"dropout": 0.2},
    "D label_smoothing=0.0": {},
    "D label_smoothing=0.2": {},
    "E learned positions": {"positions": "learned"},
    "big": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "dropout": 0.3},
}
"""What each row of Table 3 changes in the base model, as it is printed.

The two rows on label smoothing change the training, not the model.

Paper: §6.2, Table 3.
"""


@dataclass(frozen=True)
class TransformerConfig:
    """What shapes a Transformer; the defaults are the paper's base model.

    Raises:
        InputError: A size is not positive, a rate lies outside [0, 1), an option has no
            such choice, pad_id is no token, or num_heads does not divide d_model
            although d_k or d_v is left to follow from it.

    Paper: §3, and §6.2 with Table 3.

    >>> TransformerConfig.base().d_model, TransformerConfig.big().num_heads
    (512, 16)
    >>> TransformerConfig.table3("B d_k=16", vocab_size=8000).d_k
    16
    """

    vocab_size: int = 37_000
    """Pieces in the joint vocabulary of both languages (paper: §5.1)."""
    d_model: int = 512
    """Width of every embedding and of every layer's output (paper: §3.1)."""
    d_ff: int = 2048
    """Inner width of the feed-forward layers (paper: §3.3)."""
    num_heads: int = 8
    """Attention heads side by side, the paper's h (paper: §3.2.2)."""
    d_k: int | None = None
    """Width of a head's queries and keys; None: d_model / num_heads."""
    d_v: int | None = None
    """Width of a head's values; None: d_model / num_heads."""
    num_encoder_layers: int = 6
    """Encoder layers, the paper's N (paper: §3.1)."""
    num_decoder_layers: int = 6
    """Decoder layers, the paper's N (paper: §3.1)."""
    dropout: float = 0.1
    """Dropout on every sub-layer's output and on the embeddings (paper: §5.4)."""
    attention_dropout: float = 0.0
    """Dropout on attention weights: not in §5.4, 0.1 in tensor2tensor's v2."""
    activation_dropout: float = 0.0
    """Dropout after the ReLU: not in the paper, 0.1 in tensor2tensor's v2."""
    norm: Literal["post", "pre"] = "post"
    """Where LayerNorm sits: post as printed, pre as tensor2tensor since 10/2017."""
    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    """Sinusoids (paper: §3.5), a learned table (Table 3, row E), or turned queries and
    keys (Su et al., 2021)."""
    max_length: int = 1024
    """Rows of the learned position table; other positions have no limit."""
    tie_embeddings: bool = True
    """One matrix for source, target and output layer (paper: §3.4)."""
    pad_id: int = 0
    """The token that fills short rows of a batch; nothing attends to it."""

    def __post_init__(self) -> None:
        hold_python_numbers(self)
        check_sizes(1, vocab_size=self.vocab_size, d_ff=self.d_ff)
        check_sizes(1, max_length=self.max_length)
        check_sizes(0, num_encoder_layers=self.num_encoder_layers)
        check_sizes(0, num_decoder_layers=self.num_decoder_layers)
        check_rates(dropout=self.dropout, attention_dropout=self.attention_dropout)
        check_rates(activation_dropout=self.activation_dropout)
        d_k, _ = head_widths(self.d_model, self.num_heads, self.d_k, self.d_v)
        check_choice("norm", self.norm, "post", "pre")
        check_choice("positions", self.positions, "sinusoidal", "learned", "rotary")
        if self.positions == "rotary":
            check_rotary(d_k)
        check_pad_id(self.pad_id, self.vocab_size)
        check_choice("tie_embeddings", self.tie_embeddings, True, False)

    @classmethod
    def base(cls, **changes: Unpack[ModelChoices]) -> "TransformerConfig":
        """The base model, 65 million parameters in the paper's count."""
        return cls(**changes)

    @classmethod
    def big(cls, **changes: Unpack[ModelChoices]) -> "TransformerConfig":
        """The big model, 213 million parameters in the paper's count."""
        return cls.table3("big", **changes)

    @classmethod
    def tiny(cls, **changes: Unpack[ModelChoices]) -> "TransformerConfig":
        """A model that trains in minutes on one core: not in the paper."""
        sizes: ModelChoices = {"vocab_size": 1000, "d_model": 128, "d_ff": 256}
        sizes |= {"num_heads": 4, "num_encoder_layers": 2, "num_decoder_layers": 2}
        return cls(**(sizes | changes))

    @classmethod
    def table3(cls, row: str, **changes: Unpack[ModelChoices]) -> "TransformerConfig":
        """The model of a row of Table 3, for instance ``"A h=16"``.

        Raises:
            InputError: There is no such row; the message lists them.
        """
        if row not in TABLE_3_ROWS:
            raise InputError(
                f"Table 3 has no row {row!r}; its rows are {', '.join(TABLE_3_ROWS)}."
            )
        return cls(**(TABLE_3_ROWS[row] | changes))

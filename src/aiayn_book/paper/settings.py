"""The settings that the paper prints, each with its section.

The sizes of the models stand in `aiayn.model.TransformerConfig`, whose defaults and
presets they are; here is what the text says about training, search and data.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """How a translation model was trained and searched.

    Paper: §5 and §6.1.
    """

    adam_beta_1: float = 0.9
    """§5.3."""
    adam_beta_2: float = 0.98
    """§5.3."""
    adam_epsilon: float = 1e-9
    """§5.3."""
    warmup_steps: int = 4000
    """§5.3."""
    label_smoothing: float = 0.1
    """§5.4."""
    tokens_per_batch: int = 25_000
    """§5.1, about, in the source and again in the target."""
    vocabulary_en_de: int = 37_000
    """§5.1, about, byte pairs, both languages together."""
    vocabulary_en_fr: int = 32_000
    """§5.1, wordpieces."""
    pairs_en_de: float = 4.5e6
    """§5.1, about."""
    pairs_en_fr: float = 36e6
    """§5.1."""
    gpus: int = 8
    """§5.2, NVIDIA P100."""
    beam: int = 4
    """§6.1."""
    length_penalty: float = 0.6
    """§6.1, α."""
    extra_output_length: int = 50
    """§6.1, beyond the input's length."""
    dropout: float = 0.1
    """§5.4."""
    dropout_en_fr: float = 0.1
    """§6.1, the big model's."""
    steps: int = 100_000
    """§5.2."""
    seconds_per_step: float = 0.4
    """§5.2."""
    training_hours: float = 12
    """§5.2."""
    averaged_checkpoints: int = 5
    """§6.1; the base model's were written every ten minutes."""


BASE = Settings()
"""The base model's settings.

Paper: §5 and §6.1.
"""

BIG = Settings(
    dropout=0.3,  # §6.1; Table 3
    steps=300_000,  # §5.2
    seconds_per_step=1.0,  # §5.2
    training_hours=3.5 * 24,  # §5.2 prints 3.5 days
    averaged_checkpoints=20,  # §6.1
)
"""The big model's settings.

Paper: §5 and §6.1.
"""

TERAFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}
"""Sustained single-precision speed of each GPU, in 10¹² operations a second.

Paper: §6.1, footnote.
"""


@dataclass(frozen=True)
class ParsingSettings:
    """How the parsers were trained and searched.

    Paper: §6.3.
    """

    layers: int = 4
    """In each stack."""
    d_model: int = 1024
    """Width of the model."""
    sentences_wsj: int = 40_000
    """To train on, about."""
    sentences_semi_supervised: float = 17e6
    """Likewise, about."""
    vocabulary_wsj: int = 16_000
    """Tokens."""
    vocabulary_semi_supervised: int = 32_000
    """Tokens."""
    beam: int = 21
    """Outputs kept at each step."""
    length_penalty: float = 0.3
    """α."""
    extra_output_length: int = 300
    """Beyond the input's length."""


PARSING = ParsingSettings()
"""The parsers' settings.

Paper: §6.3.
"""

"""Tables 1 to 4 as printed. A figure that the paper does not print is None."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerCost:
    """A row of Table 1; n: length, d: width, k: kernel size, r: neighbourhood.

    Paper: §4, Table 1.
    """

    layer: str
    """The kind of layer."""
    complexity: str
    """Operations a layer takes."""
    sequential_operations: str
    """Those of them that must wait for each other."""
    maximum_path_length: str
    """Layers or steps between two positions that lie farthest apart."""


TABLE_1 = (
    LayerCost("self-attention", "O(n² · d)", "O(1)", "O(1)"),
    LayerCost("recurrent", "O(n · d²)", "O(n)", "O(n)"),
    LayerCost("convolutional", "O(k · n · d²)", "O(1)", "O(logₖ(n))"),
    LayerCost("self-attention (restricted)", "O(r · n · d)", "O(1)", "O(n / r)"),
)
"""What each kind of layer costs.

Paper: §4, Table 1.
"""


@dataclass(frozen=True)
class TranslationResult:
    """A row of Table 2: BLEU on newstest2014 and the cost of training in operations.

    Paper: §6.1, Table 2.
    """

    model: str
    """Its name in the table."""
    bleu_en_de: float | None = None
    """BLEU, English to German."""
    bleu_en_fr: float | None = None
    """BLEU, English to French."""
    flops_en_de: float | None = None
    """Operations of the training, English to German."""
    flops_en_fr: float | None = None
    """Likewise, English to French."""
    bleu_en_fr_in_proceedings: float | None = None
    """What the proceedings print where the arXiv version prints something else."""


TABLE_2 = (
    TranslationResult("ByteNet", 23.75),
    TranslationResult("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    TranslationResult("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    TranslationResult("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    TranslationResult("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    TranslationResult("Deep-Att + PosUnk Ensemble", None, 40.4, None, 8.0e20),
    TranslationResult("GNMT + RL Ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    TranslationResult("ConvS2S Ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    TranslationResult("Transformer (base model)", 27.3, 38.1, 3.3e18, 3.3e18),
    TranslationResult("Transformer (big)", 28.4, 41.8, 2.3e19, 2.3e19, 41.0),
)
"""Translation beside the others; the Transformer's cost is printed once a row.

Paper: §6.1, Table 2.
"""


@dataclass(frozen=True)
class Variation:
    """A row of Table 3: newstest2013, beam search, no averaging of checkpoints.

    The row's name is that of `aiayn.model.TABLE_3_ROWS`, which holds what it changes.

    Paper: §6.2, Table 3.
    """

    perplexity: float
    """Per wordpiece: not comparable with perplexities per word."""
    bleu: float
    """On newstest2013."""
    parameters_in_millions: int | None = None
    """Where the table prints them."""


TABLE_3 = {
    "base": Variation(4.92, 25.8, 65),
    "A h=1": Variation(5.29, 24.9),
    "A h=4": Variation(5.00, 25.5),
    "A h=16": Variation(4.91, 25.8),
    "A h=32": Variation(5.01, 25.4),
    "B d_k=16": Variation(5.16, 25.1, 58),
    "B d_k=32": Variation(5.01, 25.4, 60),
    "C N=2": Variation(6.11, 23.7, 36),
    "C N=4": Variation(5.19, 25.3, 50),
    "C N=8": Variation(4.88, 25.5, 80),
    "C d_model=256": Variation(5.75, 24.5, 28),
    "C d_model=1024": Variation(4.66, 26.0, 168),
    "C d_ff=1024": Variation(5.12, 25.4, 53),
    "C d_ff=4096": Variation(4.75, 26.2, 90),
    "D dropout=0.0": Variation(5.77, 24.6),
    "D dropout=0.2": Variation(4.95, 25.5),
    "D label_smoothing=0.0": Variation(4.67, 25.3),
    "D label_smoothing=0.2": Variation(5.47, 25.7),
    "E learned positions": Variation(4.92, 25.7),
    "big": Variation(4.33, 26.4, 213),
}
"""The variations by the names of `aiayn.model.TABLE_3_ROWS`.

Paper: §6.2, Table 3.
"""


@dataclass(frozen=True)
class ParsingResult:
    """A row of Table 4: bracket F1 on section 23 of the Wall Street Journal.

    Paper: §6.3, Table 4.
    """

    parser: str
    """Its name in the table."""
    training: str
    """What it was trained on, as the table puts it."""
    f1: float
    """The harmonic mean of precision and recall, in percent."""


_WSJ = "WSJ only, discriminative"
_SEMI = "semi-supervised"

TABLE_4 = (
    ParsingResult("Vinyals & Kaiser et al. (2014)", _WSJ, 88.3),
    ParsingResult("Petrov et al. (2006)", _WSJ, 90.4),
    ParsingResult("Zhu et al. (2013)", _WSJ, 90.4),
    ParsingResult("Dyer et al. (2016)", _WSJ, 91.7),
    ParsingResult("Transformer (4 layers)", _WSJ, 91.3),
    ParsingResult("Zhu et al. (2013)", _SEMI, 91.3),
    ParsingResult("Huang & Harper (2009)", _SEMI, 91.3),
    ParsingResult("McClosky et al. (2006)", _SEMI, 92.1),
    ParsingResult("Vinyals & Kaiser et al. (2014)", _SEMI, 92.1),
    ParsingResult("Transformer (4 layers)", _SEMI, 92.7),
    ParsingResult("Luong et al. (2015)", "multi-task", 93.0),
    ParsingResult("Dyer et al. (2016)", "generative", 93.3),
)
"""Parsers of English.

Paper: §6.3, Table 4; in the arXiv version only.
"""

"""§3.2.3, and Figures 3–5: the attention weights of a whole model."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class AttentionWeights:
    """The weights of every layer and every head for one batch.

    Each field is a tuple with one tensor a layer; rows are queries.

    Paper: §3.2.3, and Figures 3–5.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7]])
    >>> weights = model.attention_weights(source, target)
    >>> len(weights.cross), weights.cross[0].shape
    (2, torch.Size([1, 4, 2, 3]))
    """

    encoder: tuple[Float[Tensor, "batch heads source_length source_length"], ...]
    """Self-attention of the source."""
    decoder: tuple[Float[Tensor, "batch heads target_length target_length"], ...]
    """Masked self-attention of the target."""
    cross: tuple[Float[Tensor, "batch heads target_length source_length"], ...]
    """Attention of the target to the source."""

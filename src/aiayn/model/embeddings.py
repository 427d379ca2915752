"""§3.4: token embeddings, and the same matrix as the output layer."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class TokenEmbedding(nn.Module):
    r"""Looks tokens up, times √d_model; read backwards it scores every token.

    With $E ∈ ℝ^{V × d_{model}}$: $\mathrm{embed}(t) = \sqrt{d_{model}}\, E_t$ on the way
    in, $\mathrm{logits}(x) = x E^\top$ on the way out. Sharing E between both languages
    and the output layer is what the paper calls tying.

    Args:
        vocab_size: The paper's vocabulary, V.
        d_model: Width.

    Paper: §3.4; Press and Wolf (2017).
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.scale = math.sqrt(d_model)
        # Entries of variance 1/d_model: times √d_model they meet the sinusoids at a
        # like size, and as an output layer they start with logits of variance one.
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def forward(
        self, tokens: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length d_model"]:
        return self.embedding(tokens) * self.scale

    def logits(self, x: Float[Tensor, "... d_model"]) -> Float[Tensor, "... vocab"]:
        """How well each token of the vocabulary fits x: the pre-softmax layer."""
        return F.linear(x, self.embedding.weight)

"""§3.4: token embeddings, and the same matrix as the output layer."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model.products import linear


class TokenEmbedding(nn.Module):
    r"""Looks tokens up, times √d_model; read backwards it scores every token.

    $$\mathrm{embed}(t) = \sqrt{d_\text{model}}\, E_t, \quad
    \mathrm{logits}(x) = x E^\top$$

    with $E ∈ ℝ^{V × d_\text{model}}$. Sharing E between both languages and the output
    layer is called tying.

    Args:
        vocab_size: Number of tokens, V.
        d_model: Width.

    Paper: §3.4; Press and Wolf (2017).

    >>> embedding = TokenEmbedding(vocab_size=10, d_model=4)
    >>> x = embedding(torch.tensor([[7, 8]]))  # one sentence of two tokens
    >>> x.shape, embedding.logits(x).shape
    (torch.Size([1, 2, 4]), torch.Size([1, 2, 10]))
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        # Entries of variance 1/d_model: times √d_model they meet the sinusoids at a
        # like size, and as an output layer they start with logits of variance one.
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(
        self, tokens: Int[Tensor, "*batch length"]
    ) -> Float[Tensor, "*batch length d_model"]:
        """Look up, and scale."""
        scale = math.sqrt(self.weight.size(1))
        return F.embedding(tokens, self.weight) * scale

    def logits(
        self, x: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """How well each token of the vocabulary fits x: the pre-softmax layer."""
        return linear(x, self.weight)  # (*batch, vocab)

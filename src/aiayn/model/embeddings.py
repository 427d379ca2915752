"""§3.4: token embeddings, and the same matrix as the output layer."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.errors import InputError


class TokenEmbedding(nn.Module):
    r"""The embedding matrix: it embeds tokens, and it scores them as the output layer.

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
        # Entries of variance 1/d_model. Times √d_model they are as large as sinusoids;
        # and as the output layer they give logits of variance one.
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(
        self, tokens: Int[Tensor, "*batch length"]
    ) -> Float[Tensor, "*batch length d_model"]:
        """The rows of these tokens, times √d_model.

        Raises:
            InputError: A token is not in the vocabulary (on a GPU, torch says so).
        """
        scale = math.sqrt(self.weight.size(1))
        try:
            return F.embedding(tokens, self.weight) * scale
        except IndexError:
            vocab_size = self.weight.size(0)
            bad = tokens[(tokens < 0) | (tokens >= vocab_size)][0]
            raise InputError(
                f"There is a token id {bad}, but vocab_size = {vocab_size} allows 0 to "
                f"{vocab_size - 1}: cut the text into tokens with the tokenizer that "
                "the model was trained with."
            ) from None

    def logits(
        self, x: Float[Tensor, "*batch d_model"]
    ) -> Float[Tensor, "*batch vocab"]:
        """A score for each token of the vocabulary: the pre-softmax layer."""
        return F.linear(x, self.weight)  # (*batch, vocab)

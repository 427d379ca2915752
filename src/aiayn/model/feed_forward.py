"""§3.3: the position-wise feed-forward network, equation (2)."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model.dropout import Dropout
from aiayn.model.products import Linear


class PositionwiseFeedForward(nn.Module):
    r"""The same two-layer network at every position.

    $$\mathrm{FFN}(x) = \max(0, x W_1 + b_1) W_2 + b_2$$

    with $W_1 ∈ ℝ^{d_\text{model} × d_\text{ff}}$ and
    $W_2 ∈ ℝ^{d_\text{ff} × d_\text{model}}$: two convolutions of width one. It mixes
    the features of a position, never positions.

    Args:
        d_model: Width of inputs and outputs.
        d_ff: Width in between.
        dropout: Probability that an inner unit is dropped (not in the paper).

    Raises:
        InputError: dropout lies outside [0, 1).

    Paper: §3.3, equation (2).

    What stands at one position changes nothing at another:

    >>> feed_forward = PositionwiseFeedForward(d_model=4, d_ff=16)
    >>> x = torch.randn(1, 3, 4)
    >>> torch.allclose(feed_forward(x)[:, 1], feed_forward(x[:, 1:2])[:, 0])
    True
    """

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.inner = Linear(d_model, d_ff)
        self.outer = Linear(d_ff, d_model)
        for layer in (self.inner, self.outer):
            # The paper is silent: Glorot, as for attention, and no bias to begin with.
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self, x: Float[Tensor, "... length d_model"]
    ) -> Float[Tensor, "... length d_model"]:
        """Equation (2), at each position on its own."""
        hidden = F.relu(self.inner(x))  # (..., length, d_ff)
        hidden = self.dropout(hidden)
        return self.outer(hidden)  # (..., length, d_model)

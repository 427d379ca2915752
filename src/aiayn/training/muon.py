r"""Muon, an optimizer for the weights of linear layers (not in the paper).

Adam treats a weight matrix as unrelated numbers; Muon treats it as a linear map. If the
mean gradient is $U Σ V^⊤$, Muon updates the weights by $U V^⊤$, which changes them by
the same amount in every direction: what few examples require is learned as fast as what
all of them require. No singular value decomposition is needed. A polynomial in the
matrix brings all singular values close to 1, by a few matrix products, each of which
serves all matrices of one shape. Chapter 21 derives it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from aiayn.errors import InputError

# Jordan's polynomial, which is steep at 0 and close to 1 after some iterations. He
# takes five; on the grammar, four gave the same loss.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 4

# Root mean square of an update at a learning rate of 1. Adam's is usually 0.2 to 0.4
# (Liu et al., 2025); a smaller one gave a lower loss on the grammar.
UPDATE_SIZE = 0.16


def orthogonalized(
    matrices: Float[Tensor, "batch outputs inputs"],
) -> Float[Tensor, "batch outputs inputs"]:
    r"""Approximately $U V^⊤$ of each matrix $U Σ V^⊤$, by matrix products only.

    The matrix is divided by its norm. Then each singular value s is changed four times:

    $$s ← 3.4445\, s - 4.7750\, s^3 + 2.0315\, s^5$$

    Singular values above 1/150 of the norm end between 0.68 and 1.21. Much smaller ones
    stay small, and a matrix of zeros stays zero.

    Args:
        matrices: Any number of matrices of one shape.

    Returns:
        As many matrices of the same shape and type.

    Not in the paper: Jordan et al. (2024).

    >>> orthogonalized(torch.tensor([[[3.0, 0.0], [0.0, 0.1]]]))
    tensor([[[1.0907, 0.0000],
             [0.0000, 0.6872]]])
    """
    tall = matrices.size(1) > matrices.size(2)
    wide = matrices.mT if tall else matrices  # (batch, smaller, larger)
    a, b, c = COEFFICIENTS
    x = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        square = x @ x.mT  # (batch, smaller, smaller)
        polynomial = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    r"""An optimizer whose update is the orthogonalized running mean of the gradient.

    $$m ← μ m + (1 - μ)\, g, \qquad
      W ← W - 0.16\, η \sqrt{\max(inputs, outputs)} \; U V^⊤$$

    where $U Σ V^⊤ = μ m + (1 - μ)\, g$ is the mean as it would be if the next gradient
    equalled this one (Nesterov's momentum). The square root gives updates of the same
    size for matrices of every shape, about as large as Adam's, so that both can use the
    same learning rate η (Liu et al., 2025).

    Args:
        matrices: Weights of two dimensions, or parameter groups of such weights.
        lr: The learning rate η.
        momentum: μ.
        dtype: The type of the matrix products, such as torch.bfloat16; None: the
            weights' own.

    Raises:
        InputError: A weight does not have two dimensions.

    Not in the paper: Jordan et al. (2024).

    >>> layer = torch.nn.Linear(4, 3, bias=False)
    >>> layer(torch.ones(2, 4)).sum().backward()
    >>> Muon([layer.weight], lr=0.01).step()
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 0.001,
        momentum: float = 0.95,
        dtype: torch.dtype | None = None,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "dtype": dtype}
        super().__init__(matrices, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of weights.

        Args:
            param_group: The weights as ``"params"``, and options that differ for them.

        Raises:
            InputError: As for the class.
        """
        super().add_param_group(param_group)
        for weight in self.param_groups[-1]["params"]:
            if weight.dim() != 2:
                raise InputError(
                    "Muon updates matrices, not a weight of shape "
                    f"{tuple(weight.shape)}: give those to another optimizer."
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every matrix that has a gradient.

        Args:
            closure: Computes the loss and its gradients again, before the step.

        Returns:
            The closure's loss; None without one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            by_shape = defaultdict(list)
            for weight in group["params"]:
                if weight.grad is not None:
                    by_shape[weight.shape].append(weight)
            for weights in by_shape.values():
                self._update(weights, group)
        return loss

    def mean(self, weight: nn.Parameter) -> Float[Tensor, "outputs inputs"]:
        """The running mean of a weight's gradients; zeros before the first step."""
        state: dict[str, Any] = self.state[weight]
        if not state:
            state["mean"] = torch.zeros_like(weight)
        return state["mean"]

    def _update(self, weights: list[nn.Parameter], group: dict[str, Any]) -> None:
        """Update matrices of one shape, whose products are computed together."""
        momentum, dtype, ahead = group["momentum"], group["dtype"], []
        for weight in weights:
            gradient = cast(Tensor, weight.grad)
            mean = self.mean(weight).lerp_(gradient, 1 - momentum)
            ahead.append(gradient.lerp(mean, momentum))
        stack = torch.stack(ahead)  # (matrices, outputs, inputs)
        updates = orthogonalized(stack.to(dtype or stack.dtype)).to(stack)
        size = UPDATE_SIZE * group["lr"] * max(stack.shape[1:]) ** 0.5
        for weight, update in zip(weights, updates, strict=True):
            weight.sub_(update, alpha=size)

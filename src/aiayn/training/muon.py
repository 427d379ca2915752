r"""Muon, an optimizer for the weights of linear layers (not in the paper).

To Adam a weight matrix is so many numbers; to Muon it is a map. Where the mean gradient
is $U Σ V^⊤$, Muon moves the weights along $U V^⊤$, in every direction by as much: what
few examples ask for is learned as fast as what all of them ask for. That takes no
singular value decomposition. A polynomial in the matrix brings its singular values near
to 1, by a handful of products, and all matrices of one shape share each of them.
Chapter 14 derives it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from aiayn.errors import InputError

# Jordan's numbers: steep at 0, and after some times near 1. He takes five; four taught
# the grammar as well.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
TIMES = 4

# How large the numbers of a step are, for a rate of 1. Adam's usually have 0.2 to 0.4
# (Liu et al., 2025); a little less did better on the grammar, at Adam's rate.
SIZE = 0.16


def orthogonalized(
    matrices: Float[Tensor, "batch outputs inputs"],
) -> Float[Tensor, "batch outputs inputs"]:
    r"""Nearly $U V^⊤$ of each matrix $U Σ V^⊤$, by products alone.

    $$s ← 3.4445\, s - 4.7750\, s^3 + 2.0315\, s^5$$

    is what becomes, four times, of each singular value s of a matrix divided by its
    norm. Those above a 150th end between 0.68 and 1.21; much smaller ones stay small,
    and a matrix of zeros stays what it is.

    Args:
        matrices: Any number of them, of one shape.

    Returns:
        As many, of the same shape and type.

    Not in the paper: Jordan et al. (2024).

    >>> orthogonalized(torch.tensor([[[3.0, 0.0], [0.0, 0.1]]]))
    tensor([[[1.0907, 0.0000],
             [0.0000, 0.6872]]])
    """
    tall = matrices.size(1) > matrices.size(2)
    wide = matrices.mT if tall else matrices  # its square is the smaller one
    a, b, c = COEFFICIENTS
    x = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(TIMES):
        square = x @ x.mT
        polynomial = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, polynomial, x, beta=a)
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    r"""Steps that stretch nothing: the running mean of the gradient, orthogonalized.

    $$m ← μ m + (1 - μ)\, g, \qquad
      W ← W - 0.16\, η \sqrt{\max(inputs, outputs)} \; U V^⊤$$

    where $U Σ V^⊤ = μ m + (1 - μ)\, g$, the mean as it would be if the next gradient
    were like this one. The root makes the numbers of a step equally large whatever the
    shape, about as large as Adam's, so that one rate η serves both (Liu et al., 2025).

    Args:
        matrices: Weights of two dimensions, or groups of them, as torch has it.
        lr: The rate η.
        momentum: μ.
        dtype: Of the products, such as torch.bfloat16; None: the weights' own.

    Raises:
        InputError: A weight has another number of dimensions than two.

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

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up a state; one from before groups had a dtype gets the default."""
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("dtype", self.defaults.get("dtype"))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Move these too.

        Args:
            param_group: Weights, as ``"params"``, and what shall be otherwise for them.

        Raises:
            InputError: As of the class; nothing has been added then.
        """
        super().add_param_group(param_group)
        for weight in self.param_groups[-1]["params"]:
            if weight.dim() != 2:
                self.param_groups.pop()
                raise InputError(
                    "Muon moves matrices, not a weight of shape "
                    f"{tuple(weight.shape)}: give those to another optimizer."
                )

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every matrix that has a gradient.

        Args:
            closure: What computes loss and gradients anew, before the step; or None.

        Returns:
            The closure's loss; None without one.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            alike = defaultdict(list)
            for weight in group["params"]:
                if weight.grad is not None:
                    alike[weight.shape].append(weight)
            for weights in alike.values():
                self._move(weights, group["lr"], group["momentum"], group["dtype"])
        return loss

    def mean(self, weight: nn.Parameter) -> Float[Tensor, "outputs inputs"]:
        """The running mean of its gradients; zeros before the first."""
        state: dict[str, Any] = self.state[weight]
        if not state:
            state["mean"] = torch.zeros_like(weight)
        return state["mean"]

    def _move(
        self,
        weights: list[nn.Parameter],
        lr: float,
        momentum: float,
        dtype: torch.dtype | None,
    ) -> None:
        """One step of matrices of one shape, stacked."""
        ahead = []
        for weight in weights:
            gradient = cast(Tensor, weight.grad)
            mean = self.mean(weight).lerp_(gradient, 1 - momentum)
            ahead.append(gradient.lerp(mean, momentum))
        stack = torch.stack(ahead)
        steps = orthogonalized(stack.to(dtype or stack.dtype)).to(stack)
        length = SIZE * lr * max(stack.shape[1:]) ** 0.5
        for weight, step in zip(weights, steps, strict=True):
            weight.sub_(step, alpha=length)

"""Two forms of the same computation: the plain one, and the fast one that is used.

Every trick that makes training fast stands in a small module of its own: attention over
short sentences (`short_attention`; on a GPU, `gpu_attention`), 32-bit products by
another library (`products`), dropout by integers (`dropout`), the loss in chunks
(`aiayn.training.chunked_loss`), on a GPU steps that are recorded
(`aiayn.training.recorded_step`), and `narrow` below. Each has a plain form, the one
that the paper's formula shows, and asks here which is wanted. Tests hold the two equal
(of dropout, which draws other numbers, its share and scale), and `benchmarks/` measures
what all of them bring together. `torch.compile` gets the plain form; for a GPU it gets
`gpu_attention` and `narrow`, too.

The fast form has first derivatives only, since its gradients are written out by hand
(`first_order`). Whoever wants second ones, forward-mode differentiation, or many
gradients at once (``jacobian(vectorize=True)``, ``is_grads_batched``) computes in the
plain form.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad

from aiayn.errors import InputError

_plain = False


@contextmanager
def plain_form(wanted: bool = True) -> Iterator[None]:
    """Compute everything in its plain form inside a with block, in every thread.

    Afterwards all is as it was at the block's beginning, also if another thread has
    changed it since: let one thread choose.

    Args:
        wanted: False: change nothing, so that a caller can pass a choice on.

    >>> with plain_form():
    ...     is_plain()
    True
    """
    before = _plain
    set_plain(before or wanted)
    try:
        yield
    finally:
        set_plain(before)


def set_plain(plain: bool) -> None:
    """Compute everything in its plain form from now on, or fast again."""
    global _plain
    _plain = plain


def is_plain() -> bool:
    """Whether the plain form is wanted, as by `torch.compile` and inside `torch.func`.

    A compiler joins the formulas into kernels of its own, and a trick would only be in
    its way; `torch.func` refuses to transform a gradient that was written by hand.
    """
    return is_transformed() or _plain


def is_transformed() -> bool:
    """Whether `torch.compile` or `torch.func` makes something else of what runs.

    Or forward-mode derivatives: oneDNN's product, for one, has none.
    """
    if torch.compiler.is_compiling():  # which cannot look into what follows
        return True
    if forward_ad._current_level >= 0:
        return True
    return torch._C._are_functorch_transforms_active()


def is_compiled() -> bool:
    """Whether `torch.compile` sees this, and nobody wants the plain form."""
    return torch.compiler.is_compiling() and not _plain


def first_order(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a backward that must not be differentiated, and refuses where it is.

    Torch's `once_differentiable` refuses later, and not at all where the gradient from
    above is a constant: second derivatives then come out as if this part had none.
    """

    @wraps(backward)
    def refusing(ctx: Any, *grad_outputs: Tensor) -> Any:
        if torch.is_grad_enabled():  # autograd's way to say create_graph=True
            raise InputError(
                "The fast form has first derivatives only, and this gradient is to be "
                "differentiated again: compute the model and its loss inside "
                "'with aiayn.model.forms.plain_form():'."
            )
        return backward(ctx, *grad_outputs)

    return refusing


def narrow(
    x: Float[Tensor, "*shape"], source: Float[Tensor, "*shape"] | None = None
) -> Float[Tensor, "*shape"]:
    """What the layers read and write: in autocast's narrow type, if autocast is on.

    Autocast narrows the factors of each product and nothing else. Every sub-layer then
    reads and writes 32-bit sums, and converts them for each of its products.
    Starting narrow keeps a layer narrow, but for the statistics of LayerNorm. A GPU
    would need a kernel for each conversion, unless a compiler joins it to another.

    Args:
        x: What is read or written.
        source: What x was made of; where that is wide, x stays what it is.
    """
    kind = x.device.type
    pays = is_compiled() if kind == "cuda" else kind == "cpu" and not is_plain()
    if not pays or not torch.is_autocast_enabled(kind):
        return x
    dtype = torch.get_autocast_dtype(kind)
    return x.to(dtype) if source is None or source.dtype == dtype else x

"""Equation (1) on a GPU, by kernels of our own (`attention_kernels`) or by torch's.

With a mask of padding torch takes a kernel that was made for sequences of hundreds of
tokens. For sentences of 27 in the mean ours need a quarter of its time on an H200
(`benchmarks/records/gpu.json`). A compiled graph launches them from its own code, and
has them for all lengths, since it is one graph. Without a compiler Python asks for
each, which pays for short sentences only, and above all in steps that are recorded
(`aiayn.training.recorded_step`), in which nobody has to ask.

Ours take numbers of 16 bits and a few widths of heads. Elsewhere a compiled graph has
torch's kernel, and where there is no such GPU the formulas below compute what ours do.
"""

import math
from collections.abc import Callable
from importlib.util import find_spec
from threading import Lock
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F

from aiayn.model.forms import first_order, is_compiled, is_plain

WIDTHS = (16, 32, 64, 128)
"""Of a head's queries, keys and values: what the kernels multiply at once."""
TRITON = find_spec("triton") is not None
# With more queries or keys torch's kernel pays, unless the graph is compiled.
SHORT = 32


def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The context, (batch, queries, heads, d_v), and each denominator's logarithm."""
    query, key, value = (_side_by_side(x) for x in (query, key, value))
    if _has_kernels(query.device):
        from aiayn.model.attention_kernels import attend

        context = _empty(query, value.size(3))
        denominator = query.new_empty(query.shape[:3], dtype=torch.float32)
        with torch.cuda.device_of(query):  # Triton asks for no tensor's own
            attend(query, key, value, mask, context, denominator)
        return context, denominator
    logarithms = _scores(query, key, mask).logsumexp(-1)
    denominator = logarithms.masked_fill(logarithms == -math.inf, math.inf)
    context = _weights(query, key, mask, denominator).to(value) @ value
    return context.transpose(1, 2).contiguous(), denominator


def _attend_backward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    context: Tensor, denominator: Tensor, above: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of the first three, given the context's; laid out as that is."""
    query, key, value = (_side_by_side(x) for x in (query, key, value))
    above = _side_by_side(above)
    if _has_kernels(query.device):
        from aiayn.model.attention_kernels import attend_backward

        gradients = (
            _empty(query, query.size(3)),
            _empty(key, key.size(3)),
            _empty(value, value.size(3)),
        )
        given = query, key, value, mask, context, denominator, above, gradients
        with torch.cuda.device_of(query):
            attend_backward(*given)
        return gradients
    weights = _weights(query, key, mask, denominator)
    mean = (context.float() * above).sum(-1).transpose(1, 2)[..., None]
    above = above.transpose(1, 2)
    # dL/dscores = w (g - Σ w g), g being dL/dweights.
    below = weights * ((above @ value.mT).float() - mean) / math.sqrt(query.size(3))
    of_heads = (
        below.to(key) @ key, below.mT.to(query) @ query, weights.mT.to(above) @ above
    )  # fmt: skip
    of_query, of_key, of_value = (x.transpose(1, 2).contiguous() for x in of_heads)
    return of_query, of_key, of_value


def _scores(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    scores = query.float() @ key.float().mT / math.sqrt(query.size(3))
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, denominator: Tensor
) -> Tensor:
    return (_scores(query, key, mask) - denominator[..., None]).exp()


def _empty(like: Tensor, width: int) -> Tensor:
    """What heads write, within places: to concatenate them is no copy."""
    batch, heads, length = like.shape[:3]
    return like.new_empty(batch, length, heads, width)


def _side_by_side(x: Tensor) -> Tensor:
    """The kernels take any strides but that of a head's own numbers."""
    return x if x.stride(3) == 1 else x.contiguous()


def _has_kernels(device: torch.device) -> bool:
    """Whether it multiplies pairs of 16-bit numbers, and Triton is installed."""
    if device.type != "cuda" or not TRITON:
        return False
    return torch.cuda.get_device_properties(device).major >= 8


_operations: list[Any] = []
_registering = Lock()


def register_operations() -> None:
    """Have torch know both functions above, and a compiler look into them.

    Whoever compiles for a GPU calls it beforehand, or the graph has torch's kernel;
    without a compiler the first attention does. Not at import: the part of torch that
    looks into kernels of Triton's takes a second to import.
    """
    with _registering:
        if not _operations:
            attend = _registered(_attend)
            attend.register_autograd(_gradients, setup_context=_keep)
            _operations.extend((attend, _registered(_attend_backward)))


def _registered(function: Callable[..., Any]) -> Any:
    # The bug clinic imports copies of this package: each has operations of its own.
    name = f"{__name__.partition('.')[0]}::{function.__name__.lstrip('_')}"
    if TRITON:
        return torch.library.triton_op(name, function, mutates_args=())
    operation = torch.library.custom_op(name, function, mutates_args=())
    operation.register_fake(function)
    return operation


def _keep(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)


@first_order
def _gradients(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
    found = _operations[1](*ctx.saved_tensors, grad_outputs[0])
    return *(gradient.transpose(1, 2) for gradient in found), None


def gpu_attention(
    query: Float[Tensor, "batch heads queries d_k"],
    key: Float[Tensor, "batch heads keys d_k"],
    value: Float[Tensor, "batch heads keys d_v"],
    mask: Bool[Tensor, "*#batch_heads #queries #keys"] | None = None,
) -> Float[Tensor, "batch heads queries d_v"]:
    """The context of `scaled_dot_product_attention`, without its weights.

    Args:
        query: What each position looks for; outside of a compiled graph in 16 bits, and
            its width, and that of values, is one of `WIDTHS`.
        key: What each position answers to.
        value: What each position has to give.
        mask: True where a query may attend to a key; None: everywhere.

    Paper: §3.2.1, equation (1).
    """
    if torch.compiler.is_compiling() and not _can_be_called(query, key, value):
        added = None if mask is None else _by_eights(mask, query.dtype)
        return F.scaled_dot_product_attention(query, key, value, added)
    if not _operations:
        register_operations()
    return _operations[0](query, key, value, mask)[0].transpose(1, 2)


def _can_be_called(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether a graph may have our kernels: torch must know them by now."""
    there = len(_operations) > 0 and _has_kernels(query.device)
    return there and fit(query, key, value)


def _by_eights(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The mask as what is added to scores, in rows that begin at every eighth place.

    Torch's kernel copies any other, after asking whether the number of keys divides by
    8: a compiler then makes one graph where it does, and one where it does not. Rows
    are never packed, for it would ask whether they are.
    """
    keys = mask.size(-1)
    places = torch.arange(keys - keys % 8 + 8, device=mask.device)
    hidden = ~mask.index_select(-1, places.clamp(max=keys - 1))
    added = torch.zeros_like(hidden, dtype=dtype).masked_fill(hidden, -math.inf)
    return added[..., :keys]


def goes_to_kernels(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether `gpu_attention` is the fastest form for these, and the plain one unasked.

    In a compiled graph it always is: a compiler makes less of the formula.
    """
    if is_compiled():
        return query.is_cuda
    return not is_plain() and fit(query, key, value) and _is_short_and_fast(query, key)


def fit(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether our kernels take these at all."""
    return (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and query.dtype == key.dtype == value.dtype
        and query.size(-1) in WIDTHS
        and value.size(-1) in WIDTHS
        and query.shape[:2] == key.shape[:2]
        and key.shape[:3] == value.shape[:3]
    )


def _is_short_and_fast(query: Tensor, key: Tensor) -> bool:
    return max(query.size(2), key.size(2)) <= SHORT and _has_kernels(query.device)

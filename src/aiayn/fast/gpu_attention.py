"""Equation (1) on a GPU, by kernels of our own (`attention_kernels`) or by torch's.

With a padding mask torch takes a kernel that was made for sequences of hundreds of
tokens. For sentences of 27 tokens on average, our kernels need a quarter of its time on
an H200 (`benchmarks/records/gpu.json`). A compiled graph launches them from its own
code, for all lengths, because it is one graph. Without a compiler, Python launches each
of them. That pays for short sentences only, and most of all in steps that are recorded
(`aiayn.fast.cuda_graphs`), which Python does not launch.

Our kernels take 16-bit numbers and a few widths of heads. For others a compiled graph
has torch's kernel. Where there is no such GPU, the formulas below do the same.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from threading import Lock
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from aiayn.fast.conditions import first_order

WIDTHS = (16, 32, 64, 128)
"""Widths of queries, keys and values that the kernels can multiply."""
TRITON = find_spec("triton") is not None
# Queries and keys up to which our kernels are faster without a compiler.
MAX_SHORT = 32
_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def _attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The context, (batch, queries, heads, d_v), and each denominator's logarithm."""
    query, key, value = (_contiguous_width(x) for x in (query, key, value))
    if _has_kernels(query.device):
        from aiayn.fast.attention_kernels import attend

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
    context: Tensor, denominator: Tensor, grad_output: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The gradients of the first three, given the context's; laid out as that is."""
    query, key, value = (_contiguous_width(x) for x in (query, key, value))
    grad_output = _contiguous_width(grad_output)
    if _has_kernels(query.device):
        from aiayn.fast.attention_kernels import attend_backward

        q, k, v = (_empty(x, x.size(3)) for x in (query, key, value))
        given = query, key, value, mask, context, denominator, grad_output, (q, k, v)
        with torch.cuda.device_of(query):
            attend_backward(*given)
        return q, k, v
    weights = _weights(query, key, mask, denominator)
    mean = (context.float() * grad_output).sum(-1).transpose(1, 2)[..., None]
    grad_output = grad_output.transpose(1, 2)
    # dL/dscores = w (g - Σ w g), g being dL/dweights.
    grad_weights = (grad_output @ value.mT).float()
    grad_scores = weights * (grad_weights - mean) / math.sqrt(query.size(3))
    of_query = grad_scores.to(key) @ key
    of_key = grad_scores.mT.to(query) @ query
    of_value = weights.mT.to(grad_output) @ grad_output
    q, k, v = (x.transpose(1, 2).contiguous() for x in (of_query, of_key, of_value))
    return q, k, v


def _scores(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    scores = query.float() @ key.float().mT / math.sqrt(query.size(3))
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, denominator: Tensor
) -> Tensor:
    return (_scores(query, key, mask) - denominator[..., None]).exp()


def _empty(like: Tensor, width: int) -> Tensor:
    """An output in which the heads of a position are adjacent: concatenated already."""
    batch, heads, length = like.shape[:3]
    return like.new_empty(batch, length, heads, width)


def _contiguous_width(x: Tensor) -> Tensor:
    """The last dimension must be contiguous; the other strides may be any."""
    return x if x.stride(3) == 1 else x.contiguous()


def _has_kernels(device: torch.device) -> bool:
    """Whether it multiplies pairs of 16-bit numbers, and Triton is installed."""
    if device.type != "cuda" or not TRITON:
        return False
    return torch.cuda.get_device_properties(device).major >= 8


_operations: list[Any] = []
_registering = Lock()


def register_operations() -> None:
    """Register both functions above as operations of torch that a compiler can trace.

    It must run before a compilation for a GPU; otherwise the graph has torch's kernel.
    It does not run at import, because torch's support for Triton takes a second to
    import.
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
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The context of `scaled_dot_product_attention`, without its weights.

    Args:
        query: (batch, heads, queries, d_k). Outside of a compiled graph it has 16 bits,
            and its width and that of the values is one of `WIDTHS`.
        key: (batch, heads, keys, d_k).
        value: (batch, heads, keys, d_v).
        mask: True where a query may attend to a key; None: everywhere.

    Paper: §3.2.1, equation (1).
    """
    # A graph may have our kernels if they are registered.
    known = _operations and _has_kernels(query.device) and fit(query, key, value)
    if torch.compiler.is_compiling() and not known:
        added = None if mask is None else _by_eights(mask, query.dtype)
        return F.scaled_dot_product_attention(query, key, value, added)
    if not _operations:
        register_operations()
    return _operations[0](query, key, value, mask)[0].transpose(1, 2)


def _by_eights(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The mask as numbers to add to scores, each row at a multiple of eight numbers.

    Torch's kernel copies any other mask, after asking whether the number of keys is a
    multiple of 8: a compiler would make one graph for each answer. Rows are never
    contiguous, because it would ask for that too.
    """
    keys = mask.size(-1)
    columns = torch.arange(keys - keys % 8 + 8, device=mask.device)
    hidden = ~mask.index_select(-1, columns.clamp(max=keys - 1))
    added = torch.zeros_like(hidden, dtype=dtype).masked_fill(hidden, -math.inf)
    return added[..., :keys]


def has_kernels_for(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether our kernels are the fastest way to compute these, without a compiler."""
    short = max(query.size(2), key.size(2)) <= MAX_SHORT
    return fit(query, key, value) and short and _has_kernels(query.device)


def fit(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether our kernels take these at all."""
    return (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and query.dtype == key.dtype == value.dtype
        and {query.size(-1), value.size(-1)} <= set(WIDTHS)
        and query.shape[:2] == key.shape[:2]
        and key.shape[:3] == value.shape[:3]
    )


def disable_cudnn_sdpa(device: torch.device) -> AbstractContextManager[Any]:
    """Have torch choose another kernel than cuDNN's for attention inside a block.

    cuDNN makes a plan for each shape, which costs more than it gains when the shapes of
    a training or of a search keep changing. Torch's own kernels need no plan.

    Args:
        device: On another device than a GPU nothing is changed.
    """
    return sdpa_kernel(_KERNELS) if device.type == "cuda" else nullcontext()

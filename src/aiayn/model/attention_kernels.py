"""The kernels of `gpu_attention`: one forward, one or two backward.

A program of the GPU takes one block of queries of one head. It reads keys and values
block by block, keeps scores and softmax in registers, and writes nothing but what the
head found, and the logarithm of the softmax's denominator, from which the backward pass
makes the weights again (Dao et al., 2022). A sentence of up to 64 tokens is one block:
then nothing has to be added up between blocks, and one kernel computes all gradients.

The kernels are written in Triton, which torch for CUDA brings along on Linux.
"""

# Neither Triton's modules nor its kernels' type are known where it is not installed.
# pyright: reportMissingImports=false, reportIndexIssue=false

import math

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rows(start, count, BLOCK: tl.constexpr):
    """Some rows of a sentence, and which of them there are."""
    rows = start + tl.arange(0, BLOCK)
    return rows, rows < count


@triton.jit
def _read(base, rows, there, stride, WIDTH: tl.constexpr):
    """Rows of a matrix; zeros where there are none."""
    columns = tl.arange(0, WIDTH)
    places = base + (rows[:, None] * stride + columns[None, :])
    return tl.load(places, mask=there[:, None], other=0.0)


@triton.jit
def _write(base, rows, there, stride, values, WIDTH: tl.constexpr):
    columns = tl.arange(0, WIDTH)
    places = base + (rows[:, None] * stride + columns[None, :])
    tl.store(places, values.to(base.dtype.element_ty), mask=there[:, None])


@triton.jit
def _scores(
    query, key, scale, mask, mask_q, mask_k, rows, columns, seen, MASKED: tl.constexpr
):  # fmt: skip
    """A block of scores times log2(e), -inf where a query may not see a key."""
    if MASKED:
        places = mask + (rows[:, None] * mask_q + columns[None, :] * mask_k)
        seen = seen & (tl.load(places, mask=seen, other=0) != 0)
    # What a product is added to: there it has the product's layout.
    hidden = tl.where(seen, 0.0, float("-inf"))
    return tl.dot(query, tl.trans(key), hidden) * (scale * 1.4426950408889634)


_LENGTHS = ["queries", "keys", "mask_b", "mask_h", "mask_q"]
"""Numbers that differ from batch to batch: no code is to be made for some of them."""


@triton.jit(do_not_specialize=_LENGTHS)
def _forward(
    q, k, v, mask, out, denominator,
    heads, queries, keys, scale,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, o_b, o_h, o_l,
    mask_b, mask_h, mask_q, mask_k,
    D_K: tl.constexpr, D_V: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    b, h = (pair // heads).to(tl.int64), pair % heads
    rows, there = _rows(tl.program_id(1) * BLOCK_Q, queries, BLOCK_Q)
    query = _read(q + b * q_b + h * q_h, rows, there, q_l, D_K)
    mask += b * mask_b + h * mask_h
    largest = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    found = tl.zeros([BLOCK_Q, D_V], tl.float32)
    for start in range(0, BLOCK_K if WHOLE else keys, BLOCK_K):
        columns, real = _rows(start, keys, BLOCK_K)
        key = _read(k + b * k_b + h * k_h, columns, real, k_l, D_K)
        value = _read(v + b * v_b + h * v_h, columns, real, v_l, D_V)
        seen = there[:, None] & real[None, :]
        scores = _scores(
            query, key, scale, mask, mask_q, mask_k, rows, columns, seen, MASKED
        )
        higher = tl.maximum(largest, tl.max(scores, 1))
        finite = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - finite[:, None])
        smaller = tl.exp2(largest - finite)
        total = total * smaller + tl.sum(weights, 1)
        found = tl.dot(weights.to(value.dtype), value, found * smaller[:, None])
        largest = higher
    some = total > 0.0  # who may see nothing gets nothing
    found = found / tl.where(some, total, 1.0)[:, None]
    _write(out + b * o_b + h * o_h, rows, there, o_l, found, D_V)
    logarithm = tl.where(some, largest + tl.log2(total), float("inf"))
    tl.store(denominator + pair * queries + rows, logarithm, mask=there)


@triton.jit
def _slopes(query, key, value, out, above, scores, logarithm):
    """Weights and dL/dscores of a block: w (g - Σ w g), g being dL/dweights."""
    weights = tl.exp2(scores - logarithm[:, None])
    mean = tl.sum(out.to(tl.float32) * above.to(tl.float32), 1)
    return weights, weights * (tl.dot(above, tl.trans(value)) - mean[:, None])


@triton.jit(do_not_specialize=_LENGTHS)
def _backward_of_queries(
    q, k, v, mask, out, denominator, above, q_gradient,
    heads, queries, keys, scale,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, o_b, o_h, o_l, a_b, a_h, a_l,
    g_b, g_h, g_l, mask_b, mask_h, mask_q, mask_k,
    D_K: tl.constexpr, D_V: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    b, h = (pair // heads).to(tl.int64), pair % heads
    rows, there = _rows(tl.program_id(1) * BLOCK_Q, queries, BLOCK_Q)
    query = _read(q + b * q_b + h * q_h, rows, there, q_l, D_K)
    found = _read(out + b * o_b + h * o_h, rows, there, o_l, D_V)
    slope = _read(above + b * a_b + h * a_h, rows, there, a_l, D_V)
    logarithm = tl.load(
        denominator + pair * queries + rows, mask=there, other=float("inf")
    )
    mask += b * mask_b + h * mask_h
    gradient = tl.zeros([BLOCK_Q, D_K], tl.float32)
    for start in range(0, keys, BLOCK_K):
        columns, real = _rows(start, keys, BLOCK_K)
        key = _read(k + b * k_b + h * k_h, columns, real, k_l, D_K)
        value = _read(v + b * v_b + h * v_h, columns, real, v_l, D_V)
        seen = there[:, None] & real[None, :]
        scores = _scores(
            query, key, scale, mask, mask_q, mask_k, rows, columns, seen, MASKED
        )
        _, below = _slopes(query, key, value, found, slope, scores, logarithm)
        gradient = tl.dot(below.to(key.dtype), key, gradient)
    _write(q_gradient + b * g_b + h * g_h, rows, there, g_l, gradient * scale, D_K)


@triton.jit(do_not_specialize=_LENGTHS)
def _backward_of_keys(
    q, k, v, mask, out, denominator, above, q_gradient, k_gradient, v_gradient,
    heads, queries, keys, scale,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, o_b, o_h, o_l, a_b, a_h, a_l,
    f_b, f_h, f_l, g_b, g_h, g_l, e_b, e_h, e_l, mask_b, mask_h, mask_q, mask_k,
    D_K: tl.constexpr, D_V: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    b, h = (pair // heads).to(tl.int64), pair % heads
    columns, real = _rows(tl.program_id(1) * BLOCK_K, keys, BLOCK_K)
    key = _read(k + b * k_b + h * k_h, columns, real, k_l, D_K)
    value = _read(v + b * v_b + h * v_h, columns, real, v_l, D_V)
    mask += b * mask_b + h * mask_h
    of_key = tl.zeros([BLOCK_K, D_K], tl.float32)
    of_value = tl.zeros([BLOCK_K, D_V], tl.float32)
    for start in range(0, BLOCK_Q if WHOLE else queries, BLOCK_Q):
        rows, there = _rows(start, queries, BLOCK_Q)
        query = _read(q + b * q_b + h * q_h, rows, there, q_l, D_K)
        found = _read(out + b * o_b + h * o_h, rows, there, o_l, D_V)
        slope = _read(above + b * a_b + h * a_h, rows, there, a_l, D_V)
        logarithm = tl.load(
            denominator + pair * queries + rows, mask=there, other=float("inf")
        )
        seen = there[:, None] & real[None, :]
        scores = _scores(
            query, key, scale, mask, mask_q, mask_k, rows, columns, seen, MASKED
        )
        weights, below = _slopes(query, key, value, found, slope, scores, logarithm)
        of_value = tl.dot(tl.trans(weights.to(slope.dtype)), slope, of_value)
        below = below.to(query.dtype)
        of_key = tl.dot(tl.trans(below), query, of_key)
        if WHOLE:  # one block holds the sentence: queries see no other keys
            of_query = tl.dot(below, key) * scale
            _write(q_gradient + b * f_b + h * f_h, rows, there, f_l, of_query, D_K)
    _write(k_gradient + b * g_b + h * g_h, columns, real, g_l, of_key * scale, D_K)
    _write(v_gradient + b * e_b + h * e_h, columns, real, e_l, of_value, D_V)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    context: Tensor, denominator: Tensor,
) -> None:  # fmt: skip
    """Write the context, and the logarithm of each softmax's denominator.

    Args:
        query: (batch, heads, queries, d_k); here as elsewhere, a head's own numbers
            lie side by side.
        key: (batch, heads, keys, d_k).
        value: (batch, heads, keys, d_v).
        mask: Of True and False; broadcasts against (batch, heads, queries, keys).
        context: To be written, (batch, heads, queries, d_v).
        denominator: To be written, (batch, heads, queries), in 32 bits.
    """
    call = _Call(query, key, value, mask)
    _forward[call.pairs, call.q_blocks](
        query, key, value, call.mask, context, denominator, *call.sizes,
        *_strides(query, key, value, context), *call.mask.stride(), **call.options,
    )  # fmt: skip


def attend_backward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    context: Tensor, denominator: Tensor, above: Tensor,
    gradients: tuple[Tensor, Tensor, Tensor],
) -> None:  # fmt: skip
    """Write the gradients of queries, keys and values, given the context's."""
    call = _Call(query, key, value, mask)
    given = query, key, value, call.mask, context, denominator, above
    strides = _strides(query, key, value, context, above)
    if not call.options["WHOLE"]:
        _backward_of_queries[call.pairs, call.q_blocks](
            *given, gradients[0], *call.sizes, *strides, *_strides(gradients[0]),
            *call.mask.stride(), **call.options,
        )  # fmt: skip
    _backward_of_keys[call.pairs, call.k_blocks](
        *given, *gradients, *call.sizes, *strides, *_strides(*gradients),
        *call.mask.stride(), **call.options,
    )  # fmt: skip


class _Call:
    """What all kernels are told of an attention: its sizes and its blocks."""

    def __init__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> None:
        (batch, heads, queries, d_k), keys = query.shape, key.size(2)
        self.pairs = batch * heads
        self.sizes = heads, queries, keys, 1 / math.sqrt(d_k)
        # For every score, as bytes, without a copy; none is read if there is no mask.
        seen = query.new_empty((), dtype=torch.bool) if mask is None else mask
        self.mask = seen.view(torch.uint8).expand(batch, heads, queries, keys)
        longest = max(queries, keys)
        block = 16 if longest <= 16 else 32 if longest <= 32 else 64
        self.q_blocks, self.k_blocks = -(-queries // block), max(1, -(-keys // block))
        self.options = {
            "D_K": d_k,
            "D_V": value.size(3),
            "MASKED": mask is not None,
            "BLOCK_Q": block,
            "BLOCK_K": block,
            "WHOLE": longest <= block,
            "num_warps": block // 16,
            "num_stages": 1 if longest <= block else 2,
        }


def _strides(*tensors: Tensor) -> list[int]:
    return [stride for tensor in tensors for stride in tensor.stride()[:3]]

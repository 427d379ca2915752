"""The kernels of `gpu_attention`: one forward, one or two backward.

A program of the GPU takes one block of queries of one head. It reads keys and values
block by block, and keeps scores and softmax in registers. It writes the context and the
logarithm of the softmax's denominator only, from which the backward pass computes the
weights again (Dao et al., 2022). A sentence of up to 64 tokens is one block: then there
are no sums over blocks, and one kernel computes all gradients.

The kernels are written in Triton, which torch for CUDA brings along on Linux.
"""

# Neither Triton's modules nor its kernels' type are known where it is not installed.
# pyright: reportMissingImports=false, reportIndexIssue=false

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.library import wrap_triton


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
    query, key, mask, m_q, m_k, rows, columns, seen,
    SCALE: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """A block of scores times log2(e), -inf where a query may not see a key."""
    if MASKED:
        # As bytes: truths would go through shared memory in 32 bits each.
        mask = mask.to(tl.pointer_type(tl.uint8), bitcast=True)
        places = mask + (rows[:, None] * m_q + columns[None, :] * m_k)
        seen = seen & (tl.load(places, mask=seen, other=0) != 0)
    # What a product is added to: there it has the product's layout.
    hidden = tl.where(seen, 0.0, float("-inf"))
    return tl.dot(query, tl.trans(key), hidden) * (SCALE * 1.4426950408889634)


_LENGTHS = ["queries", "keys", "m_b", "m_h", "m_q"]
"""Sizes that differ from batch to batch: no code is specialised on them."""


@triton.jit(do_not_specialize=_LENGTHS)
def _forward(
    q, k, v, mask, out, denominator,
    heads, queries, keys,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, o_b, o_h, o_l,
    m_b, m_h, m_q, m_k,
    D_K: tl.constexpr, D_V: tl.constexpr, SCALE: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    b, h = (pair // heads).to(tl.int64), pair % heads
    rows, there = _rows(tl.program_id(1) * BLOCK_Q, queries, BLOCK_Q)
    query = _read(q + b * q_b + h * q_h, rows, there, q_l, D_K)
    mask += b * m_b + h * m_h
    largest = tl.full([BLOCK_Q], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_Q], tl.float32)
    found = tl.zeros([BLOCK_Q, D_V], tl.float32)
    for start in range(0, BLOCK_K if WHOLE else keys, BLOCK_K):
        cols, real = _rows(start, keys, BLOCK_K)
        key = _read(k + b * k_b + h * k_h, cols, real, k_l, D_K)
        value = _read(v + b * v_b + h * v_h, cols, real, v_l, D_V)
        seen = there[:, None] & real[None, :]
        scores = _scores(query, key, mask, m_q, m_k, rows, cols, seen, SCALE, MASKED)
        higher = tl.maximum(largest, tl.max(scores, 1))
        finite = tl.where(higher == float("-inf"), 0.0, higher)
        weights = tl.exp2(scores - finite[:, None])
        smaller = tl.exp2(largest - finite)
        total = total * smaller + tl.sum(weights, 1)
        found = tl.dot(weights.to(value.dtype), value, found * smaller[:, None])
        largest = higher
    some = total > 0.0  # a fully masked row returns zeros
    found = found / tl.where(some, total, 1.0)[:, None]
    _write(out + b * o_b + h * o_h, rows, there, o_l, found, D_V)
    logs = tl.where(some, largest + tl.log2(total), float("inf"))
    tl.store(denominator + pair * queries + rows, logs, mask=there)


@triton.jit
def _dscores(query, key, value, out, grad_output, scores, logs):
    """Weights and dL/dscores of a block: w (g - Σ w g), g being dL/dweights."""
    weights = tl.exp2(scores - logs[:, None])
    mean = tl.sum(out.to(tl.float32) * grad_output.to(tl.float32), 1)
    return weights, weights * (tl.dot(grad_output, tl.trans(value)) - mean[:, None])


@triton.jit(do_not_specialize=_LENGTHS)
def _backward_of_queries(
    q, k, v, mask, out, denominator, grad_output, q_gradient,
    heads, queries, keys,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, o_b, o_h, o_l, a_b, a_h, a_l,
    g_b, g_h, g_l, m_b, m_h, m_q, m_k,
    D_K: tl.constexpr, D_V: tl.constexpr, SCALE: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    b, h = (pair // heads).to(tl.int64), pair % heads
    rows, there = _rows(tl.program_id(1) * BLOCK_Q, queries, BLOCK_Q)
    query = _read(q + b * q_b + h * q_h, rows, there, q_l, D_K)
    found = _read(out + b * o_b + h * o_h, rows, there, o_l, D_V)
    grad_rows = _read(grad_output + b * a_b + h * a_h, rows, there, a_l, D_V)
    logs = tl.load(denominator + pair * queries + rows, there, float("inf"))
    mask += b * m_b + h * m_h
    gradient = tl.zeros([BLOCK_Q, D_K], tl.float32)
    for start in range(0, keys, BLOCK_K):
        cols, real = _rows(start, keys, BLOCK_K)
        key = _read(k + b * k_b + h * k_h, cols, real, k_l, D_K)
        value = _read(v + b * v_b + h * v_h, cols, real, v_l, D_V)
        seen = there[:, None] & real[None, :]
        scores = _scores(query, key, mask, m_q, m_k, rows, cols, seen, SCALE, MASKED)
        _, d_scores = _dscores(query, key, value, found, grad_rows, scores, logs)
        gradient = tl.dot(d_scores.to(key.dtype), key, gradient)
    _write(q_gradient + b * g_b + h * g_h, rows, there, g_l, gradient * SCALE, D_K)


@triton.jit(do_not_specialize=_LENGTHS)
def _backward_of_keys(
    q, k, v, mask, out, denominator, grad_output, q_gradient, k_gradient, v_gradient,
    heads, queries, keys,
    q_b, q_h, q_l, k_b, k_h, k_l, v_b, v_h, v_l, o_b, o_h, o_l, a_b, a_h, a_l,
    f_b, f_h, f_l, g_b, g_h, g_l, e_b, e_h, e_l, m_b, m_h, m_q, m_k,
    D_K: tl.constexpr, D_V: tl.constexpr, SCALE: tl.constexpr, MASKED: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    pair = tl.program_id(0)
    b, h = (pair // heads).to(tl.int64), pair % heads
    cols, real = _rows(tl.program_id(1) * BLOCK_K, keys, BLOCK_K)
    key = _read(k + b * k_b + h * k_h, cols, real, k_l, D_K)
    value = _read(v + b * v_b + h * v_h, cols, real, v_l, D_V)
    mask += b * m_b + h * m_h
    of_key = tl.zeros([BLOCK_K, D_K], tl.float32)
    of_value = tl.zeros([BLOCK_K, D_V], tl.float32)
    for start in range(0, BLOCK_Q if WHOLE else queries, BLOCK_Q):
        rows, there = _rows(start, queries, BLOCK_Q)
        query = _read(q + b * q_b + h * q_h, rows, there, q_l, D_K)
        found = _read(out + b * o_b + h * o_h, rows, there, o_l, D_V)
        grad_rows = _read(grad_output + b * a_b + h * a_h, rows, there, a_l, D_V)
        logs = tl.load(denominator + pair * queries + rows, there, float("inf"))
        seen = there[:, None] & real[None, :]
        scores = _scores(query, key, mask, m_q, m_k, rows, cols, seen, SCALE, MASKED)
        weights, d_scores = _dscores(query, key, value, found, grad_rows, scores, logs)
        of_value = tl.dot(tl.trans(weights.to(grad_rows.dtype)), grad_rows, of_value)
        d_scores = d_scores.to(query.dtype)
        of_key = tl.dot(tl.trans(d_scores), query, of_key)
        if WHOLE:  # one block holds the sentence: queries see no other keys
            of_query = tl.dot(d_scores, key) * SCALE
            _write(q_gradient + b * f_b + h * f_h, rows, there, f_l, of_query, D_K)
    _write(k_gradient + b * g_b + h * g_h, cols, real, g_l, of_key * SCALE, D_K)
    _write(v_gradient + b * e_b + h * e_h, cols, real, e_l, of_value, D_V)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    context: Tensor, denominator: Tensor,
) -> None:  # fmt: skip
    """Write the context, and the logarithm of each softmax's denominator.

    Args:
        query: (batch, heads, queries, d_k); here as elsewhere, the last dimension is
            contiguous.
        key: (batch, heads, keys, d_k).
        value: (batch, heads, keys, d_v).
        mask: Boolean; it broadcasts to (batch, heads, queries, keys).
        context: To be written, (batch, queries, heads, d_v).
        denominator: To be written, (batch, heads, queries), in 32 bits.
    """
    seen, mask_strides = _every_score(query, key, mask)
    strides = *_strides(query, key, value), *_strides_of_heads(context), *mask_strides
    sizes = query.size(1), query.size(2), key.size(2)
    for launch in _launches(query, key, value, mask):
        _launched(_forward)[launch.pairs, launch.blocks_of(query)](
            query, key, value, seen, context, denominator,
            *sizes, *strides, **launch.options,
        )  # fmt: skip


def attend_backward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None,
    context: Tensor, denominator: Tensor, grad_output: Tensor,
    gradients: tuple[Tensor, Tensor, Tensor],
) -> None:  # fmt: skip
    """Write the gradients of queries, keys and values, given the context's.

    Args:
        query: As for `attend`.
        key: As for `attend`.
        value: As for `attend`.
        mask: As for `attend`.
        context: What `attend` wrote.
        denominator: Likewise.
        grad_output: The context's gradient, (batch, queries, heads, d_v).
        gradients: To be written, each (batch, length, heads, width).
    """
    seen, mask_strides = _every_score(query, key, mask)
    given = query, key, value, seen, context, denominator, grad_output
    strides = *_strides(query, key, value), *_strides_of_heads(context, grad_output)
    sizes = query.size(1), query.size(2), key.size(2)
    for launch in _launches(query, key, value, mask):
        if not launch.options["WHOLE"]:
            _launched(_backward_of_queries)[launch.pairs, launch.blocks_of(query)](
                *given, gradients[0], *sizes, *strides,
                *_strides_of_heads(gradients[0]), *mask_strides, **launch.options,
            )  # fmt: skip
        _launched(_backward_of_keys)[launch.pairs, launch.blocks_of(key)](
            *given, *gradients, *sizes, *strides,
            *_strides_of_heads(*gradients), *mask_strides, **launch.options,
        )  # fmt: skip


@dataclass(frozen=True)
class _Launch:
    """Kernels whose blocks are of one size."""

    block: int
    pairs: int
    """Of a sentence and a head; 0 if these lengths need another size of block."""
    options: dict[str, Any]

    def blocks_of(self, x: Tensor) -> int:
        """How many a sentence needs; without keys, one that writes zeros."""
        return -(-x.size(2) // self.block) or 1


def _launches(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Iterator[_Launch]:
    """The launch with the smallest block that holds a sentence, or with the largest.

    A compiled graph serves all lengths, so it has a launch for each size of a block, of
    which all but one turn out to be empty when it runs.
    """
    pairs = query.size(0) * query.size(1)
    longest: Any = torch.sym_max(query.size(2), key.size(2))
    options = {
        "D_K": query.size(3),
        "D_V": value.size(3),
        "SCALE": 1 / math.sqrt(query.size(3)),
        "MASKED": mask is not None,
    }
    for block, shorter, most in _BLOCKS:
        here = _fits(longest, shorter, most)
        if type(here) is int and not here:
            continue
        blocks = {
            "BLOCK_Q": block,
            "BLOCK_K": block,
            "WHOLE": most is not None,
            "num_warps": block // 16,
            "num_stages": 1 if most else 2,
        }
        yield _Launch(block, pairs * here, options | blocks)


_BLOCKS = ((16, 0, 16), (32, 16, 32), (64, 32, 64), (64, 64, None))
"""Sizes of blocks, and the lengths they serve: longer than, and at most."""


def _fits(longest: Any, shorter: int, most: int | None) -> Any:
    """1 if shorter < longest <= most, else 0: as arithmetic, for a compiler."""
    longer = torch.sym_min(1, torch.sym_max(0, longest - shorter))
    if most is None:
        return longer
    return longer * torch.sym_min(1, torch.sym_max(0, most + 1 - longest))


def _every_score(
    query: Tensor, key: Tensor, mask: Tensor | None
) -> tuple[Tensor, tuple[int, ...]]:
    """The mask, and its strides after broadcasting to all scores."""
    if mask is None:
        return query, (0, 0, 0, 0)  # never read
    return mask, mask.expand(*query.shape[:3], key.size(2)).stride()


def _launched(kernel: Any) -> Any:
    """The kernel, wrapped so that a compiler can trace it."""
    return wrap_triton(kernel) if isinstance(kernel, triton.JITFunction) else kernel


def _strides(*tensors: Tensor) -> list[int]:
    """The strides of batch, heads and positions."""
    return [stride for tensor in tensors for stride in tensor.stride()[:3]]


def _strides_of_heads(*tensors: Tensor) -> list[int]:
    """The same for tensors (batch, length, heads, width)."""
    return _strides(*(tensor.transpose(1, 2) for tensor in tensors))

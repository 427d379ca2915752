"""Which way of computing equation (1) is the fastest, for each batch.

On a CPU it is `short_attention` for short sentences and torch's fused kernel for long
ones. On a GPU it is our own kernels (`gpu_attention`) for short sentences, and torch's
for long ones. Where weights are asked for, or those of a short sentence are dropped on
a CPU, it is the formula.
"""

import torch
from torch.nn import functional as F

from aiayn.fast.conditions import is_transformed
from aiayn.fast.gpu_attention import disable_cudnn_sdpa, gpu_attention, has_kernels_for
from aiayn.fast.short_attention import short_attention
from aiayn.model.attention import MultiHeadAttention
from aiayn.model.masks import check_mask
from aiayn.model.rotary import RotaryAttention


class FastMultiHeadAttention(MultiHeadAttention):
    """`MultiHeadAttention`, with the fastest kernel for its sizes."""

    def attention(self, queries, keys, values, mask=None, need_weights=False):
        """The context of equation (1), and the weights or None."""
        dropping = self.dropout.training and self.dropout.p > 0
        compiling = torch.compiler.is_compiling()
        short = keys.device.type == "cpu" and keys.size(2) <= max_short(keys.dtype)
        # A compiler makes its own kernels of the formula, except on a GPU.
        aside = (dropping or not keys.is_cuda) if compiling else is_transformed()
        if need_weights or aside or (short and dropping):
            return super().attention(queries, keys, values, mask, need_weights)
        check_mask(mask, torch.Size([*queries.shape[:3], keys.size(2)]))
        if not dropping and (compiling or has_kernels_for(queries, keys, values)):
            return gpu_attention(queries, keys, values, mask), None
        if short:
            return short_attention(queries, keys, values, mask), None
        given = queries, keys, values, mask, self.dropout.p if dropping else 0.0
        with disable_cudnn_sdpa(keys.device):
            context = F.scaled_dot_product_attention(*given)
        return context, None  # (batch, heads, queries, d_v)


def max_short(dtype: torch.dtype) -> int:
    """Keys up to which torch's fused kernel is the slower one on this CPU.

    In 32 bits on a processor with vectors of 256 bits (Zen 3) both were level at 64
    keys, and at 128 it took three quarters of the time, forward and backward.
    """
    if torch.compiler.is_compiling() or dtype != torch.float32:
        return 128
    return 64 if torch.backends.cpu.get_cpu_capability() == "AVX2" else 128


class FastRotaryAttention(RotaryAttention, FastMultiHeadAttention):
    """`RotaryAttention`, with the fastest kernel for its sizes."""

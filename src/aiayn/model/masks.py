"""§3.1 and §3.2.3: which query may attend to which key.

A mask is a boolean tensor, True where a query may attend to a key, as in
`torch.nn.functional.scaled_dot_product_attention`. Masks combine with ``&`` and
broadcast against ``(batch, heads, queries, keys)``. One of two dimensions is always
(queries, keys), never (batch, keys), also where the sizes are equal.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from aiayn.errors import InputError
from aiayn.model.validation import explain_mask, explain_tokens

Mask = Bool[Tensor, "*_batch_heads _queries _keys"]
"""The type of a mask: (queries, keys), or (batch, heads, queries, keys)."""


def causal_mask(
    length: int, device: torch.device | str | None = None
) -> Bool[Tensor, "length length"]:
    """Position i may attend to positions 0 … i and to none after them.

    $$M_{ij} = [j ≤ i]$$

    Args:
        length: Number of positions.
        device: Where to make the mask.

    Paper: §3.1, 'predictions for position i can depend only on the known outputs at
    positions less than i': position i of the decoder's input *is* output i - 1.

    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def padding_mask(
    tokens: Int[Tensor, "batch keys"], pad_id: int
) -> Bool[Tensor, "batch 1 1 keys"]:
    r"""No query may attend to padding.

    $$M_{ij} = [x_j ≠ \mathrm{pad}]$$

    Args:
        tokens: The sequence that is attended to.
        pad_id: The token that fills short rows.

    Raises:
        InputError: tokens is no batch of rows.

    Not in the paper, which does not speak of padding.

    >>> padding_mask(torch.tensor([[5, 6, 0], [7, 0, 0]]), pad_id=0)[:, 0, 0].int()
    tensor([[1, 1, 0],
            [1, 0, 0]], dtype=torch.int32)
    """
    if tokens.dim() != 2:
        raise InputError(explain_tokens(tokens, "tokens"))
    return (tokens != pad_id)[:, None, None, :]


def check_mask(mask: Tensor | None, shape: torch.Size) -> None:
    """Refuse a mask that is not boolean, or does not broadcast to the scores' shape."""
    if mask is None:
        return
    boolean = isinstance(mask, Tensor) and mask.dtype == torch.bool
    if boolean and mask.dim() in (2, len(shape)):
        pairs = zip(reversed(mask.shape), reversed(shape), strict=False)
        if all(size in (1, scores) for size, scores in pairs):
            return
    raise InputError(explain_mask(mask, shape))

"""§3.2.1: additive attention (Bahdanau et al., 2015), with which the paper compares."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from aiayn.errors import InputError
from aiayn.model.attention import softmax_over_keys
from aiayn.model.validation import check_attention


def additive_attention(
    query: Float[Tensor, "*#batch queries d_k"],
    key: Float[Tensor, "*#batch keys d_k"],
    value: Float[Tensor, "*#batch keys d_v"],
    score_weight: Float[Tensor, " d_k"],
    mask: Bool[Tensor, "*#batch #queries #keys"] | None = None,
) -> tuple[Float[Tensor, "*#batch queries d_v"], Float[Tensor, "*#batch queries keys"]]:
    r"""Attention whose scores come from a network with one hidden layer.

    $$\mathrm{score}(q, k) = v^\top \tanh(q + k)$$

    As in equation (1), query and key come projected: in Bahdanau et al. they are
    $W_a s$ and $U_a h$, of a decoder state s and an annotation h. The second does not
    change while the decoder writes, so whoever calls can keep it.

    Args:
        query: What each position looks for.
        key: What each position answers to.
        value: What each position has to give: the annotation itself.
        score_weight: v, which sums the hidden units up.
        mask: True where a query may attend to a key, of as many dimensions as the
            scores, or of two, which are (queries, keys) and never (batch, keys), also
            where the sizes are equal; None: everywhere.

    Raises:
        InputError: Their shapes do not fit together, or the mask is not boolean.

    Returns:
        Context and weights, as from `scaled_dot_product_attention`.

    Paper: §3.2.1; Bahdanau et al. (2015), appendix A.1.2.

    A query and two keys of one hidden unit; tanh(0) is 0, and tanh of much is 1:

    >>> query, key = torch.tensor([[0.0]]), torch.tensor([[0.0], [20.0]])
    >>> value = torch.tensor([[1.0], [2.0]])
    >>> _, weights = additive_attention(query, key, value, torch.ones(1))
    >>> weights.round(decimals=4)  # the softmax of 0 and 1
    tensor([[0.2689, 0.7311]])
    """
    check_attention(query, key, value)
    if score_weight.shape != query.shape[-1:]:
        raise InputError(
            f"score_weight must be of shape ({query.size(-1)},), one number for each "
            f"entry of a query, not {tuple(score_weight.shape)}."
        )
    hidden = torch.tanh(query[..., :, None, :] + key[..., None, :, :])
    # (..., queries, keys, d_k)
    scores = hidden @ score_weight  # (..., queries, keys)
    weights = softmax_over_keys(scores, mask)  # (..., queries, keys)
    return weights @ value, weights  # (..., queries, d_v)

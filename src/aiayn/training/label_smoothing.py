"""§5.4: cross-entropy with label smoothing.

The paper gives ε = 0.1 and no formula. Here ε is spread evenly over the whole
vocabulary, as Szegedy et al. (2016) define it and as torch does. tensor2tensor spreads
it over all tokens but the right one.
"""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def label_smoothed_cross_entropy(
    logits: Float[Tensor, "... vocab"],
    target: Int[Tensor, "..."],
    smoothing: float = 0.1,
    pad_id: int = 0,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, ""]:
    r"""Cross-entropy against a target that gives the right token 1 - ε (and ε / V).

    $$q(t) = (1 - ε)\, [t = y] + ε / V, \quad L = -\sum_t q(t) \log p(t)$$

    Args:
        logits: Scores of every token of the vocabulary.
        target: The right tokens.
        smoothing: The paper's ε, 0.1 there.
        pad_id: Positions whose target is this do not count.
        reduction: 'mean' over the positions that count (NaN if none does), or their
            'sum'.

    Returns:
        The loss in nats. Its minimum is the entropy of q, not zero.

    Paper: §5.4; Szegedy et al. (2016), §7.

    For a uniform prediction the loss is ln V, whatever the smoothing:

    >>> logits, target = torch.zeros(1, 3, 8), torch.tensor([[5, 2, 0]])
    >>> label_smoothed_cross_entropy(logits, target)  # the padding does not count
    tensor(2.0794)
    """
    return F.cross_entropy(
        logits.flatten(0, -2),
        target.flatten().long(),  # torch takes no other labels, the model does
        label_smoothing=smoothing,
        ignore_index=pad_id,
        reduction=reduction,
    )

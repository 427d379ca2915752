"""§5.4: cross-entropy with label smoothing.

The paper gives ε = 0.1 and no formula. Here ε is spread evenly over the
whole vocabulary, as Szegedy et al. (2016) define it and as torch does; tensor2tensor
spreads it over all tokens but the right one.
"""

import math
from typing import Any, Literal

from jaxtyping import Float, Int, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.model import Segments, restart, shift_right
from aiayn.model.forms import is_plain, is_transformed
from aiayn.training.chunked_loss import chunked_cross_entropy


def label_smoothed_cross_entropy(
    logits: Float[Tensor, "... vocab"],
    target: Int[Tensor, "..."],
    smoothing: float = 0.1,
    pad_id: int = 0,
    reduction: Literal["mean", "sum"] = "mean",
) -> Float[Tensor, ""]:
    r"""Cross-entropy against a target that is 1 - ε sure of the right token.

    $$q(t) = (1 - ε)\, [t = y] + ε / V, \quad L = -\sum_t q(t) \log p(t)$$

    Args:
        logits: Scores of every token of the vocabulary.
        target: The right tokens.
        smoothing: The paper's ε, 0.1 there.
        pad_id: Positions whose target is this do not count.
        reduction: 'mean' over the positions that count (NaN if none does), or their
            'sum'.

    Returns:
        The loss in nats. Its least possible value is the entropy of q, not zero.

    Paper: §5.4; Szegedy et al. (2016), §7.

    A model that knows nothing loses ln V, whatever the smoothing:

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


class TrainingObjective(nn.Module):
    """The number that training makes small, as one module from batch to loss.

    A module, so that `DistributedDataParallel` and `torch.compile` see all of it. Only
    positions that are not padding are projected onto the vocabulary, the most costly
    product of a small model (compiled, or on a GPU that is not told where they are, all
    are: without a pause).

    Args:
        model: What learns.
        smoothing: The paper's ε.
        bos_id: What the decoder reads before the first token.
        end_id: What ends a sentence, if rows hold several of them; None: they do not.

    Paper: §5.4.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> objective = TrainingObjective(model, smoothing=0.1, bos_id=1)
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 2]])
    >>> smoothed, plain = objective(source, target)
    >>> smoothed.requires_grad, plain.requires_grad  # one to learn by, one to report
    (True, False)
    """

    def __init__(
        self,
        model: nn.Module,
        smoothing: float,
        bos_id: int,
        end_id: int | None = None,
    ) -> None:
        super().__init__()
        self.model: Any = model
        self.smoothing = smoothing
        self.bos_id = bos_id
        self.end_id = end_id

    def forward(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
        places: Int[Tensor, " tokens"] | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """Sums over target tokens, in nats: the smoothed loss and the plain one.

        Args:
            source: Padded token ids, on the model's device.
            target: Likewise, as labels: not shifted.
            places: What `real_places` finds in the target, on the same device. None:
                a CPU looks for them; a compiler, `torch.func`, or a GPU, which would
                be waited for, projects every position and leaves padding out of the
                sums.
        """
        states = self._states(source, target)
        pad_id = self.model.config.pad_id
        if places is None:
            if is_transformed() or not target.is_cpu:
                return self._plain(states, target, pad_id)
            places = real_places(target, pad_id)
        states = states.flatten(0, 1).index_select(0, places)  # (tokens, d_model)
        labels = target.flatten().index_select(0, places)  # (tokens,)
        if is_plain():
            return self._plain(states, labels)
        return chunked_cross_entropy(
            states, self.model.output_weight, labels, self.smoothing
        )

    def _states(self, source: Tensor, target: Tensor) -> Tensor:
        shifted = shift_right(target, self.bos_id)
        if self.end_id is None:
            return self.model.states(source, shifted)
        segments = Segments.of(source, target, self.end_id)
        shifted = restart(shifted, segments.target, self.bos_id)
        return self.model.states(source, shifted, segments)

    def _plain(
        self, states: Tensor, target: Tensor, pad_id: int = -1
    ) -> tuple[Tensor, Tensor]:
        """The same with all logits in memory; every position but padding counts."""
        logits = self.model.project(states)
        smoothed, plain = (
            label_smoothed_cross_entropy(logits, target, smoothing, pad_id, "sum")
            for smoothing in (self.smoothing, 0.0)
        )
        return smoothed, plain.detach()


def real_places(
    target: Int[Tensor, "batch length"], pad_id: int
) -> Int64[Tensor, " tokens"]:
    """Where a batch's tokens stand that are not padding, counted row after row.

    Args:
        target: Token ids.
        pad_id: What fills short rows.

    >>> real_places(torch.tensor([[8, 2, 0], [9, 8, 2]]), pad_id=0)
    tensor([0, 1, 3, 4, 5])
    """
    return (target != pad_id).flatten().nonzero()[:, 0]


def smoothing_floor(vocab_size: int, smoothing: float = 0.1) -> float:
    r"""The least that a smoothed loss can be: the entropy of its target, in nats.

    $$H(q) = -\sum_t q(t) \log q(t), \quad q(t) = (1 - ε)\, [t = y] + ε / V$$

    Args:
        vocab_size: V.
        smoothing: The paper's ε.

    Paper: §5.4, which does not speak of it.

    >>> round(smoothing_floor(37_000), 3)
    1.377
    """
    if smoothing == 0:
        return 0.0
    wrong = smoothing / vocab_size
    right = 1 - smoothing + wrong
    return -right * math.log(right) - (vocab_size - 1) * wrong * math.log(wrong)

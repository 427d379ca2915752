"""§5.4: the training loss of a batch, from token ids to two sums."""

from typing import Any

from jaxtyping import Float, Int, Int64
from torch import Tensor, nn

from aiayn.data import Batch
from aiayn.training.label_smoothing import label_smoothed_cross_entropy


class Criterion(nn.Module):
    """The training loss of a batch, from token ids to two sums in nats.

    It is a module, so that `DistributedDataParallel` and `torch.compile` see all of it.

    Args:
        model: A `Transformer`, or a model with the same `decoder_hidden`, `logits` and
            `output_weight`. The accelerated loss multiplies by that matrix itself, so a
            model with other logits needs ``fast=False``.
        smoothing: The paper's ε.
        bos_id: What the decoder reads before the first token.
        packed: Whether rows hold several sentences (`aiayn.data.pack_pairs`).

    Paper: §5.4.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> criterion = Criterion(model, smoothing=0.1, bos_id=1)
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 2]])
    >>> smoothed, plain = criterion(source, target)
    >>> smoothed.requires_grad, plain.requires_grad  # one to minimise, one to report
    (True, False)
    """

    def __init__(
        self, model: Any, smoothing: float, bos_id: int, packed: bool = False
    ) -> None:
        super().__init__()
        self.model: Any = model
        self.smoothing = smoothing
        self.bos_id = bos_id
        self.packed = packed
        self.pad_id: int = model.config.pad_id

    def forward(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
        indices: Int[Tensor, " tokens"] | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """The sums of the smoothed and of the plain loss over all target tokens.

        Args:
            source: Padded token ids, on the model's device.
            target: Likewise, as labels: not shifted.
            indices: What `non_pad_indices` finds in the target. With them, only these
                positions are projected onto the vocabulary, the most expensive product
                of a small model. Without, all are, and padding is left out of the sums.
        """
        batch = Batch(source, target, self.pad_id, self.packed)
        hidden_states = self.model.decoder_hidden(
            source,
            batch.decoder_input(self.bos_id),
            source_mask=batch.source_mask,
            target_mask=batch.target_mask,
            memory_mask=batch.memory_mask,
            source_positions=batch.source_positions,
            target_positions=batch.target_positions,
        )  # (batch, target_length, d_model)
        if indices is None:
            return self.loss(hidden_states, target)
        return self.loss(*self.select(hidden_states, target, indices))

    def loss(
        self, hidden_states: Tensor, labels: Tensor
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """The two sums, given the decoder's hidden states."""
        logits = self.model.logits(hidden_states)
        smoothed, plain = (
            label_smoothed_cross_entropy(logits, labels, smoothing, self.pad_id, "sum")
            for smoothing in (self.smoothing, 0.0)
        )
        return smoothed, plain.detach()

    @staticmethod
    def select(
        hidden_states: Tensor, labels: Tensor, indices: Tensor
    ) -> tuple[Float[Tensor, "tokens d_model"], Int[Tensor, " tokens"]]:
        """The hidden states and labels of some positions, counted row after row."""
        hidden_states = hidden_states.flatten(0, 1).index_select(0, indices)
        return hidden_states, labels.flatten().index_select(0, indices)


def non_pad_indices(
    target: Int[Tensor, "batch length"], pad_id: int
) -> Int64[Tensor, " tokens"]:
    """The positions of a batch that are not padding, counted row after row.

    Args:
        target: Token ids.
        pad_id: What fills short rows.

    >>> non_pad_indices(torch.tensor([[8, 2, 0], [9, 8, 2]]), pad_id=0)
    tensor([0, 1, 3, 4, 5])
    """
    return (target != pad_id).flatten().nonzero()[:, 0]

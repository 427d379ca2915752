"""§3.1: greedy search: at each step the most probable token, until the end token.

The paper reports beam search only; greedy search is a beam of one.
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from aiayn.inference.hypothesis import (
    Hypothesis,
    Searchable,
    check_ends,
    evaluating,
    force_end,
    moved_to,
    next_log_probs,
    output_limits,
    refuse_nan,
)


def greedy_search(
    model: Searchable,
    source: Int[Tensor, "sentences source_length"],
    *,
    bos_id: int,
    eos_id: int,
    extra_length: int = 50,
    max_length: int | None = None,
) -> list[Hypothesis]:
    r"""Write an output for each sentence, always taking the most probable token.

    $$y_t = \mathrm{argmax}_y\, p(y \mid y_1, …, y_{t-1}, X)$$

    An output that reaches its limit is ended there. A sentence whose output has ended
    leaves the batch.

    Args:
        model: A `Transformer`, or another with its methods `start` and `step`, on
            whichever device it should run; the source is moved there.
        source: Token ids, padded at the end; each sentence ends in its end token.
        bos_id: What the decoder reads first.
        eos_id: What ends an output.
        extra_length: An output may have this many tokens more than its input.
        max_length: None, or a limit for every output, its end token included.

    Returns:
        One hypothesis a sentence, its score the log-probability itself. If the model
        rules every next token out: what was written so far, and -inf.

    Raises:
        InputError: The model's scores are NaN, or a limit or an id makes no sense.

    Paper: §3.1, one symbol at a time; §6.1 reports beam search only.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source = torch.tensor([[5, 6, 2], [7, 2, 0]])  # two sentences, padded
    >>> outputs = greedy_search(model, source, bos_id=1, eos_id=2, max_length=6)
    >>> len(outputs), len(outputs[0].tokens) < 6  # the end token included
    (2, True)
    """
    check_ends(model, bos_id, eos_id)
    source = moved_to(model, source)
    with evaluating(model):
        limits = output_limits(model, source, extra_length, max_length)
        return _write(model, source, limits, bos_id, eos_id) if len(source) else []


def _write(
    model: Searchable, source: Tensor, limits: Tensor, bos_id: int, eos_id: int
) -> list[Hypothesis]:
    found: dict[int, Hypothesis] = {}
    sentences = torch.arange(len(source), device=source.device)  # still being written
    written = source.new_empty(len(source), 0)  # (sentences, length)
    tokens = source.new_full((len(source),), bos_id)  # (sentences,)
    first_limit = int(limits.min())
    totals, state = 0.0, model.start(source)
    while True:
        log_probs = next_log_probs(model, tokens, state, bos_id)
        length = written.size(1) + 1
        if length >= first_limit:
            force_end(log_probs, limits <= length, eos_id)
        best, tokens = log_probs.max(dim=-1)
        totals = totals + best  # (sentences,)
        ended = (tokens == eos_id) | (best == -math.inf)
        if ended.any():
            refuse_nan(totals)
            for sentence, output, total in zip(
                sentences[ended].tolist(),
                written[ended].tolist(),
                totals[ended].tolist(),
                strict=True,
            ):
                found[sentence] = Hypothesis(output, total, total)
            keep = (~ended).nonzero()[:, 0]
            if not len(keep):
                return [found[sentence] for sentence in range(len(source))]
            sentences, written, tokens, totals, limits = (
                kept[keep] for kept in (sentences, written, tokens, totals, limits)
            )
            state.select(keep, keep)
        written = torch.cat([written, tokens[:, None]], dim=1)

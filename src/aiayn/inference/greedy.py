"""§3.1: greedy search: at each step the most probable token, until the end token.

The paper reports beam search only; greedy search is a beam of one.
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from aiayn.inference.hypothesis import (
    Hypothesis,
    eval_mode,
    next_log_probs,
    prepare_search,
    refuse_nan,
)
from aiayn.inference.protocol import Model


def greedy_search(
    model: Model,
    source: Int[Tensor, "sentences source_length"],
    *,
    bos_id: int,
    eos_id: int,
    extra_length: int = 50,
    max_length: int | None = None,
) -> list[Hypothesis]:
    r"""Decode each sentence, always taking the most probable token.

    $$y_t = \mathrm{argmax}_y\, p(y \mid y_1, …, y_{t-1}, X)$$

    An output that reaches its limit is ended there. A sentence whose output has ended
    leaves the batch. Under ``torch.autocast`` the model computes in 16 bits, and
    log-probabilities are still summed in 32.

    Args:
        model: A `Transformer`, or a model with its decoding methods. The source is
            moved to its device.
        source: Token ids, padded at the end; each sentence ends in its end token.
        bos_id: What the decoder reads first.
        eos_id: What ends an output.
        extra_length: An output may have this many tokens more than its input.
        max_length: None, or a limit for every output, its end token included.

    Returns:
        One hypothesis a sentence; its score is the log-probability itself. If every
        next token has probability zero: what was written so far, with -inf.

    Raises:
        InputError: The model's scores are NaN, or a limit or an id makes no sense.

    Paper: §3.1, one symbol at a time; §6.1 reports beam search only.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source = torch.tensor([[5, 6, 2], [7, 2, 0]])  # two sentences, padded
    >>> outputs = greedy_search(model, source, bos_id=1, eos_id=2, max_length=6)
    >>> len(outputs), len(outputs[0].tokens) < 6  # the end token included
    (2, True)
    """
    allowed = {"extra_length": extra_length, "max_length": max_length}
    source, limits = prepare_search(model, source, bos_id, eos_id, **allowed)
    if not len(source):
        return []
    found: dict[int, Hypothesis] = {}
    sentences = torch.arange(len(source), device=source.device)  # not yet ended
    written = source.new_empty(len(source), 0)  # (sentences, length)
    tokens = source.new_full((len(source),), bos_id)  # (sentences,)
    first_limit, totals = int(limits.min()), 0.0
    with eval_mode(model):
        cache = model.init_decode(source)
        while len(sentences):
            length = written.size(1) + 1
            at_limit = limits <= length if length >= first_limit else None
            log_probs = next_log_probs(model, tokens, cache, (bos_id, eos_id), at_limit)
            best, tokens = log_probs.max(dim=-1)  # both (sentences,)
            totals = totals + best
            ended = (tokens == eos_id) | (best == -math.inf)
            if ended.any():
                refuse_nan(totals)
                columns = (x[ended].tolist() for x in (sentences, written, totals))
                for sentence, output, total in zip(*columns, strict=True):
                    found[sentence] = Hypothesis(output, total, total)
                keep = (~ended).nonzero()[:, 0]
                sentences, written, tokens, totals, limits = (
                    rows[keep] for rows in (sentences, written, tokens, totals, limits)
                )
                cache.reorder(keep, keep)
            written = torch.cat([written, tokens[:, None]], dim=1)
    return [found[sentence] for sentence in range(len(source))]

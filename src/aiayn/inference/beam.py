"""§6.1: beam search, with the length penalty of Wu et al. (2016).

The paper: 'beam search with a beam size of 4 and length penalty α = 0.6', 'terminate
early when possible'. It does not say how; here is what we do for each sentence.

1. The beam holds K unfinished outputs, all of one length. Each is extended by every
   token; of these candidates, the K most probable count.
2. Those among them that end are finished. The beam goes on with the K most probable
   candidates that do not end.
3. The search is over when K outputs are finished and no unfinished one, scored as far
   as it is written, is better than those that were asked for; or at the longest allowed
   length, where nothing but the end token may be written.

K finished outputs alone are no reason to stop, although several toolkits stop there: a
confident model's second to fourth choices may be end tokens at early positions, and
then the sentence itself would never be finished. A search stops earlier if nothing can
change any more, since an unfinished output with log-probability p never scores more
than p / lp(longest allowed length). With K = 1 this is greedy search.
"""

import math
from numbers import Real
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from aiayn.errors import InputError
from aiayn.inference.hypothesis import (
    Hypothesis,
    eval_mode,
    gnmt_length_penalty,
    next_log_probs,
    prepare_search,
    refuse_nan,
)
from aiayn.inference.protocol import Model


def beam_search(
    model: Model,
    source: Int[Tensor, "sentences source_length"],
    *,
    bos_id: int,
    eos_id: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    extra_length: int = 50,
    max_length: int | None = None,
) -> list[Hypothesis]:
    r"""The best output that beam search finds for each sentence.

    $$\mathrm{score}(Y) = \log p(Y \mid X) / lp(Y)$$

    Args:
        model: A `Transformer`, or a model with its decoding methods. The source is
            moved to its device.
        source: Token ids, padded at the end; each sentence ends in its end token.
        bos_id: What the decoder reads first.
        eos_id: What ends an output.
        beam_size: K, the unfinished outputs that are kept at each step.
        length_penalty: α of `gnmt_length_penalty`; 0 ranks by log-probability alone.
        extra_length: An output may have this many tokens more than its input.
        max_length: None, or a limit for every output, its end token included.

    Returns:
        One hypothesis a sentence. If no output is possible, it is the best beginning
        of one, with a log-probability of -inf.

    Raises:
        InputError: The model's scores are NaN, or an argument makes no sense.

    Paper: §6.1.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source = torch.tensor([[5, 6, 2], [7, 2, 0]])  # two sentences, padded
    >>> first, second = beam_search(model, source, bos_id=1, eos_id=2, beam_size=4)
    >>> len(first.tokens) < 3 + 50  # the input's length + 50, the end included
    True
    """
    options: dict[str, Any] = {"beam_size": beam_size, "length_penalty": length_penalty}
    options |= {"extra_length": extra_length, "max_length": max_length}
    options |= {"bos_id": bos_id, "eos_id": eos_id, "num_best": 1}
    return [best[0] for best in beam_search_n_best(model, source, **options)]


def beam_search_n_best(
    model: Model,
    source: Int[Tensor, "sentences source_length"],
    *,
    bos_id: int,
    eos_id: int,
    num_best: int,
    beam_size: int = 4,
    length_penalty: float = 0.6,
    extra_length: int = 50,
    max_length: int | None = None,
) -> list[list[Hypothesis]]:
    """Several outputs for each sentence, the best first; arguments as `beam_search`.

    Args:
        num_best: How many are wanted, at most beam_size. There may be fewer where the
            search ends at the limit.

    Paper: §6.1.
    """
    if not isinstance(beam_size, int) or not 1 <= num_best <= beam_size:
        raise InputError(
            "beam_size must be a whole number, at least 1, and num_best from 1 to "
            f"beam_size, not {beam_size} and {num_best}."
        )
    if not isinstance(length_penalty, Real) or not 0.0 <= length_penalty <= 10.0:
        raise InputError(
            f"length_penalty must be a number from 0 to 10, not {length_penalty}."
        )
    allowed = {"extra_length": extra_length, "max_length": max_length}
    source, limits = prepare_search(model, source, bos_id, eos_id, **allowed)
    if not len(source):
        return []
    device, first_limit = source.device, int(limits.min())
    finished: list[list[Hypothesis]] = [[] for _ in source]
    # Of the sentences that are not done. The width is 1 at first, and then beam_size.
    sentences = torch.arange(len(source), device=device)
    written = source.new_empty(len(source), 1, 0)  # (sentences, width, length - 1)
    beam = torch.zeros(len(source), 1, device=device)  # log-probability of each
    count = torch.zeros(len(source), device=device)  # of finished outputs
    best = torch.full((len(source), num_best), -math.inf, device=device)  # their scores
    tokens = source.new_full((len(source),), bos_id)  # (sentences·width,)
    with eval_mode(model):
        cache = model.init_decode(source)
        while len(sentences):
            # 1. Extend every output by every token.
            width, length = written.size(1), written.size(2) + 1
            at_limit = limits <= length if length >= first_limit else None
            log_probs = next_log_probs(model, tokens, cache, (bos_id, eos_id), at_limit)
            totals, parents, tokens = _best_extensions(log_probs, beam, 2 * beam_size)

            # 2. Those of the best beam_size that end are finished.
            ends = tokens == eos_id  # (sentences, 2·beam_size)
            ended = ends & (totals > -math.inf)
            ended[:, beam_size:] = False
            if ended.any():
                scores = totals / gnmt_length_penalty(length, length_penalty)
                reached = scores.masked_fill(~ended, -math.inf)
                best = torch.cat([best, reached], dim=1).topk(num_best)[0]
                count = count + ended.sum(dim=1)
                rows = ended.nonzero()[:, 0]  # (ended,)
                columns = [sentences[rows], written[rows, parents[ended]]]
                columns += [totals[ended], scores[ended]]
                for sentence, *fields in zip(*map(Tensor.tolist, columns), strict=True):
                    finished[sentence].append(Hypothesis(*fields))

            # The beam goes on with the best beam_size that do not end. A slot that is
            # empty, with -inf, reads what the best output reads: a valid input.
            beam, order = totals.masked_fill(ends, -math.inf).topk(beam_size)
            order = order.where(beam > -math.inf, order[:, :1])
            parents, tokens = parents.gather(1, order), tokens.gather(1, order)

            # 3. Stop a sentence at its limit, or when nothing better can follow.
            so_far = beam[:, 0] / gnmt_length_penalty(length, length_penalty)
            bound = beam[:, 0] / gnmt_length_penalty(limits, length_penalty)
            worst = best[:, -1]
            done = (limits <= length) | (worst >= bound)
            done |= (count >= beam_size) & (worst >= so_far)
            if done.any():
                refuse_nan(totals)
                columns = [sentences[done], written[done, 0]]
                for sentence, start in zip(*map(Tensor.tolist, columns), strict=True):
                    if not finished[sentence]:
                        impossible = Hypothesis(start, -math.inf, -math.inf)
                        finished[sentence].append(impossible)

            # Drop the sentences that are done, and reorder the outputs of the others.
            going = (~done).nonzero()  # (going, 1)
            parents, tokens = parents[going[:, 0]], tokens[going[:, 0]]
            written = torch.cat([written[going, parents], tokens[:, :, None]], dim=2)
            left = going[:, 0] if len(going) < len(done) else None
            cache.reorder((going * width + parents).flatten(), left)
            sentences, limits, beam, count, best = (
                rows[going[:, 0]] for rows in (sentences, limits, beam, count, best)
            )
            tokens = tokens.flatten()
    return [sorted(found, key=lambda one: -one.score)[:num_best] for found in finished]


def _best_extensions(
    log_probs: Tensor, beam: Tensor, count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The most probable extensions: log-probabilities, parents and tokens.

    At most one extension of each output ends. So of 2·beam_size extensions at least
    beam_size do not, and the beam can go on with them.
    """
    vocab_size = log_probs.size(1)
    totals = log_probs.add_(beam.view(-1, 1)).view(len(beam), -1)
    if totals.size(1) < count:  # a tiny vocabulary
        totals = F.pad(totals, (0, count - totals.size(1)), value=-math.inf)
    totals, index = totals.topk(count)
    return totals, index // vocab_size, index % vocab_size  # all (sentences, count)

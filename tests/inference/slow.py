"""Searches that are obviously right: the specification of the fast ones.

One sentence at a time, no cache, no early end, plain lists.
"""

import itertools
import math

import torch

from tests.inference.models import BOS, EOS, PAD


def next_log_probs(model, source, outputs):
    """For each output, all of one length, a list with every token's log-probability."""
    target = torch.tensor([[BOS, *written] for written in outputs])
    with torch.no_grad():
        logits = model(source.expand(len(outputs), -1), target)
    return logits[:, -1].log_softmax(-1).tolist()


def penalised(log_prob, length, alpha):
    """Equation (14) of Wu et al. (2016), without its coverage penalty."""
    return log_prob / ((5 + length) ** alpha / (5 + 1) ** alpha)


def greedy(model, source, limit):
    """The tokens that greedy search writes for one row."""
    written = []
    while len(written) < limit - 1:
        [log_probs] = next_log_probs(model, source, [written])
        best = max(set(range(len(log_probs))) - {PAD, BOS}, key=log_probs.__getitem__)
        if best == EOS:
            break
        written.append(best)
    return written


def exhaustive(model, source, limit, alpha, vocab_size):
    """Every output of at most limit tokens, best first: (score, log_prob, tokens)."""
    model.eval()
    words = range(3, vocab_size)
    found = []
    for length in range(limit):
        outputs = list(itertools.product(words, repeat=length))
        labels = torch.tensor([[*tokens, EOS] for tokens in outputs])
        target = torch.tensor([[BOS, *tokens] for tokens in outputs])
        with torch.no_grad():
            logits = model(source.expand(len(outputs), -1), target)
        log_probs = logits.log_softmax(-1).gather(2, labels[:, :, None]).sum((1, 2))
        for tokens, log_prob in zip(outputs, log_probs.tolist(), strict=True):
            found.append((penalised(log_prob, length + 1, alpha), log_prob, [*tokens]))
    return sorted(found, reverse=True)


def beam(model, source, limit, beam_size, alpha, num_best=1):
    """Beam search as the description of `aiayn.inference.beam` says, rules 1 to 3."""
    model.eval()
    alive, finished = [(0.0, [])], []
    for length in range(1, limit + 1):
        candidates = []
        all_log_probs = next_log_probs(model, source, [written for _, written in alive])
        for (total, written), log_probs in zip(alive, all_log_probs, strict=True):
            for token, log_prob in enumerate(log_probs):
                if token == EOS or (token not in (PAD, BOS) and length < limit):
                    candidates.append((total + log_prob, [*written, token]))
        candidates.sort(reverse=True)
        for total, tokens in candidates[:beam_size]:
            if tokens[-1] == EOS:
                score = penalised(total, length, alpha)
                finished.append((score, total, tokens[:-1]))
        alive = [each for each in candidates if each[1][-1] != EOS][:beam_size]
        finished.sort(reverse=True)
        unfinished = [penalised(total, length, alpha) for total, _ in alive]
        best = max(unfinished, default=-math.inf)
        if len(finished) >= beam_size and finished[num_best - 1][0] >= best:
            break
    return finished[:num_best]

"""Models and sources for the tests of inference: small, float64, and opinionated."""

import math

import torch
from torch import nn

from aiayn.model import Transformer, TransformerConfig
from aiayn_book.ensemble import Ensemble
from aiayn_book.recurrent import RecurrentConfig, RecurrentTranslator

PAD, BOS, EOS = 0, 1, 2
ENDS = {"bos_id": BOS, "eos_id": EOS}


def random_transformer(vocab_size=9, seed=0, **changes):
    """A Transformer whose outputs vary: its weights are larger than a fresh one's."""
    sizes = {"d_model": 8, "d_ff": 12, "num_heads": 2, "tie_embeddings": False}
    torch.manual_seed(seed)
    config = TransformerConfig.tiny(vocab_size=vocab_size, **(sizes | changes))
    return enlarge(Transformer(config))


def random_recurrent(vocab_size=9, seed=0, **changes):
    """Likewise; attention=False is the model of Cho et al."""
    torch.manual_seed(seed)
    config = RecurrentConfig(vocab_size=vocab_size, **({"d_model": 8} | changes))
    return enlarge(RecurrentTranslator(config))


def random_ensemble(vocab_size=9, seed=0):
    """Two kinds of model, of different widths."""
    wide = random_transformer(vocab_size, seed, d_model=12)
    return Ensemble([wide, random_recurrent(vocab_size, seed + 1)])


def enlarge(model):
    """In training mode, with dropout: a search has to see to that itself."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(2.0)
    return model.double()


def random_source(lengths, vocab_size=9, seed=0):
    """Rows of words that end in EOS, padded; lengths count the EOS."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths, default=0))
    source = torch.randint(3, vocab_size, shape, generator=generator)
    for row, length in zip(source, lengths, strict=True):
        row[length - 1] = EOS
        row[length:] = PAD
    return source


class TableModel(nn.Module):
    """Writes by a table: what comes next depends on the last token alone.

    The row of a sentence in `tables` is the first token of its source. It counts its
    steps and notes how many hypotheses each of them had.
    """

    def __init__(self, tables):
        super().__init__()
        self.tables = tables  # (kinds, vocab, vocab), log-probabilities
        self.config = TransformerConfig(vocab_size=tables.size(-1))
        self.rows = []

    def init_decode(self, source):
        return TableCache(source[:, 0])

    def decode_step(self, tokens, cache):
        self.rows.append(len(tokens))
        kinds = cache.kinds.repeat_interleave(len(tokens) // len(cache.kinds))
        return self.tables[kinds, tokens].clone()


class TableCache:
    def __init__(self, kinds):
        self.kinds = kinds

    def reorder(self, hypotheses, sentences=None):
        if sentences is not None:
            self.kinds = self.kinds[sentences]


def table(vocab_size, probabilities):
    """Log-probabilities from {last token: {next token: probability}}, others -inf."""
    rows = torch.full((vocab_size, vocab_size), -math.inf, dtype=torch.float64)
    for last, following in probabilities.items():
        for token, probability in following.items():
            rows[last, token] = math.log(probability)
    return rows

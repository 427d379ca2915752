"""Chapter 20's experiment: a small translator, its heads, and what they look at.

The notebook trains one seed before the reader's eyes; `tools/records/heads.py` repeats
it for others and keeps `measure`'s numbers, so the text can speak of several. The
thresholds in this module were written before a trained head was looked at; `POSITIONAL`
and `ABOVE_OFFSET` are Voita et al.'s (2019). The chapter says when its others were.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from aiayn.data import EncodedPairs, TokenBatches
from aiayn.data.grammar import GrammarSample
from aiayn.data.grammar.relations import english_relations, german_relations
from aiayn.inference import eval_mode, greedy_search
from aiayn.model import Transformer, TransformerConfig, shift_right
from aiayn.training import Trainer, TrainingConfig
from aiayn.training.processes import Processes
from aiayn_book.head_scores import Pairs, SentenceWeights, best_offset

Pair = tuple[list[int], list[int]]

KINDS = ("simple", "copula", "relative-subject", "anaphora")
PAIRS, HELD_OUT = 12_000, 400
PAD, BOS, EOS, UNKNOWN = range(4)
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")

POSITIONAL = 0.9
"""A head has a position's task if its greatest weight lies there so often."""
ABOVE_OFFSET = 0.1
"""A head has a relation's task if it hits so much oftener than any fixed offset."""
LONG = 4
"""Words between which a dependency is called long."""
SHARP = 0.5
"""A row is called sharp if one word gets as much as all the others."""

POSITIONS = {"previous word": -1, "same word": 0, "next word": 1}


@dataclass(frozen=True)
class Words:
    """A vocabulary of whole words, so that gold words are the model's tokens."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, samples: Sequence[GrammarSample]) -> "Words":
        """All words of both sides."""
        counted = Counter(w for s in samples for w in s.source_tokens + s.target_tokens)
        return cls((*SPECIAL, *sorted(counted)))

    @cached_property
    def number(self) -> dict[str, int]:
        """Each word's id."""
        return {word: i for i, word in enumerate(self.words)}

    def encode(self, tokens: Sequence[str]) -> list[int]:
        """The words' ids, with the end token."""
        return [*(self.number.get(word, UNKNOWN) for word in tokens), EOS]

    def pairs(self, samples: Sequence[GrammarSample]) -> list[Pair]:
        """Source and target of each sample as ids."""
        return [
            (self.encode(s.source_tokens), self.encode(s.target_tokens))
            for s in samples
        ]


def configuration(seed: int, vocab_size: int) -> TrainingConfig:
    """Two layers of four heads on either side, and a training of under a minute."""
    model = TransformerConfig.tiny(vocab_size=vocab_size, dropout=0.0)
    return TrainingConfig(
        corpus="grammar",
        output=Path("runs/latest"),
        model=model,
        tokens_per_batch=512,
        steps=1100,
        warmup_steps=200,
        learning_rate_scale=0.6,
        seed=seed,
        precision="auto",
    )


def train_words(
    config: TrainingConfig, pairs: Sequence[Pair]
) -> tuple[Transformer, list[dict[str, float]]]:
    """Train on encoded pairs; returns the model and its loss by step."""
    torch.manual_seed(config.seed)
    assert isinstance(config.model, TransformerConfig)
    model = Transformer(config.model)
    trainer = Trainer(config, model, BOS, Processes())  # one, on the CPU
    encoded = EncodedPairs.from_lists(pairs)
    batches = TokenBatches(encoded, config.tokens_per_batch, seed=config.seed)
    log, totals, step, epoch = [], trainer.zero_sums(), 0, 0
    while step < config.steps:
        for batch in batches.epoch(epoch):
            step += 1
            totals += trainer.step(step, [batch])
            if step % config.log_every == 0 or step == config.steps:
                _, plain, tokens = totals.tolist()
                log.append({"step": step, "loss": plain / tokens})
                totals.zero_()
            if step == config.steps:
                break
        epoch += 1
    return model.eval(), log


def untrained(config: TrainingConfig) -> Transformer:
    """The model that `train_words` began with."""
    torch.manual_seed(config.seed)
    assert isinstance(config.model, TransformerConfig)
    return Transformer(config.model).eval()


def translations(model: Transformer, pairs: Sequence[Pair]) -> list[list[int]]:
    """Greedy translations, as ids without the end token."""
    rows = EncodedPairs.from_lists(pairs).source
    source = rows.padded(np.arange(len(rows)), PAD)
    found = greedy_search(model, source, bos_id=BOS, eos_id=EOS)
    return [hypothesis.tokens for hypothesis in found]


def exact(model: Transformer, pairs: Sequence[Pair]) -> list[bool]:
    """Which of the pairs are translated word for word."""
    found = translations(model, pairs)
    return [ids == target[:-1] for ids, (_, target) in zip(found, pairs, strict=True)]


def mean_loss(model: Transformer, pairs: Sequence[Pair]) -> float:
    """Cross-entropy per target word, without smoothing, in nats."""
    encoded = EncodedPairs.from_lists(pairs)
    rows = np.arange(len(encoded))
    source, target = (
        side.padded(rows, PAD) for side in (encoded.source, encoded.target)
    )
    with eval_mode(model):
        logits = model(source, shift_right(target, BOS))
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PAD
    ).item()


def gold_of(
    samples: Sequence[GrammarSample],
) -> dict[str, Mapping[str, Sequence[Pairs]]]:
    """Every relation that heads are scored against, by where the heads are.

    Rows of the decoder are the words that are written; column 0 is the start token, so
    word j has column j + 1.
    """
    english = [english_relations(s) for s in samples]
    german = [german_relations(s) for s in samples]
    encoder = {
        name: [
            [(i, i + d) for i in range(len(s.source_tokens)) if i + d >= 0]
            for s in samples
        ]
        for name, d in POSITIONS.items()
    }
    decoder = {
        name: [
            [(i, i - back) for i in range(back, len(s.target_tokens))] for s in samples
        ]
        for back, name in enumerate(("last word written", "the word before that"))
    }
    return {
        "encoder": encoder | {name: [r[name] for r in english] for name in english[0]},
        "decoder": decoder
        | {
            name: [[(q, k + 1) for q, k in r[name] if k < q] for r in german]
            for name in german[0]
        },
        "cross": {
            "alignment": [[(j, i) for i, j in sorted(s.alignment)] for s in samples]
        },
    }


def lengths_of(samples: Sequence[GrammarSample], use: str) -> list[int]:
    """How many keys each sentence has for these heads, the special sign included."""
    sides = [s.target_tokens if use == "decoder" else s.source_tokens for s in samples]
    return [len(side) + 1 for side in sides]


def side(weights: Sequence[SentenceWeights], use: str) -> list[Tensor]:
    """One kind of attention of every sentence."""
    return [getattr(sentence, use) for sentence in weights]


def is_position(name: str) -> bool:
    """Whether the relation is a fixed offset by itself."""
    return name in (*POSITIONS, "last word written", "the word before that")


def bar(name: str, gold: Sequence[Pairs]) -> float:
    """What a head must reach to count as having this task."""
    if is_position(name):
        return POSITIONAL
    return min(1.0, best_offset(gold).hits + ABOVE_OFFSET)


def long_ones(gold: Sequence[Pairs], least: int = LONG) -> list[Pairs]:
    """Only the pairs that stand far from each other."""
    return [[(q, k) for q, k in pairs if abs(q - k) >= least] for pairs in gold]

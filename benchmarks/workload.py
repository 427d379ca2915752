"""What every peer is given: the same batches, the same sentences, as token ids.

They are written once, so that a peer's process needs neither corpus nor tokenizer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from aiayn.data import (
    EOS_ID,
    EncodedPairs,
    RaggedTokens,
    TokenBatches,
    Tokenizer,
    encode_lines,
    encode_pairs,
    load_corpus,
    pack_pairs,
)
from aiayn.data.segments import segment_ids
from aiayn.model import TransformerConfig
from aiayn_book.paper import BASE

WORK = Path(__file__).parent / ".work"
WARM_UP_BATCHES = 5
"""Steps that are not timed: memory is fetched, kernels are chosen."""
GPU_WARM_UP = 8
"""The same on a GPU, where torch.compile may need a few shapes to see what varies."""

CONFIG = TransformerConfig(
    vocab_size=8000,
    d_model=256,
    d_ff=1024,
    num_heads=8,
    num_encoder_layers=3,
    num_decoder_layers=3,
    dropout=0.1,
)
"""The size that every training step is measured at; embeddings are tied."""
QUALITY_CONFIG = TransformerConfig(
    vocab_size=10_000,
    d_model=128,
    d_ff=256,
    num_heads=4,
    num_encoder_layers=4,
    num_decoder_layers=4,
    dropout=0.3,
    norm="pre",
)
"""Transformer-Tiny, the size that learns Multi30k best here (chapter 16)."""
LABEL_SMOOTHING = 0.1
TOKENS_PER_BATCH = 2048
"""Places on the longer side of a batch, padding included."""

GPU_VOCABULARY = BASE.vocabulary_en_de
"""The paper's."""
PACKED_LENGTH = 256
"""Of a row that holds several pairs; as long as in tensor2tensor's packed corpora."""

MIDDLE = {"length": 32, "width": 256, "vocabulary": 8000, "processes": 1}
"""The size from which `benchmarks.growth` goes out."""


@dataclass(frozen=True)
class TrainingBatches:
    """Batches of token ids: rows end in EOS, then padding; targets have no BOS."""

    warm_up: list[tuple[Tensor, Tensor]]
    timed: list[tuple[Tensor, Tensor]]

    @property
    def target_tokens(self) -> int:
        """Of the timed batches, padding not counted."""
        return sum(int((target != 0).sum()) for _, target in self.timed)

    @property
    def padding_share(self) -> float:
        """The share of the timed batches' places, on both sides, that hold padding."""
        sides = [side for batch in self.timed for side in batch]
        return 1 - sum(int((x != 0).sum()) for x in sides) / sum(
            x.numel() for x in sides
        )


def training_batches(count: int) -> TrainingBatches:
    """Some batches of Multi30k en→de, bucketed by length, in random order."""
    text = load_corpus("multi30k", source="en", target="de").train
    tokenizer = _tokenizer(chain(text.source, text.target), CONFIG.vocab_size)
    pairs, _ = encode_pairs(text, tokenizer)
    epoch = TokenBatches(pairs, TOKENS_PER_BATCH, seed=1).epoch(0)
    found = [(b.source, b.target) for b in islice(epoch, WARM_UP_BATCHES + count)]
    return TrainingBatches(found[:WARM_UP_BATCHES], found[WARM_UP_BATCHES:])


def drawn_batches(kind: str, tokens_per_batch: int, count: int) -> TrainingBatches:
    """Batches of drawn tokens, whose lengths are about those of news and parliament.

    The mean is 27 pieces, a sentence of like rarity is half or twice as long, and a
    target is about as long as its source.

    Args:
        kind: 'sorted' by length, as the trainer does, 'unsorted', or 'packed': rows
            that hold several pairs.
        tokens_per_batch: Places on the longer side, padding included.
        count: Batches to be timed.
    """
    drawn = np.random.default_rng(1)
    pairs = (count + GPU_WARM_UP) * tokens_per_batch // 8  # of the least that can be
    source = drawn.lognormal(3.1, 0.6, pairs).clip(2, 120)
    target = (source * drawn.lognormal(0.0, 0.15, pairs)).clip(2, 120)
    rows = EncodedPairs(*(_drawn_rows(side, drawn) for side in (source, target)))
    if kind == "packed":
        rows = pack_pairs(rows, PACKED_LENGTH)
    if kind != "unsorted":
        epoch = TokenBatches(rows, tokens_per_batch, seed=1).epoch(0)
        found = [(b.source, b.target) for b in islice(epoch, GPU_WARM_UP + count)]
    else:
        places = range(0, pairs, tokens_per_batch // 120)  # whatever stands in them
        chosen = [
            np.arange(start, start + places.step)
            for start in islice(places, GPU_WARM_UP + count)
        ]
        found = [(rows.source.padded(c, 0), rows.target.padded(c, 0)) for c in chosen]
    return TrainingBatches(found[:GPU_WARM_UP], found[GPU_WARM_UP:])


def _drawn_rows(lengths: np.ndarray, drawn: np.random.Generator) -> RaggedTokens:
    lengths = lengths.astype(np.int64)
    starts = np.concatenate([[0], lengths.cumsum()])
    tokens = drawn.integers(4, GPU_VOCABULARY, starts[-1], dtype=np.int32)
    tokens[starts[1:] - 1] = EOS_ID
    return RaggedTokens(tokens, starts)


DECODING = ("batches", "mixed", "file")
"""Sentences of like length, 32 at once; the same in the order of the file, 32 at once;
and a long file, sorted by length, 2,048 source tokens at once."""
SENTENCES_PER_BATCH = 32


def decoding_batches(
    name: str, tokenizer: Tokenizer, count: int
) -> list[list[list[int]]]:
    """Batches of source rows, each ending in EOS.

    Args:
        name: One of `DECODING`.
        tokenizer: The trained model's.
        count: Sentences.
    """
    corpus = load_corpus("multi30k", source="en", target="de")
    text = corpus.train if name == "file" else corpus.test
    encoded = encode_lines(text.source[:count], tokenizer)
    return cut(name, [encoded[i] for i in range(len(encoded))])


def cut(name: str, rows: list[list[int]]) -> list[list[list[int]]]:
    """Rows in batches, as one of `DECODING` has them."""
    if name != "mixed":
        rows = sorted(rows, key=len, reverse=True)
    batches, start = [], 0
    while start < len(rows):
        size = SENTENCES_PER_BATCH
        if name == "file":  # its first row is its longest
            size = max(1, TOKENS_PER_BATCH // len(rows[start]))
        batches.append(rows[start : start + size])
        start += size
    return batches


def quality_data() -> dict:
    """Multi30k as ids, and the validation split's reference translations."""
    corpus = load_corpus("multi30k", source="en", target="de")
    lines = chain(corpus.train.source, corpus.train.target)
    tokenizer = _tokenizer(lines, QUALITY_CONFIG.vocab_size)
    pairs, _ = encode_pairs(corpus.train, tokenizer)
    return {
        "source": _as_tensors(pairs.source),
        "target": _as_tensors(pairs.target),
        "validation": _as_tensors(encode_lines(corpus.validation.source, tokenizer)),
        "references": list(corpus.validation.target),
        "tokenizer": str(_tokenizer_path(QUALITY_CONFIG.vocab_size)),
    }


def _as_tensors(rows: RaggedTokens) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(rows.tokens), torch.from_numpy(rows.starts)


def rows_from(tensors: tuple[Tensor, Tensor]) -> RaggedTokens:
    """What `quality_data` packed up."""
    return RaggedTokens(*(tensor.numpy() for tensor in tensors))


def save(content: object, name: str) -> Path:
    """Write what a peer's process will read with `load`."""
    WORK.mkdir(exist_ok=True)
    path = WORK / f"{name}.pt"
    torch.save(content, path)
    return path


def load(path: Path) -> dict:
    """What `save` wrote; tensors, lists and numbers only."""
    return torch.load(path, weights_only=True)


def _tokenizer(lines: Iterable[str], vocab_size: int) -> Tokenizer:
    """The joint vocabulary, learnt once."""
    path = _tokenizer_path(vocab_size)
    if not path.exists():
        WORK.mkdir(exist_ok=True)
        Tokenizer.train(lines, vocab_size).save(path)
    return Tokenizer.load(path)


def _tokenizer_path(vocab_size: int) -> Path:
    return WORK / f"tokenizer-{vocab_size}.model"


def training_step_flops(config: TransformerConfig, batch: tuple[Tensor, Tensor]) -> int:
    """Floating-point operations of one step that no implementation can do without.

    Matrix products only, a multiplication and an addition counted as two, for tokens
    that are not padding; backward counts twice forward. Softmax, LayerNorm, dropout and
    Adam are left out.
    """
    source, target = _sentence_lengths(*batch, config.pad_id)
    d, d_ff = config.d_model, config.d_ff
    s, t = int(source.sum()), int(target.sum())
    encoder = s * (4 * d * d + 2 * d * d_ff) + 2 * d * int((source**2).sum())
    decoder = (
        t * (6 * d * d + 2 * d * d_ff)
        + 2 * s * d * d  # keys and values of memory
        + 2 * d * int((target**2).sum())
        + 2 * d * int((source * target).sum())
    )
    forward = (
        config.num_encoder_layers * encoder
        + config.num_decoder_layers * decoder
        + t * d * config.vocab_size
    )
    return 3 * 2 * forward


def _sentence_lengths(source: Tensor, target: Tensor, pad_id: int) -> list[Tensor]:
    """Tokens of each sentence on both sides, also of those that share a row."""
    ids = [segment_ids(side, EOS_ID) for side in (source, target)]
    most = 1 + int(torch.cat(ids, dim=1).max())
    first = most * torch.arange(len(source))[:, None]  # (batch, 1)
    return [
        torch.bincount((first + of_side)[side != pad_id], minlength=most * len(side))
        for side, of_side in zip((source, target), ids, strict=True)
    ]


GRID = [
    [rows, length]
    for length in (8, 32, 128, 512)
    for rows in (1, 4, 16, 64)
    if rows * length <= 4096
]
"""Sentences and tokens of each, on both sides: the sizes of `benchmarks.grid`."""
TURNS, SECONDS_A_TURN = 4, 0.1
"""How many turns a peer has at each size, after one that is not counted, and how long
it has; at least one step is timed."""


def filled(rows: int, length: int) -> tuple[Tensor, Tensor]:
    """A batch of random tokens without padding: source and target."""
    drawn = torch.Generator().manual_seed(rows * length)
    shape = (2, rows, length)
    source, target = torch.randint(4, CONFIG.vocab_size, shape, generator=drawn)
    return source, target


def grown(
    axis: str, value: int, seed: int
) -> tuple[TransformerConfig, tuple[Tensor, Tensor]]:
    """The middle size with one number changed: a model, and random rows for it."""
    sizes = MIDDLE | {axis: value}
    config = replace(
        CONFIG,
        d_model=sizes["width"],
        d_ff=4 * sizes["width"],
        vocab_size=sizes["vocabulary"],
    )
    rows = TOKENS_PER_BATCH // sizes["length"]
    drawn = torch.Generator().manual_seed(seed)
    shape = (2, rows, sizes["length"])
    source, target = torch.randint(4, config.vocab_size, shape, generator=drawn)
    return config, (source, target)


def kept_bytes(
    config: TransformerConfig, batch: tuple[Tensor, Tensor], processes: int = 1
) -> int:
    """Memory that grows with the sizes, as arithmetic has it; all numbers in float32.

    Four numbers a parameter: its value, its gradient, Adam's two moments. And what the
    backward pass must find again of the forward one: at the least the input of every
    product, and in attention the weights.

    Args:
        config: The model's sizes.
        batch: Of one step.
        processes: Those that share its rows. Counted is one of them, the first: it has
            all parameters, and its share of the rest.
    """
    (rows, s), (_, t) = (side[::processes].shape for side in batch)
    d, d_ff, heads = config.d_model, config.d_ff, config.num_heads
    attention = 5 * d  # its input, queries, keys, values, what the heads found
    feed_forward = d + d_ff
    encoder = s * (attention + feed_forward) + heads * s * s
    decoder = t * (2 * attention + feed_forward) + heads * t * (s + t)
    layers = config.num_encoder_layers * encoder + config.num_decoder_layers * decoder
    parameters = (
        config.vocab_size * d
        + config.num_encoder_layers * (4 * d * d + 2 * d * d_ff)
        + config.num_decoder_layers * (8 * d * d + 2 * d * d_ff)
    )
    return 4 * (4 * parameters + rows * layers)

"""§5.1: what must stand before the first step: folder, corpus, vocabulary, batches."""

from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from aiayn.checkpoint import write_json
from aiayn.data import (
    EOS_ID,
    PAD_ID,
    TREES,
    EncodedPairs,
    MemmapLines,
    ParallelText,
    RaggedTokens,
    TokenBatches,
    Tokenizer,
    encode_pairs,
    load_corpus,
    pack_pairs,
)
from aiayn.errors import InputError
from aiayn.run import RunFolder
from aiayn.training.config import TrainingConfig
from aiayn.training.distributed import Processes


@dataclass(frozen=True)
class TrainingData:
    """What a training reads."""

    tokenizer: Tokenizer
    training: TokenBatches
    validation: TokenBatches
    to_translate: ParallelText
    """Validation pairs that BLEU is computed on."""
    description: dict[str, Any]
    """Sizes, for the log's first record."""


def check_model(config: TrainingConfig) -> None:
    """Refuse a model that does not go with these batches.

    Raises:
        InputError: Its padding is not the tokenizer's.
    """
    if config.model.pad_id != PAD_ID:
        raise InputError(
            f"model.pad_id is {config.model.pad_id}, but batches of text are padded "
            f"with {PAD_ID}, as the tokenizer has it: leave it out."
        )


def prepare_folder(config: TrainingConfig, run: RunFolder, group: Processes) -> None:
    """Write a new run's configuration into its folder, which is there.

    Raises:
        InputError: There is a run in it, or a model of `save_translator`.
    """
    if not run.is_free():
        raise InputError(
            f"{run.path} holds a run already: continue it with 'aiayn resume "
            f"{run.path}', or choose another --output."
            if run.config.is_file()
            else f"{run.path} holds a trained model, which would be lost: choose "
            "another --output."
        )
    group.wait()  # until every process has looked
    if group.is_main:
        run.tokenizer.unlink(missing_ok=True)
        for path in run.path.glob("pairs.*.npy"):
            path.unlink()
        run.log.unlink(missing_ok=True)
        write_json(run.config, config.as_dict(), make_folder=False)


def prepare_data(
    config: TrainingConfig, run: RunFolder, group: Processes
) -> TrainingData:
    """Load the corpus, learn or load its vocabulary, and cut it into batches.

    Raises:
        InputError: The corpus cannot be had or read, is empty, has no validation text,
            or has pairs that are too long for the model.
    """
    options = {}
    if config.corpus == "grammar" and config.corpus_size is not None:
        options["size"] = config.corpus_size
    if not group.is_main:
        group.wait()  # the first fetches it and puts it together
    corpus = load_corpus(
        config.corpus, source=config.source, target=config.target, **options
    )
    if group.is_main:
        group.wait()  # here the others begin
    # Both before anything is made of one: to encode a large corpus takes its time.
    text, validation_text = corpus.train[: config.corpus_size], corpus.validation
    if group.is_main and not run.tokenizer.exists():
        tokenizer = Tokenizer.train(
            chain(text.source, text.target),
            config.model.vocab_size,
            whole_symbols=config.target == TREES,
        )
        run.require()
        tokenizer.save(run.tokenizer)
    group.wait()
    tokenizer = Tokenizer.load(run.tokenizer)
    training = _encode(text, tokenizer, config, run, group)
    validation, _ = encode_pairs(validation_text, tokenizer, config.max_length)
    for pairs in (training, validation):
        _check_lengths(pairs, config)
    batches = TokenBatches(training, config.tokens_per_batch, seed=config.seed)
    kept = int((training.source.tokens == EOS_ID).sum())  # of a packed row, each one
    return TrainingData(
        tokenizer,
        batches,
        TokenBatches(validation, config.tokens_per_batch, seed=config.seed),
        short_pairs(
            validation_text,
            tokenizer,
            config.max_length,
            config.validation_sentences,
        ),
        {
            "pairs": kept,
            "too_long": len(text) - kept,
            "batches": len(batches),
            "target_tokens": batches.target_tokens,
            "padding_share": batches.padding_share(),
            "vocab_size": tokenizer.vocab_size,
        },
    )


def _check_lengths(pairs: EncodedPairs, config: TrainingConfig) -> None:
    """Refuse pairs for which a learned table of positions has no rows."""
    model = config.model
    if model.positions != "learned":
        return
    longest = max(
        int(side.lengths.max(initial=0)) for side in (pairs.source, pairs.target)
    )
    if longest > model.max_length:
        packed = config.packed_length is not None
        raise InputError(
            f"The longest {'row' if packed else 'pair'} has {longest} tokens on a "
            "side, more than the model's table of learned positions, model.max_length "
            f"= {model.max_length}: allow more there, or "
            f"{'shorten rows' if packed else 'leave out long pairs'} with "
            f"{'packed_length' if packed else 'max_length'}."
        )


def short_pairs(
    text: ParallelText, tokenizer: Tokenizer, max_length: int, count: int | None = None
) -> ParallelText:
    """The first pairs of which neither side has more pieces, end included.

    Args:
        text: The pairs.
        tokenizer: What cuts them into pieces.
        max_length: The most pieces.
        count: How many pairs; None: all.
    """
    short = (
        pair
        for pair in text
        if max(len(tokenizer.encode(side)) for side in pair) < max_length
    )
    kept = list(islice(short, count))
    return ParallelText(tuple(s for s, _ in kept), tuple(t for _, t in kept))


def _encode(
    text: ParallelText,
    tokenizer: Tokenizer,
    config: TrainingConfig,
    run: RunFolder,
    group: Processes,
) -> EncodedPairs:
    """The training pairs as ids, packed into rows if that is wanted.

    Of a corpus that stays on disk, one process encodes all pairs into the run's folder,
    and the others read them there; so does a resumed run.
    """

    def encode() -> EncodedPairs:
        pairs, _ = encode_pairs(text, tokenizer, config.max_length)
        length = config.packed_length
        return pairs if length is None else pack_pairs(pairs, length)

    if not isinstance(text.source, MemmapLines):
        return encode()
    if group.is_main and len(list(run.path.glob("pairs.*.npy"))) < 4:
        pairs = encode()
        run.require()
        pairs.source.save(run.pairs["source"])
        pairs.target.save(run.pairs["target"])
    group.wait()
    return EncodedPairs(**{side: RaggedTokens.open(p) for side, p in run.pairs.items()})

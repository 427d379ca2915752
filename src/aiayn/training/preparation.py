"""§5.1: what a training needs before its first step: folder, vocabulary and batches."""

from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from aiayn.data import (
    EOS_ID,
    PAD_ID,
    TREES,
    Corpus,
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
from aiayn.data.corpora import corpus_place
from aiayn.errors import InputError
from aiayn.storage import RunFolder, write_json
from aiayn.training.config import TrainingConfig
from aiayn.training.processes import Processes
from aiayn.version import __version__


@dataclass(frozen=True)
class TrainingData:
    """What a training reads."""

    tokenizer: Tokenizer
    training: TokenBatches
    validation: TokenBatches
    to_translate: ParallelText
    """Validation pairs on which BLEU is computed."""
    description: dict[str, Any]
    """Sizes, for the log's first record."""
    digests: dict[str, str]
    """Of the tokenizer and of each split, for the run's configuration."""


def prepare_folder(config: TrainingConfig, run: RunFolder, group: Processes) -> None:
    """Write a new run's configuration into its folder.

    Raises:
        InputError: The folder holds a run, a model of `save_translator`, or files of
            these names that no training wrote.
    """
    begun = run.config.is_file() and b'"digests"' in run.config.read_bytes()
    run.require_free(run.best, *(() if begun else (run.config, run.tokenizer, run.log)))
    group.wait()  # until every process has looked
    if group.is_main:
        for path in (run.tokenizer, run.log, *run.path.glob("pairs.*.npy")):
            path.unlink(missing_ok=True)
        write_config(config, run, {})


def write_config(config: TrainingConfig, run: RunFolder, digests: Any) -> None:
    """Write the choices, the package's version, and digests of what is read."""
    facts = {"version": __version__, "digests": digests}
    # Once the corpus has been read, the folder may have been moved or removed.
    write_json(run.config, config.as_dict() | facts, make_folder=not digests)


def find_corpus(config: TrainingConfig, run: RunFolder) -> str:
    """The name or the place of the corpus that a run was trained on.

    Raises:
        InputError: It is not there.
    """
    try:
        return corpus_place(config.corpus)
    except InputError:
        raise InputError(
            f"{run.config} names the corpus {config.corpus}, which is not there. If "
            "it has moved, give its new place as corpus=…"
        ) from None


def digest_of(run: RunFolder, corpus: Corpus, split: str, size: int | None) -> str:
    """The digest of a split of a run's corpus.

    Args:
        run: Its config.json holds the digest as it was.
        corpus: As it is now.
        split: Which part; of train the first pairs, as many as size says.
        size: The configuration's corpus_size.

    Raises:
        InputError: The split has changed.
    """
    digest = corpus.split(split)[: size if split == "train" else None].digest
    run.require_same(
        split,
        digest,
        f"The split {split} of the corpus {corpus.name}",
        "Put it back as it was, give its new place as corpus=…, or train anew.",
    )
    return digest


def prepare_data(
    config: TrainingConfig, run: RunFolder, group: Processes
) -> TrainingData:
    """Load the corpus, train or load its tokenizer, and cut the pairs into batches.

    Raises:
        InputError: The corpus cannot be loaded, has no validation text, or has pairs
            that are too long; the model does not fit the configuration; or the corpus
            or the tokenizer is not the one that a resumed run began with.
    """
    _check_model(config)
    makes_pairs = config.corpus == "grammar" and config.corpus_size is not None
    options: Any = {"size": config.corpus_size} if makes_pairs else {}
    languages = {"source": config.source, "target": config.target}
    with group.main_first():  # it downloads the corpus for all
        corpus = load_corpus(config.corpus, **languages, **options)
    # Both are looked up here, because what follows takes long for a large corpus.
    text, validation_text = corpus.train[: config.corpus_size], corpus.validation
    size = config.corpus_size
    digests = {name: digest_of(run, corpus, name, size) for name in corpus.splits}
    with group.main_first():
        if not run.tokenizer.exists():
            lines = chain(text.source, text.target)
            size, trees = config.model.vocab_size, config.target == TREES
            tokenizer = Tokenizer.train(lines, size, whole_symbols=trees)
            tokenizer.save(run.tokenizer, make_folder=False)
        tokenizer = Tokenizer.load(run.tokenizer)
    remedy = "Put back the one that was written with the model."
    run.require_same("tokenizer", tokenizer.digest, run.tokenizer, remedy)
    with group.main_first():
        pairs = _encode(text, tokenizer, config, run)
    held_out, _ = encode_pairs(
        validation_text, tokenizer, config.max_length, "validation pairs"
    )
    limit, most, seed = config.tokens_per_batch, config.max_length, config.seed
    # No gradient is kept, and a GPU is faster with larger batches.
    larger = limit * 4 if group.device.type == "cuda" else limit
    training = TokenBatches(pairs, limit, seed=seed)
    kept = int((pairs.source.tokens == EOS_ID).sum())  # a row may hold several pairs
    return TrainingData(
        tokenizer,
        training,
        TokenBatches(held_out, larger, seed=seed),
        short_pairs(validation_text, tokenizer, most, config.validation_sentences),
        {
            "pairs": kept,
            "too_long": len(text) - kept,
            "batches": len(training),
            "target_tokens": training.target_tokens,
            "padding_share": training.padding_share(),
            "vocab_size": tokenizer.vocab_size,
        },
        digests | {"tokenizer": tokenizer.digest},
    )


def short_pairs(
    text: ParallelText, tokenizer: Tokenizer, max_length: int, count: int | None = None
) -> ParallelText:
    """The first pairs of which neither side is longer than a training allows.

    Args:
        text: The pairs.
        tokenizer: Splits them into pieces.
        max_length: The largest number of pieces, EOS included.
        count: How many pairs; None: all.
    """

    def is_short(pair: tuple[str, str]) -> bool:
        return max(len(tokenizer.encode(side)) for side in pair) < max_length

    kept = list(islice(filter(is_short, text), count))
    return ParallelText(tuple(s for s, _ in kept), tuple(t for _, t in kept))


def _check_model(config: TrainingConfig) -> None:
    model = config.model
    if model.pad_id != PAD_ID:
        raise InputError(
            f"model.pad_id is {model.pad_id}, but the tokenizer's is {PAD_ID}."
        )
    longest = max(config.max_length, config.packed_length or 0)
    if model.positions == "learned" and model.max_length < longest:
        raise InputError(
            f"The model has {model.max_length} learned positions, and rows may have "
            f"{longest} tokens: increase model.max_length, or decrease max_length or "
            "packed_length."
        )


def _encode(
    text: ParallelText, tokenizer: Tokenizer, config: TrainingConfig, run: RunFolder
) -> EncodedPairs:
    """The training pairs as ids, packed into rows if the configuration says so.

    If the corpus is so large that it stays on disk, the ids of all pairs are written
    into the run's folder once, where all processes read them, as does a resumed run.
    """
    on_disk, packed = isinstance(text.source, MemmapLines), config.packed_length
    if not on_disk or len(list(run.path.glob("pairs.*.npy"))) < 4:
        pairs, _ = encode_pairs(text, tokenizer, config.max_length, "training pairs")
        pairs = pairs if packed is None else pack_pairs(pairs, packed)
        if not on_disk:
            return pairs
        pairs.source.save(run.pairs["source"], make_folder=False)
        pairs.target.save(run.pairs["target"], make_folder=False)
    sides = {side: RaggedTokens.open(path) for side, path in run.pairs.items()}
    return EncodedPairs(**sides, packed=packed is not None)

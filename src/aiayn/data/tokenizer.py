"""§5.1: 'byte-pair encoding, which has a shared source-target vocabulary'.

sentencepiece cuts a text into the pieces of a vocabulary, which is learned from both
languages together, so that one embedding matrix serves all three uses (§3.4).
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from aiayn.data.refusals import describe_value, refuse_line
from aiayn.errors import InputError
from aiayn.storage import expand, write_atomically

# The same in every tokenizer; the model and the loss rely on them.
PAD_ID = 0
"""Fills short rows of a batch. Not in the paper."""
BOS_ID = 1
"""Stands before every target: the decoder reads it first. Not in the paper."""
EOS_ID = 2
"""Ends every source and every target. Not in the paper."""
UNK_ID = 3
"""Stands for a character that the vocabulary does not have. Not in the paper."""

UNKNOWN_AS = "⁇"  # what the unknown token is decoded to
MAX_MODEL_BYTES = 16 * 2**20  # ten times what the largest vocabularies need

# White space, control characters, and the mark by which sentencepiece writes a space.
_GAPS = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2581]+")
_SURROGATES = re.compile(r"[\ud800-\udfff]")


def normalise(text: str) -> str:
    """The text as the tokenizer sees it, and as `Tokenizer.decode` returns it.

    Runs of white space and control characters become one space, and none remains at the
    ends. Characters are composed (Unicode NFC), so that ü is one character however it
    was typed. Nothing else changes: NFKC, sentencepiece's default, would turn m² into
    m2.

    Args:
        text: Any text.

    Raises:
        InputError: It is no text, as an empty cell of a table is none.

    Not in the paper.

    >>> normalise("  a\\tcat\\n")
    'a cat'
    """
    if not isinstance(text, str):
        refuse_line(text, "What was given")
    text = _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
    return _GAPS.sub(" ", unicodedata.normalize("NFC", text)).strip(" ")


def checked_lines(
    lines: Iterable[str], name: str = "lines", first_line: int = 1
) -> Iterator[str]:
    """The same lines, where nothing but text may stand among them.

    A string would give its letters, and a table the names of its columns.

    Raises:
        InputError: It is no sequence of lines (at once), or a line is no text (when it
            is read).
    """
    listed = isinstance(lines, Iterable) and getattr(lines, "ndim", 1) == 1
    if not listed or isinstance(lines, str | bytes | Mapping | set | frozenset):
        raise InputError(
            f"{name} must be a list of sentences, or one column of a table, not "
            f"{describe_value(lines)}; of one sentence, give [text]."
        )
    return (
        line if isinstance(line, str) else refuse_line(line, f"Line {number} of {name}")
        for number, line in enumerate(lines, first_line)
    )


class Tokenizer:
    """Text to the ids of word pieces and back, with one vocabulary for both languages.

    ``decode(encode(text)) == normalise(text)`` if every character of the text is in the
    vocabulary, which ▅, sentencepiece's own mark, never is. Others become the unknown
    token, decoded as ⁇; or with byte_fallback they are spelled as bytes.

    Args:
        model: A serialised sentencepiece model, which `train` and `load` give.

    Raises:
        InputError: The bytes are damaged, no sentencepiece model, or one with other
            special tokens than ours.

    Paper: §5.1; Sennrich et al. (2016).

    >>> text = load_corpus("grammar", size=200).train
    >>> tokenizer = Tokenizer.train([*text.source, *text.target], vocab_size=300)
    >>> ids = tokenizer.encode("The old dog sleeps.")
    >>> tokenizer.decode(ids)
    'The old dog sleeps.'
    """

    pad_id, bos_id, eos_id, unk_id = PAD_ID, BOS_ID, EOS_ID, UNK_ID

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        if len(model) > MAX_MODEL_BYTES:
            raise InputError(f"it is larger than {MAX_MODEL_BYTES:,} bytes.")
        sentencepiece.set_min_log_level(2)
        processor = sentencepiece.SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(model)
            # A piece that is not UTF-8 would be found only when a text is encoded.
            processor.id_to_piece(list(range(processor.vocab_size())))
        except (RuntimeError, UnicodeDecodeError) as error:
            raise InputError(
                "it is damaged or no sentencepiece model "
                f"({str(error).strip().rstrip('.')}); save or train it again."
            ) from error
        special = [processor.pad_id(), processor.bos_id()]
        special += [processor.eos_id(), processor.unk_id()]
        if special != [PAD_ID, BOS_ID, EOS_ID, UNK_ID]:
            raise InputError(
                "it is a tokenizer of another kind: its ids of padding, start, end and "
                f"unknown are {special}, and not 0, 1, 2, 3; train one of this package."
            )
        self._model, self._processor = model, processor

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocab_size: int,
        *,
        byte_fallback: bool = False,
        character_coverage: float = 1.0,
        whole_symbols: bool = False,
        max_lines: int = 1_000_000,
        seed: int = 0,
    ) -> "Tokenizer":
        """Learn a vocabulary from lines of both languages.

        The same lines and arguments give the same vocabulary, byte for byte.

        Args:
            lines: Sentences of both languages; a sentence of more than 65,536 bytes is
                ignored.
            vocab_size: Number of entries, the four special tokens included.
            byte_fallback: Spend 256 entries on single bytes, so that no text is
                unknown; a character never seen in training has no translation anyway.
            character_coverage: Share of the running characters, from 0.98 to 1, that
                get an entry of their own; the rest, the rarest, are unknown or
                spelled as bytes.
            whole_symbols: Allow pieces of letters and punctuation together, such as the
                `(NP` of a linearised tree; otherwise they are always separated.
            max_lines: Of more lines than these, a random sample that seed decides.

        Raises:
            InputError: A line is no text, all are empty, or vocab_size does not suit.
        """
        from aiayn.data.vocabulary import learn_vocabulary, random_sample

        options = {
            "byte_fallback": byte_fallback,
            "character_coverage": character_coverage,
            "whole_symbols": whole_symbols,
        }
        sample = random_sample(checked_lines(lines), max_lines, seed)
        return cls(learn_vocabulary(sample, vocab_size, **options))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a tokenizer that `save` wrote.

        Raises:
            InputError: The file is missing, cannot be read or is no such tokenizer.
        """
        try:
            return cls(expand(path).read_bytes())
        except FileNotFoundError:
            raise InputError(f"There is no tokenizer {path}; check its name.") from None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from error
        except ValueError as error:  # the bytes are no tokenizer
            raise InputError(f"{path} cannot be used: {error}") from None

    def save(self, path: str | Path, make_folder: bool = True) -> None:
        """Write a file that sentencepiece can read too; or leave an older one as is.

        Args:
            path: The file.
            make_folder: Make its folder if it is missing; otherwise that is an error.

        Raises:
            InputError: The file cannot be written.
        """
        with write_atomically(expand(path), make_folder) as stream:
            stream.write(self._model)

    @property
    def vocab_size(self) -> int:
        """Number of entries, the special tokens included."""
        return self._processor.vocab_size()

    @property
    def digest(self) -> str:
        """The sha256 of the model: equal for tokenizers that do the same."""
        return hashlib.sha256(self._model).hexdigest()

    def encode(self, text: str) -> list[int]:
        """The ids of the pieces of a text, without special tokens around them."""
        return self._processor.encode(normalise(text))

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """`encode` for many texts, which is faster than one by one."""
        texts = checked_lines(texts, "texts")
        return self._processor.encode([normalise(text) for text in texts])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids of the vocabulary; padding, BOS and EOS are left out."""
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Iterable[Sequence[int]]) -> list[str]:
        """`decode` for many sequences."""
        # Normalised because a model may predict two spaces, or the byte of a line feed,
        # which would shift every line after it in a file of translations.
        texts = self._processor.decode([self._checked(ids) for ids in batch])
        return [normalise(text) for text in texts]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as they are written in the vocabulary, ▁ for a space."""
        return [self._processor.id_to_piece(i) for i in self._checked(ids)]

    def _checked(self, ids: Sequence[int]) -> list[int]:
        """Ids, which may be a tensor or an array, as integers of the vocabulary."""
        size, checked = self.vocab_size, [int(i) for i in ids]
        for outside in (i for i in checked if not 0 <= i < size):
            raise InputError(
                f"The id {outside} is not in this tokenizer's vocabulary of {size:,}; "
                "use the tokenizer that the model was trained with."
            )
        return checked

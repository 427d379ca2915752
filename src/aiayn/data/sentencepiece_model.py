"""§5.1: is this file a vocabulary that we could have made?

sentencepiece trusts its model files: a piece of a hundred thousand characters or none
at all, or a broken table of normalisation, ends the whole process, where no exception
can be caught. So the file is read here first, in Python, and only what a tokenizer of
ours can hold is passed on. The format is a protocol buffer, a list of numbered fields.
"""

import math
import struct
from collections.abc import Iterator
from itertools import islice

from aiayn.errors import InputError

# Ten times what the largest vocabularies need: reading takes seconds at most.
MAX_MODEL_BYTES = 16 * 2**20
MAX_PIECES = 500_000
# Of a piece, or of what the trainer notes of itself.
MAX_FIELDS = 1000
# sentencepiece's default for the longest piece is 16 characters, 4 bytes each at most.
MAX_PIECE_BYTES = 256

# What the unknown token is decoded to.
UNKNOWN_AS = "⁇"

# Numbers of fields in sentencepiece_model.proto.
_PIECES, _TRAINER, _NORMALISER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE, _PIECE_TYPE = 1, 2, 3
_TRAINER_MODEL_TYPE, _TRAINER_VOCAB_SIZE, _TRAINER_UNKNOWN_AS = 3, 4, 44
_NORMALISER_TABLE = 2

_BPE = 2  # a model type
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6  # types of pieces
_SPECIAL = [("<pad>", _CONTROL), ("<s>", _CONTROL), ("</s>", _CONTROL)]
_SPECIAL += [("<unk>", _UNKNOWN)]


def check_model(model: bytes) -> None:
    """Refuse bytes that `Tokenizer.train` cannot have made.

    Args:
        model: A serialised sentencepiece model.

    Raises:
        InputError: It is cut short, not a model at all, another kind of model, or made
            to do harm.
    """
    if len(model) > MAX_MODEL_BYTES:
        raise InputError(f"the file is larger than {MAX_MODEL_BYTES:,} bytes.")
    try:
        _check(model)
    except ValueError as error:
        raise InputError(
            "it is damaged, or not a tokenizer of this package "
            f"({error}); save or train it again."
        ) from None


def _check(model: bytes) -> None:
    pieces: list[tuple[str, int]] = []
    parts: dict[int, dict[int, int | bytes]] = {}
    for field, value in _fields(model):
        if len(pieces) > MAX_PIECES:
            raise ValueError(f"more than {MAX_PIECES:,} pieces")
        if field == _PIECES:
            pieces.append(_piece(_nested(value)))
        elif field in (_TRAINER, _NORMALISER) and field not in parts:
            parts[field] = _nested(value)
        else:
            raise ValueError(f"unexpected part {field}")
    trainer, normaliser = parts.get(_TRAINER, {}), parts.get(_NORMALISER, {})
    if trainer.get(_TRAINER_MODEL_TYPE) != _BPE:
        raise ValueError("not byte-pair encoding")
    if trainer.get(_TRAINER_VOCAB_SIZE) != len(pieces):
        raise ValueError("the number of pieces is not what it says")
    if trainer.get(_TRAINER_UNKNOWN_AS) != UNKNOWN_AS.encode():
        raise ValueError("it writes the unknown token in its own way")
    if normaliser.get(_NORMALISER_TABLE):
        raise ValueError("it normalises text in its own way")
    if pieces[:4] != _SPECIAL:
        raise ValueError("the special tokens are not pad 0, bos 1, eos 2, unk 3")
    if any(kind not in (_NORMAL, _BYTE) for _, kind in pieces[4:]):
        raise ValueError("a piece of unknown type")
    if len({text for text, _ in pieces}) < len(pieces):
        raise ValueError("a piece stands twice")


def _nested(value: int | bytes) -> dict[int, int | bytes]:
    if isinstance(value, int):
        raise ValueError("a number where a part should be")
    fields = list(islice(_fields(value), MAX_FIELDS + 1))
    if len(fields) > MAX_FIELDS:
        raise ValueError(f"a part of more than {MAX_FIELDS:,} fields")
    return dict(fields)


def _piece(fields: dict[int, int | bytes]) -> tuple[str, int]:
    text, score = fields.get(_PIECE_TEXT), fields.get(_PIECE_SCORE)
    kind = fields.get(_PIECE_TYPE, _NORMAL)
    if not isinstance(text, bytes) or not isinstance(score, bytes):
        raise ValueError("a piece without text or score")
    if not 0 < len(text) <= MAX_PIECE_BYTES or b"\0" in text:
        raise ValueError("an impossible piece")
    if len(score) != 4 or not math.isfinite(struct.unpack("<f", score)[0]):
        raise ValueError("an impossible score")
    if not isinstance(kind, int):
        raise ValueError("a piece of unknown type")
    return text.decode("utf-8"), kind


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: number and value, an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire_type == 2:
            length, at = _varint(data, at)
        elif wire_type == 5:
            length = 4
        else:
            raise ValueError("an unknown kind of field")
        if at + length > len(data):
            raise ValueError("it is cut short")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and the place after it."""
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            raise ValueError("it is cut short")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("a number without end")

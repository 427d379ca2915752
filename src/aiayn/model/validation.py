"""Checks of what a model is given, each with one sentence for what is refused."""

from numbers import Integral
from typing import Any

import numpy as np
import torch

from aiayn.errors import InputError


def check_sizes(minimum: int, **sizes: Any) -> None:
    """Every size must be a whole number, NumPy's too, and at least minimum."""
    for name, size in sizes.items():
        whole = isinstance(size, Integral) and not isinstance(size, bool)
        if not whole or size < minimum:
            raise InputError(
                f"{name} must be a whole number, at least {minimum}, not {size!r}."
            )


def hold_python_numbers(config: Any) -> None:
    """Turn NumPy's numbers and truth values into Python's, for JSON."""
    for name, value in list(vars(config).items()):
        if isinstance(value, np.generic):
            object.__setattr__(config, name, value.item())


def check_rates(**rates: float) -> None:
    """Every rate is the probability of dropping something; 1 would drop everything."""
    for name, rate in rates.items():
        if not isinstance(rate, int | float) or not 0.0 <= rate < 1.0:
            raise InputError(f"{name} is a probability in [0, 1), not {rate!r}.")


def check_choice(name: str, value: Any, *choices: Any) -> None:
    """An option must be one of its choices; "false" is neither True nor False."""
    if value not in choices:
        allowed = " or ".join(map(repr, choices))
        raise InputError(f"{name} must be {allowed}, not {value!r}.")


def check_pad_id(pad_id: int, vocab_size: int) -> None:
    """Padding is looked up like every token, so it must be one."""
    check_sizes(0, pad_id=pad_id)
    if pad_id >= vocab_size:
        raise InputError(
            f"pad_id = {pad_id} is no token: vocab_size = {vocab_size} allows 0 to "
            f"{vocab_size - 1}."
        )


def head_widths(
    d_model: int, num_heads: int, d_k: int | None = None, d_v: int | None = None
) -> tuple[int, int]:
    """Return d_k and d_v; where one is None, it is d_model / num_heads."""
    check_sizes(1, d_model=d_model, num_heads=num_heads)
    if None in (d_k, d_v) and d_model % num_heads:
        raise InputError(
            f"d_model = {d_model} is not divisible by num_heads = {num_heads}: "
            "change one of them, or give d_k and d_v."
        )
    d_k = d_model // num_heads if d_k is None else d_k
    d_v = d_model // num_heads if d_v is None else d_v
    check_sizes(1, d_k=d_k, d_v=d_v)
    return int(d_k), int(d_v)


def check_rotary(d_k: int) -> None:
    """Rotary embeddings rotate pairs of entries."""
    if d_k % 2:
        raise InputError(
            f"Rotary positions rotate pairs of entries, and d_k = {d_k} is odd: choose "
            "an even d_k, or other positions."
        )


def check_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
) -> None:
    """Each query needs keys of its width, and each key a value.

    Raises:
        InputError: Their shapes do not fit together.
    """
    try:
        torch.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value)))
        fits = query.size(-1) == key.size(-1) and key.size(-2) == value.size(-2)
    except (RuntimeError, IndexError):
        fits = False
    if not fits or query.dim() < 2:
        raise InputError(
            f"query, key and value of shapes {_listed(query, key, value)} do not fit "
            "together: they must be of shape (…, length, width), query and key of the "
            "same width, with one value for each key. The other dimensions, such as "
            "that of a batch, must be equal or 1."
        )


def explain_sequences(width: int, *tensors: torch.Tensor) -> str:
    """Why query, key and value are not batches of the same sentences."""
    return (
        f"query, key and value of shapes {_listed(*tensors)} do not fit together: they "
        f"must be of shape (batch, length, d_model = {width}), all of the same batch "
        "(x[None] for one sentence), with one value for each key."
    )


def _listed(*tensors: torch.Tensor) -> str:
    return ", ".join(str(tuple(tensor.shape)) for tensor in tensors)


def explain_mask(mask: Any, shape: torch.Size) -> str:
    """Why a mask does not fit scores of a shape, in one sentence.

    A mask of numbers is not guessed: some libraries add it to the scores. Nor is one of
    three dimensions: its first could be sentences or heads.
    """
    kind = getattr(mask, "dtype", type(mask).__name__)
    if kind != torch.bool:
        return (
            "A mask is a boolean tensor, True where a query may attend to a key, but "
            f"this one is of {kind}: give mask != 0 if its ones may be attended to, "
            "mask == 0 if it is to be added to the scores."
        )
    meant = "batch, heads, queries, keys" if len(shape) == 4 else "…, queries, keys"
    return (
        f"A mask of shape {tuple(mask.shape)} does not fit scores of shape "
        f"{tuple(shape)}: it must be (queries, keys) or ({meant}), where each size may "
        "be 1. A mask of (batch, keys) is meant as mask[:, None, None, :], one of "
        "(batch, queries, keys) as mask[:, None]."
    )


def explain_tokens(tokens: torch.Tensor, name: str) -> str:
    """Why something cannot be a batch of token ids, in one sentence."""
    return (
        f"{name} must hold token ids (int64) of shape (batch, length), at least one in "
        f"each row, not {tokens.dtype} of shape {tuple(tokens.shape)}."
    )


def explain_early_padding(row: int, pad_id: int, name: str) -> str:
    """Why padding must stand at the end of a row, in one sentence."""
    return (
        f"Row {row} of {name} goes on after padding (pad_id = {pad_id}): pad at "
        f"the end of a row. If {pad_id} is a word of your vocabulary, give "
        "TransformerConfig another pad_id; if you mean it, give the masks."
    )


def explain_batch(*tensors: torch.Tensor) -> str:
    """Why target, memory and source are not of the same sentences, in one sentence."""
    return (
        f"target, memory and source of shapes {_listed(*tensors)} do not belong "
        "together: give one target for each source, and the memory that "
        "encode(source) returned."
    )

"""Weights as safetensors and everything else as JSON, each file whole or not there.

Nothing is pickled, so loading a file never runs code.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from aiayn.errors import InputError
from aiayn.files import open_ordinary, write_atomically

# What a JSON text in a header may weigh: more than any configuration of ours.
MAX_INFO_BYTES = 1_000_000
# What a JSON file may weigh, likewise.
MAX_JSON_BYTES = 16 * 2**20


def write_json(path: Path | str, content: Any, make_folder: bool = True) -> None:
    """Write content as indented JSON, atomically.

    Args:
        path: The file to make or to replace.
        content: What JSON can hold.
        make_folder: Make the file's folder if need be.

    Raises:
        InputError: The file cannot be written; what was there before is as it was.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    with write_atomically(Path(path), make_folder) as stream:
        stream.write(text.encode())


def read_json(path: Path | str) -> Any:
    """Read a JSON file.

    Raises:
        InputError: The file is missing, is not JSON, or is larger than any of ours.
    """
    try:
        with open_ordinary(Path(path)) as stream:
            content = stream.read(MAX_JSON_BYTES + 1)
        if len(content) > MAX_JSON_BYTES:
            raise ValueError(f"it has more than {MAX_JSON_BYTES:,} bytes")
        return json.loads(content.decode("utf-8"))
    except InputError:  # a ValueError too, but a sentence already
        raise
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a JSON file that can be read: {error}."
        ) from None


def save_tensors(
    path: Path | str,
    tensors: dict[str, Tensor],
    info: dict[str, Any] | None = None,
    make_folder: bool = True,
) -> None:
    """Write tensors and a JSON description into one safetensors file, atomically.

    Args:
        path: The file.
        tensors: By name; each is copied to the CPU if it is not there. What two names
            share is written for both.
        info: Anything that JSON holds.
        make_folder: Make the file's folder if need be.

    Raises:
        InputError: The file cannot be written; what was there before is as it was.
    """
    apart, places = {}, set[int]()
    for name, tensor in tensors.items():
        values = tensor.detach().cpu().contiguous()
        place = values.untyped_storage().data_ptr()
        apart[name] = values.clone() if place in places else values
        places.add(place)
    content = save(apart, metadata={"info": json.dumps(info or {})})
    with write_atomically(Path(path), make_folder) as stream:
        stream.write(content)


# What safetensors, torch and JSON raise on files that are damaged or made to harm.
_UNREADABLE = (
    SafetensorError,
    ValueError,
    TypeError,
    RuntimeError,
    OverflowError,
    RecursionError,
    OSError,
)


def load_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote, onto the CPU.

    Raises:
        InputError: The file is missing, cut short, or no checkpoint of ours.
    """
    with _open(path) as (file, info):
        return {name: file.get_tensor(name) for name in file.keys()}, info  # noqa: SIM118


def load_info(path: Path | str) -> dict[str, Any]:
    """The description alone, which is short, of what `save_tensors` wrote.

    Raises:
        InputError: As `load_tensors`.
    """
    with _open(path) as (_, info):
        return info


def refuse_path(paths: Any) -> None:
    """Refuse a single path where a list is wanted: of a text, each letter would be one.

    Raises:
        InputError: It is a text or a path.
    """
    if isinstance(paths, str | os.PathLike):
        raise InputError(f"paths must be a list, not one path: give ['{paths}'].")


@contextmanager
def _open(path: Path | str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A file of tensors and its description; what fails inside is the file's fault."""
    if not os.path.isfile(path):  # whatever its name holds
        raise InputError(f"There is no checkpoint {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("info", "")
            if not text or len(text) > MAX_INFO_BYTES:
                raise InputError(
                    f"{path} is a safetensors file, but was not written by aiayn: its "
                    "header does not describe a model."
                )
            info = json.loads(text)
            if not isinstance(info, dict):
                raise InputError(f"{path} does not describe a model in its header.")
            yield file, info
    except InputError:  # a ValueError too, but a sentence already
        raise
    except _UNREADABLE as error:
        raise InputError(
            f"{path} is not a whole safetensors file ({error}): it was cut short or is "
            "something else. Take another checkpoint of the run."
        ) from None

"""Files that are either whole or not there: weights as safetensors, the rest as JSON.

Nothing is pickled, so loading a file never runs code. A file is written beside
its place, flushed to the disk, then renamed: whoever looks sees the old or the new.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from aiayn.errors import InputError

# What a JSON text in a header may weigh: more than any configuration of ours.
MAX_INFO_BYTES = 1_000_000


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let write fill a temporary file beside path, then put it in path's place.

    Args:
        path: The file to make or to replace; its folder is made if need be.
        write: Writes the file that it is given.

    Raises:
        OSError: The disk is full, the folder read-only, …; path is as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write content as indented JSON, atomically."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_atomically(path, lambda file: file.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        InputError: The file is missing or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a JSON file that can be read: {error}."
        ) from None


def save_tensors(
    path: Path, tensors: dict[str, Tensor], info: dict[str, Any] | None = None
) -> None:
    """Write tensors and a JSON description into one safetensors file, atomically.

    Args:
        path: The file.
        tensors: By name; each is copied to the CPU if it is not there.
        info: Anything that JSON holds.

    Raises:
        OSError: As from `write_atomically`.
    """
    contiguous = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    metadata = {"info": json.dumps(info or {})}

    def write(file: Path) -> None:
        try:
            save_file(contiguous, file, metadata=metadata)
        except SafetensorError as error:  # how the library reports a full disk
            raise OSError(f"{path} could not be written: {error}") from None

    write_atomically(path, write)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote, onto the CPU.

    Raises:
        InputError: The file is missing, cut short, or no checkpoint of ours.
    """
    if not path.is_file():
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
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, RecursionError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is not a whole safetensors file ({error}): it was cut short or is "
            "something else. Take another checkpoint of the run."
        ) from None
    if not isinstance(info, dict):
        raise InputError(f"{path} does not describe a model in its header.")
    return tensors, info

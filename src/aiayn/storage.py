"""Everything that is kept on disk: files, models, and the folder of a training run.

Each file is written atomically: it is there as a whole, or as it was before. Weights
are safetensors with a description as JSON in the header, and everything else is JSON,
so reading a file never runs code.

A run has one flat folder:

config.json             every choice, so that the run can be repeated; the version of
                        the package, and digests of the corpus and the vocabulary
tokenizer.model         the vocabulary
log.jsonl               one JSON object a line
step-000400.safetensors the last few checkpoints, weights only
best.safetensors        a copy of the one with the lowest validation loss
average.safetensors     the mean of the last few, computed at the end
state.safetensors       all that a resumed run needs, optimizer included
pairs.*.npy             the training pairs as ids, if the corpus stays on disk
"""

import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from aiayn.errors import InputError
from aiayn.model import Transformer, TransformerConfig

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


# ---- files


def expand(path: str | os.PathLike[str]) -> Path:
    """The path, with the home folder for a ~ at its beginning, as in a shell."""
    return Path(os.path.expanduser(path))


def resuming(path: str | os.PathLike[str]) -> str:
    """How a run is continued in Python; the command line says it in its own words."""
    return f'resume_training("{path}")'


def quoted(path: str | os.PathLike[str]) -> str:
    """The path as it is typed in a command: in quotation marks if it needs them."""
    text = str(path)
    return text if re.fullmatch(r"[\w@%+=:,./\\-]+", text) else f'"{text}"'


@contextmanager
def write_atomically(path: Path, make_folder: bool = True) -> Iterator[BinaryIO]:
    """Write a file under another name, and rename it when it is complete.

    Args:
        path: The file to make or to replace.
        make_folder: Make its folder if it is missing; otherwise that is an error. It is
            False while a training writes into its folder, and the error says how to go
            on.

    Yields:
        A stream to write to.

    Raises:
        InputError: The disk is full, the folder read-only, …; path is as it was.
    """
    path = expand(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    with _writing(path, not make_folder):
        try:
            if make_folder:
                path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(path)
            # Without its name in the folder, a file is lost when the power fails.
            # Windows cannot open a folder.
            with suppress(OSError, InputError), _open_folder(path.parent) as folder:
                os.fsync(folder)
        finally:
            with suppress(OSError):
                part.unlink()


@contextmanager
def _writing(path: Path, in_run: bool = False) -> Iterator[None]:
    """Turn what the system says when a path cannot be written into a sentence."""
    advice = "Make room, or choose another folder"
    if in_run:
        hint = resuming(path.parent)
        advice = f"Make room, and go on with {hint}; what was saved before is whole"
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{path} cannot be written: {why}. {advice}.") from error


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    with _writing(folder):
        handle = os.open(folder, os.O_RDONLY)
    try:
        yield handle
    finally:
        os.close(handle)


def remove_parts(folder: Path, name: str = "", idle: float = 0.0) -> None:
    """Remove the incomplete files of writes that were killed, where that is allowed.

    Args:
        folder: Where they are.
        name: The name of the file that was being written; "": any file.
        idle: Seconds since a part was last written to. 0 is only for a folder into
            which nobody else is writing.
    """
    with suppress(OSError):
        for part in folder.glob(f".{name}*.part"):
            with suppress(OSError):
                if not idle or part.stat().st_mtime < time.time() - idle:
                    part.unlink()


def require_folder(path: Path) -> None:
    """Make a folder if it is missing.

    Raises:
        InputError: It cannot be made; for instance, a file is in the way.
    """
    path = expand(path)
    with _writing(path):
        path.mkdir(parents=True, exist_ok=True)


@contextmanager
def hold(folder: Path, make_folder: bool = True) -> Iterator[None]:
    """Lock a folder, so that no second training writes to it, until the block ends.

    The lock ends with the process, and a kill leaves nothing behind. Where folders
    cannot be locked (Windows, some network disks), nothing is locked.

    Args:
        folder: The folder.
        make_folder: Make it if it is missing; otherwise that is an error.

    Raises:
        InputError: Another process holds it, or it cannot be made, or is missing.
    """
    folder = expand(folder)
    if make_folder:
        require_folder(folder)
    if fcntl is None:
        yield
        return
    with _open_folder(folder) as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{folder} is in use: another training writes to it."
            ) from None
        except OSError:
            pass
        yield


def write_json(path: Path | str, content: Any, make_folder: bool = True) -> None:
    """Write content as indented JSON; the rest as `write_atomically`."""
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    with write_atomically(Path(path), make_folder) as stream:
        stream.write(text.encode())


def read_json(path: Path | str) -> Any:
    """Read a JSON file.

    Raises:
        InputError: The file is missing, cannot be read, or is not JSON.
    """
    path = expand(path)
    if not os.path.isfile(path):
        no_run = f", so {path.parent} is no run: give the output=… of a training"
        hint = no_run if path.name == "config.json" else ""
        raise InputError(f"There is no file {path}{hint}.")
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON: {error}.") from None


def save_tensors(
    path: Path | str,
    tensors: dict[str, Tensor],
    info: dict[str, Any] | None = None,
    make_folder: bool = True,
) -> None:
    """Write tensors and a JSON description into one safetensors file, atomically.

    Args:
        path: The file.
        tensors: By name, on any device. If two of them share memory, it is written
            twice.
        info: Anything that JSON holds.
        make_folder: Make the file's folder if it is missing.

    Raises:
        InputError: The file cannot be written; it is as it was before.
    """
    copies = {
        name: tensor.detach().to("cpu", copy=True).contiguous()
        for name, tensor in tensors.items()
    }
    content = save(copies, metadata={"info": json.dumps(info or {})})
    with write_atomically(Path(path), make_folder) as stream:
        stream.write(content)


def load_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote, onto the CPU.

    Raises:
        InputError: The file is missing, damaged, or was not written by `save_tensors`.
    """
    path = expand(path)
    if not os.path.isfile(path):
        raise InputError(f"There is no checkpoint {path}.")
    try:
        with safe_open(path, framework="pt") as file:
            info = json.loads((file.metadata() or {}).get("info", "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, RuntimeError, OSError) as error:
        raise InputError(f"{path} is not a whole safetensors file: {error}.") from None
    if not isinstance(info, dict):
        raise InputError(f"{path} is a safetensors file, but was not written by aiayn.")
    return tensors, info


def refuse_path(paths: Any) -> None:
    """Refuse one path where a list is wanted: its letters would be taken for paths.

    Raises:
        InputError: It is a string or a path.
    """
    if isinstance(paths, str | os.PathLike):
        raise InputError(f"paths must be a list, not one path: give ['{paths}'].")


# ---- models

MAX_LAYERS = 10_000
"""More layers than anybody uses. A mistyped number would take hours to build."""


def describe_config(config: TransformerConfig) -> dict[str, Any]:
    """A model's configuration, as the header of its file holds it."""
    return {"kind": "transformer", **asdict(config)}


def read_config(description: Any) -> TransformerConfig:
    """The configuration that `describe_config` described.

    Raises:
        InputError: The description is not one, or not one of a Transformer.
    """
    fields = dict(description) if isinstance(description, dict) else {}
    kind = fields.pop("kind", None)
    if kind != "transformer":
        raise InputError(f"This describes no Transformer: its kind is {kind!r:.60}.")
    try:
        return TransformerConfig(**fields)
    except TypeError as error:
        raise InputError(f"This is no description of a model: {error}.") from None


def build_model(config: TransformerConfig) -> Transformer:
    """A new model with random weights.

    Raises:
        InputError: It does not fit into the memory.
    """
    layers = config.num_encoder_layers + config.num_decoder_layers
    if layers > MAX_LAYERS:
        raise InputError(f"A model of {layers:,} layers is more than {MAX_LAYERS:,}.")
    try:
        return Transformer(config)
    except (RuntimeError, TypeError, MemoryError) as error:
        raise InputError(
            "A model of these sizes does not fit into the memory of this machine "
            f"({str(error).splitlines()[0]:.200}). Choose smaller ones."
        ) from error


def load_weights(model: Transformer, weights: dict[str, Tensor], path: Path) -> None:
    """Put weights that were read from path into the model.

    Raises:
        InputError: They are those of a model of another shape.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).split("\n")[1].strip()
        raise InputError(
            f"{path} holds the weights of another configuration: {first}"
        ) from None


# ---- the folder of a run


class RunFolder:
    """The files of one run, by name.

    Args:
        path: The folder; it need not exist yet.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = expand(path)
        self.config = self.path / "config.json"
        self.tokenizer = self.path / "tokenizer.model"
        self.log = self.path / "log.jsonl"
        self.best = self.path / "best.safetensors"
        self.average = self.path / "average.safetensors"
        self.state = self.path / "state.safetensors"
        sides = ("source", "target")
        self.pairs = {side: self.path / f"pairs.{side}" for side in sides}

    def __fspath__(self) -> str:
        """The folder's path, for functions that take a path."""
        return str(self.path)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def checkpoints(self, until: int | None = None) -> list[Path]:
        """The checkpoints, oldest first.

        Args:
            until: The last step to look at; a training that was killed may have left
                checkpoints of later steps than its state.
        """
        found: dict[int, Path] = {}
        for path in self.path.glob("step-*.safetensors"):
            if name := re.fullmatch(r"step-(\d+)", path.stem):
                found[int(name[1])] = path
        return [found[step] for step in sorted(found) if until is None or step <= until]

    def weights(self) -> Path:
        """The file to translate with: the average, else the best, else the last.

        Raises:
            InputError: The folder holds none of them.
        """
        for candidate in (self.average, self.best, *reversed(self.checkpoints())):
            if candidate.is_file():
                return candidate
        raise InputError(
            f"{self.path} holds no checkpoint: name the folder that was the output=… "
            "of a training, or one of its .safetensors files."
        )

    def require_free(self, *others: Path) -> None:
        """Refuse a folder that holds what a training alone writes, or other files.

        Raises:
            InputError: It does, and its files would be lost.
        """
        files = (*others, self.state, self.average, *self.checkpoints())
        if any(path.exists() for path in files):
            raise InputError(
                f"{self.path} holds a run or a model already: continue a run with "
                f"{resuming(self.path)}, or choose another folder."
            )

    def require(self) -> None:
        """Refuse to write into a folder that was removed while a training ran.

        Raises:
            InputError: It is gone.
        """
        if not self.config.is_file():
            raise InputError(
                f"{self.path} was moved or removed while the training was writing to "
                f"it. Put it back and go on with {resuming(self.path)}, or begin again."
            )

    def require_same(self, name: str, digest: str, file: object, remedy: str) -> None:
        """Refuse a corpus or a tokenizer that is not the one the run began with.

        Args:
            name: What it is called among the digests of config.json. Older versions
                wrote none; then nothing is refused.
            digest: What it is now.
            file: Where it lies, for the message.
            remedy: What to do, for the message.

        Raises:
            InputError: It has changed.
        """
        try:
            before = read_json(self.config)["digests"][name]
        except (InputError, KeyError, TypeError):  # of an older version, or damaged
            return
        if before != digest:
            raise InputError(
                f"{file} is not what this run was trained with: its sha256 is "
                f"{digest:.12}…, but {before!s:.12}… in {self.config}. {remedy}"
            )

    def save_checkpoint(
        self, weights: dict[str, Tensor], info: dict[str, Any], keep: int
    ) -> Path:
        """Write the weights of a step, and remove all but the newest few."""
        self.require()
        path = self.path / f"step-{info['step']:06d}.safetensors"
        save_tensors(path, weights, info, make_folder=False)
        for old in self.checkpoints(until=info["step"])[:-keep]:
            old.unlink()
        return path

    def mark_best(self, checkpoint: Path) -> None:
        """Keep a copy of this checkpoint as the best one."""
        self.require()
        content = checkpoint.read_bytes()
        with write_atomically(self.best, make_folder=False) as stream:
            stream.write(content)

    def append_log(self, record: dict[str, Any]) -> None:
        """Add one line to the log.

        Raises:
            InputError: The folder is gone, the disk full, …
        """
        self.require()
        with _writing(self.log, in_run=True), self.log.open("ab") as file:
            file.write(f"{json.dumps(record)}\n".encode())

    def read_log(self) -> list[dict[str, Any]]:
        """The log's records, up to a line that a crash has cut off."""
        records: list[dict[str, Any]] = []
        if self.log.is_file():
            for line in self.log.read_bytes().splitlines():
                try:
                    records.append(json.loads(line))
                except (ValueError, RecursionError):
                    break
        return records

    def tidy(self, step: int) -> None:
        """Remove what a killed training left behind, to go on from a step.

        Records and checkpoints of later steps go, since these steps are computed again,
        and so does the average, which is computed again at the end.
        """
        self.require()
        remove_parts(self.path)
        later = set(self.checkpoints()) - set(self.checkpoints(until=step))
        # What begins again, at -1, overwrites its first checkpoint.
        for path in (self.average, *later) if step >= 0 else ():
            with _writing(path, in_run=True):
                path.unlink(missing_ok=True)
        kept = [
            record
            for record in self.read_log()
            if record["step"] <= step and record.get("event") != "average"
        ]
        text = "".join(json.dumps(record) + "\n" for record in kept)
        with write_atomically(self.log, make_folder=False) as stream:
            stream.write(text.encode())

    def has_state(self, first_validation: int) -> bool:
        """Whether a training can go on from a saved state, or must begin again.

        Args:
            first_validation: The step of the first checkpoint. The state is saved right
                after it, so a kill in between leaves one without the other.

        Raises:
            InputError: There is a state but no tokenizer; or the state is missing, but
                there are later checkpoints, an average, or a best one alone, which a
                new beginning would overwrite.
        """
        if self.state.is_file():
            if not self.tokenizer.is_file():
                raise InputError(
                    f"{self.tokenizer} is missing, and this run's weights mean nothing "
                    "without it: put it back. A new one would number other pieces."
                )
            return True
        steps = self.checkpoints()
        later = self.checkpoints(until=first_validation) != steps
        alone = self.best.is_file() and not steps
        if later or alone or self.average.is_file():
            raise InputError(
                f"{self.path} holds no state.safetensors to resume from. Its "
                "checkpoints can translate; to train, choose another output=…"
            )
        return False

    def save_state(self, tensors: dict[str, Tensor], info: dict[str, Any]) -> None:
        """Write what a resumed run starts from."""
        self.require()
        save_tensors(self.state, tensors, info, make_folder=False)

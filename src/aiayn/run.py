"""What a training run leaves on disk: one flat folder that says all about the run.

config.json             every choice, so that the run can be repeated
tokenizer.model         the vocabulary
log.jsonl               one JSON object a line
step-000400.safetensors the last few checkpoints, weights only
best.safetensors        the one of the lowest validation loss
average.safetensors     the mean of the last few, made at the end
state.safetensors       all that a resumed run needs, optimizer included
pairs.*.npy             the training pairs as ids, if they are too many for the memory
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from aiayn.checkpoint import load_info, load_tensors, read_json, save_tensors
from aiayn.errors import InputError
from aiayn.files import remove_parts, write_atomically

# What a line of a log may weigh: more than any of ours.
MAX_RECORD_BYTES = 2**20


class RunFolder:
    """The files of one run, by name.

    Args:
        path: The folder; it need not exist yet.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        self.tokenizer = self.path / "tokenizer.model"
        self.log = self.path / "log.jsonl"
        self.best = self.path / "best.safetensors"
        self.average = self.path / "average.safetensors"
        self.state = self.path / "state.safetensors"
        self.pairs = {
            side: self.path / f"pairs.{side}" for side in ("source", "target")
        }

    def __fspath__(self) -> str:
        """So that whatever takes a path takes a run's folder."""
        return str(self.path)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def checkpoints(self, until: int | None = None) -> list[Path]:
        """The checkpoints that were kept, oldest first.

        Args:
            until: The last step to look at; a training that was killed may have left
                later ones than the step that it now stands at.
        """
        found: dict[int, Path] = {}
        for path in self.path.glob("step-*.safetensors"):
            if name := re.fullmatch(r"step-(\d{1,18})\.safetensors", path.name):
                found[int(name[1])] = path
        steps = sorted(found)
        return [found[step] for step in steps if until is None or step <= until]

    def weights(self) -> Path:
        """The file to translate with: the average, else the best, else the last.

        An average from before the newest checkpoint is passed over: the training went
        on after it.

        Raises:
            InputError: The folder holds none, or the average is damaged.
        """
        steps = self.checkpoints()
        if self.average.is_file():
            until = load_info(self.average).get("step")
            if not isinstance(until, int) or steps == self.checkpoints(until=until):
                return self.average
        for candidate in (self.best, *reversed(steps)):
            if candidate.is_file():
                return candidate
        raise InputError(
            f"{self.path} holds no checkpoint: name the folder of a run, as given to "
            "aiayn train --output, or one of its .safetensors files."
        )

    def is_free(self) -> bool:
        """Whether it holds nothing that a new training would destroy."""
        return not self._holds_weights(best=True)

    def require_no_run(self) -> None:
        """Refuse a folder whose files a training has written.

        Raises:
            InputError: It is such a folder.
        """
        content = read_json(self.config) if self.config.exists() else {}
        described = isinstance(content, dict) and {"model", "output"} <= content.keys()
        if described or self._holds_weights(best=False):
            raise InputError(
                f"{self.path} is the folder of a run, whose files would be lost: "
                "choose another folder."
            )

    def _holds_weights(self, best: bool) -> bool:
        kept = [self.state, self.average, *self.checkpoints()]
        kept += [self.best] if best else []
        return any(path.exists() for path in kept)

    def require(self) -> None:
        """Refuse to write into a folder that was removed under a running training.

        Raises:
            InputError: It is gone; made anew, it would be half a run.
        """
        if not self.config.is_file():
            raise InputError(
                f"{self.path} is no run's folder any more: it was moved or removed "
                "while the training was writing to it, or its disk was taken away. "
                "Put it back and go on with 'aiayn resume', or begin anew."
            )

    def save_checkpoint(
        self, weights: dict[str, Tensor], info: dict[str, Any], keep: int
    ) -> Path:
        """Write the weights of a step and remove all but the newest few."""
        self.require()
        path = self.path / f"step-{info['step']:06d}.safetensors"
        save_tensors(path, weights, info, make_folder=False)
        for old in self.checkpoints(until=info["step"])[:-keep]:
            old.unlink()
        return path

    def drop_later(self, step: int) -> None:
        """Remove checkpoints of steps that were not done: a killed training's."""
        for path in set(self.checkpoints()) - set(self.checkpoints(until=step)):
            path.unlink()

    def mark_best(self, checkpoint: Path) -> None:
        """Keep a copy of this checkpoint as the best one."""
        self.require()
        with (
            checkpoint.open("rb") as content,  # if it is gone, it is not best's fault
            write_atomically(self.best, make_folder=False) as best,
        ):
            shutil.copyfileobj(content, best)

    def append_log(self, record: dict[str, Any]) -> None:
        """Add one line to the log.

        Raises:
            InputError: The folder is gone, the disk full, …
        """
        self.require()
        try:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
        except OSError as error:
            raise InputError(
                f"{self.log} cannot be written: {error.strerror}. Make room, then go "
                f"on with 'aiayn resume {self.path}'; what was saved is whole."
            ) from error

    def read_log(self) -> list[dict[str, Any]]:
        """The log's records, up to a line that was cut off in a crash."""
        if not self.log.is_file():
            return []
        records = []
        with self.log.open("rb") as log:
            while line := log.readline(MAX_RECORD_BYTES):
                try:
                    record = json.loads(line.decode("utf-8", errors="replace"))
                except (ValueError, RecursionError):
                    break
                if not (isinstance(record, dict) and type(record.get("step")) is int):
                    break
                records.append(record)
        return records

    def tidy(self, step: int) -> None:
        """Remove what a killed training left behind, to go on from a step.

        What was logged after it will be done again. So will the average be, at
        whichever step the training now ends.
        """
        self.require()
        remove_parts(self.path)
        kept = [
            record
            for record in self.read_log()
            if record["step"] <= step and record.get("event") != "average"
        ]
        text = "".join(json.dumps(record) + "\n" for record in kept)
        with write_atomically(self.log, make_folder=False) as stream:
            stream.write(text.encode())

    def has_state(self, first_validation: int) -> bool:
        """Whether a training can go on from a saved state, or must begin once more.

        Args:
            first_validation: The step of the first checkpoint. The state is saved right
                after it, so a kill in between leaves one without the other.

        Raises:
            InputError: There are later checkpoints, or an average or a best one alone.
                Their state has gone, and to begin again would overwrite them.
        """
        if self.state.is_file():
            return True
        steps = self.checkpoints()
        alone = self.best.is_file() and not steps
        later = self.checkpoints(until=first_validation) != steps
        if later or alone or self.average.is_file():
            raise InputError(
                f"{self.path} holds no state.safetensors, so there is nothing to "
                "resume. Its checkpoints can translate; to train, begin with 'aiayn "
                "train' and another --output."
            )
        return False

    def save_state(self, tensors: dict[str, Tensor], info: dict[str, Any]) -> None:
        """Write what a resumed run starts from."""
        self.require()
        save_tensors(self.state, tensors, info, make_folder=False)

    def load_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What a resumed run starts from.

        Raises:
            InputError: It is damaged.
        """
        return load_tensors(self.state)

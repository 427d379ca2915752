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
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor

from aiayn.checkpoint import load_tensors, save_tensors
from aiayn.errors import InputError
from aiayn.files import write_atomically


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

    def checkpoints(self) -> list[Path]:
        """The checkpoints that were kept, oldest first."""
        return sorted(self.path.glob("step-*.safetensors"))

    def weights(self) -> Path:
        """The file to translate with: the average, else the best, else the last.

        Raises:
            InputError: The folder holds none.
        """
        for candidate in (self.average, self.best, *reversed(self.checkpoints())):
            if candidate.is_file():
                return candidate
        raise InputError(
            f"{self.path} holds no checkpoint: name the folder of a run, as given to "
            "aiayn train --output, or one of its .safetensors files."
        )

    def save_checkpoint(
        self, weights: dict[str, Tensor], info: dict[str, Any], keep: int
    ) -> Path:
        """Write the weights of a step and remove all but the newest few."""
        path = self.path / f"step-{info['step']:06d}.safetensors"
        save_tensors(path, weights, info)
        for old in self.checkpoints()[:-keep]:
            old.unlink()
        return path

    def mark_best(self, checkpoint: Path) -> None:
        """Keep a copy of this checkpoint as the best one."""
        with write_atomically(self.best) as best, checkpoint.open("rb") as content:
            shutil.copyfileobj(content, best)

    def append_log(self, record: dict[str, Any]) -> None:
        """Add one line to the log."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def read_log(self) -> list[dict[str, Any]]:
        """The log's records; a last line that was cut off in a crash is left out."""
        if not self.log.is_file():
            return []
        records = []
        for line in self.log.read_text(encoding="utf-8").split("\n"):
            try:
                records.append(json.loads(line))
            except ValueError:
                break
        return records

    def rewind_log(self, step: int) -> None:
        """Forget what was logged after a step, because it will be done again."""
        kept = [record for record in self.read_log() if record["step"] <= step]
        text = "".join(json.dumps(record) + "\n" for record in kept)
        with write_atomically(self.log) as stream:
            stream.write(text.encode())

    def load_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What a resumed run starts from.

        Raises:
            InputError: There is nothing to resume, or the file is damaged.
        """
        if not self.state.is_file():
            raise InputError(
                f"{self.path} holds no state.safetensors, so there is nothing to "
                "resume: begin with 'aiayn train'."
            )
        return load_tensors(self.state)

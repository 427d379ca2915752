"""§5.3: Adam for all weights, or Muon for those of linear layers; and their state."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from aiayn.errors import InputError
from aiayn.training.config import TrainingConfig
from aiayn.training.muon import Muon


class Optimizers:
    """Adam for all weights, or Muon for those of linear layers and Adam for the rest.

    Args:
        model: The model to train, on the device where it will be trained.
        config: The optimizer's name, and Adam's β and ε.
        dtype: The type of Muon's matrix products; None: the weights' own.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainingConfig,
        dtype: torch.dtype | None = None,
    ) -> None:
        linear = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
        muons = {id(w) for w in linear if config.optimizer == "muon"}
        weights = dict(model.named_parameters())
        self.matrices = {n: w for n, w in weights.items() if id(w) in muons}
        self.others = {n: w for n, w in weights.items() if id(w) not in muons}
        self.device = next(model.parameters()).device
        # A CUDA graph reads the learning rate, which changes at every step, from the
        # GPU's memory.
        on_gpu = self.device.type == "cuda"
        self.adam = torch.optim.Adam(
            self.others.values(),
            lr=torch.zeros((), device=self.device) if on_gpu else 0.0,
            betas=config.betas,
            eps=config.epsilon,
            fused=self.device.type != "mps",
            capturable=on_gpu,
        )
        self.muon = Muon([{"params": [*self.matrices.values()]}], dtype=dtype)

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the next step."""
        for optimizer in (self.adam, self.muon):
            for group in optimizer.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate)
                else:
                    group["lr"] = rate

    def step(self) -> None:
        """Update every weight that has a gradient."""
        self.adam.step()
        self.muon.step()

    def state(self) -> tuple[dict[str, Tensor], list[float]]:
        """Running means for every weight, and Adam's count of steps for each of its.

        The names are ``mean.`` and ``variance.``, followed by the weight's.
        """
        tensors = {f"mean.{n}": self.muon.mean(w) for n, w in self.matrices.items()}
        counts = []
        for name, weight in self.others.items():
            state = self.adam.state[weight]
            if not state:  # before the first step, or if it never has a gradient
                zeros = torch.zeros_like(weight)
                state = {"exp_avg": zeros, "exp_avg_sq": zeros.clone(), "step": 0}
            tensors[f"mean.{name}"] = state["exp_avg"]
            tensors[f"variance.{name}"] = state["exp_avg_sq"]
            counts.append(float(state["step"]))
        return tensors, counts

    def load_state(self, tensors: dict[str, Tensor], counts: Any, path: Path) -> None:
        """Restore what `state` returned.

        Args:
            tensors: The running means, among others.
            counts: Adam's counts.
            path: Where both were read, for messages.

        Raises:
            InputError: It is the state of another model or optimizer.
        """
        own, own_counts = self.state()
        expected = {name: (t.shape, t.dtype) for name, t in own.items()}
        found = {name: (t.shape, t.dtype) for name, t in tensors.items()}
        if not expected.items() <= found.items() or len(counts) != len(own_counts):
            raise InputError(
                f"{path} is not the state of this training: it is that of another "
                "model or optimizer. Start a new run with 'aiayn train'."
            )
        # Copies, because what was read may still be mapped from the file, which the
        # next save replaces.
        copies = {name: tensors[name].to(self.device, copy=True) for name in own}
        # torch itself counts in the weights' memory if one kernel updates all of them.
        counting = self.device if self.adam.defaults["fused"] else "cpu"
        for (name, weight), count in zip(self.others.items(), counts, strict=True):
            self.adam.state[weight] = {
                "step": torch.tensor(count, device=counting),
                "exp_avg": copies[f"mean.{name}"],
                "exp_avg_sq": copies[f"variance.{name}"],
            }
        for name, weight in self.matrices.items():
            self.muon.state[weight] = {"mean": copies[f"mean.{name}"]}

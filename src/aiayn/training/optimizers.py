"""§5.3: what moves the weights, and what it has to remember from step to step."""

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
        model: Whose weights; it is where it will be trained.
        config: Which of the two, and Adam's β and ε.
        dtype: What Muon multiplies in; None: the weights' own.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainingConfig,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.weights = dict(model.named_parameters())
        self.matrices = {}  # Muon's
        if config.optimizer == "muon":
            linear = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
            known = {id(weight) for weight in linear}
            self.matrices = {n: w for n, w in self.weights.items() if id(w) in known}
        self.device = next(model.parameters()).device
        # Rates are set anew at every step, on a GPU where a recorded one finds them.
        on_a_gpu = self.device.type == "cuda"
        self.adam = torch.optim.Adam(
            [w for name, w in self.weights.items() if name not in self.matrices],
            lr=torch.zeros((), device=self.device) if on_a_gpu else 0.0,
            betas=config.betas,
            eps=config.epsilon,
            fused=self.device.type != "mps",
            capturable=on_a_gpu,
        )
        self.muon = Muon([{"params": [*self.matrices.values()]}], dtype=dtype)

    def set_rate(self, rate: float) -> None:
        """Choose the next step's learning rate."""
        for optimizer in (self.adam, self.muon):
            for group in optimizer.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(rate)
                else:
                    group["lr"] = rate

    def step(self) -> None:
        """Move every weight that has a gradient."""
        self.adam.step()
        self.muon.step()

    def state(self) -> tuple[dict[str, Tensor], list[float]]:
        """All tensors that the next step depends on, and Adam's counts of its steps."""
        tensors, counts = {}, []
        for name, weight in self.weights.items():
            if name in self.matrices:
                tensors[f"mean.{name}"] = self.muon.mean(weight)
                continue
            state = self.adam.state[weight]
            if not state:  # it has no gradient: an encoder whose decoder has no layer
                nothing = torch.zeros_like(weight)
                state = {"exp_avg": nothing, "exp_avg_sq": nothing.clone(), "step": 0}
            tensors[f"mean.{name}"] = state["exp_avg"]
            tensors[f"variance.{name}"] = state["exp_avg_sq"]
            counts.append(float(state["step"]))
        return tensors, counts

    def load_state(self, tensors: dict[str, Tensor], counts: Any, path: Path) -> None:
        """Take up what `state` returned and path held.

        Raises:
            InputError: It is the state of another model, or none at all.
        """
        self._check_state(tensors, counts, path)

        def copy(name: str) -> Tensor:
            # What was read may still lie in the file, which the next save replaces.
            # Windows replaces no file that somebody has mapped.
            return tensors[name].to(self.device, copy=True)

        # Where torch itself counts: beside the weights if one kernel does all.
        counting = self.device if self.adam.defaults["fused"] else "cpu"
        adams = (name for name in self.weights if name not in self.matrices)
        for name, count in zip(adams, counts, strict=True):
            self.adam.state[self.weights[name]] = {
                "step": torch.tensor(count, device=counting),
                "exp_avg": copy(f"mean.{name}"),
                "exp_avg_sq": copy(f"variance.{name}"),
            }
        for name, weight in self.matrices.items():
            self.muon.state[weight] = {"mean": copy(f"mean.{name}")}

    def _check_state(self, tensors: dict[str, Tensor], counts: Any, path: Path) -> None:
        """The means must have the weights' names, shapes and types."""
        expected = {f"mean.{name}": weight for name, weight in self.weights.items()}
        expected |= {
            f"variance.{name}": weight
            for name, weight in self.weights.items()
            if name not in self.matrices
        }
        fits = (
            isinstance(counts, list)
            and len(counts) == len(self.weights) - len(self.matrices)
            and all(type(count) is float and 0 <= count < 2**53 for count in counts)
            and all(
                (mean := tensors.get(name)) is not None
                and mean.shape == weight.shape
                and mean.dtype == weight.dtype
                for name, weight in expected.items()
            )
        )
        if not fits:
            raise InputError(
                f"{path} is no state of this training: its optimizer's part is "
                "damaged, or that of another model or optimizer. Begin anew with "
                "'aiayn train'."
            )

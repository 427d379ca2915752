"""§5.3: Adam for all weights, or Muon for those of linear layers."""

import torch
from torch import Tensor, nn

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
        self, model: nn.Module, config: TrainingConfig, dtype: torch.dtype | None = None
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
        if self.matrices:
            self.muon.step()

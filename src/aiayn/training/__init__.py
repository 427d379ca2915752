"""§5 of the paper: how the model learns."""

from aiayn.training.averaging import average_checkpoints
from aiayn.training.config import TrainingConfig
from aiayn.training.label_smoothing import label_smoothed_cross_entropy
from aiayn.training.loss import Criterion
from aiayn.training.muon import Muon, orthogonalized
from aiayn.training.schedule import noam_rate
from aiayn.training.train import TrainingResult, resume_training, train
from aiayn.training.trainer import Trainer

__all__ = [
    "Criterion",
    "Muon",
    "Trainer",
    "TrainingConfig",
    "TrainingResult",
    "average_checkpoints",
    "label_smoothed_cross_entropy",
    "noam_rate",
    "orthogonalized",
    "resume_training",
    "train",
]

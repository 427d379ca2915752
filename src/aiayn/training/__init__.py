"""§5 of the paper: how the model learns."""

from aiayn.training.averaging import average_checkpoints
from aiayn.training.config import TrainingConfig
from aiayn.training.loss import (
    Criterion,
    label_smoothed_cross_entropy,
    smoothing_floor,
)
from aiayn.training.muon import Muon, orthogonalized
from aiayn.training.schedule import noam_rate
from aiayn.training.start import TrainingResult, resume_training, train
from aiayn.training.trainer import Trainer
from aiayn.training.variations import (
    choose_rows,
    miniature,
    miniature_model,
    run_table3,
    run_variation,
)

__all__ = [
    "Criterion",
    "Muon",
    "Trainer",
    "TrainingConfig",
    "TrainingResult",
    "average_checkpoints",
    "choose_rows",
    "label_smoothed_cross_entropy",
    "miniature",
    "miniature_model",
    "noam_rate",
    "orthogonalized",
    "resume_training",
    "run_table3",
    "run_variation",
    "smoothing_floor",
    "train",
]

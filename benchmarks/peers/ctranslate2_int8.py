"""CTranslate2 as it is often used: its products take eight bits a number."""

from pathlib import Path

import torch
from ctranslate2 import Translator

from benchmarks.peers import ctranslate2

searcher = ctranslate2.searcher


def trained(folder: Path, device: torch.device) -> Translator:
    """Our weights, rounded to eight bits."""
    return ctranslate2.trained(folder, device, compute_type="int8")

"""CTranslate2 as it is often used: its products take eight bits a number."""

from pathlib import Path

from ctranslate2 import Translator

from benchmarks.peers import ctranslate2

searcher = ctranslate2.searcher


def trained(folder: Path) -> Translator:
    """Our weights, rounded to eight bits."""
    return ctranslate2.trained(folder, compute_type="int8")

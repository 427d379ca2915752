"""The embedded grammar as a corpus: English and German, or English and its trees."""

from functools import lru_cache

from aiayn.data import grammar
from aiayn.data.parallel import ParallelText
from aiayn.data.trees import TREES, tree_pairs

DIRECTIONS = ("en-de", "de-en", f"en-{TREES}")
LICENCE = "Made by this package; no rights are claimed in its sentences."
CITATION = "The grammar embedded in aiayn."


@lru_cache(maxsize=1)  # a notebook loads the grammar, and then its training does
def load(
    source: str,
    target: str,
    size: int = grammar.TRAIN_SIZE,
    held_out_size: int = grammar.HELD_OUT_SIZE,
    seed: int = 0,
) -> dict[str, ParallelText]:
    """The four splits of the grammar: train, validation, test and combinations."""
    splits = {}
    for split, count in grammar.split_sizes(size, held_out_size).items():
        if target == TREES:
            samples = grammar.generate(count, seed=seed, split=split)
            splits[split] = tree_pairs(sample.source_tree for sample in samples)
        else:
            pairs = grammar.generate_pairs(count, seed=seed, split=split)
            splits[split] = ParallelText.from_pairs(pairs, swap=source == "de")
    return splits

"""§6.3 of the paper: the model that translates parses English, too.

Trees as strings are in `aiayn.data.trees`, since corpora are made of them. Here a
model's output becomes a tree again (`parse`, `repair`) and is scored by its brackets.

Paper: §6.3.
"""

from aiayn.data.trees import (
    Span,
    Tree,
    delinearise,
    linearise,
    parse_tree,
    tree_pairs,
    with_tags,
)
from aiayn.parsing.parser import Parse, parse, repair
from aiayn.parsing.scores import BracketScore, bracket_score, brackets, score_parses
from aiayn.parsing.treebank import load_treebank

__all__ = [
    "BracketScore",
    "Parse",
    "Span",
    "Tree",
    "bracket_score",
    "brackets",
    "delinearise",
    "linearise",
    "load_treebank",
    "parse",
    "parse_tree",
    "repair",
    "score_parses",
    "tree_pairs",
    "with_tags",
]

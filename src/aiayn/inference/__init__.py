"""§6.1 of the paper: search, and the scores of what it finds."""

from aiayn.inference.attention_map import (
    AttentionMap,
    cross_attention_map,
    render_attention,
)
from aiayn.inference.beam import beam_search, beam_search_n_best
from aiayn.inference.evaluation import (
    BleuResult,
    PerplexityResult,
    evaluate_bleu,
    exact_match_rate,
    perplexity,
)
from aiayn.inference.greedy import greedy_search
from aiayn.inference.hypothesis import (
    Hypothesis,
    eval_mode,
    gnmt_length_penalty,
    output_limits,
)
from aiayn.inference.loading import load_translator, save_translator
from aiayn.inference.stream import translate_stream
from aiayn.inference.translation import translate

__all__ = [
    "AttentionMap",
    "BleuResult",
    "Hypothesis",
    "PerplexityResult",
    "beam_search",
    "beam_search_n_best",
    "cross_attention_map",
    "eval_mode",
    "evaluate_bleu",
    "exact_match_rate",
    "gnmt_length_penalty",
    "greedy_search",
    "load_translator",
    "output_limits",
    "perplexity",
    "render_attention",
    "save_translator",
    "translate",
    "translate_stream",
]

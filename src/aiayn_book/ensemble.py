"""Table 2's ensembles: several models write one translation together.

The paper beats ensembles with a single model, and uses none itself. An ensemble asks
every model for the next token's probabilities and goes on with their mean. So it is a
model too, and any search can use it. The mean of several checkpoints' *weights* (§6.1)
is another thing: one model, as cheap as one.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from aiayn.data import Tokenizer
from aiayn.errors import InputError
from aiayn.inference import load_translator
from aiayn.inference.hypothesis import log_softmax
from aiayn.storage import refuse_path

__all__ = ["Ensemble", "load_ensemble"]


@dataclass
class EnsembleState:
    """Where each model stands.

    Args:
        states: One a model.
    """

    states: list[Any]

    def reorder(
        self,
        hypotheses: Int[Tensor, " kept_hypotheses"],
        sentences: Int[Tensor, " kept_sentences"] | None = None,
    ) -> None:
        """Keep these hypotheses and sentences, as `DecoderCache.reorder` does."""
        for state in self.states:
            state.reorder(hypotheses, sentences)


class Ensemble(nn.Module):
    r"""Several translators as one: each next token has the mean of their probabilities.

    $$p(y_t \mid y_1, …, y_{t-1}, X) = \frac{1}{n} \sum_{i=1}^{n} p_i(y_t \mid y_1, …,
    y_{t-1}, X)$$

    It computes what all of them compute, and where a `Transformer` gives logits it
    gives the logarithms of that mean.

    Args:
        models: Translators with one vocabulary, of any kind and size, all on one
            device; a search moves the source there.

    Raises:
        InputError: There are none, or their vocabularies differ in size.

    Paper: Table 2 sets its single models beside ensembles of others.

    >>> from aiayn import Transformer, TransformerConfig, beam_search
    >>> models = [Transformer(TransformerConfig.tiny(vocab_size=20)) for _ in range(3)]
    >>> source, ends = torch.tensor([[5, 6, 2]]), {"bos_id": 1, "eos_id": 2}
    >>> [best] = beam_search(Ensemble(models), source, max_length=6, **ends)
    >>> len(best.tokens) < 6  # the end token included
    True
    """

    def __init__(self, models: Sequence[Any]) -> None:
        super().__init__()
        if not models:
            raise InputError("An ensemble needs at least one model.")
        kinds = {(model.config.vocab_size, model.config.pad_id) for model in models}
        if len(kinds) > 1:
            sizes = ", ".join(f"{model.config.vocab_size:,}" for model in models)
            raise InputError(
                f"The models of an ensemble must share one vocabulary; theirs have "
                f"{sizes} entries."
            )
        self.models: Any = nn.ModuleList(models)
        # Of the one that can write least: its table of positions is a limit for all.
        self.config = min((model.config for model in models), key=_most_tokens)

    def forward(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Float[Tensor, "batch target_length vocab"]:
        """Log-probabilities of the token after each of the target's."""
        return _mean(model(source, target) for model in self.models)

    def decoder_hidden(
        self,
        source: Int[Tensor, "batch source_length"],
        target: Int[Tensor, "batch target_length"],
    ) -> Tensor:
        """What every model would project onto the vocabulary, side by side.

        Returns:
            (batch, target_length, the sum of the models' widths).
        """
        return torch.cat(
            [model.decoder_hidden(source, target) for model in self.models], -1
        )

    def logits(self, states: Tensor) -> Float[Tensor, "*batch vocab"]:
        """From those states to log-probabilities."""
        parts = states.split([model.config.d_model for model in self.models], dim=-1)
        return _mean(
            model.logits(part) for model, part in zip(self.models, parts, strict=True)
        )

    def init_decode(
        self, source: Int[Tensor, "sentences source_length"]
    ) -> EnsembleState:
        """Every model reads the source."""
        return EnsembleState([model.init_decode(source) for model in self.models])

    def decode_step(
        self, tokens: Int[Tensor, " hypotheses"], state: EnsembleState
    ) -> Float[Tensor, "hypotheses vocab"]:
        """Every model reads one token a hypothesis; log-probabilities of the next."""
        return _mean(
            model.decode_step(tokens, own)
            for model, own in zip(self.models, state.states, strict=True)
        )


def load_ensemble(
    paths: Iterable[Path | str], device: torch.device | str = "cpu"
) -> tuple[Ensemble, Tokenizer]:
    """Load several trained models that write together, and the tokenizer they share.

    Args:
        paths: As for `load_translator`, one a model.
        device: Where the models shall compute.

    Returns:
        The ensemble, in evaluation mode, and the tokenizer.

    Raises:
        InputError: As `load_translator`; or a model was trained with another tokenizer
            than the first; or paths is one path.

    Paper: Table 2 sets its single models beside ensembles of others.

    Runs of several seeds make a good one; two checkpoints of one run show how it goes:

    >>> from aiayn import translate
    >>> paths = "runs/grammar/average.safetensors", "runs/grammar/best.safetensors"
    >>> model, tokenizer = load_ensemble(paths)  # after a training
    >>> [german] = translate(["The old dog sleeps."], model, tokenizer)
    """
    refuse_path(paths)
    paths = list(paths)  # of a glob, say, which can be read but once
    found = [load_translator(path, device) for path in paths]
    for path, (_, tokenizer) in zip(paths, found, strict=True):
        if tokenizer.digest != found[0][1].digest:
            raise InputError(
                f"{path} was trained with another tokenizer than {paths[0]}: to write "
                "together, models must share one. Train both on the same corpus with "
                "the same --model.vocab-size."
            )
    return Ensemble([model for model, _ in found]).eval(), found[0][1]


def _most_tokens(config: Any) -> float:
    """The longest sequence that a model has positions for: sinusoids have no end."""
    learned = getattr(config, "positions", None) == "learned"
    return float(config.max_length) if learned else math.inf


def _mean(logits: Iterable[Tensor]) -> Tensor:
    """The logarithm of the mean of the models' probabilities."""
    log_probs = torch.stack([log_softmax(scores) for scores in logits])
    return log_probs.logsumexp(dim=0) - math.log(len(log_probs))

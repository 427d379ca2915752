"""§6.1: what every search shares: hypotheses, their score, how long they may become.

The paper leaves open what counts as a length. Here an output's length counts its end
token, as tensor2tensor counts it, and so does an input's.

Neither padding nor the start token is ever written. The paper is silent here too, but
no training target holds them (the loss skips padding, and the start token stands before
the first label), so the model's opinion of them means nothing.
"""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from aiayn.errors import InputError
from aiayn.machine import attend_without_plans


@dataclass(frozen=True, slots=True)
class Hypothesis:
    r"""One output of a search.

    $$\mathrm{score}(Y) = \log p(Y \mid X) / lp(Y)$$

    Paper: §6.1.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> source = torch.tensor([[5, 6, 2]])
    >>> [best] = beam_search(model, source, bos_id=1, eos_id=2, max_length=6)
    >>> penalty = gnmt_length_penalty(len(best.tokens) + 1, alpha=0.6)  # and the end
    >>> abs(best.score - best.log_probability / penalty) < 1e-5  # in 32 bits
    True
    """

    tokens: list[int]
    """The pieces that were written, without start and end token."""
    log_probability: float
    """Natural logarithm of the model's probability, the end token's included."""
    score: float
    """What hypotheses are ranked by: log_probability over the length penalty."""


@runtime_checkable
class Searchable(Protocol):
    """What a search needs of a model, as `Transformer` has it.

    Rows of tokens and state are hypotheses, ordered by sentence, equally many for each.
    """

    @property
    def config(self) -> Any:
        """Holds pad_id."""

    def start(self, source: Tensor) -> Any:
        """Read the source and return a state with one hypothesis a sentence."""

    def step(self, tokens: Tensor, state: Any) -> Tensor:
        """Read one token a hypothesis and return logits of the next: (rows, vocab)."""
        ...

    def eval(self) -> Any:
        """Switch dropout off."""

    def modules(self) -> Iterator[nn.Module]:
        """The model and all its parts."""
        ...


def gnmt_length_penalty(length: int | Tensor, alpha: float) -> Any:
    r"""What a log-probability is divided by, so that long outputs stand a chance.

    $$lp(Y) = \left(\frac{5 + |Y|}{6}\right)^α$$

    Args:
        length: |Y|, the tokens of an output, its end token included.
        alpha: 0: no penalty at all; 1: one that grows in proportion to 5 + |Y|.

    Paper: §6.1, α = 0.6; Wu et al. (2016), equation (14).

    >>> gnmt_length_penalty(7, alpha=0.5)
    1.4142135623730951
    """
    return ((5 + length) / 6) ** alpha


def output_limits(
    model: Searchable,
    source: Int[Tensor, "sentences source_length"],
    extra_length: int = 50,
    max_length: int | None = None,
) -> Int[Tensor, " sentences"]:
    """The most tokens that each sentence's output may have, its end token included.

    $$|Y| ≤ |X| + 50$$

    Args:
        model: Its table of learned positions, if it has one, is a limit as well.
        source: Padded token ids; padding does not count.
        extra_length: An output may have this many tokens more than its input.
        max_length: None, or a limit for every output.

    Raises:
        InputError: A limit makes no sense, or source has another shape.

    Paper: §6.1, 'maximum output length during inference to input length + 50'.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> output_limits(model, torch.tensor([[5, 6, 2], [7, 2, 0]]))
    tensor([53, 52])
    """
    if not isinstance(source, Tensor) or source.dim() != 2:
        raise InputError("source must hold token ids of shape (sentences, length).")
    if extra_length < 0 or (max_length is not None and max_length < 1):
        raise InputError(
            "extra_length must not be negative and max_length must be at least 1, not "
            f"{extra_length} and {max_length}."
        )
    limits = (source != model.config.pad_id).sum(dim=1) + extra_length
    if getattr(model.config, "positions", None) == "learned":
        limits = limits.clamp(max=model.config.max_length)
    return limits.clamp(min=1, max=max_length)


def check_ends(model: Searchable, bos_id: int, eos_id: int) -> None:
    """Refuse an end token that is never written: only the limit would end an output.

    Raises:
        InputError: It is the start token too, as in some models, or the padding; or one
            of the two is no token.
    """
    size = getattr(model.config, "vocab_size", math.inf)
    for name, token in (("bos_id", bos_id), ("eos_id", eos_id)):
        if not 0 <= token < size:
            raise InputError(
                f"{name} = {token} is no token: vocab_size = {size} allows 0 to "
                f"{size - 1}."
            )
    if eos_id in (bos_id, model.config.pad_id):
        raise InputError(
            f"eos_id = {eos_id} must differ from bos_id = {bos_id} and from pad_id = "
            f"{model.config.pad_id}, which are never written: train the model with an "
            "end token of its own."
        )


# How many blocks of `evaluating` are open for a module, and what it was in before.
_evaluated: dict[nn.Module, tuple[int, bool]] = {}
_counting = threading.Lock()


@contextmanager
def evaluating(model: Searchable) -> Iterator[None]:
    """No dropout and no gradients inside; afterwards each module is as it was.

    Nor, on a GPU, any plan that cuDNN would make for each step's attention. Where
    threads share a model, it is as it was when the last of their blocks ends.

    Args:
        model: What is to be evaluated.

    Paper: §5.4, whose dropout is for training.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> with evaluating(model):
    ...     model.training, torch.is_grad_enabled()
    (False, False)
    >>> model.training
    True
    """
    modules = [*model.modules()]
    with _counting:
        for module in modules:
            count, training = _evaluated.get(module, (0, module.training))
            _evaluated[module] = count + 1, training
        model.eval()
    try:
        device = device_of(model) or torch.device("cpu")
        with torch.inference_mode(), attend_without_plans(device):
            yield
    finally:
        with _counting:
            for module in modules:
                count, training = _evaluated.pop(module)
                if count > 1:
                    _evaluated[module] = count - 1, training
                elif training:
                    module.training = True


def device_of(model: Searchable) -> torch.device | None:
    """Where the model computes, that is, has its weights; None: it has none."""
    weights = (weight for module in model.modules() for weight in module.parameters())
    return next((weight.device for weight in weights), None)


def moved_to(model: Searchable, source: Any) -> Any:
    """The source where the model computes; what is no tensor is refused later."""
    device = device_of(model)
    if device is None or not isinstance(source, Tensor):
        return source
    return source.to(device)


def log_softmax(logits: Float[Tensor, "... vocab"]) -> Float[Tensor, "... vocab"]:
    """Logits to log-probabilities, in float32 at least, for half adds up badly."""
    return logits.log_softmax(-1, torch.promote_types(logits.dtype, torch.float32))


def next_log_probs(
    model: Searchable, tokens: Int[Tensor, " rows"], state: Any, bos_id: int
) -> Float[Tensor, "rows vocab"]:
    """Log-probabilities of each hypothesis's next token; -inf: never to be written."""
    log_probs = log_softmax(model.step(tokens, state))
    log_probs[:, model.config.pad_id] = -math.inf
    log_probs[:, bos_id] = -math.inf
    return log_probs


def force_end(
    log_probs: Float[Tensor, "rows vocab"], rows: Bool[Tensor, " rows"], eos_id: int
) -> None:
    """Leave the rows that have reached their limit no token but the end, in place."""
    end = log_probs[:, eos_id].clone()
    log_probs.masked_fill_(rows[:, None], -math.inf)
    log_probs[:, eos_id] = end


def refuse_nan(scores: Float[Tensor, "..."]) -> None:
    """A model that scores with NaN would yield any output at all; say so instead."""
    if scores.isnan().any():
        raise InputError(
            "The model's scores are no numbers (NaN): its weights are damaged, or its "
            "training diverged. Use an earlier checkpoint."
        )

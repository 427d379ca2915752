"""§3, one stack of it: the language model of chapter 23, and how its sizes are trained.

The record of the chapter's scaling curve is made by this module
(``tools/records/scaling.py``), and the chapter runs the same code again for the two
smallest sizes. Differs from the paper: no encoder, no cross-attention, pre-norm, and
a text that goes on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import fast
from aiayn.data.grammar import GrammarSample, generate
from aiayn.errors import InputError
from aiayn.model import Transformer, TransformerConfig, causal_mask

WIDTHS = (8, 16, 32, 64, 96, 128)
"""d_model of the six sizes; everything else follows from it."""
SEEDS = (0, 1, 2)
STEPS = 800
ROWS, ROW = 8, 64
"""Rows a step, and tokens a row."""
RATE = 0.03
"""Peak learning rate of a model of width 1."""
SPECIAL = ("</s>", "<unk>")
FIRST, HELD_OUT = 20_000, 600
"""Pairs from which the vocabulary is taken, and pairs held out."""


class LanguageModel(Transformer):
    """The library's encoder with a causal mask: each token predicts the next.

    Args:
        config: Its sizes, without decoder layers.
    """

    if TYPE_CHECKING:  # one text, not two
        __call__: Callable[..., Tensor]  # pyright: ignore[reportIncompatibleVariableOverride]

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  (one text, not two)
        self, tokens: Int[Tensor, "batch length"]
    ) -> Float[Tensor, "batch length vocab"]:
        """Score what follows each token, from what stands before it."""
        embedded = self.embedding("source")(tokens)
        x = self.source_positions(embedded)
        mask = causal_mask(tokens.size(1))
        x, _ = self.encoder(self.dropout(x), mask)
        return self.logits(x)


def sized(width: int, vocab_size: int) -> TransformerConfig:
    """Two layers of heads of width 8, with the paper's d_ff = 4 d_model."""
    return TransformerConfig(
        vocab_size=vocab_size,
        d_model=width,
        d_ff=4 * width,
        num_heads=width // 8,
        num_encoder_layers=2,
        num_decoder_layers=0,
        dropout=0.0,
        norm="pre",
    )


@dataclass(frozen=True)
class Text:
    """Sentences and their translations, one after another, cut into rows."""

    words: tuple[str, ...]
    """The vocabulary; token 0 ends a sentence, token 1 is any other word."""
    training: Int[Tensor, "rows row_and_next"]
    """A longer text begins with a shorter one."""
    held_out: Int[Tensor, "held_out_rows row_and_next"]
    """Of the grammar's test split."""


def make_text(steps: int = STEPS) -> Text:
    """Draw as much text as so many steps read, and what is held out."""
    tokens = steps * ROWS * ROW
    # A pair has 17 or 18 tokens on average; the words of the first are all words.
    training = generate(max(FIRST, tokens // 16), seed=23)
    held_out = generate(HELD_OUT, seed=23, split="test")
    known = chain.from_iterable(map(_tokens, training[:FIRST]))
    words = (*SPECIAL, *sorted(set(known) - set(SPECIAL)))
    number = {word: i for i, word in enumerate(words)}

    def rows(samples: Sequence[GrammarSample]) -> Tensor:
        stream = chain(SPECIAL[:1], *map(_tokens, samples))
        numbers = torch.tensor([number.get(word, 1) for word in stream])
        return numbers.unfold(0, ROW + 1, ROW)  # (rows, ROW + 1)

    return Text(words, rows(training)[: steps * ROWS], rows(held_out))


def _tokens(sample: GrammarSample) -> tuple[str, ...]:
    end = SPECIAL[0]
    return (*sample.source_tokens, end, *sample.target_tokens, end)


def held_out_loss(model: LanguageModel, text: Text) -> float:
    """Cross-entropy a token, in nats."""
    with torch.no_grad():
        logits = model(text.held_out[:, :-1]).flatten(0, 1)
        return F.cross_entropy(logits, text.held_out[:, 1:].flatten()).item()


PUNCTUATION = frozenset(".,?")
KINDS = ("English words", "German words", "punctuation", "end of sentence")
"""Of the tokens of a text."""


def token_kinds(text: Text) -> Int[Tensor, "tokens"]:
    """For each held-out token that is predicted, which of `KINDS` it is."""
    ends = (text.held_out[:, :-1].flatten() == 0).cumsum(0)
    predicted = text.held_out[:, 1:].flatten()
    kinds = 1 - ends % 2  # after the first end comes English, after the next German
    marks = [i for i, word in enumerate(text.words) if word in PUNCTUATION]
    kinds[torch.isin(predicted, torch.tensor(marks))] = 2
    kinds[predicted == 0] = 3
    return kinds


def losses_by_kind(model: LanguageModel, text: Text) -> dict[str, float]:
    """Cross-entropy a token, in nats, for each of `KINDS`."""
    kinds = token_kinds(text)
    with torch.no_grad():
        logits = model(text.held_out[:, :-1]).flatten(0, 1)
    target = text.held_out[:, 1:].flatten()
    losses = F.cross_entropy(logits, target, reduction="none")
    return {
        name: losses[kinds == number].mean().item() for number, name in enumerate(KINDS)
    }


def require_steps(steps: int, text: Text) -> None:
    """Raise an `InputError` unless `train_size` can take so many steps of the text.

    With fewer than 20, no step of a warm-up that is their tenth is at the peak.
    """
    if not 20 <= steps <= len(text.training) // ROWS:
        raise InputError(
            f"steps is {steps}, but at least 20 are needed, for the warm-up, and "
            f"{len(text.training) // ROWS} are what the text is long enough for: "
            "make_text(steps) makes a longer one."
        )


def train_size(
    width: int, seed: int, text: Text, steps: int = STEPS, rate: float = RATE
) -> LanguageModel:
    """Train one size once through the beginning of the text.

    No size has a rate of its own: the peak falls as d_model^-0.5, as in the paper's
    equation (3). The rate warms up for a tenth of the steps, then falls to zero.

    Raises:
        InputError: The steps are too few for that, or too many for the text.
    """
    require_steps(steps, text)
    torch.manual_seed(seed)
    model = fast.accelerate(LanguageModel(sized(width, len(text.words))))
    order = torch.randperm(steps * ROWS).view(steps, ROWS)
    peak = rate * width**-0.5
    optimiser = torch.optim.Adam(model.parameters(), peak, (0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, peak, steps, pct_start=0.1, cycle_momentum=False
    )
    for batch in order:
        tokens = text.training[batch]  # (ROWS, ROW + 1)
        logits = model(tokens[:, :-1]).flatten(0, 1)
        loss = F.cross_entropy(logits, tokens[:, 1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model

"""§6.1: BLEU, and the perplexity of Table 3.

The paper's BLEU is that of a script on split and tokenised text; ours is sacreBLEU's
(Post, 2018) on plain text, with the signature that says how it was computed; scores of
the two must not be compared. Perplexity is per piece, as in Table 3: it compares only
models with the same vocabulary.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch.nn import functional as F

from aiayn.data import Batch
from aiayn.data.tokenizer import checked_lines
from aiayn.errors import InputError
from aiayn.inference.hypothesis import eval_mode, log_softmax
from aiayn.model import Transformer, shift_right

# Positions whose logits are computed at once, to bound the memory.
_POSITIONS = 4096


@dataclass(frozen=True, slots=True)
class BleuResult:
    """A BLEU score and how it came about.

    Paper: §6.1.
    """

    score: float
    """Between 0 and 100."""
    signature: str
    """How it was computed, in sacreBLEU's short notation."""
    text: str
    """The line that sacreBLEU prints."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class PerplexityResult:
    """How well a model predicts each next piece of the references.

    Paper: §6.2, Table 3.
    """

    loss: float
    """Mean of -log p(piece), in nats, without label smoothing."""
    perplexity: float
    """exp(loss), per piece, the end token counted as one."""
    tokens: int
    """Pieces that were predicted."""


def evaluate_bleu(
    hypotheses: Iterable[str],
    references: Iterable[str],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> BleuResult:
    r"""BLEU of translations against one reference each.

    $$\mathrm{BLEU} = 100 · \min(1, e^{1 - r / c})
    · \left(p_1 p_2 p_3 p_4\right)^{1/4}$$

    of the precisions $p_n$ of n-grams and the lengths r of the references and c of the
    translations, all summed over the sentences first.

    Args:
        hypotheses: Translations, as plain text.
        references: As many references, as plain text.
        tokenize: sacreBLEU's tokenizer: '13a' (the standard of WMT), 'intl', 'char', …
        lowercase: Count words that differ in case only as the same.

    Raises:
        InputError: There is nothing to score, their numbers differ, one is no text, or
            sacreBLEU knows no such tokenizer, or a package or file that the tokenizer
            needs is missing.

    Paper: §6.1, Table 2; Papineni et al. (2002); Post (2018).

    >>> result = evaluate_bleu(["the cat sat on a mat"], ["the cat sat on the mat"])
    >>> round(result.score, 1)
    53.7
    """
    from sacrebleu.metrics.bleu import BLEU

    hypotheses, references = _pairs(hypotheses, references)
    if tokenize not in BLEU.TOKENIZERS:
        known = ", ".join(sorted(BLEU.TOKENIZERS))
        raise InputError(f"sacreBLEU has no tokenizer {tokenize!r}; it has {known}.")
    try:  # force: do not warn about text that looks tokenised
        bleu = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    except (RuntimeError, ImportError, OSError) as error:  # something is missing
        reason = " ".join(str(error).split())
        raise InputError(f"The tokenizer {tokenize!r} cannot work: {reason}") from error
    score = bleu.corpus_score(hypotheses, [references])
    signature = bleu.get_signature().format(short=False)
    return BleuResult(score.score, signature, score.format(signature=signature))


def exact_match_rate(hypotheses: Iterable[str], references: Iterable[str]) -> float:
    """The share of translations, between 0 and 1, that are their references exactly.

    Args:
        hypotheses: Translations, as plain text.
        references: As many references, as plain text.

    Raises:
        InputError: There is nothing to compare, their numbers differ, or one is no
            text.

    Not in the paper: a corpus with one right answer a sentence allows it.

    >>> exact_match_rate(["ein Hund", "eine Katze"], ["ein Hund", "ein Kater"])
    0.5
    """
    hypotheses, references = _pairs(hypotheses, references)
    return sum(map(str.__eq__, hypotheses, references)) / len(references)


def perplexity(
    model: Transformer, batches: Iterable[Batch], *, bos_id: int
) -> PerplexityResult:
    r"""How well a model predicts the targets, with teacher forcing.

    $$\exp\left(-\tfrac{1}{m} \sum_t \log p(y_t \mid y_1, …, y_{t-1}, X)\right)$$

    Under ``torch.autocast`` the model computes in 16 bits, and log-probabilities are
    still computed and summed in at least 32.

    Args:
        model: A `Transformer`, or a module with its methods `decoder_hidden` and
            `logits`. The batches are moved to its device.
        batches: Pairs of sources and targets; padding does not count.
        bos_id: What the decoder reads first.

    Raises:
        InputError: The batches hold no tokens, or are packed.

    Paper: §6.2, Table 3, 'per-wordpiece'.

    >>> from aiayn.data import Batch
    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20))
    >>> batch = Batch(torch.tensor([[5, 6, 2]]), torch.tensor([[7, 8, 2]]))
    >>> found = perplexity(model, [batch], bos_id=1)
    >>> found.tokens, found.perplexity > 1
    (3, True)
    """
    device = next(model.parameters()).device
    total, tokens = 0.0, 0
    with eval_mode(model):
        for batch in batches:
            if batch.packed:
                raise InputError("These rows are packed: give one pair a row.")
            source, target = batch.source.to(device), batch.target.to(device)
            real = target != model.config.pad_id
            hidden = model.decoder_hidden(source, shift_right(target, bos_id))[real]
            labels = target[real]  # (tokens,)
            for part in range(0, len(labels), _POSITIONS):
                some = slice(part, part + _POSITIONS)
                log_probs = log_softmax(model.logits(hidden[some]))  # (tokens, vocab)
                total += F.nll_loss(log_probs, labels[some], reduction="sum").item()
            tokens += len(labels)
    if not tokens:
        raise InputError("There are no target tokens to predict; give some text.")
    loss = total / tokens
    return PerplexityResult(loss, math.inf if loss > 700 else math.exp(loss), tokens)


def _pairs(
    hypotheses: Iterable[str], references: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Both as lists of as many texts: one reference for each hypothesis."""
    hypotheses = list(checked_lines(hypotheses, "hypotheses"))
    references = list(checked_lines(references, "references"))
    if not len(hypotheses) == len(references) > 0:
        raise InputError(
            f"There are {len(hypotheses):,} hypotheses and {len(references):,} "
            "references; give at least one, and one reference for each hypothesis."
        )
    return hypotheses, references

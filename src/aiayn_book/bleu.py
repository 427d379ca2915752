"""§6.1, Table 2: BLEU in its parts, so that a difference can be given its chance.

A corpus's BLEU is no mean over sentences: it is made from sums over them. So each
sentence is a row of nine numbers, and the score of any choice of sentences follows from
the sum of their rows. `evaluate_bleu` is the score to report; on the same words the two
are equal.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int, Num


def sentence_counts(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """What one sentence adds to a BLEU score.

    Args:
        hypothesis: The words of a translation.
        reference: The words that it is compared with.

    Returns:
        The reference's length; of its n-grams, n from 1 to 4, how many the translation
        has, each at most as often as the reference ('clipped'); and how many n-grams
        the translation has in all.

    Paper: Papineni et al. (2002), §2.

    >>> sentence_counts("the the cat".split(), "the cat".split())
    [2, 2, 1, 0, 0, 3, 2, 1, 0]
    """
    found, written = [], []
    for n in range(1, 5):
        ours = Counter(_grams(hypothesis, n))
        theirs = Counter(_grams(reference, n))
        found.append((ours & theirs).total())
        written.append(ours.total())
    return [len(reference), *found, *written]


def _grams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(n)), strict=False)


def bleu(counts: Num[np.ndarray, "... 9"]) -> Float64[np.ndarray, "..."] | float:
    """BLEU, from 0 to 100, of sums of `sentence_counts`.

    An order of n-grams of which none was found counts as half a find, the next such
    order as a quarter, and so on (sacreBLEU's smoothing 'exp'). Where no word was found
    at all, or where no four words stand together, the score is 0.

    Paper: Papineni et al. (2002), §2.3.
    """
    reference = counts[..., 0]
    found, written = counts[..., 1:5], counts[..., 5:]
    missed = found == 0
    halves = 0.5 ** np.cumsum(missed, axis=-1)
    smoothed = np.where(missed, halves, found)
    precisions = smoothed / np.maximum(written, 1)
    short = reference / np.maximum(written[..., 0], 1)
    brevity = np.exp(np.minimum(0.0, 1.0 - short))
    some = (found[..., 0] > 0) & (written[..., 3] > 0)
    mean = precisions.prod(axis=-1) ** 0.25
    return 100 * brevity * np.where(some, mean, 0.0)


def bootstrap_differences(
    one: Int[np.ndarray, "sentences 9"],
    other: Int[np.ndarray, "sentences 9"],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Float64[np.ndarray, " resamples"]:
    """BLEU of one system less that of another, on sentences drawn with replacement.

    Both are scored on the same draw, so a draw of hard sentences is hard for both.

    Source: Koehn (2004), §4.
    """
    rng = np.random.default_rng(seed)
    share = np.full(len(one), 1 / len(one))
    drawn = rng.multinomial(len(one), share, size=resamples)  # (resamples, sentences)
    return np.subtract(bleu(drawn @ one), bleu(drawn @ other))


def words_13a(line: str) -> list[str]:
    """The words as sacreBLEU's default tokenizer '13a' cuts them.

    >>> words_13a("Ein Hund, ein Ball.")
    ['Ein', 'Hund', ',', 'ein', 'Ball', '.']
    """
    return _tokenizer()(line.rstrip()).split()


@cache
def _tokenizer() -> Any:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a()


def split_compounds(words: Sequence[str]) -> list[str]:
    """Every hyphen inside a word becomes a word of its own.

    Done to both sides before the paper's English–German BLEU was computed.

    Source: tensor2tensor, `get_ende_bleu.sh`.

    >>> split_compounds(["ein", "T-Shirt", "-"])
    ['ein', 'T', '##AT##-##AT##', 'Shirt', '-']
    """
    split = re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", " ".join(words))
    return split.split()

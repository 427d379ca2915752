"""§6.1, Table 2: from text to the words that BLEU counts."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any


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

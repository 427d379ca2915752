"""§5.1: training data and batching.

`load_corpus` gives sentence pairs, `Tokenizer` turns sentences into ids, `encode_pairs`
does so for a whole corpus, and `TokenBatches` cuts it into batches. `pack_pairs` can
join short pairs to long rows before that.
"""

from aiayn.data.batching import Batch, TokenBatches
from aiayn.data.corpora import CORPORA, Corpus, load_corpus
from aiayn.data.packing import pack_pairs
from aiayn.data.pairs import EncodedPairs, encode_pairs
from aiayn.data.parallel import ParallelText, read_parallel
from aiayn.data.ragged import RaggedTokens, encode_lines, map_batches
from aiayn.data.text import MemmapLines, read_lines, read_stream
from aiayn.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer, normalise
from aiayn.data.trees import TREES

__all__ = [
    "BOS_ID",
    "CORPORA",
    "EOS_ID",
    "PAD_ID",
    "TREES",
    "UNK_ID",
    "Batch",
    "Corpus",
    "EncodedPairs",
    "MemmapLines",
    "ParallelText",
    "RaggedTokens",
    "TokenBatches",
    "Tokenizer",
    "encode_lines",
    "encode_pairs",
    "load_corpus",
    "map_batches",
    "normalise",
    "pack_pairs",
    "read_lines",
    "read_parallel",
    "read_stream",
]

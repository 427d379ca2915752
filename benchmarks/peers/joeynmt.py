"""Joey NMT: its Transformer, its greedy search, and its loss with smoothed targets.

The search has no cache: it reads all that it has written again at every step.
"""

from types import SimpleNamespace

import torch
from joeynmt.model import Model, build_model
from joeynmt.search import greedy
from joeynmt.vocabulary import Vocabulary
from torch import Tensor

from aiayn.model import TransformerConfig
from benchmarks.peers.shared import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    Schedule,
    Step,
    Translate,
    before_the_end,
    optimizer_step,
    padded,
    shift_right,
)
from benchmarks.workload import LABEL_SMOOTHING

UNK_ID = 3


def vocabulary(size: int) -> Vocabulary:
    """A vocabulary with our special tokens; the words are never looked up."""
    special = SimpleNamespace(
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        sep_token=None,
        lang_tags=[],
        unk_id=0,
        pad_id=1,
        bos_id=2,
        eos_id=3,
    )
    words = Vocabulary([str(token) for token in range(4, size)], special)
    words.pad_index, words.bos_index = PAD_ID, BOS_ID
    words.eos_index, words.unk_index = EOS_ID, UNK_ID
    return words


def build(config: TransformerConfig) -> Model:
    """The model of that size."""

    def stack(layers: int) -> dict:
        return {
            "type": "transformer",
            "num_layers": layers,
            "num_heads": config.num_heads,
            "hidden_size": config.d_model,
            "ff_size": config.d_ff,
            "dropout": config.dropout,
            "layer_norm": config.norm,
            "embeddings": {
                "embedding_dim": config.d_model,
                "scale": True,
                "dropout": config.dropout,
            },
        }

    sizes = {
        "encoder": stack(config.num_encoder_layers),
        "decoder": stack(config.num_decoder_layers),
        "tied_embeddings": True,
        "tied_softmax": True,
    }
    words = vocabulary(config.vocab_size)
    return build_model(sizes, words, words)


def training_step(model: Model, narrow: bool, schedule: Schedule) -> Step:
    """Its own loss, divided by the number of tokens."""
    model.loss_function = ("crossentropy", LABEL_SMOOTHING)

    def loss_of(source: Tensor, target: Tensor) -> Tensor:
        summed, _, _, _ = model(
            return_type="loss",
            src=source,
            src_length=(source != PAD_ID).sum(1),
            src_mask=(source != PAD_ID)[:, None],
            trg_input=shift_right(target),
            trg=target,
            trg_mask=(target != PAD_ID)[:, None],
        )
        return summed / (target != PAD_ID).sum()

    width = model.src_embed.embedding_dim
    return optimizer_step(loss_of, model, width, narrow, schedule)


def searcher(model: Model) -> Translate:
    """Its greedy search."""

    def translate(rows: list[list[int]], beam_size: int) -> list[list[int]]:
        if beam_size != 1:
            raise NotImplementedError("Only its greedy search is asked for here.")
        model.eval()
        source = padded(rows, model)
        real = (source != PAD_ID)[:, None]
        with torch.inference_mode():
            encoded, last, _, _ = model(
                return_type="encode",
                src=source,
                src_length=real.sum((1, 2)),
                src_mask=real,
            )
        found, _, _ = greedy(real, source.size(1) + 50, model, encoded, last)
        return [before_the_end(row) for row in found.tolist()]

    return translate

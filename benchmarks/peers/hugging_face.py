"""Hugging Face's sequence-to-sequence models, trained and searched as they come."""

from typing import Any

import torch
from torch import Tensor, nn

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
    plain_loss,
    shift_right,
)


def marian_settings(config: TransformerConfig) -> dict[str, Any]:
    """The configuration in the words of Marian and BART."""
    return {
        "vocab_size": config.vocab_size,
        "d_model": config.d_model,
        "encoder_layers": config.num_encoder_layers,
        "decoder_layers": config.num_decoder_layers,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "activation_function": "relu",
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.activation_dropout,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "max_position_embeddings": config.max_length,
        "pad_token_id": config.pad_id,
        "bos_token_id": BOS_ID,
        "eos_token_id": EOS_ID,
        "decoder_start_token_id": BOS_ID,
        "forced_eos_token_id": None,
    }


def training_step(model: nn.Module, narrow: bool, schedule: Schedule) -> Step:
    """Logits from the model; its own loss knows no label smoothing, so torch's."""

    def loss_of(source: Tensor, target: Tensor) -> Tensor:
        logits = model(
            input_ids=source,
            attention_mask=source != PAD_ID,
            decoder_input_ids=shift_right(target),
            use_cache=False,
        ).logits
        return plain_loss(logits, target)

    width = model.config.d_model
    return optimizer_step(loss_of, model, width, narrow, schedule)


def searcher(model: nn.Module) -> Translate:
    """`generate`, with its cache; a sentence that has ended stays in the batch."""

    @torch.inference_mode()
    def translate(rows: list[list[int]], beam_size: int) -> list[list[int]]:
        model.eval()
        source = padded(rows, model)
        written = model.generate(
            input_ids=source,
            attention_mask=source != PAD_ID,
            num_beams=beam_size,
            do_sample=False,
            length_penalty=0.6,
            early_stopping=beam_size > 1,
            max_new_tokens=source.size(1) + 50,
            suppress_tokens=[PAD_ID, BOS_ID],
        )
        return [before_the_end(row[1:]) for row in written.tolist()]

    return translate

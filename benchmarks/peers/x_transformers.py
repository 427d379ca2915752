"""x-transformers: its encoder–decoder, with tied embeddings and learned positions."""

import torch
from torch import Tensor, nn
from x_transformers import XTransformer

from aiayn.model import TransformerConfig
from benchmarks.peers.shared import (
    PAD_ID,
    Schedule,
    Step,
    optimizer_step,
    plain_loss,
    shift_right,
)


def build(config: TransformerConfig) -> XTransformer:
    """The model of that size; pre-norm, which is the library's default.

    Its fused attention where it is the faster one: on a CPU, in 16 bits, torch's takes
    a third longer than the library's own.
    """
    sizes = {}
    for side, depth in (
        ("enc", config.num_encoder_layers),
        ("dec", config.num_decoder_layers),
    ):
        sizes |= {
            f"{side}_num_tokens": config.vocab_size,
            f"{side}_depth": depth,
            f"{side}_heads": config.num_heads,
            f"{side}_attn_dim_head": config.d_model // config.num_heads,
            f"{side}_ff_mult": config.d_ff // config.d_model,
            f"{side}_attn_flash": torch.cuda.is_available(),
            f"{side}_ff_custom_activation": nn.ReLU(),
            f"{side}_max_seq_len": 512,
            f"{side}_ff_dropout": config.dropout,
            f"{side}_layer_dropout": 0.0,
            f"{side}_emb_dropout": config.dropout,
        }
    model = XTransformer(
        dim=config.d_model,
        tie_token_emb=True,
        pad_value=PAD_ID,
        ignore_index=PAD_ID,
        **sizes,
    )
    decoder = model.decoder.net  # `tie_token_emb` ties the two sides, not the output
    decoder.to_logits.weight = decoder.token_emb.emb.weight
    return model


def training_step(model: XTransformer, narrow: bool, schedule: Schedule) -> Step:
    """The plain step."""

    def loss_of(source: Tensor, target: Tensor) -> Tensor:
        real = source != PAD_ID
        memory = model.encoder(source, mask=real, return_embeddings=True)
        logits = model.decoder.net(
            shift_right(target), context=memory, context_mask=real
        )
        return plain_loss(logits, target)

    width = model.encoder.emb_dim
    return optimizer_step(loss_of, model, width, narrow, schedule)

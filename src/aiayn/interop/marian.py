"""Our weights in Hugging Face's Marian, the architecture of its translation models.

Marian is post-norm, with ReLU, tied and scaled embeddings and sinusoids: the paper's
model, but for two things. Its attention has biases, which are zero here. And its
sinusoids stand in halves, all sines before all cosines, as in tensor2tensor, where the
paper's take turns. A Transformer does not care in which order its features stand, so
every matrix is permuted to Marian's order, once. What `save_pretrained` writes is then
an ordinary Marian model: whoever loads it needs nothing of this package but the
tokenizer.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from aiayn.data.tokenizer import BOS_ID, EOS_ID
from aiayn.errors import InputError
from aiayn.interop.requirement import require_transformer
from aiayn.model import Transformer, TransformerConfig


def to_marian(model: Transformer) -> Any:
    """The same model as Hugging Face's Marian, with copies of the weights.

    Marian is the paper's model but for two things, and neither changes what is
    computed: its attention has biases, which are zero here, and its positions hold all
    sines before all cosines, so that every matrix is permuted to that order, once. The
    logits agree to the last digits of 32 bits, in which both keep their sinusoids.

    Two things are to be done by whoever generates: give ``attention_mask``, since
    Marian does not look for padding by itself, and write neither padding nor the start
    token, as our searches do (``suppress_tokens`` of ``generate``). The tokenizer is
    ours, a sentencepiece model, not a ``MarianTokenizer``, which wants two.

    Marian's table of positions does not grow as ours does: a sequence of more than
    ``max_length`` tokens raises an error there.

    Args:
        model: Post-norm, sinusoids, one matrix for both languages and the output,
            heads of width d_model / num_heads: Marian has no other.

    Returns:
        A ``transformers.MarianMTModel`` in the same mode. Its logits are ours; the
        decoder starts with our tokenizer's start token.

    Raises:
        InputError: The model is of another kind, or transformers cannot be imported.

    Paper: §3.

    >>> model = Transformer(TransformerConfig.tiny(vocab_size=20)).eval()
    >>> marian = to_marian(model)  # marian.save_pretrained("my-model") writes it
    >>> source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[1, 7, 8]])
    >>> found = marian(
    ...     input_ids=source, attention_mask=source != 0, decoder_input_ids=target
    ... )
    >>> torch.testing.assert_close(found.logits, model(source, target))
    """
    require_transformer(model)
    try:
        from transformers import (  # pyright: ignore[reportMissingImports]
            MarianConfig,
            MarianMTModel,
        )
    except ImportError as error:
        raise InputError(
            "Marian is a model of Hugging Face transformers, which cannot be imported "
            f"({error}): run  pip install 'aiayn[marian]'."
        ) from error
    config = model.config
    _check(config)
    theirs = MarianMTModel(MarianConfig(**marian_settings(config)))
    theirs.to(model.output_weight.device, model.output_weight.dtype)
    order = _halves(config.d_model)
    with torch.no_grad():
        theirs.model.shared.weight.copy_(model.output_weight[:, order])
        theirs.final_logits_bias.zero_()
        for ours, its in _layers(model, theirs):
            _copy_layer(ours, its, order)
    theirs.tie_weights()
    return theirs.train(model.training)


def _check(config: TransformerConfig) -> None:
    width, rest = divmod(config.d_model, config.num_heads)
    if rest:
        raise InputError(
            "Marian's heads are of width d_model / num_heads, and num_heads = "
            f"{config.num_heads} does not divide d_model = {config.d_model}: it has no "
            "equal there."
        )
    wanted = {
        "norm": "post",
        "positions": "sinusoidal",
        "tie_embeddings": True,
        "d_k": width,
        "d_v": width,
    }
    for name, value in wanted.items():
        has = getattr(config, name)
        if has != value and not (has is None and value == width):
            raise InputError(
                f"Marian has {name} = {value!r}, and this model {has!r}: it has no "
                "equal there."
            )
    if config.d_model % 2:
        raise InputError(
            f"Marian splits the sinusoids in two halves; d_model = {config.d_model} "
            "is odd."
        )


def marian_settings(config: TransformerConfig) -> dict[str, Any]:
    """The configuration in Marian's words."""
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


def _halves(d_model: int) -> Int[Tensor, " d_model"]:
    """Our features in Marian's order: those with a sine first, then the cosines."""
    return torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])


def _layers(model: Transformer, theirs: Any) -> Iterator[tuple[nn.Module, Any]]:
    yield from zip(model.encoder.layers, theirs.model.encoder.layers, strict=True)
    yield from zip(model.decoder.layers, theirs.model.decoder.layers, strict=True)


def _copy_layer(ours: Any, theirs: Any, order: Tensor) -> None:
    _copy_attention(ours.self_attention, theirs.self_attn, order)
    _copy_norm(ours.self_attention_residual, theirs.self_attn_layer_norm, order)
    if hasattr(ours, "cross_attention"):
        _copy_attention(ours.cross_attention, theirs.encoder_attn, order)
        _copy_norm(ours.cross_attention_residual, theirs.encoder_attn_layer_norm, order)
    inner, outer = ours.feed_forward.inner, ours.feed_forward.outer
    theirs.fc1.weight.copy_(inner.weight[:, order])
    theirs.fc1.bias.copy_(inner.bias)
    theirs.fc2.weight.copy_(outer.weight[order])
    theirs.fc2.bias.copy_(outer.bias[order])
    _copy_norm(ours.feed_forward_residual, theirs.final_layer_norm, order)


def _copy_attention(ours: Any, theirs: Any, order: Tensor) -> None:
    """What reads features is permuted in its columns, what writes them in its rows."""
    for mine, its in (
        (ours.query_projection, theirs.q_proj),
        (ours.key_projection, theirs.k_proj),
        (ours.value_projection, theirs.v_proj),
    ):
        its.weight.copy_(mine.weight[:, order])
        its.bias.zero_()
    theirs.out_proj.weight.copy_(ours.output_projection.weight[order])
    theirs.out_proj.bias.zero_()


def _copy_norm(ours: Any, theirs: nn.LayerNorm, order: Tensor) -> None:
    theirs.weight.copy_(ours.norm.weight[order])
    theirs.bias.copy_(ours.norm.bias[order])

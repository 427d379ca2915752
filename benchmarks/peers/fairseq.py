"""fairseq: its Transformer, its loss and its beam search.

The last release (0.12.2, 2022) does not import under Python 3.11, whose dataclasses
refuse defaults that cannot be hashed. `hashable_dataclass` lifts that; nothing that is
measured is touched.
"""

import dataclasses
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from aiayn.inference import load_translator
from aiayn.model import Transformer, TransformerConfig, sinusoidal_positional_encoding
from benchmarks.peers.shared import (
    BOS_ID,
    PAD_ID,
    Schedule,
    Step,
    Translate,
    before_the_end,
    check_sinusoids,
    optimizer_step,
    padded,
    shift_right,
)
from benchmarks.workload import LABEL_SMOOTHING

_dataclass = dataclasses.dataclass


def hashable_dataclass(cls: type | None = None, /, **options):
    """`dataclasses.dataclass`, with a hash for the classes that need one."""
    if cls is None:
        return partial(hashable_dataclass, **options)
    if cls.__module__.partition(".")[0] in ("fairseq", "hydra"):
        options.setdefault("unsafe_hash", True)
    return _dataclass(cls, **options)


dataclasses.dataclass = hashable_dataclass
from fairseq.criterions.label_smoothed_cross_entropy import (  # noqa: E402
    label_smoothed_nll_loss,
)
from fairseq.data import Dictionary  # noqa: E402
from fairseq.models.transformer import (  # noqa: E402
    TransformerConfig as FairseqConfig,
)
from fairseq.models.transformer import TransformerModelBase  # noqa: E402
from fairseq.sequence_generator import SequenceGenerator  # noqa: E402

dataclasses.dataclass = _dataclass

POSITIONS = 1024


def dictionary(vocab_size: int) -> Dictionary:
    """A vocabulary with our special tokens: fairseq has BOS at 0 and PAD at 1."""
    made = Dictionary(bos="<pad>", pad="<s>")
    made.bos_index, made.pad_index = BOS_ID, PAD_ID
    for token in range(len(made), vocab_size):
        made.add_symbol(str(token))
    return made


def build(config: TransformerConfig) -> TransformerModelBase:
    """The model of that size."""
    theirs = FairseqConfig()
    for side, layers in (
        (theirs.encoder, config.num_encoder_layers),
        (theirs.decoder, config.num_decoder_layers),
    ):
        side.embed_dim, side.ffn_embed_dim = config.d_model, config.d_ff
        side.layers, side.attention_heads = layers, config.num_heads
        side.normalize_before = config.norm == "pre"
    theirs.decoder.input_dim = theirs.decoder.output_dim = config.d_model
    theirs.dropout = config.dropout
    theirs.share_all_embeddings = theirs.share_decoder_input_output_embed = True
    theirs.max_source_positions = theirs.max_target_positions = POSITIONS
    words = dictionary(config.vocab_size)
    task = SimpleNamespace(source_dictionary=words, target_dictionary=words)
    return TransformerModelBase.build_model(theirs, task)


def training_step(
    model: TransformerModelBase, narrow: bool, schedule: Schedule
) -> Step:
    """fairseq's own label-smoothed loss, divided by the number of tokens."""

    def loss_of(source: Tensor, target: Tensor) -> Tensor:
        lengths = (source != PAD_ID).sum(1)
        output = model(source, lengths, shift_right(target))
        log_probs = model.get_normalized_probs(output, log_probs=True)
        smoothed, _ = label_smoothed_nll_loss(
            log_probs.view(-1, log_probs.size(-1)),
            target.view(-1, 1),
            LABEL_SMOOTHING,
            ignore_index=PAD_ID,
        )
        return smoothed / (target != PAD_ID).sum()

    width = model.cfg.encoder.embed_dim
    return optimizer_step(loss_of, model, width, narrow, schedule)


def trained(folder: Path, device: torch.device) -> TransformerModelBase:
    """Our weights in fairseq's layers."""
    return with_weights_of(load_translator(folder)[0]).to(device)


def searcher(model: TransformerModelBase) -> Translate:
    """`SequenceGenerator`, whose length penalty is |Y|^0.6."""
    words = dictionary(model.encoder.embed_tokens.num_embeddings)

    @torch.inference_mode()
    def translate(rows: list[list[int]], beam_size: int) -> list[list[int]]:
        model.eval()
        source = padded(rows, model)
        search = SequenceGenerator(
            [model],
            words,
            beam_size=beam_size,
            max_len_b=source.size(1) + 50,
            len_penalty=0.6,
        )
        lengths = (source != PAD_ID).sum(1)
        sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
        found = search.generate([model], sample, bos_token=BOS_ID)
        return [before_the_end(best[0]["tokens"].tolist()) for best in found]

    return translate


def with_weights_of(ours: Transformer) -> TransformerModelBase:
    """The same model as fairseq's; its biases in attention are zero."""
    check_sinusoids(ours.config)
    model = build(ours.config)
    table = sinusoidal_positional_encoding(POSITIONS, ours.config.d_model)
    # Its positions are counted from the index of padding plus one.
    rows = torch.cat([torch.zeros(PAD_ID + 1, table.size(1)), table])
    with torch.no_grad():
        model.encoder.embed_tokens.weight.copy_(ours.output_weight)
        for stack in (model.encoder, model.decoder):
            stack.embed_positions.weights = rows
        for mine, its in zip(ours.encoder.layers, model.encoder.layers, strict=True):
            _copy_attention(mine.self_attention, its.self_attn)
            _copy_rest(mine, its)
        for mine, its in zip(ours.decoder.layers, model.decoder.layers, strict=True):
            _copy_attention(mine.self_attention, its.self_attn)
            _copy_attention(mine.cross_attention, its.encoder_attn)
            its.encoder_attn_layer_norm.load_state_dict(
                mine.cross_attention_residual.norm.state_dict()
            )
            _copy_rest(mine, its)
        if ours.config.norm == "pre":
            for name in ("encoder", "decoder"):
                last = getattr(ours, name).norm.state_dict()
                getattr(model, name).layer_norm.load_state_dict(last)
    return model


def _copy_attention(mine: nn.Module, its: nn.Module) -> None:
    for name, letter in (("query", "q"), ("key", "k"), ("value", "v")):
        linear = getattr(its, f"{letter}_proj")
        linear.weight.copy_(getattr(mine, f"{name}_projection").weight)
        linear.bias.zero_()
    its.out_proj.weight.copy_(mine.output_projection.weight)
    its.out_proj.bias.zero_()


def _copy_rest(mine: nn.Module, its: nn.Module) -> None:
    its.fc1.load_state_dict(mine.feed_forward.inner.state_dict())
    its.fc2.load_state_dict(mine.feed_forward.outer.state_dict())
    its.self_attn_layer_norm.load_state_dict(
        mine.self_attention_residual.norm.state_dict()
    )
    its.final_layer_norm.load_state_dict(mine.feed_forward_residual.norm.state_dict())

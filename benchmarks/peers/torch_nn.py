"""`torch.nn`'s Transformer layers with `F.cross_entropy`, in the plainest way."""

import math
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from aiayn.fast.compilation import distinct_sizes
from aiayn.inference import load_translator
from aiayn.model import Transformer, TransformerConfig, sinusoidal_positional_encoding
from aiayn_book.interop import to_torch
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


class Model(nn.Module):
    """Embedding, positions, torch's layers, and the embedding again as output layer."""

    def __init__(self, config: TransformerConfig, max_length: int = 1024) -> None:
        super().__init__()
        self.scale = math.sqrt(config.d_model)
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        table = sinusoidal_positional_encoding(max_length, config.d_model)
        self.register_buffer("positions", table)
        self.dropout = nn.Dropout(config.dropout)
        sizes = (config.d_model, config.num_heads, config.d_ff, config.dropout)
        pre = config.norm == "pre"
        kind = {"batch_first": True, "norm_first": pre}
        # nn.Transformer itself adds a last LayerNorm to post-norm stacks too.
        last = [nn.LayerNorm(config.d_model) if pre else None for _ in range(2)]
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **kind),
            config.num_encoder_layers,
            last[0],
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, **kind),
            config.num_decoder_layers,
            last[1],
        )

    def embed(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens) * self.scale
        return self.dropout(x + self.positions[: tokens.size(1)])

    def encode(self, source: Tensor) -> Tensor:
        return self.encoder(self.embed(source), src_key_padding_mask=source == PAD_ID)

    def decode(self, written: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(
            written.size(1), device=written.device
        )
        return self.decoder(
            self.embed(written),
            memory,
            tgt_mask=causal,
            tgt_is_causal=True,
            memory_key_padding_mask=source == PAD_ID,
        )

    def logits(self, states: Tensor) -> Tensor:
        return F.linear(states, self.embedding.weight)

    def forward(self, source: Tensor, written: Tensor) -> Tensor:
        return self.logits(self.decode(written, self.encode(source), source))


def build(config: TransformerConfig) -> Model:
    """The model of that size."""
    return Model(config)


def training_step(
    model: Model, narrow: bool, schedule: Schedule, compiled: bool = False
) -> Step:
    """The plain step; a compiler gets model and loss, as it does of ours."""

    def loss_of(source: Tensor, target: Tensor) -> Tensor:
        return plain_loss(model(source, shift_right(target)), target)

    width = model.embedding.embedding_dim
    if not compiled:
        return optimizer_step(loss_of, model, width, narrow, schedule)
    in_one_graph = torch.compile(loss_of, dynamic=True)

    def compiled_loss_of(source: Tensor, target: Tensor) -> Tensor:
        with distinct_sizes():
            return in_one_graph(source, target)

    return optimizer_step(compiled_loss_of, model, width, narrow, schedule)


def trained(folder: Path, device: torch.device) -> Model:
    """Our weights in torch's layers."""
    return with_weights_of(load_translator(folder)[0]).to(device)


def searcher(model: Model) -> Translate:
    """Greedy search that reads its whole output again at every step."""

    @torch.inference_mode()
    def translate(rows: list[list[int]], beam_size: int) -> list[list[int]]:
        if beam_size != 1:
            raise NotImplementedError("torch.nn has no search; only the greedy loop.")
        model.eval()
        source = padded(rows, model)
        memory = model.encode(source)
        written = source.new_full((len(source), 1), BOS_ID)
        ended = source.new_zeros(len(source), dtype=torch.bool)
        for _ in range(source.size(1) + 50):
            logits = model.logits(model.decode(written, memory, source)[:, -1])
            logits[:, [PAD_ID, BOS_ID]] = -math.inf
            token = logits.argmax(-1)
            written = torch.cat([written, token[:, None]], dim=1)
            ended |= token == EOS_ID
            if ended.all():
                break
        return [before_the_end(row) for row in written[:, 1:].tolist()]

    return translate


def with_weights_of(ours: Transformer) -> Model:
    """The same model in torch's layers; its biases in attention are zero."""
    model, stacks = Model(ours.config), to_torch(ours)
    model.encoder, model.decoder = stacks.encoder, stacks.decoder
    with torch.no_grad():
        model.embedding.weight.copy_(ours.output_weight)
    return model

"""Chapter 20, looking inside: how much each written word owes to the source.

All is measured with teacher forcing: by how many bits does the log-probability of the
right word fall when the decoder loses the source, or one word of it? One bit means half
as probable.

Paper: §3.2.3 (cross-attention).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import altair as alt
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from aiayn.data.grammar import GrammarSample
from aiayn.model import Transformer, shift_right
from aiayn_book.colours import ALERT, WEIGHT
from aiayn_book.heads import BOS, EOS, PAD, Words
from aiayn_book.plots.tokens import key_axis, query_axis

BLOCKS = 5


@dataclass
class Attribution:
    """What the right words lose in bits; `sources` and `targets` are padded."""

    samples: list[GrammarSample]
    sources: Tensor
    targets: Tensor
    zeroed: Tensor
    """Cross-attention gives zeros: (sentences, target)."""
    exchanged: Tensor
    """The memory is another sentence's: (sentences, target)."""
    hidden: Tensor
    """One source word is masked: (sentences, source, target)."""
    weights: Tensor
    """Cross-attention, mean of all layers and heads: (sentences, target, source)."""
    words: Words = field(repr=False)

    def kinds(self) -> dict[str, Tensor]:
        """Which target tokens are of which kind: (sentences, target) each."""
        spelled = [word[0].isupper() for word in self.words.words]
        noun = torch.tensor(spelled)[self.targets]
        first = torch.zeros_like(noun)
        first[:, 0] = True
        stop = self.targets == self.words.number["."]
        word = self.targets > EOS
        return {
            "first word": first,
            "noun": noun & ~first & word,
            "other word": ~noun & ~first & ~stop & word,
            "full stop": stop & ~first,
            "end": self.targets == EOS,
        }

    def lost_by_kind(self) -> dict[str, dict[str, tuple[float, float]]]:
        """The least and the greatest of five blocks' mean losses, for each kind.

        A word that gains counts as zero.
        """
        block = torch.arange(len(self.targets)) * BLOCKS // len(self.targets)
        table: dict[str, dict[str, tuple[float, float]]] = {}
        for name in ("zeroed", "exchanged"):
            lost = getattr(self, name).clamp(min=0)
            table[name] = {}
            for kind, where in self.kinds().items():
                means = [
                    lost[(block == b)[:, None] & where].mean().item()
                    for b in range(BLOCKS)
                ]
                table[name][kind] = (min(means), max(means))
        return table

    def lost_by_step(self, steps: int = 7) -> list[dict[str, float | str | int]]:
        """Mean bits lost by the words of each step, marks left out, in five blocks."""
        block = torch.arange(len(self.targets)) * BLOCKS // len(self.targets)
        word = (self.targets > EOS) & (self.targets != self.words.number["."])
        return [
            {
                "step": i + 1,
                "bits lost": lost[(block == b) & word[:, i], i].mean().item(),
                "source": name,
                "seed": b,
            }
            for name, lost in (("zeroed", self.zeroed), ("exchanged", self.exchanged))
            for b in range(BLOCKS)
            for i in range(min(steps, word.size(1)))
            if ((block == b) & word[:, i]).any()
        ]

    def agreement(self) -> dict[str, float]:
        """How often the most important source word is one that the grammar aligns.

        Importance is the loss when the word is hidden, or the weight of
        cross-attention; the third number is that of a blind guess.
        """
        hits: dict[str, list[float]] = {"hidden": [], "attention": [], "chance": []}
        for k, sample in enumerate(self.samples):
            n = len(sample.source_tokens)
            for j in range(len(sample.target_tokens)):
                aligned = {i for i, t in sample.alignment if t == j}
                if aligned:
                    loss = self.hidden[k, :n, j]
                    hits["hidden"].append(int(loss.argmax()) in aligned)
                    weight = self.weights[k, j, :n]
                    hits["attention"].append(int(weight.argmax()) in aligned)
                    hits["chance"].append(len(aligned) / n)
        return {name: sum(found) / len(found) for name, found in hits.items()}


def source_attribution(
    model: Transformer, samples: Sequence[GrammarSample], words: Words
) -> Attribution:
    """Take the source away in three ways, and measure what each right word loses.

    Args:
        model: A trained translator.
        samples: Sentences that it has not seen, with their alignments.
        words: Its vocabulary.
    """
    pairs = words.pairs(samples)
    sources, targets = (
        pad_sequence([torch.tensor(pair[side]) for pair in pairs], batch_first=True)
        for side in (0, 1)
    )
    given = shift_right(targets, BOS)

    def bits(sources: Tensor, memory: Tensor | None = None) -> Tensor:
        memory = model.encode(sources) if memory is None else memory
        log_p = model.decode(given, memory, sources).log_softmax(dim=-1)
        log_p = log_p.gather(2, targets[..., None])[..., 0] / math.log(2)
        return log_p.masked_fill(targets == PAD, 0.0)

    with torch.no_grad():
        intact = bits(sources)
        hooks = [
            layer.cross_attention.output_projection.register_forward_hook(
                lambda module, inputs, output: torch.zeros_like(output)
            )
            for layer in model.decoder.layers
        ]
        zeroed = intact - bits(sources)
        for hook in hooks:
            hook.remove()
        exchanged = intact - bits(sources.roll(1, dims=0))
        hidden = []
        for position in range(sources.size(1)):
            without = sources.clone()
            without[:, position] = PAD  # masked wherever it would be attended to
            hidden.append(intact - bits(without))
        cross = torch.stack(model.attention_weights(sources, given).cross)
    return Attribution(
        samples=list(samples),
        sources=sources,
        targets=targets,
        zeroed=zeroed,
        exchanged=exchanged,
        hidden=torch.stack(hidden, dim=1),
        weights=cross.mean(dim=(0, 2)),
        words=words,
    )


def hidden_word_chart(attribution: Attribution, which: int) -> alt.LayerChart:
    """Bits that each target word loses when one source word is hidden.

    Args:
        attribution: What `source_attribution` returned.
        which: The sentence, counted from 0.
    """
    sample = attribution.samples[which]
    n, m = len(sample.source_tokens), len(sample.target_tokens)
    table = attribution.hidden[which, :n, :m].T  # (target, source)
    rows = [
        {"i": i, "j": j, "bits": round(max(value, 0.0), 2)}
        for i, row in enumerate(table.tolist())
        for j, value in enumerate(row)
    ]
    x = key_axis(sample.source_tokens).title("hidden")
    y = query_axis(sample.target_tokens).title("written")
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    scale = alt.Scale(domain=[0, 10], range=[0, 1], clamp=True)
    cells = base.mark_rect(
        color=WEIGHT.light, stroke=WEIGHT.light, strokeOpacity=0.3
    ).encode(opacity=alt.Opacity("bits:Q", scale=scale, legend=None))
    text = alt.Text("bits:Q", format=".0f")
    shown = base.transform_filter("datum.bits >= 0.5")
    weak = shown.transform_filter("datum.bits < 8").mark_text().encode(text=text)
    strong = shown.transform_filter("datum.bits >= 8").mark_text(color="white")
    pairs = [{"i": i, "j": j} for j, i in sample.alignment]
    frames = (
        alt.Chart(alt.Data(values=pairs))
        .mark_rect(filled=False, stroke=ALERT.mark, strokeWidth=2.5)
        .encode(x=x, y=y)
    )
    return alt.layer(cells, weak, strong.encode(text=text), frames).properties(
        width=alt.Step(38),
        height=alt.Step(30),
        description="A table of target words by source words: the bits that each "
        "target word loses when one source word is hidden. Pairs of words that "
        "translate each other are framed.",
    )

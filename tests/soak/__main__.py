"""The long form of what the tests try in short: ``make soak``.

Usage: python -m tests.soak PART … [--minutes M] [--seed S] [--record FILE]

Each part takes about M minutes, prints what it tried, and leaves its figures in the
record. A fault ends it with the place where it was found.
"""

import argparse
import importlib.util
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from itertools import count
from pathlib import Path

# Children are forked, which CUDA's threads would not survive; the tests of a GPU are
# elsewhere. Before torch is loaded.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import torch
from hypothesis import given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from aiayn.device import describe_machine
from tests.inference.conftest import LINES
from tests.soak.damage import damaged_files
from tests.soak.decoding import DECODINGS, decoding_agrees
from tests.soak.disk import soak_disk
from tests.soak.hostile import READERS, try_reader
from tests.soak.kills import soak_kills
from tests.soak.processors import CHAPTERS, VARIANTS, compare
from tests.soak.texts import any_line
from tests.soak.twice import fingerprint


def kills(folder, seconds, seed):
    """Trainings killed at random moments."""
    return soak_kills(folder, seconds=seconds, seed=seed)


def kills_of_two(folder, seconds, seed):
    """Trainings in two processes, of which one is killed, or both at once."""
    return soak_kills(folder, seconds=seconds, seed=seed, count=2)


def disk(folder, seconds, seed):
    """A disk that is full, read-only, or moved away under a training."""
    return soak_disk(folder, seconds=seconds, seed=seed)


def decoding(folder, seconds, seed):
    """Cached beside uncached decoding, on random models, sources and searches."""
    return {"configurations": _repeat(decoding_agrees, DECODINGS, seconds, seed)}


def inputs(folder, seconds, seed):
    """Damaged files for every reader, by hypothesis."""
    found = {}
    for name, reader in READERS.items():
        strategy = damaged_files(reader.examples()) | st.binary(max_size=200)
        share = seconds / len(READERS)
        found[name] = _repeat(partial(try_reader, name), (strategy,), share, seed)
    return {"files": sum(found.values()), "by reader": found}


def fuzz(folder, seconds, seed):
    """Damaged files for every reader, by atheris, which is guided by coverage."""
    if importlib.util.find_spec("atheris") is None:
        return {"skipped": "atheris is not installed: pip install atheris"}
    found = {}
    for name, reader in READERS.items():
        share = str(max(1, round(seconds / len(READERS))))
        words = ["-m", "tests.soak.fuzz", name, share, folder / name.replace(" ", "-")]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr[-3000:]}"
        executed = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        assert executed, f"{name}: {done.stderr[-3000:]}"
        found[name] = int(executed[1])
        # The empty file and the examples come first, as they are.
        whole = 1 + len(reader.examples())
        assert found[name] > whole, f"{name}: nothing was changed; give more minutes"
    return {"files": sum(found.values()), "by reader": found}


def twice(folder, seconds, seed):
    """One seed, two processes whose dictionaries are hashed differently."""
    began, seeds = time.monotonic(), 0
    while time.monotonic() - began < seconds or not seeds:
        digests = {_fingerprint_elsewhere(seed + seeds, salt) for salt in (1, 2)}
        assert len(digests) == 1, f"seed {seed + seeds} gives two different trainings"
        seeds += 1
    return {"seeds": seeds}


def _fingerprint_elsewhere(seed, salt):
    return subprocess.run(
        [sys.executable, "-m", "tests.soak", "fingerprint", "--seed", str(seed)],
        env=os.environ | {"PYTHONHASHSEED": str(salt)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def texts(folder, seconds, seed):
    """Random lines of all Unicode through a translator."""
    from aiayn.data import Tokenizer
    from aiayn.inference import translate
    from tests.inference.models import random_transformer

    tokenizer, model = Tokenizer.train(LINES, 60), random_transformer(60).float()
    draw, began, lines = random.Random(seed), time.monotonic(), 0
    while time.monotonic() - began < seconds:
        chunk = [any_line(draw, 100) for _ in range(500)]
        found = translate(chunk, model, tokenizer, beam_size=2, extra_length=3)
        assert len(found) == len(chunk)
        assert not any(len(text.splitlines()) > 1 for text in found)
        lines += len(chunk)
    return {"lines": lines}


def processors(folder, seconds, seed, chapters=CHAPTERS, variants=VARIANTS):
    """Chapters on other processors and threads: the verdicts are the ledger's."""
    return {"chapters": {chapter: compare(chapter, variants) for chapter in chapters}}


PARTS = {
    part.__name__: part
    for part in (
        kills,
        kills_of_two,
        disk,
        decoding,
        inputs,
        fuzz,
        twice,
        texts,
        processors,
    )
}


def _repeat(check, strategies, seconds, seed):
    """Try a property again and again, with other examples each time; how many."""
    began, tried = time.monotonic(), 0

    def attempt(values):
        nonlocal tried
        tried += 1
        check(*values)

    for number in count():
        options = settings(max_examples=100, deadline=None, database=None)
        property_ = given(st.tuples(*strategies))(attempt)
        seeded(f"{seed} {number}")(options(property_))()
        if time.monotonic() - began > seconds:
            return tried


def main():
    """Run the parts and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=[*PARTS, "fingerprint"])
    parser.add_argument("--minutes", type=float, default=2.0, help="for each part")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, help="a JSON file for the figures")
    parser.add_argument("--chapters", nargs="+", help="for processors, by name")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, help="likewise")
    given_ = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if given_.parts == ["fingerprint"]:
        with tempfile.TemporaryDirectory() as folder:
            print(fingerprint(Path(folder), given_.seed))
        return
    commit = _commit()
    for name in given_.parts:
        began = time.monotonic()
        part = PARTS[name]
        if name == "processors":
            chosen = {"chapters": given_.chapters, "variants": given_.variants}
            part = partial(part, **{key: some for key, some in chosen.items() if some})
        with tempfile.TemporaryDirectory() as folder:
            figures = part(Path(folder), given_.minutes * 60, given_.seed)
        figures["seconds"] = round(time.monotonic() - began, 1)
        print(f"{name}: {json.dumps(figures, ensure_ascii=False)}", flush=True)
        if given_.record:
            _note(given_.record, name, figures, given_, commit)


def _commit():
    """The present commit: files may change while a soak runs."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _note(path, name, figures, choices, commit):
    """Put a part's figures into the record, with all that it takes to have them again.

    What the record says of other parts stays, so that each can be run by itself.
    """
    record = json.loads(path.read_text()) if path.is_file() else {}
    command = f"python -m tests.soak {name} --minutes {choices.minutes:g}"
    for option in ("chapters", "variants") if name == "processors" else ():
        if some := getattr(choices, option):
            command += f" --{option} {shlex.join(some)}"
    record[name] = {
        "command": f"{command} --seed {choices.seed}",
        "commit": commit,
        "machine": describe_machine(),
        **figures,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

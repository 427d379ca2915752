"""Coverage-guided fuzzing of one reader, by atheris (libFuzzer for Python).

Usage: python -m tests.soak.fuzz READER SECONDS FOLDER

libFuzzer changes the examples at random and keeps a change that reaches new code of
this package. It ends the process itself. What brings a reader to raise anything but
InputError, or to hang, is left in the folder; it belongs into test_hostile.py.
"""

import os
import sys
import warnings
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = ""
PACKAGES = ["aiayn.data", "aiayn.storage", "aiayn.model.config"]
PACKAGES += ["aiayn.parsing", "aiayn.training.config"]
LONGEST = 8192  # bytes of a file


def main():
    """Fuzz until the time is over."""
    name, seconds, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    import atheris
    import torch  # noqa: F401 (not to be instrumented)

    with atheris.instrument_imports(include=PACKAGES):
        from tests.soak.hostile import READERS, try_reader

    warnings.simplefilter("ignore")
    examples = folder / "examples"
    examples.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(READERS[name].examples()):
        (examples / f"whole-{number}").write_bytes(content)
        try_reader(name, content)  # loads what it needs before the time begins
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={LONGEST}",
        "-timeout=20",
        "-rss_limit_mb=4096",
        "-seed=1",
        "-print_final_stats=1",
        f"-artifact_prefix={folder}/",
    ]
    atheris.Setup(
        ["fuzz", *options, str(examples)], lambda content: try_reader(name, content)
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()

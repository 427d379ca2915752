"""Note how long a command took on this machine, for the book's page of run times.

Three cases are kept apart, the last measurement of each: a new environment had to be
made, all notebooks were run, or none was (everything came from the cache).
"""

import argparse
import json
import time
from pathlib import Path

from project import BUILD, LAST_RUN

TIMES = BUILD / "times.json"


def case(began: float, environment: Path, ran: int, of: int) -> str | None:
    """Which of the three cases it was; None for a mixture of them."""
    if _changed(environment / "created", since=began):
        return "environment"
    if _changed(environment / "made-from-requirements", since=began):
        return None
    if ran == of:
        return "all"
    return "cache" if ran == 0 else None


def _changed(file: Path, since: float) -> bool:
    return file.exists() and file.stat().st_mtime >= since


def main() -> None:
    """Add one measurement to ``_build/times.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", help="what was timed, as one types it")
    parser.add_argument("--began", type=float, required=True, help="Unix time, seconds")
    parser.add_argument("--environment", type=Path, required=True, help=".venv")
    given = parser.parse_args()
    seconds = time.time() - given.began
    last = json.loads(LAST_RUN.read_text())
    kind = case(given.began, given.environment, last["ran"], last["of"])
    if kind:
        times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
        times.setdefault(given.command, {})[kind] = round(seconds, 1)
        TIMES.write_text(json.dumps(times, indent=1))
    print(f"{given.command} took {seconds:.0f} s; {last['ran']} notebooks were run.")


if __name__ == "__main__":
    main()

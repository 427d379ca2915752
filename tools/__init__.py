"""What builds and measures the site, makes a course, and records what takes long.

`site`, `course` and `records` hold the commands, each run from the repository's top by
its name: ``python -m tools.records.search``. What stands beside the folders is for
the repository as a whole: its places and addresses, its tests, a fork's address.
"""

import sys
from pathlib import Path

# The site's extension: a course and the decks read the chapters as it does.
sys.path.append(str(Path(__file__).resolve().parents[1] / "book" / "_ext"))

"""Give the book another address: one command after a fork.

``python -m tools.rebrand https://github.com/me/my-book`` (``make rebrand
REPO=https://…``) puts the new address wherever the old one stands in a file that git
tracks: badges, links, set-up cells, `CITATION.cff`. ``_config.yml`` says which is the
old one.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tools.project import ROOT, repository

GITHUB = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+?(?:\.git)?/?")
HOST = "https://github.com/"


def tracked_files(root: Path) -> list[Path]:
    """The files of the repository that git knows."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(
        command, cwd=root, capture_output=True, text=True, check=True
    ).stdout
    return [root / name for name in listed.split("\0") if name]


def rebrand(address: str, root: Path = ROOT) -> list[Path]:
    """Put an address in place of the repository's; returns the files changed.

    Raises:
        ValueError: the address is not that of a repository on GitHub, which Colab
            needs in order to open a notebook.
    """
    if not GITHUB.fullmatch(address):
        raise ValueError(
            "an address such as https://github.com/me/my-book was expected, but "
            f"{address!r} came. Colab opens notebooks of GitHub's repositories only."
        )
    new = address.removesuffix("/").removesuffix(".git").removeprefix(HOST)
    old = repository(root)[0].removeprefix(HOST)
    # Where the old place is the beginning of a longer name, it is another place.
    place = re.compile(rf"(?<![\w.-]){re.escape(old)}(?![\w-])")
    changed = []
    for path in tracked_files(root):
        if not path.is_file():
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue  # a picture, say
        moved = place.sub(lambda _: new, text)
        if moved != text:
            path.write_bytes(moved.encode("utf-8"))
            changed.append(path)
    return changed


def main() -> int:
    """Change the address and say where it stood."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("address", help="such as https://github.com/me/my-book")
    try:
        changed = rebrand(parser.parse_args().address)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for path in changed:
        print(path.relative_to(ROOT))
    print(
        f"{len(changed)} files have the new address. Commit and push them; then make "
        "anew what was made before, such as a course."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

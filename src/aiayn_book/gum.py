"""GUM: English sentences with their constituency trees, from texts of many kinds.

3,707 trees to train on, 438 for validation and 491 to test: academic papers, court
cases, biographies, interviews, news and travel guides. The paper's treebank, the Wall
Street Journal, is ten times as large and may not be passed on.

Annotations: CC BY 4.0; texts: CC BY 4.0, CC BY 2.5 or CC BY-SA 3.0. Cite Zeldes (2017):
The GUM Corpus: Creating Multilayer Resources in the Classroom.
"""

from collections.abc import Iterator
from pathlib import Path

from aiayn.data import TREES, read_lines
from aiayn.data.download import RemoteFile, cache_folder, fetch
from aiayn.errors import InputError
from aiayn.parsing import Tree, parse_tree, tree_pairs

GUM_REPOSITORY = "https://github.com/amir-zeldes/gum"
GUM_COMMIT = "72ce5ac14978a324c2fd18d49484e65292cbe316"
_GUM_FILES = {  # split: name and sha256
    "train": (
        "open.train.ptb.gz",
        "b759b194c1c5378d0818d6f3b6c7c804f008b57c77b1cc4710f27efb137eea8e",
    ),
    "validation": (
        "open.dev.ptb.gz",
        "65822e1094449256977692397ff78e02fdbedf1467b7b09e783e53034e530566",
    ),
    "test": (
        "open.test.ptb.gz",
        "f7926d1a3908c306682fc44306c44d2009e1aa94be71b34ef5eda17c49cd9d1c",
    ),
}


def read_gum() -> dict[str, tuple[Tree, ...]]:
    """GUM's trees by split, without their document roots.

    Raises:
        InputError: The files are not there. They are joined from many small ones and
            have no address of their own, so they are not downloaded.
    """
    return {split: tuple(_read(split)) for split in _GUM_FILES}


def _read(split: str) -> Iterator[Tree]:
    name, sha256 = _GUM_FILES[split]
    file = RemoteFile(f"gum_const/{name}", sha256, mirrors=())
    try:
        path = fetch(file)
    except InputError:
        raise InputError(
            f"{file.path} is neither in a folder that AIAYN_DATA names nor in "
            f"{cache_folder()}, and cannot be downloaded: it is joined, one tree a "
            f"line, from the files const/*.ptb of {GUM_REPOSITORY} at commit "
            f"{GUM_COMMIT} (see its splits.md). The corpus 'grammar' has trees "
            "without any file."
        ) from None
    for line in read_lines(path):
        root = parse_tree(line)
        child = root.children[0]
        yield child if isinstance(child, Tree) else root


def write_gum(folder: Path) -> None:
    """Write sentences and their linearised trees to files that `load_corpus` reads.

    Raises:
        InputError: GUM's files are not there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for split, trees in read_gum().items():
        pairs = tree_pairs(trees)
        for ending, lines in (("en", pairs.source), (TREES, pairs.target)):
            text = "".join(f"{line}\n" for line in lines)
            (folder / f"{split}.{ending}").write_text(text, encoding="utf-8")

"""The package's public names, read from the source by Griffe, without an import.

Beyond signatures and Google-style docstrings, this book's docstrings hold the place in
the paper and examples. ``book/data/api.yml`` says under which heading each name stands,
and which chapter derives it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import griffe
import yaml

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src"
PLAN = ROOT / "book" / "data" / "api.yml"

# What a docstring says about the paper stands at the end of a paragraph.
PLACE = re.compile(r"\b(?:Paper: |Not in the paper\b)")


@dataclass(frozen=True)
class Entry:
    """A public name as the reference shows it."""

    path: str
    """As one would import it: aiayn.Transformer, aiayn.data.Batch."""
    chapter: str | None
    """The notebook, and the heading in it, that derives or explains it."""
    source: griffe.Object
    """What Griffe read."""

    @property
    def name(self) -> str:
        """The name alone."""
        return self.path.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """The docstring's first paragraph, on one line."""
        return " ".join(split_place(paragraphs(self.source)[0])[0].split())

    @property
    def place(self) -> str:
        """Where the paper has it, as its docstring says, or else the package's.

        Empty if neither says it.
        """
        home = self.source.module
        while not home.is_init_module and home.path not in plan():
            home = home.parent
        texts = [*paragraphs(self.source), *paragraphs(home)]
        places = (split_place(text)[1] for text in texts)
        return " ".join(next(filter(None, places), "").split())


def split_place(text: str) -> tuple[str, str]:
    """A paragraph, and what it says about the paper in the end."""
    found = PLACE.search(text)
    if not found:
        return text, ""
    return text[: found.start()].rstrip(), text[found.start() :].removeprefix("Paper: ")


def paragraphs(thing: griffe.Object) -> list[str]:
    """The docstring's paragraphs; a single empty one where there is no docstring."""
    return (thing.docstring.value if thing.docstring else "").split("\n\n")


@cache
def package(name: str = "aiayn") -> griffe.Module:
    """A package of this distribution as Griffe reads it: aiayn, or aiayn_book."""
    loaded = griffe.load(
        name,
        search_paths=[SOURCE],
        docstring_parser="google",
        # A colon in what is returned belongs to the sentence; there is no name there.
        docstring_options={"returns_multiple_items": False, "warnings": False},
        resolve_aliases=True,
    )
    assert isinstance(loaded, griffe.Module)
    return loaded


def packages(module: griffe.Module | None = None) -> Iterator[griffe.Module]:
    """Both packages and all packages inside them; or those of a module.

    A module that the plan names counts as a package.
    """
    if module is None:
        yield from packages(package())
        yield from packages(package("aiayn_book"))
        return
    yield module
    for inner in module.modules.values():
        planned = inner.is_init_module or inner.path in plan()
        if planned and not inner.is_alias:
            yield from packages(inner)


def exports(module: griffe.Module) -> set[str]:
    """The names that a package exports: its ``__all__``, or else what it defines."""
    if module.exports is not None:
        return {str(name) for name in module.exports}
    own = (m for m in module.members.values() if not (m.is_alias or m.is_module))
    return {member.name for member in own if not member.name.startswith("_")}


@cache
def plan() -> dict[str, list[dict]]:
    """The headings of each package; under each, its names with their chapters."""
    return yaml.safe_load(PLAN.read_text(encoding="utf-8"))


def entry(module: str, name: str, chapter: str | None) -> Entry:
    """One name of a package's plan."""
    is_top = name in exports(package()) and module.startswith("aiayn.")
    home = "aiayn" if is_top else module
    top, *inner = module.split(".")
    member = package(top)[".".join([*inner, name])]
    target = member.final_target if isinstance(member, griffe.Alias) else member
    if target.is_module:  # a function that bears its module's name
        target = target[name]
    return Entry(f"{home}.{name}", chapter, target)


@cache
def entries() -> dict[str, Entry]:
    """Every planned name by its path."""
    found = (
        entry(module, name, chapter)
        for module, groups in plan().items()
        for group in groups
        for name, chapter in group["names"].items()
    )
    return {one.path: one for one in found}


def members(thing: griffe.Class) -> Iterator[griffe.Function]:
    """A class's public methods."""
    for member in thing.members.values():
        if isinstance(member, griffe.Function) and not member.name.startswith("_"):
            yield member


def fields(thing: griffe.Class) -> Iterator[griffe.Attribute]:
    """A class's public fields and properties: those with a docstring."""
    for member in thing.members.values():
        public = not member.name.startswith("_") and member.docstring
        if isinstance(member, griffe.Attribute) and public:
            yield member

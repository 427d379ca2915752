"""Fonts of icons and formulas, cut down to the characters that the book draws.

Both are drawn by ``content`` in the style sheet, so the style sheet knows them all: of
two thousand icons twenty. What is cut is no longer the original, and does not bear its
name, as the licence of Font Awesome asks.
"""

import hashlib
import re
from pathlib import Path

from aiayn_site import site_fonts

FACE = re.compile(r"@font-face\s*\{[^{}]*\}")
FAMILY = re.compile(r"font-family:\s*([^;}]+)")
SOURCE = re.compile(r"src:[^;}]+")
ADDRESS = re.compile(r"""url\(["']?([^"')]+)["']?\)""")
# Of a rule, or of a variable that a rule asks for.
CONTENT = re.compile(
    r"""(?:content|--[\w-]+):\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)')"""
)
ESCAPED = re.compile(r"\\([0-9A-Fa-f]{1,6})\s?|\\(.)", re.DOTALL)
VENDORS = "vendor/"  # fonts that others made, seen from the style sheet
WHOLE = "MathJax_Zero"  # glyphs without outlines: cut, no browser can read it
FOLDER = "fonts"
RESERVED = re.compile(r"Font ?Awesome")
OWN_NAME = "Book Icons"


def drawn(sheet: str) -> set[str]:
    """The characters that a style sheet's rules put into a page, and the space."""
    texts = (double or single for double, single in CONTENT.findall(sheet))
    return {" "}.union(*(ESCAPED.sub(_character, text) for text in texts))


def _character(escaped: re.Match) -> str:
    return chr(int(escaped[1], 16)) if escaped[1] else escaped[2]


def cut(source: Path, characters: set[str], folder: Path) -> str:
    """Write what is left of a font, unless it is there; returns the file's name."""
    wanted = "".join(sorted(characters)).encode()
    digest = hashlib.sha256(source.read_bytes() + wanted).hexdigest()[:8]
    target = folder / f"{source.stem}-cut-{digest}.woff2"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        site_fonts.cut(source, target, sorted(map(ord, characters)))
    return target.name


def with_cut_fonts(sheet: str, static: Path) -> str:
    """The style sheet with cut fonts for those of others, and no font that none uses.

    Args:
        sheet: It stands in `static`, or its addresses are as seen from there.
        static: Where the fonts are; the cut ones are put into its ``fonts``.
    """
    characters = drawn(sheet)
    rest = FACE.sub("", sheet).replace("\\ ", " ")
    made = set()

    def of_own(face: re.Match) -> str:
        family = FAMILY.search(face[0])[1].strip("\"' ").replace("\\ ", " ")
        if not re.search(rf"{re.escape(family)}(?![\w ])", rest):
            return ""
        address = ADDRESS.search(face[0])[1]
        if not address.startswith(VENDORS) or WHOLE in address:
            return face[0]
        name = cut(static / address, characters, static / FOLDER)
        made.add(name)
        src = f'src: url("{FOLDER}/{name}") format("woff2")'
        return SOURCE.sub(lambda _: src, face[0])

    own = FACE.sub(of_own, sheet)
    for old in (static / FOLDER).glob("*-cut-*.woff2"):
        if old.name not in made:
            old.unlink()
    return RESERVED.sub(OWN_NAME, own)

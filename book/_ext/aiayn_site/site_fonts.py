"""The book's typefaces: Source Serif for reading, Source Sans for everything around it.

Both come out of wheels (``font-source-serif-pro``, ``font-source-sans-pro``; SIL Open
Font License, copied beside the fonts) and are cut down to the characters that European
languages and simple formulas use.
"""

import hashlib
import logging
from importlib.metadata import distribution, version
from pathlib import Path

from fontTools import subset
from sphinx.application import Sphinx

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells every step
FACES = [  # wheel, file, family, weight, style
    ("font-source-serif-pro", "SourceSerifPro-Regular", "Book Serif", 400, "normal"),
    ("font-source-serif-pro", "SourceSerifPro-It", "Book Serif", 400, "italic"),
    ("font-source-serif-pro", "SourceSerifPro-Semibold", "Book Serif", 600, "normal"),
    ("font-source-sans-pro", "SourceSansPro-Regular", "Book Sans", 400, "normal"),
    ("font-source-sans-pro", "SourceSansPro-Semibold", "Book Sans", 600, "normal"),
]
# Seen first on every page: asked for at once, so that little moves when they come.
SEEN_FIRST = (
    "SourceSansPro-Semibold",
    "SourceSerifPro-Regular",
    "SourceSansPro-Regular",
)
CHARACTERS = [
    *range(0x20, 0x7F),
    *range(0xA0, 0x180),  # Latin-1 and Latin Extended-A
    *range(0x391, 0x3CA),  # Greek
    *range(0x2010, 0x2040),  # dashes, quotation marks, dots
    *range(0x2070, 0x20A0),  # superscripts and subscripts
    *(0x2190, 0x2191, 0x2192, 0x2193, 0x2212, 0x221A, 0x221E, 0x2248, 0x2264, 0x2265),
]


# Pairs, ligatures, accents; the kinds of figures that the style sheets choose from.
FEATURES = ["kern", "liga", "ccmp", "locl", "mark", "onum", "lnum", "pnum", "tnum"]


def font_file(wheel: str, name: str) -> Path:
    """Where an installed wheel keeps one of its files."""
    files = distribution(wheel).files or []
    return Path(str(next(file for file in files if file.name == name).locate()))


def cut(source: Path, target: Path, characters: list[int] = CHARACTERS) -> None:
    """Write the part of a font that the book uses, compressed for the web."""
    options = subset.Options(
        flavor="woff2", layout_features=FEATURES, desubroutinize=True
    )
    options.drop_tables += ["FFTM"]  # when it was made
    font = subset.load_font(str(source), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    subset.save_font(font, str(target), options)


def style_sheet() -> str:
    """The ``@font-face`` rules."""
    rule = (
        '@font-face {{ font-family: "{family}"; font-weight: {weight}; '
        "font-style: {style}; font-display: swap; "
        'src: url("fonts/{name}.woff2") format("woff2"); }}\n'
    )
    return "".join(
        rule.format(family=family, weight=weight, style=style, name=name)
        for _, name, family, weight, style in FACES
    )


def made_from() -> str:
    """A digest of all that the fonts follow from: this module, the wheels, the tool."""
    wheels = sorted({"fonttools", *(wheel for wheel, *_ in FACES)})
    versions = " ".join(map(version, wheels)).encode()
    return hashlib.sha256(Path(__file__).read_bytes() + versions).hexdigest()[:8]


def place_fonts(app: Sphinx) -> None:
    """Put fonts, licences and style sheet into the site, unless the same are there."""
    if app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    sheet, text = static / "fonts.css", f"/* {made_from()} */\n{style_sheet()}"
    if sheet.exists() and sheet.read_text(encoding="utf-8") == text:
        return
    (static / "fonts").mkdir(parents=True, exist_ok=True)
    for wheel, name, family, _, _ in FACES:
        cut(font_file(wheel, f"{name}.otf"), static / "fonts" / f"{name}.woff2")
        licence = static / "fonts" / f"{family}-licence.txt"
        licence.write_bytes(font_file(wheel, "LICENSE.txt").read_bytes())
    sheet.write_text(text, encoding="utf-8")  # last: it says that all are there


def ask_early(app: Sphinx, page, template, context: dict, doctree) -> None:
    """Let the browser ask for the first fonts before it has read the style sheets."""
    address = context["pathto"]
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n<link rel="preload" href="{address(f"_static/fonts/{name}.woff2", 1)}" '
        'as="font" type="font/woff2" crossorigin />'
        for name in SEEN_FIRST
    )


def setup(app: Sphinx) -> None:
    """Connect to the build."""
    app.connect("html-page-context", ask_early)
    app.connect("builder-inited", place_fonts)

"""German inflection: tables of endings over the stored principal parts.

Genders are m, f, n and p (plural, which has none); cases are nom, acc, dat and gen.
"""

from aiayn.data.grammar.nouns import Noun
from aiayn.data.grammar.verbs import Verb

CASES = ("nom", "acc", "dat", "gen")


def _table(*rows: str) -> dict[tuple[str, str], str]:
    """Reads rows of (case, m, f, n, p); "-" stands for no ending."""
    table = {}
    for row in rows:
        case, *cells = row.split()
        for gender, cell in zip("mfnp", cells, strict=True):
            table[case, gender] = "" if cell == "-" else cell
    return table


DEFINITE = _table(
    "nom der die das die",
    "acc den die das die",
    "dat dem der dem den",
    "gen des der des der",
)
RELATIVE = DEFINITE | {("dat", "p"): "denen"}

# dies-, jed-, viel-, einig-
DER_WORD = _table(
    "nom er e es e", "acc en e es e", "dat em er em en", "gen es er es er"
)
# ein-, kein-, mein-, …
EIN_WORD = _table("nom - e - e", "acc en e - e", "dat em er em en", "gen es er es er")

ADJECTIVE_ENDINGS = {
    "weak": _table(
        "nom e e e en", "acc en e e en", "dat en en en en", "gen en en en en"
    ),
    "mixed": _table(
        "nom er e es en", "acc en e es en", "dat en en en en", "gen en en en en"
    ),
    "strong": _table(
        "nom er e es e", "acc en e es e", "dat em er em en", "gen en er en er"
    ),
}

CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("von", "dem"): "vom",
    ("zu", "der"): "zur",
    ("in", "das"): "ins",
    ("an", "das"): "ans",
}

PERSONAL = {
    ("I", "nom"): "ich",
    ("I", "acc"): "mich",
    ("I", "dat"): "mir",
    ("we", "nom"): "wir",
    ("we", "acc"): "uns",
    ("we", "dat"): "uns",
    ("m", "nom"): "er",
    ("m", "acc"): "ihn",
    ("m", "dat"): "ihm",
    ("f", "nom"): "sie",
    ("f", "acc"): "sie",
    ("f", "dat"): "ihr",
    ("n", "nom"): "es",
    ("n", "acc"): "es",
    ("n", "dat"): "ihm",
    ("p", "nom"): "sie",
    ("p", "acc"): "sie",
    ("p", "dat"): "ihnen",
}
POSSESSIVE = {
    "I": "mein",
    "we": "unser",
    "m": "sein",
    "n": "sein",
    "f": "ihr",
    "p": "ihr",
}

# Auxiliaries: the forms with er and with wir.
AUXILIARIES = {
    "haben": ("hat", "haben"),
    "sein": ("ist", "sind"),
    "war": ("war", "waren"),  # the only Präteritum
    "werden": ("wird", "werden"),
    "können": ("kann", "können"),
    "müssen": ("muss", "müssen"),
    "wollen": ("will", "wollen"),
    "sollen": ("sollte", "sollten"),  # the subjunctive, as English has it
}


def noun_form(noun: Noun, case: str, plural: bool) -> str:
    """One of the eight forms of a noun.

    The dative plural adds -n, unless the plural ends in -n or -s.
    """
    if plural:
        form = noun.german_plural
        return form + "n" if case == "dat" and form[-1] not in "ns" else form
    if case == "gen" or (noun.weak and case != "nom"):
        return noun.genitive
    return noun.german


def determiner_form(stem: str, case: str, gender: str) -> str:
    """The article or article-like word of this stem: d, ein, kein, mein, dies, jed, …

    Numerals and the empty stem stay as they are.
    """
    declension = declension_of(stem)
    if stem == "d":
        return DEFINITE[case, gender]
    if declension == "mixed":
        return stem + EIN_WORD[case, gender]
    if stem in ("dies", "jed", "viel", "einig"):
        return stem + DER_WORD[case, gender]
    return stem


def declension_of(stem: str) -> str:
    """How adjectives are declined after this determiner."""
    if stem in ("d", "dies", "jed"):
        return "weak"
    return "mixed" if stem == "kein" or stem in _EIN_WORDS else "strong"


_EIN_WORDS = frozenset({"ein", *POSSESSIVE.values()})


def adjective_form(stem: str, determiner: str, case: str, gender: str) -> str:
    """An attributive adjective after a determiner (given by its stem)."""
    return stem + ADJECTIVE_ENDINGS[declension_of(determiner)][case, gender]


def finite_form(verb: Verb, plural: bool) -> str:
    """The present of er or wir, without the separable prefix."""
    return verb.infinitive if plural else verb.third


def auxiliary_form(name: str, plural: bool) -> str:
    """A finite form of an auxiliary or modal verb, with er or wir."""
    return AUXILIARIES[name][plural]

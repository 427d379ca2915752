"""English inflection: the little that the grammar needs."""

from aiayn.data.grammar.verbs import Verb

SUBJECTS = {"I": "I", "we": "we", "m": "he", "f": "she", "n": "it", "p": "they"}
OBJECTS = {"I": "me", "we": "us", "m": "him", "f": "her", "n": "it", "p": "them"}
POSSESSIVES = {"I": "my", "we": "our", "m": "his", "f": "her", "n": "its", "p": "their"}

# Present with he, with they; past with a singular, with a plural.
BE = ("is", "are", "was", "were")
DO = ("does", "do", "did", "did")


def third_person(base: str) -> str:
    """The present with *he*: calls, washes, carries, goes."""
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    if base.endswith(("s", "sh", "ch", "x", "o")):
        return base + "es"
    return base + "s"


def finite_form(verb: Verb, past: bool, plural: bool) -> str:
    """The finite form of a full verb, without its particle."""
    if past:
        return verb.past
    return verb.base if plural else third_person(verb.base)


def auxiliary_form(forms: tuple[str, str, str, str], past: bool, plural: bool) -> str:
    """The finite form of *be* or *do*."""
    return forms[2 * past + plural]


def article(next_word: str) -> str:
    """The indefinite article before this word."""
    return "an" if next_word[0] in "aeiou" else "a"

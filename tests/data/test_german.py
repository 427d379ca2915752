"""German inflection against paradigms written out by hand."""

import pytest

from aiayn.data.grammar import english, german
from aiayn.data.grammar.nouns import BY_NAME, NOUNS
from aiayn.data.grammar.verbs import VERBS, Verb
from aiayn.data.grammar.words import ADJECTIVES

CASES = ("nom", "acc", "dat", "gen")


def verb(infinitive: str) -> Verb:
    found = [v for v in VERBS if v.prefix + v.infinitive == infinitive]
    assert found, infinitive
    return found[0]


@pytest.mark.parametrize(
    ("stem", "gender", "expected"),
    [
        ("d", "m", "der den dem des"),
        ("d", "f", "die die der der"),
        ("d", "n", "das das dem des"),
        ("d", "p", "die die den der"),
        ("ein", "m", "ein einen einem eines"),
        ("ein", "f", "eine eine einer einer"),
        ("ein", "n", "ein ein einem eines"),
        ("kein", "p", "keine keine keinen keiner"),
        ("unser", "m", "unser unseren unserem unseres"),
        ("unser", "f", "unsere unsere unserer unserer"),
        ("dies", "m", "dieser diesen diesem dieses"),
        ("dies", "n", "dieses dieses diesem dieses"),
        ("jed", "f", "jede jede jeder jeder"),
        ("viel", "p", "viele viele vielen vieler"),
        ("zwei", "p", "zwei zwei zwei zwei"),
    ],
)
def test_determiners(stem: str, gender: str, expected: str) -> None:
    forms = [german.determiner_form(stem, case, gender) for case in CASES]
    assert forms == expected.split()


@pytest.mark.parametrize(
    ("determiner", "gender", "expected"),
    [
        ("d", "m", "alte alten alten alten"),
        ("d", "f", "alte alte alten alten"),
        ("d", "n", "alte alte alten alten"),
        ("d", "p", "alten alten alten alten"),
        ("jed", "m", "alte alten alten alten"),
        ("ein", "m", "alter alten alten alten"),
        ("ein", "f", "alte alte alten alten"),
        ("ein", "n", "altes altes alten alten"),
        ("kein", "p", "alten alten alten alten"),
        ("mein", "p", "alten alten alten alten"),
        ("", "m", "alter alten altem alten"),
        ("", "f", "alte alte alter alter"),
        ("", "n", "altes altes altem alten"),
        ("", "p", "alte alte alten alter"),
        ("zwei", "p", "alte alte alten alter"),
        ("einig", "p", "alte alte alten alter"),
    ],
)
def test_adjective_endings(determiner: str, gender: str, expected: str) -> None:
    forms = [german.adjective_form("alt", determiner, case, gender) for case in CASES]
    assert forms == expected.split()


@pytest.mark.parametrize(
    ("adjective", "form"),
    [
        ("expensive", "teuren"),
        ("dark", "dunklen"),
        ("sour", "sauren"),
        ("tired", "müden"),
    ],
)
def test_adjectives_that_change_before_an_ending(adjective: str, form: str) -> None:
    found = next(a for a in ADJECTIVES if a.english == adjective)
    assert german.adjective_form(found.stem, "d", "dat", "m") == form


@pytest.mark.parametrize(
    ("noun", "singular", "plural"),
    [
        ("man", "Mann Mann Mann Mannes", "Männer Männer Männern Männer"),
        ("woman", "Frau Frau Frau Frau", "Frauen Frauen Frauen Frauen"),
        ("car", "Auto Auto Auto Autos", "Autos Autos Autos Autos"),
        ("girl", "Mädchen Mädchen Mädchen Mädchens", "Mädchen Mädchen Mädchen Mädchen"),
        ("boy", "Junge Jungen Jungen Jungen", "Jungen Jungen Jungen Jungen"),
        ("bear", "Bär Bären Bären Bären", "Bären Bären Bären Bären"),
        (
            "neighbour",
            "Nachbar Nachbarn Nachbarn Nachbarn",
            "Nachbarn Nachbarn Nachbarn Nachbarn",
        ),
        (
            "student",
            "Student Studenten Studenten Studenten",
            "Studenten Studenten Studenten Studenten",
        ),
        ("garden", "Garten Garten Garten Gartens", "Gärten Gärten Gärten Gärten"),
        ("apple", "Apfel Apfel Apfel Apfels", "Äpfel Äpfel Äpfeln Äpfel"),
        ("teacher", "Lehrer Lehrer Lehrer Lehrers", "Lehrer Lehrer Lehrern Lehrer"),
    ],
)
def test_nouns(noun: str, singular: str, plural: str) -> None:
    for number, expected in ((False, singular), (True, plural)):
        forms = [german.noun_form(BY_NAME[noun], case, number) for case in CASES]
        assert forms == expected.split()


@pytest.mark.parametrize(
    ("infinitive", "present", "participle"),
    [
        # er, wir; Partizip II
        ("sehen", "sieht sehen", "gesehen"),
        ("lesen", "liest lesen", "gelesen"),
        ("essen", "isst essen", "gegessen"),
        ("fressen", "frisst fressen", "gefressen"),
        ("vergessen", "vergisst vergessen", "vergessen"),
        ("helfen", "hilft helfen", "geholfen"),
        ("geben", "gibt geben", "gegeben"),
        ("sprechen", "spricht sprechen", "gesprochen"),
        ("tragen", "trägt tragen", "getragen"),
        ("laufen", "läuft laufen", "gelaufen"),
        ("stehlen", "stiehlt stehlen", "gestohlen"),
        ("waschen", "wäscht waschen", "gewaschen"),
        ("fangen", "fängt fangen", "gefangen"),
        ("schreiben", "schreibt schreiben", "geschrieben"),
        ("arbeiten", "arbeitet arbeiten", "gearbeitet"),
        ("füttern", "füttert füttern", "gefüttert"),
        ("öffnen", "öffnet öffnen", "geöffnet"),
        ("reparieren", "repariert reparieren", "repariert"),
        ("besuchen", "besucht besuchen", "besucht"),
        ("verlieren", "verliert verlieren", "verloren"),
        ("bringen", "bringt bringen", "gebracht"),
        ("denken", "denkt denken", "gedacht"),
        ("wissen", "weiß wissen", "gewusst"),
        ("anrufen", "ruft rufen", "angerufen"),
        ("einladen", "lädt laden", "eingeladen"),
        ("anhalten", "hält halten", "angehalten"),
        ("mitnehmen", "nimmt nehmen", "mitgenommen"),
        ("wegwerfen", "wirft werfen", "weggeworfen"),
        ("einschlafen", "schläft schlafen", "eingeschlafen"),
        ("zuhören", "hört hören", "zugehört"),
    ],
)
def test_verbs(infinitive: str, present: str, participle: str) -> None:
    found = verb(infinitive)
    forms = [german.finite_form(found, plural) for plural in (False, True)]
    assert forms == present.split()
    assert found.participle == participle


def test_verbs_of_motion_and_change_take_sein_and_no_others() -> None:
    with_sein = {v.prefix + v.infinitive for v in VERBS if v.takes_sein}
    assert with_sein == {
        *("aufstehen", "aufwachen", "einschlafen", "ankommen", "abfahren", "folgen"),
        *("gehen", "laufen", "springen", "reisen", "kommen"),
    }


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("sein", "ist sind"),
        ("war", "war waren"),
        ("haben", "hat haben"),
        ("werden", "wird werden"),
        ("können", "kann können"),
        ("müssen", "muss müssen"),
        ("wollen", "will wollen"),
        ("sollen", "sollte sollten"),
    ],
)
def test_auxiliaries(name: str, forms: str) -> None:
    found = [german.auxiliary_form(name, plural) for plural in (False, True)]
    assert found == forms.split()


def test_participles_have_the_shape_that_their_verbs_ask_for() -> None:
    without_ge = ("be", "ver", "ge", "er")
    for found in VERBS:
        participle = found.participle
        assert participle.endswith(("t", "en")), participle
        bare = participle.removeprefix(found.prefix)
        if found.infinitive.startswith(without_ge) or found.infinitive.endswith(
            "ieren"
        ):
            continue
        assert bare.startswith("ge"), participle


def test_every_feminine_noun_is_the_same_in_all_cases_of_the_singular() -> None:
    feminine = [noun for noun in NOUNS if noun.gender == "f"]
    assert len(feminine) > 30
    assert all(noun.genitive == noun.german for noun in feminine)


def test_every_strong_genitive_ends_in_s() -> None:
    for noun in NOUNS:
        if noun.gender in "mn" and not noun.weak:
            assert noun.genitive.endswith("s"), noun.genitive
            assert noun.genitive.startswith(noun.german), noun.genitive


@pytest.mark.parametrize(
    ("base", "third"),
    [("wash", "washes"), ("carry", "carries"), ("play", "plays"), ("go", "goes")],
)
def test_english_third_person(base: str, third: str) -> None:
    assert english.third_person(base) == third

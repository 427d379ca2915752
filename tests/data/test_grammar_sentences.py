"""Sentences translated by hand, against what the grammar makes of their contents."""

from collections.abc import Callable

import pytest

from aiayn.data.grammar.clauses import Clause, RelativeClause, SubordinateClause
from aiayn.data.grammar.draw import WITHOUT_ARTICLE
from aiayn.data.grammar.english_order import english_clause, english_question
from aiayn.data.grammar.german_order import german_clause
from aiayn.data.grammar.nouns import BY_NAME
from aiayn.data.grammar.phrases import (
    BARE,
    EVERY,
    NUMERALS,
    POSSESSIVES,
    THE,
    THIS,
    A,
    AdjectivePhrase,
    AdverbPhrase,
    NounPhrase,
    Possessor,
    PrepositionalPhrase,
    Pronoun,
    word,
)
from aiayn.data.grammar.sample import align, detokenise, words_of
from aiayn.data.grammar.verbs import VERBS
from aiayn.data.grammar.words import ADJECTIVES, ADVERBIALS

DETERMINERS = {
    "the": THE,
    "a": A,
    "an": A,
    "this": THIS,
    "these": THIS,
    "every": EVERY,
    "my": POSSESSIVES["I"],
    "our": POSSESSIVES["we"],
    **{determiner.english: determiner for determiner in NUMERALS},
}
_counter = iter(range(0, 10**9, 10))


def link() -> int:
    return next(_counter)


def adjective(name: str):
    return next(a for a in ADJECTIVES if a.english == name)


def np(text: str, *, relative=None, owner=None, pp=None) -> NounPhrase:
    """A noun phrase from its English: "the old dog", "two cats", "fresh milk"."""
    words = text.split()
    determiner = DETERMINERS.get(words[0], BARE)
    rest = words if determiner is BARE else words[1:]
    plural = rest[-1] not in BY_NAME
    noun = next(n for n in BY_NAME.values() if rest[-1] in (n.singular, n.plural))
    adjectives = tuple(adjective(name) for name in rest[:-1])
    phrase = NounPhrase(noun, plural, determiner, adjectives, link())
    if relative is not None:
        clause = relative(phrase)
        phrase.relative = RelativeClause(phrase, clause, link())
    if owner is not None:
        phrase.modifier = Possessor(owner, phrase.link)
    if pp is not None:
        phrase.modifier = pp
    return phrase


def pp(english: str, german: str, case: str, text) -> PrepositionalPhrase:
    inner = np(text) if isinstance(text, str) else text
    return PrepositionalPhrase(english, german, case, inner, link())


def adverb(name: str) -> AdverbPhrase:
    return AdverbPhrase(next(a for a in ADVERBIALS if a.name == name), link())


def pronoun(who: str, english: str | None = None) -> Pronoun:
    return Pronoun(who, english or who, link())


def clause(subject, verb: str, tense: str = "present", **roles) -> Clause:
    """A clause; the verb is named by its German infinitive, "sein" by itself."""
    subject = np(subject) if isinstance(subject, str) else subject
    found = next((v for v in VERBS if v.prefix + v.infinitive == verb), None)
    assert found is not None or verb == "sein"
    for name in ("dative", "accusative"):
        if isinstance(roles.get(name), str):
            roles[name] = np(roles[name])
    return Clause(subject, found, tense, link(), **roles)


def is_(subject, name: str, tense: str = "present", degree=None, than=None, **roles):
    standard = np(than) if than else None
    predicate = AdjectivePhrase(adjective(name), degree, standard, link())
    return clause(subject, "sein", tense, predicate=predicate, **roles)


def because(main: Clause, pair: tuple[str, str], inner: Clause) -> Clause:
    main.content = SubordinateClause(pair, inner, link())
    return main


def say(source: list, target: list, mark: str = ".") -> tuple[str, str]:
    drafts = ("S", [*source, word(".", mark)]), ("S", [*target, word("$.", mark)])
    strings = [detokenise(tuple(w[1] for w in words_of(draft))) for draft in drafts]
    return strings[0], strings[1]


def statement(main: Clause) -> tuple[str, str]:
    return say(english_clause(main), german_clause(main, "second"))


def question(main: Clause) -> tuple[str, str]:
    return say([english_question(main)], german_clause(main, "first"), "?")


def relative(gap: str, subject, verb: str, tense: str = "present", **roles):
    """The clause of a relative clause, given the phrase that it belongs to."""

    def make(phrase: NounPhrase) -> Clause:
        who = phrase if gap == "subject" else subject
        role = {} if gap == "subject" else {gap: phrase}
        if gap == "place":
            role = {"place": pp("in", "in", "dat", phrase)}
        return clause(who, verb, tense, gap=gap, **role, **roles)

    return make


STATEMENTS = [
    # Cases and declensions
    ("The dog sleeps.", "Der Hund schläft.", lambda: clause("the dog", "schlafen")),
    (
        "The old dog eats the fresh bread.",
        "Der alte Hund frisst das frische Brot.",
        lambda: clause("the old dog", "fressen", accusative="the fresh bread"),
    ),
    (
        "The boy eats the apple.",
        "Der Junge isst den Apfel.",
        lambda: clause("the boy", "essen", accusative="the apple"),
    ),
    (
        "A young woman sees an old man.",
        "Eine junge Frau sieht einen alten Mann.",
        lambda: clause("a young woman", "sehen", accusative="an old man"),
    ),
    (
        "Our aunt drinks cold milk.",
        "Unsere Tante trinkt kalte Milch.",
        lambda: clause("our aunt", "trinken", accusative="cold milk"),
    ),
    (
        "My uncle drinks strong coffee.",
        "Mein Onkel trinkt starken Kaffee.",
        lambda: clause("my uncle", "trinken", accusative="strong coffee"),
    ),
    (
        "Two old women buy three red coats.",
        "Zwei alte Frauen kaufen drei rote Mäntel.",
        lambda: clause("two old women", "kaufen", accusative="three red coats"),
    ),
    (
        "Every student reads this book.",
        "Jeder Student liest dieses Buch.",
        lambda: clause("every student", "lesen", accusative="this book"),
    ),
    (
        "These boys see a bear.",
        "Diese Jungen sehen einen Bären.",
        lambda: clause("these boys", "sehen", accusative="a bear"),
    ),
    (
        "We help the children.",
        "Wir helfen den Kindern.",
        lambda: clause(pronoun("we"), "helfen", dative="the children"),
    ),
    (
        "We trust the neighbour.",
        "Wir vertrauen dem Nachbarn.",
        lambda: clause(pronoun("we"), "vertrauen", dative="the neighbour"),
    ),
    (
        "The mother gives the child a sweet pear.",
        "Die Mutter gibt dem Kind eine süße Birne.",
        lambda: clause(
            "the mother", "geben", dative="the child", accusative="a sweet pear"
        ),
    ),
    (
        "She shows us the pictures.",
        "Sie zeigt uns die Bilder.",
        lambda: clause(
            pronoun("f"), "zeigen", dative=pronoun("we"), accusative="the pictures"
        ),
    ),
    (
        "The house belongs to him.",
        "Das Haus gehört ihm.",
        lambda: clause("the house", "gehören", dative=pronoun("m")),
    ),
    (
        "They love her.",
        "Sie lieben sie.",
        lambda: clause(pronoun("p"), "lieben", accusative=pronoun("f")),
    ),
    (
        "The woman's dog sleeps.",
        "Der Hund der Frau schläft.",
        lambda: clause(np("the dog", owner=np("the woman")), "schlafen"),
    ),
    (
        "He reads the student's letter.",
        "Er liest den Brief des Studenten.",
        lambda: clause(
            pronoun("m"), "lesen", accusative=np("the letter", owner=np("the student"))
        ),
    ),
    # Tenses and modals
    (
        "The cat slept.",
        "Die Katze hat geschlafen.",
        lambda: clause("the cat", "schlafen", "past"),
    ),
    (
        "The uncle went to the station.",
        "Der Onkel ist zum Bahnhof gegangen.",
        lambda: clause(
            "the uncle", "gehen", "past", goal=pp("to", "zu", "dat", "the station")
        ),
    ),
    (
        "The children were tired.",
        "Die Kinder waren müde.",
        lambda: is_("the children", "tired", "past"),
    ),
    (
        "The girl wants to read the book.",
        "Das Mädchen will das Buch lesen.",
        lambda: clause("the girl", "lesen", "want", accusative="the book"),
    ),
    (
        "The guests must wait.",
        "Die Gäste müssen warten.",
        lambda: clause("the guests", "warten", "must"),
    ),
    (
        "We will be happy.",
        "Wir werden glücklich sein.",
        lambda: is_(pronoun("we"), "happy", "future"),
    ),
    # Separable verbs
    (
        "The man calls his friend.",
        "Der Mann ruft seinen Freund an.",
        lambda: clause("the man", "anrufen", accusative=_his(np("the friend"))),
    ),
    (
        "The boy got up.",
        "Der Junge ist aufgestanden.",
        lambda: clause("the boy", "aufstehen", "past"),
    ),
    (
        "She should invite me.",
        "Sie sollte mich einladen.",
        lambda: clause(pronoun("f"), "einladen", "should", accusative=pronoun("I")),
    ),
    (
        "The children listen to the teacher.",
        "Die Kinder hören dem Lehrer zu.",
        lambda: clause("the children", "zuhören", dative="the teacher"),
    ),
    (
        "The aunt picks us up.",
        "Die Tante holt uns ab.",
        lambda: clause("the aunt", "abholen", accusative=pronoun("we")),
    ),
    (
        "The aunt picked up the girl.",
        "Die Tante hat das Mädchen abgeholt.",
        lambda: clause("the aunt", "abholen", "past", accusative="the girl"),
    ),
    # Word order
    (
        "Today the train leaves.",
        "Heute fährt der Zug ab.",
        lambda: clause("the train", "abfahren", point=adverb("today"), front="point"),
    ),
    (
        "In the garden the dog chases a cat.",
        "Im Garten jagt der Hund eine Katze.",
        lambda: clause(
            "the dog",
            "jagen",
            accusative="a cat",
            place=pp("in", "in", "dat", "the garden"),
            front="place",
        ),
    ),
    (
        "The woman often reads a book in the garden.",
        "Die Frau liest oft im Garten ein Buch.",
        lambda: clause(
            "the woman",
            "lesen",
            accusative="a book",
            often=adverb("often"),
            place=pp("in", "in", "dat", "the garden"),
        ),
    ),
    (
        "He plays the piano well.",
        "Er spielt gut Klavier.",
        lambda: clause(
            pronoun("m"),
            "spielen",
            accusative=_bare("the piano"),
            manner=adverb("well"),
        ),
    ),
    (
        "Tomorrow the doctor will help us.",
        "Morgen wird uns der Arzt helfen.",
        lambda: clause(
            "the doctor",
            "helfen",
            "future",
            dative=pronoun("we"),
            point=adverb("tomorrow"),
            front="point",
        ),
    ),
    # Two-way prepositions and contractions
    (
        "The cup stands on the table.",
        "Die Tasse steht auf dem Tisch.",
        lambda: clause("the cup", "stehen", place=pp("on", "auf", "dat", "the table")),
    ),
    (
        "She puts the cup on the table.",
        "Sie stellt die Tasse auf den Tisch.",
        lambda: clause(
            pronoun("f"),
            "stellen",
            accusative="the cup",
            goal=pp("on", "auf", "acc", "the table"),
        ),
    ),
    (
        "She puts the key on the table.",
        "Sie legt den Schlüssel auf den Tisch.",
        lambda: clause(
            pronoun("f"),
            "legen",
            accusative="the key",
            goal=pp("on", "auf", "acc", "the table"),
        ),
    ),
    (
        "The cat runs into the house.",
        "Die Katze läuft ins Haus.",
        lambda: clause("the cat", "laufen", goal=pp("into", "in", "acc", "the house")),
    ),
    (
        "We wait for the bus.",
        "Wir warten auf den Bus.",
        lambda: clause(
            pronoun("we"), "warten", prepositional=pp("for", "auf", "acc", "the bus")
        ),
    ),
    (
        "We dream of the bear.",
        "Wir träumen vom Bären.",
        lambda: clause(
            pronoun("we"), "träumen", prepositional=pp("of", "von", "dat", "the bear")
        ),
    ),
    # Negation
    (
        "The dog does not eat the cheese.",
        "Der Hund frisst den Käse nicht.",
        lambda: clause("the dog", "fressen", accusative="the cheese", negated=True),
    ),
    (
        "The dog does not eat cheese.",
        "Der Hund frisst keinen Käse.",
        lambda: clause("the dog", "fressen", accusative="cheese", negated=True),
    ),
    (
        "The man cannot find a hat.",
        "Der Mann kann keinen Hut finden.",
        lambda: clause("the man", "finden", "can", accusative="a hat", negated=True),
    ),
    (
        "The train did not stop.",
        "Der Zug hat nicht angehalten.",
        lambda: clause("the train", "anhalten", "past", negated=True),
    ),
    (
        "The house is not old.",
        "Das Haus ist nicht alt.",
        lambda: is_("the house", "old", negated=True),
    ),
    # Predicates
    (
        "The wine was very expensive.",
        "Der Wein war sehr teuer.",
        lambda: is_("the wine", "expensive", "past", ("very", "sehr")),
    ),
    (
        "The dog is bigger than the cat.",
        "Der Hund ist größer als die Katze.",
        lambda: is_("the dog", "big", than="the cat"),
    ),
    (
        "The car is more expensive than a bicycle.",
        "Das Auto ist teurer als ein Fahrrad.",
        lambda: is_("the car", "expensive", than="a bicycle"),
    ),
    # Agreement at a distance
    (
        "The keys under the table are new.",
        "Die Schlüssel unter dem Tisch sind neu.",
        lambda: is_(np("the keys", pp=pp("under", "unter", "dat", "the table")), "new"),
    ),
    (
        "The key that the children found is old.",
        "Der Schlüssel, den die Kinder gefunden haben, ist alt.",
        lambda: is_(
            np(
                "the key",
                relative=relative("accusative", np("the children"), "finden", "past"),
            ),
            "old",
        ),
    ),
    # Relative clauses
    (
        "She sees the man who sleeps.",
        "Sie sieht den Mann, der schläft.",
        lambda: clause(
            pronoun("f"),
            "sehen",
            accusative=np("the man", relative=relative("subject", None, "schlafen")),
        ),
    ),
    (
        "The women that we help are old.",
        "Die Frauen, denen wir helfen, sind alt.",
        lambda: is_(
            np("the women", relative=relative("dative", pronoun("we"), "helfen")), "old"
        ),
    ),
    (
        "The house in which we live is small.",
        "Das Haus, in dem wir wohnen, ist klein.",
        lambda: is_(
            np("the house", relative=relative("place", pronoun("we"), "wohnen")),
            "small",
        ),
    ),
    (
        "The teacher calls the girl who cried.",
        "Der Lehrer ruft das Mädchen an, das geweint hat.",
        lambda: clause(
            "the teacher",
            "anrufen",
            accusative=np(
                "the girl", relative=relative("subject", None, "weinen", "past")
            ),
        ),
    ),
    # Subordinate clauses
    (
        "The child laughs because the cat sleeps.",
        "Das Kind lacht, weil die Katze schläft.",
        lambda: because(
            clause("the child", "lachen"),
            ("because", "weil"),
            clause("the cat", "schlafen"),
        ),
    ),
    (
        "We wait if the train does not leave.",
        "Wir warten, wenn der Zug nicht abfährt.",
        lambda: because(
            clause(pronoun("we"), "warten"),
            ("if", "wenn"),
            clause("the train", "abfahren", negated=True),
        ),
    ),
    (
        "They do not know whether she wants to come into the kitchen.",
        "Sie wissen nicht, ob sie in die Küche kommen will.",
        lambda: because(
            clause(pronoun("p"), "wissen", negated=True),
            ("whether", "ob"),
            clause(
                pronoun("f"),
                "kommen",
                "want",
                goal=pp("into", "in", "acc", "the kitchen"),
            ),
        ),
    ),
    (
        "The baker says that he sold the bread that the woman needs.",
        "Der Bäcker sagt, dass er das Brot verkauft hat, das die Frau braucht.",
        lambda: because(
            clause("the baker", "sagen"),
            ("that", "dass"),
            clause(
                pronoun("m"),
                "verkaufen",
                "past",
                accusative=np(
                    "the bread",
                    relative=relative("accusative", np("the woman"), "brauchen"),
                ),
            ),
        ),
    ),
    # Pronouns: gender by the antecedent
    (
        "The dog does not eat the soup because it is tired.",
        "Der Hund frisst die Suppe nicht, weil er müde ist.",
        lambda: because(
            clause("the dog", "fressen", accusative="the soup", negated=True),
            ("because", "weil"),
            is_(pronoun("m", "n"), "tired"),
        ),
    ),
    (
        "The dog does not eat the soup because it is cold.",
        "Der Hund frisst die Suppe nicht, weil sie kalt ist.",
        lambda: because(
            clause("the dog", "fressen", accusative="the soup", negated=True),
            ("because", "weil"),
            is_(pronoun("f", "n"), "cold"),
        ),
    ),
    (
        "The woman looks for the hat because she needs it.",
        "Die Frau sucht den Hut, weil sie ihn braucht.",
        lambda: because(
            clause("the woman", "suchen", accusative="the hat"),
            ("because", "weil"),
            clause(pronoun("f"), "brauchen", accusative=pronoun("m", "n")),
        ),
    ),
]


def _his(phrase: NounPhrase) -> NounPhrase:
    phrase.determiner = POSSESSIVES["m"]
    return phrase


def _bare(text: str) -> NounPhrase:
    phrase = np(text)
    phrase.determiner = WITHOUT_ARTICLE
    return phrase


@pytest.mark.parametrize(("english", "german", "make"), STATEMENTS)
def test_statements(english: str, german: str, make: Callable[[], Clause]) -> None:
    assert statement(make()) == (english, german)


QUESTIONS = [
    ("Does the dog sleep?", "Schläft der Hund?", lambda: clause("the dog", "schlafen")),
    (
        "Did the man call the doctor?",
        "Hat der Mann den Arzt angerufen?",
        lambda: clause("the man", "anrufen", "past", accusative="the doctor"),
    ),
    (
        "Does the woman turn on the lamp?",
        "Schaltet die Frau die Lampe ein?",
        lambda: clause("the woman", "einschalten", accusative="the lamp"),
    ),
    (
        "Can the bird sing well?",
        "Kann der Vogel gut singen?",
        lambda: clause("the bird", "singen", "can", manner=adverb("well")),
    ),
    (
        "Were the plates dirty?",
        "Waren die Teller schmutzig?",
        lambda: is_("the plates", "dirty", "past"),
    ),
]


@pytest.mark.parametrize(("english", "german", "make"), QUESTIONS)
def test_questions(english: str, german: str, make: Callable[[], Clause]) -> None:
    assert question(make()) == (english, german)


def aligned(main: Clause) -> set[tuple[str, str]]:
    source = words_of(("S", english_clause(main)))
    target = words_of(("S", german_clause(main, "second")))
    return {(source[i][1], target[j][1]) for i, j in align(source, target)}


def test_a_separable_verb_aligns_with_all_of_its_parts() -> None:
    main = clause("the man", "anrufen", accusative="the girl", negated=True)
    assert aligned(main) == {
        *(("The", "Der"), ("man", "Mann")),
        *((e, g) for e in ("does", "call") for g in ("ruft", "an")),
        *(("not", "nicht"), ("the", "das"), ("girl", "Mädchen")),
    }


def test_kein_aligns_with_not_and_the_article_a_contraction_with_both_words() -> None:
    place = pp("in", "in", "dat", "the park")
    main = clause("the boy", "essen", accusative="an apple", negated=True, place=place)
    pairs = aligned(main)
    assert {("not", "keinen"), ("an", "keinen")} <= pairs
    assert {("in", "im"), ("the", "im"), ("park", "Park")} <= pairs


def test_the_article_of_plays_the_piano_has_no_counterpart() -> None:
    main = clause("the boy", "spielen", accusative=_bare("the piano"))
    assert aligned(main) == {
        *(("The", "Der"), ("boy", "Junge"), ("plays", "spielt"), ("piano", "Klavier")),
    }

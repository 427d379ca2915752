"""The grammar's adjectives, adverbials and conjunctions: one entry a line."""

from dataclasses import dataclass
from functools import cache

from aiayn.data.grammar.nouns import Noun, entries

# English, comparative ; German, comparative (stem before an ending) ; classes of nouns
# that it can be said of. Those with "-" are excluded again.
ADJECTIVES_TABLE = """
old older ; alt, älter ;
    person animal thing built vehicle furniture town plant tale -clothes
young younger ; jung, jünger ; person animal -young -grandmother -mother -father
small smaller ; klein, kleiner ;
    animal thing built room vehicle furniture town area young part plant
big bigger ; groß, größer ;
    animal thing built room vehicle furniture town area plant fruit part
new newer ; neu, neuer ; thing built vehicle furniture instrument device
beautiful - ; schön, schöner ;
    area town built tale art room clothes vessel furniture -market
ugly uglier ; hässlich, hässlicher ;
    clothes furniture =picture =lamp =vase built
friendly friendlier ; freundlich, freundlicher ; person =dog -friend
clever cleverer ; klug, klüger ; person =dog =fox =horse =monkey
strong stronger ; stark, stärker ; person =bear =horse =coffee =tea
rich richer ; reich, reicher ; person town -young -island
poor poorer ; arm, ärmer ; person
lazy lazier ; faul, fauler ; person animal
happy happier ; glücklich, glücklicher ; person
sad sadder ; traurig, trauriger ; person tale
tired - ; müde, müder ; person animal
hungry hungrier ; hungrig, hungriger ; person animal
sick sicker ; krank, kränker ; person animal
famous - ; berühmt, berühmter ;
    person =picture =story =poem built -station -house
white whiter ; weiß, weißer ;
    animal clothes vessel furniture flower =house =wine =flower
black blacker ; schwarz, schwärzer ;
    animal clothes vehicle furniture =bag =umbrella =suitcase
red redder ; rot, roter ;
    clothes furniture vehicle vessel =apple =wine =flower =ball =roof =door
green greener ; grün, grüner ;
    clothes vessel =apple =bottle =meadow =door =lamp =bicycle
brown browner ; braun, brauner ;
    =dog =horse =cow =bear =rabbit =bird clothes =bag =suitcase furniture
expensive - ; teuer, teurer (teur) ;
    thing vehicle furniture =wine =cheese =hotel =restaurant
cheap cheaper ; billig, billiger ;
    thing vehicle furniture =wine =beer =hotel =restaurant
heavy heavier ; schwer, schwerer ; upright furniture =book =piano =bicycle =key =ball
empty emptier ; leer, leerer ;
    vessel =basket =suitcase =bag =room =street =church =bus =train
full fuller ; voll, voller ; vessel =basket =suitcase =bag =restaurant =bus =train
broken - ; kaputt, kaputter ;
    device vehicle vessel =chair =window =umbrella =door -ship
dirty dirtier ; schmutzig, schmutziger ;
    clothes vessel flat vehicle room =dog =pig =window =river -text -ship
clean cleaner ; sauber, sauberer ;
    clothes vessel room =knife =fork =window =street
hot hotter ; heiß, heißer ; dish =coffee =tea =milk -cake
cold colder ; kalt, kälter ; dish drink =room =river =lake =cellar -cake
hard harder ; hart, härter ;
    =bread =cheese =apple =pear =carrot =meat =bed =bench =pillow =chair
fresh fresher ; frisch, frischer ; food =milk =water -sausage
sweet sweeter ; süß, süßer ; fruit =cake =tea =wine -potato -carrot
sour - ; sauer, saurer (saur) ; =apple =milk =wine
quiet quieter ; ruhig, ruhiger ;
    =street =village =hotel =room =forest =park =boy =girl
dark darker ; dunkel, dunkler (dunkl) ; room =forest =street =church =house
interesting - ; interessant, interessanter ; text town =museum =person =picture
long longer ; lang, länger ; text =train =street =bridge =river =coat
narrow narrower ; schmal, schmaler ; =street =bridge =bed =room =door =bench
    =window =house =table =cupboard
modern - ; modern, moderner ; built device furniture room clothes =city
"""

# English, each word with its tag and a number ; German likewise: equal numbers align.
# Kinds: point (when exactly), often (frequency), manner. Tenses: present, past, and
# later for the modals.
ADVERBS_TABLE = """
point ; present later ; today/RB/0 ; heute/ADV/0
point ; present ; now/RB/0 ; jetzt/ADV/0
point ; past ; yesterday/RB/0 ; gestern/ADV/0
point ; later ; tomorrow/RB/0 ; morgen/ADV/0
point ; later ; soon/RB/0 ; bald/ADV/0
point ; past present later ; in/IN/0 the/DT/0 morning/NN/1 ; am/APPRART/0 Morgen/NN/1
point ; past present later ; in/IN/0 the/DT/0 evening/NN/1 ; am/APPRART/0 Abend/NN/1
point ; past present later ; on/IN/0 Sunday/NNP/1 ; am/APPRART/0 Sonntag/NN/1
point ; past present later ; on/IN/0 Monday/NNP/1 ; am/APPRART/0 Montag/NN/1
point ; past ; last/JJ/0 week/NN/1 ; letzte/ADJA/0 Woche/NN/1
point ; past ; last/JJ/0 year/NN/1 ; letztes/ADJA/0 Jahr/NN/1
point ; later ; next/JJ/0 week/NN/1 ; nächste/ADJA/0 Woche/NN/1
point ; present ; every/DT/0 day/NN/1 ; jeden/PIAT/0 Tag/NN/1
often ; present past ; often/RB/0 ; oft/ADV/0
often ; present past ; always/RB/0 ; immer/ADV/0
often ; present past ; sometimes/RB/0 ; manchmal/ADV/0
often ; present past ; rarely/RB/0 ; selten/ADV/0
often ; present past ; never/RB/0 ; nie/ADV/0
manner ; all ; quickly/RB/0 ; schnell/ADJD/0
manner ; all ; slowly/RB/0 ; langsam/ADJD/0
manner ; all ; loudly/RB/0 ; laut/ADJD/0
manner ; all ; quietly/RB/0 ; leise/ADJD/0
manner ; all ; well/RB/0 ; gut/ADJD/0
manner ; all ; badly/RB/0 ; schlecht/ADJD/0
manner ; all ; alone/RB/0 ; allein/ADJD/0
"""

VERY, QUITE, TOO = ("very", "sehr"), ("quite", "ziemlich"), ("too", "zu")

# Adjectives that can be too much of a good thing, those without degrees, and those with
# a comparative that one would say.
EXCESSIVE = frozenset(
    [
        "old",
        "young",
        "small",
        "big",
        "expensive",
        "heavy",
        "hot",
        "cold",
        "sour",
        "hard",
        "dark",
        "long",
        "narrow",
    ]
)
ABSOLUTE = frozenset(
    [
        "white",
        "black",
        "red",
        "green",
        "brown",
        "empty",
        "full",
        "broken",
        "fresh",
        "young",
        "sick",
    ]
)
COMPARABLE = frozenset(
    [
        "old",
        "young",
        "small",
        "big",
        "beautiful",
        "ugly",
        "friendly",
        "clever",
        "strong",
        "rich",
        "lazy",
        "expensive",
        "cheap",
        "heavy",
        "modern",
        "interesting",
        "long",
        "narrow",
        "hungry",
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """One adjective's forms in both languages; `stem` stands before an ending."""

    english: str
    comparative: str
    german: str
    german_comparative: str
    stem: str
    classes: frozenset[str]
    excluded: frozenset[str]

    def fits(self, noun: Noun) -> bool:
        """Whether the adjective can be said of the noun."""
        names = noun.classes | {f"={noun.singular}"}
        excluded = bool(names & self.excluded) or noun.singular in self.excluded
        return bool(names & self.classes) and not excluded


Leaf = tuple[str, str, int]
"""A word, its tag, and the number of the counterpart that it aligns with."""


@dataclass(frozen=True, slots=True, eq=False)
class Adverbial:
    """An adverb or adverbial phrase, with its own small alignment."""

    kind: str
    tenses: frozenset[str]
    english: tuple[Leaf, ...]
    german: tuple[Leaf, ...]
    label: str
    german_label: str

    @property
    def name(self) -> str:
        return " ".join(word for word, _, _ in self.english)


def _adjective(line: str) -> Adjective:
    english, german, classes = (part.strip() for part in line.split(";"))
    positive, comparative = english.split()
    forms, _, stem = german.partition(" (")
    german_positive, german_comparative = forms.split(", ")
    listed = classes.split()
    return Adjective(
        english=positive,
        comparative=f"more {positive}" if comparative == "-" else comparative,
        german=german_positive,
        german_comparative=german_comparative.strip(),
        stem=stem.rstrip(") ") or german_positive.removesuffix("e"),
        classes=frozenset(name for name in listed if not name.startswith("-")),
        excluded=frozenset(name[1:] for name in listed if name.startswith("-")),
    )


def _leaves(text: str) -> tuple[Leaf, ...]:
    parts = (word.split("/") for word in text.split())
    return tuple((word, tag, int(number)) for word, tag, number in parts)


def _label(leaves: tuple[Leaf, ...]) -> str:
    if leaves[0][1] in ("IN", "APPRART"):
        return "PP"
    return "NP" if len(leaves) > 1 else "ADVP"


def _adverbial(line: str) -> Adverbial:
    kind, tenses, english, german = (part.strip() for part in line.split(";"))
    source, target = _leaves(english), _leaves(german)
    return Adverbial(
        kind, frozenset(tenses.split()), source, target, _label(source), _label(target)
    )


ADJECTIVES = tuple(_adjective(line) for line in entries(ADJECTIVES_TABLE))
ADVERBIALS = tuple(_adverbial(line) for line in entries(ADVERBS_TABLE))
MANNERS = {adverb.name: adverb for adverb in ADVERBIALS if adverb.kind == "manner"}


@cache
def adverbials_of(kind: str, tense: str) -> tuple[Adverbial, ...]:
    """The adverbials of one kind that go with one of the tenses of the table."""
    return tuple(a for a in ADVERBIALS if a.kind == kind and tense in a.tenses)


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that can be said of the noun."""
    return tuple(adjective for adjective in ADJECTIVES if adjective.fits(noun))

"""The grammar's verbs, with the principal parts that a learner memorises.

English base form (past, unless regular) ; German infinitive, third person singular,
participle ; frame ; subjects ; objects ; manners.

`an|rufen` is separable: *ruft … an*. A participle with "ist" takes *sein*. English
particles stand after "+": *get+up*. Subjects and objects are classes of nouns. Frames:

    itr     no object                      acc     an accusative object
    dat     a dative object                give    a dative and an accusative object
    prep/P/Q/case  an object after English P and German Q, which takes that case
    where   a place, dative                to      a goal: *into*, *zu*
    put     an accusative object and a goal
    that, whether   a clause
"""

from dataclasses import dataclass
from functools import cache

from aiayn.data.grammar.nouns import Noun, entries, nouns_of

TABLE = """
sleep slept ; schlafen, schläft, geschlafen ; itr ; person animal ; ; badly
work ; arbeiten, arbeitet, gearbeitet ; itr ; person ; ; well slowly
laugh ; lachen, lacht, gelacht ; itr ; person ; ; loudly
cry cried ; weinen, weint, geweint ; itr ; person ; ; loudly
dance ; tanzen, tanzt, getanzt ; itr ; person ; ; well alone
sing sang ; singen, singt, gesungen ; itr ; person =bird ; ; loudly well
wait ; warten, wartet, gewartet ; itr ; person ; ; alone
get+up got ; auf|stehen, steht, ist aufgestanden ; itr ; person ; ; slowly
wake+up woke ; auf|wachen, wacht, ist aufgewacht ; itr ; person animal ; ;
fall+asleep fell ; ein|schlafen, schläft, ist eingeschlafen ; itr ; person animal ; ;
arrive ; an|kommen, kommt, ist angekommen ; itr ; person line ; ;
leave left ; ab|fahren, fährt, ist abgefahren ; itr ; line ; ;
stop stopped ; an|halten, hält, angehalten ; itr ; line =car ; ;
see saw ; sehen, sieht, gesehen ; acc ; person ;
    person animal thing vehicle tale plant ;
hear heard ; hören, hört, gehört ; acc ; person ; person animal line ;
love ; lieben, liebt, geliebt ; acc ; person ; person animal town ;
know knew ; kennen, kennt, gekannt ; acc ; person ; person town tale ;
visit ; besuchen, besucht, besucht ; acc ; person ; person town =museum =church ;
call ; an|rufen, ruft, angerufen ; acc ; person ; person ;
invite ; ein|laden, lädt, eingeladen ; acc ; person ; person ;
pick+up ; ab|holen, holt, abgeholt ; acc ; person ; person =suitcase ;
look+at ; an|sehen, sieht, angesehen ; acc ; person ; person animal art clothes ;
catch caught ; fangen, fängt, gefangen ; acc ; =cat =dog =fox =bear ;
    =mouse =bird =rabbit =duck ;
chase ; jagen, jagt, gejagt ; acc ; =cat =dog =fox =bear =monkey ; animal ;
feed fed ; füttern, füttert, gefüttert ; acc ; person ; animal ;
wash ; waschen, wäscht, gewaschen ; acc ; person ; clothes =dog =horse =car fruit ;
buy bought ; kaufen, kauft, gekauft ; acc ; person ;
    food drink thing vehicle furniture ;
sell sold ; verkaufen, verkauft, verkauft ; acc ; person ;
    food thing vehicle furniture home ;
need ; brauchen, braucht, gebraucht ; acc ; person ; thing vehicle furniture ;
find found ; finden, findet, gefunden ; acc ; person ; thing animal ;
look+for ; suchen, sucht, gesucht ; acc ; person ; thing animal person ;
lose lost ; verlieren, verliert, verloren ; acc ; person ; flat clothes ;
forget forgot ; vergessen, vergisst, vergessen ; acc ; person ; flat tale ;
steal stole ; stehlen, stiehlt, gestohlen ; acc ; person =fox =monkey ;
    fruit =egg =sausage ;
carry carried ; tragen, trägt, getragen ; acc ; person ; upright thing furniture ;
throw+away threw ; weg|werfen, wirft, weggeworfen ; acc ; person ; flat vessel fruit ;
take+along took ; mit|nehmen, nimmt, mitgenommen ; acc ; person ; flat upright clothes ;
put+on ; an|ziehen, zieht, angezogen ; acc ; person ; =coat =shirt =jacket =hat =shoe ;
take+off took ; aus|ziehen, zieht, ausgezogen ; acc ; person ;
    =coat =shirt =jacket =hat =shoe ;
turn+on ; ein|schalten, schaltet, eingeschaltet ; acc ; person ; device ;
turn+off ; aus|schalten, schaltet, ausgeschaltet ; acc ; person ; device ;
open ; öffnen, öffnet, geöffnet ; acc ; person ;
    =letter =bottle =suitcase =window =door =present ; slowly quietly
close ; zu|machen, macht, zugemacht ; acc ; person ;
    =bag =suitcase =window =door =umbrella ; quietly
read ; lesen, liest, gelesen ; acc ; person ; text ; slowly quietly
write wrote ; schreiben, schreibt, geschrieben ; acc ; person ; text ; slowly
paint ; malen, malt, gemalt ; acc ; person ; art animal plant ; slowly well
repair ; reparieren, repariert, repariert ; acc ; person ;
    vehicle device =shoe =chair =roof ; quickly well
clean ; putzen, putzt, geputzt ; acc ; person ; =kitchen =window vehicle =shoe room ;
    quickly
eat ate ; essen, isst, gegessen ; acc ; person ; food ; quickly slowly
eat ate ; fressen, frisst, gefressen ; acc ; animal ; feed ; quickly slowly
drink drank ; trinken, trinkt, getrunken ; acc ; person ; drink ; quickly slowly
cook ; kochen, kocht, gekocht ; acc ; person ; =soup =potato =egg =meat =tea =coffee ;
play ; spielen, spielt, gespielt ; acc ; person ; instrument ; well loudly
help ; helfen, hilft, geholfen ; dat ; person ; person ;
thank ; danken, dankt, gedankt ; dat ; person ; person ;
answer ; antworten, antwortet, geantwortet ; dat ; person ; person ;
follow ; folgen, folgt, ist gefolgt ; dat ; person animal ; person animal ;
trust ; vertrauen, vertraut, vertraut ; dat ; person ; person ;
listen+to ; zu|hören, hört, zugehört ; dat ; person ; person ;
belong+to ; gehören, gehört, gehört ; dat ; thing vehicle home ; person ;
give gave ; geben, gibt, gegeben ; give ; person ; thing food ;
show showed ; zeigen, zeigt, gezeigt ; give ; person ; thing town vehicle ;
bring brought ; bringen, bringt, gebracht ; give ; person ; food thing ;
send sent ; schicken, schickt, geschickt ; give ; person ; flat clothes ;
tell told ; erzählen, erzählt, erzählt ; give ; person ; =story ;
wait ; warten, wartet, gewartet ; prep/for/auf/acc ; person ; person line ;
think thought ; denken, denkt, gedacht ; prep/of/an/acc ; person ; person animal town ;
dream ; träumen, träumt, geträumt ; prep/of/von/dat ; person ;
    person animal town vehicle ;
talk ; sprechen, spricht, gesprochen ; prep/about/über/acc ; person ; person tale town ;
play ; spielen, spielt, gespielt ; prep/with/mit/dat ; person animal ;
    young animal =ball ;
live ; wohnen, wohnt, gewohnt ; where ; person ; town home ;
stand stood ; stehen, steht, gestanden ; where ; person animal ; part area built ;
stand stood ; stehen, steht, gestanden ; where ; upright ; furniture room ;
lie lay ; liegen, liegt, gelegen ; where ; =dog =cat =cow =pig ;
    furniture =garden =meadow =forest ;
lie lay ; liegen, liegt, gelegen ; where ; flat ; furniture ;
sit sat ; sitzen, sitzt, gesessen ; where ; person animal ; area furniture built room ;
go went ; gehen, geht, ist gegangen ; to ; person ; built area room ;
run ran ; laufen, läuft, ist gelaufen ; to ; person animal ; built area room part ;
jump ; springen, springt, ist gesprungen ; to ;
    =cat =dog =monkey =mouse =rabbit =duck ; furniture =river =lake ;
travel travelled ; reisen, reist, ist gereist ; to ; person ; town ;
come came ; kommen, kommt, ist gekommen ; to ; person animal ; built area room ;
put ; stellen, stellt, gestellt ; put ; person ; upright ; furniture room
put ; legen, legt, gelegt ; put ; person ; flat ; furniture
say said ; sagen, sagt, gesagt ; that ; person ; ;
think thought ; glauben, glaubt, geglaubt ; that ; person ; ;
hope ; hoffen, hofft, gehofft ; that ; person ; ;
know knew ; wissen, weiß, gewusst ; that ; person ; ;
ask ; fragen, fragt, gefragt ; whether ; person ; ;
"""


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """One verb's principal parts in both languages, and what it goes with."""

    base: str
    particle: str
    past: str
    infinitive: str
    prefix: str
    third: str
    participle: str
    takes_sein: bool
    frame: str
    subjects: str
    objects: str
    extra: tuple[str, ...]
    """Adverbs of manner; with the frame "put", the classes of the goal."""

    @property
    def name(self) -> str:
        """The English verb with its particle, as held-out combinations are named."""
        return f"{self.base} {self.particle}".strip()

    @property
    def past_is_present(self) -> bool:
        """*They put*, *they read*: only a third person tells past from present."""
        return self.past == self.base


def _verb(line: str) -> Verb:
    english, german, frame, subjects, objects, extra = (
        part.strip() for part in line.split(";")
    )
    name, *irregular = english.split()
    base, _, particle = name.partition("+")
    infinitive, third, participle = (part.strip() for part in german.split(","))
    prefix, bar, stem = infinitive.partition("|")
    same = base in ("read", "put")
    regular = base if same else base + ("d" if base.endswith("e") else "ed")
    return Verb(
        base=base,
        particle=particle,
        past=irregular[0] if irregular else regular,
        infinitive=stem if bar else infinitive,
        prefix=prefix if bar else "",
        third=third,
        participle=participle.removeprefix("ist "),
        takes_sein=participle.startswith("ist "),
        frame=frame,
        subjects=subjects,
        objects=objects,
        extra=tuple(extra.split()),
    )


VERBS = tuple(_verb(line) for line in entries(TABLE))


@cache
def verbs_of(frame: str) -> tuple[Verb, ...]:
    """The verbs of one frame; "prep" stands for all that govern a preposition."""
    return tuple(verb for verb in VERBS if verb.frame.split("/")[0] == frame)


@cache
def verbs_with_subject(noun: Noun, frames: str) -> tuple[Verb, ...]:
    """The verbs of these frames that this noun can be the subject of."""
    return tuple(
        verb
        for frame in frames.split()
        for verb in verbs_of(frame)
        if noun in nouns_of(verb.subjects)
    )


@cache
def verbs_with_object(noun: Noun, frames: str) -> tuple[Verb, ...]:
    """The verbs of these frames that this noun can be the object of."""
    return tuple(
        verb
        for frame in frames.split()
        for verb in verbs_of(frame)
        if noun in nouns_of(verb.objects)
    )


# Drinks have but one verb to go with; it is drawn more often, lest they be rare.
MAIN_VERBS = tuple(
    verb
    for verb in VERBS
    for _ in range(3 if verb.name == "drink" else 1)
    if verb.frame not in ("that", "whether")
)
SHORT_VERBS = tuple(v for v in MAIN_VERBS if v.frame in ("itr", "acc", "dat", "to"))

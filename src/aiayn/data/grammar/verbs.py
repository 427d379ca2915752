"""The grammar's verbs: one entry a line, with the principal parts a learner memorises.

English base form (past, participle, unless regular) ; German infinitive, third person
singular, past, participle ; frame ; subjects ; objects ; manners.

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
from functools import lru_cache

from aiayn.data.grammar.nouns import Noun, nouns_of

TABLE = """
sleep slept slept ; schlafen, schläft, schlief, geschlafen ; itr ; person animal ; ; badly
work              ; arbeiten, arbeitet, arbeitete, gearbeitet ; itr ; person ; ; well slowly
laugh             ; lachen, lacht, lachte, gelacht         ; itr ; person ; ; loudly
cry cried cried   ; weinen, weint, weinte, geweint         ; itr ; person ; ; loudly
dance             ; tanzen, tanzt, tanzte, getanzt         ; itr ; person ; ; well alone
sing sang sung    ; singen, singt, sang, gesungen          ; itr ; person =bird ; ; loudly well
cough             ; husten, hustet, hustete, gehustet      ; itr ; person ; ; loudly
wait              ; warten, wartet, wartete, gewartet      ; itr ; person ; ; alone
get+up got got    ; auf|stehen, steht, stand, ist aufgestanden ; itr ; person ; ; slowly
wake+up woke woken ; auf|wachen, wacht, wachte, ist aufgewacht ; itr ; person animal ; ;
fall+asleep fell fallen ; ein|schlafen, schläft, schlief, ist eingeschlafen ; itr ; person animal ; ;
arrive            ; an|kommen, kommt, kam, ist angekommen  ; itr ; person line ; ;
leave left left   ; ab|fahren, fährt, fuhr, ist abgefahren ; itr ; line ; ;
stop stopped stopped ; an|halten, hält, hielt, angehalten  ; itr ; line =car ; ;
see saw seen      ; sehen, sieht, sah, gesehen    ; acc ; person animal ; person animal thing vehicle ;
hear heard heard  ; hören, hört, hörte, gehört    ; acc ; person animal ; person animal line ;
love              ; lieben, liebt, liebte, geliebt ; acc ; person ; person animal town ;
know knew known   ; kennen, kennt, kannte, gekannt ; acc ; person ; person town tale ;
watch             ; beobachten, beobachtet, beobachtete, beobachtet ; acc ; person animal ; person animal ;
visit             ; besuchen, besucht, besuchte, besucht ; acc ; person ; person town =museum =church ;
greet             ; grüßen, grüßt, grüßte, gegrüßt ; acc ; person ; person ;
call              ; an|rufen, ruft, rief, angerufen ; acc ; person ; person ;
invite            ; ein|laden, lädt, lud, eingeladen ; acc ; person ; person ;
pick+up           ; ab|holen, holt, holte, abgeholt ; acc ; person ; person =suitcase ;
look+at           ; an|sehen, sieht, sah, angesehen ; acc ; person ; person animal art clothes ;
catch caught caught ; fangen, fängt, fing, gefangen ; acc ; animal ; =mouse =bird =rabbit =duck ;
chase             ; jagen, jagt, jagte, gejagt    ; acc ; animal ; animal ;
feed fed fed      ; füttern, füttert, fütterte, gefüttert ; acc ; person ; animal ;
wash              ; waschen, wäscht, wusch, gewaschen ; acc ; person ; clothes =dog =horse =car fruit ;
buy bought bought ; kaufen, kauft, kaufte, gekauft ; acc ; person ; food drink thing vehicle furniture ;
sell sold sold    ; verkaufen, verkauft, verkaufte, verkauft ; acc ; person ; food thing vehicle furniture home ;
need              ; brauchen, braucht, brauchte, gebraucht ; acc ; person ; thing vehicle furniture ;
find found found  ; finden, findet, fand, gefunden ; acc ; person ; thing animal ;
look+for          ; suchen, sucht, suchte, gesucht ; acc ; person ; thing animal person ;
lose lost lost    ; verlieren, verliert, verlor, verloren ; acc ; person ; flat clothes ;
forget forgot forgotten ; vergessen, vergisst, vergaß, vergessen ; acc ; person ; flat tale ;
hide hid hidden   ; verstecken, versteckt, versteckte, versteckt ; acc ; person ; flat food ;
steal stole stolen ; stehlen, stiehlt, stahl, gestohlen ; acc ; person =fox =monkey ; fruit =egg =sausage ;
carry carried carried ; tragen, trägt, trug, getragen ; acc ; person ; upright thing furniture ;
throw+away threw thrown ; weg|werfen, wirft, warf, weggeworfen ; acc ; person ; flat vessel fruit ;
take+along took taken ; mit|nehmen, nimmt, nahm, mitgenommen ; acc ; person ; flat upright clothes ;
put+on            ; an|ziehen, zieht, zog, angezogen ; acc ; person ; clothes ;
take+off took taken ; aus|ziehen, zieht, zog, ausgezogen ; acc ; person ; clothes ;
turn+on           ; ein|schalten, schaltet, schaltete, eingeschaltet ; acc ; person ; device ;
turn+off          ; aus|schalten, schaltet, schaltete, ausgeschaltet ; acc ; person ; device ;
open              ; öffnen, öffnet, öffnete, geöffnet ; acc ; person ; =letter =bottle =suitcase =window =door =present ; slowly quietly
close             ; zu|machen, macht, machte, zugemacht ; acc ; person ; =bag =suitcase =window =door =umbrella ; quietly
read              ; lesen, liest, las, gelesen    ; acc ; person ; text ; slowly quietly
write wrote written ; schreiben, schreibt, schrieb, geschrieben ; acc ; person ; text ; slowly
paint             ; malen, malt, malte, gemalt    ; acc ; person ; art animal plant ; slowly well
repair            ; reparieren, repariert, reparierte, repariert ; acc ; person ; vehicle device =shoe =chair =roof ; quickly well
clean             ; putzen, putzt, putzte, geputzt ; acc ; person ; =kitchen =window vehicle =shoe room ; quickly
eat ate eaten     ; essen, isst, aß, gegessen     ; acc ; person ; food ; quickly slowly
eat ate eaten     ; fressen, frisst, fraß, gefressen ; acc ; animal ; feed ; quickly slowly
drink drank drunk ; trinken, trinkt, trank, getrunken ; acc ; person ; drink ; quickly slowly
cook              ; kochen, kocht, kochte, gekocht ; acc ; person ; =soup =potato =egg =meat =tea =coffee ;
play              ; spielen, spielt, spielte, gespielt ; acc ; person ; instrument ; well loudly
help              ; helfen, hilft, half, geholfen ; dat ; person ; person ;
thank             ; danken, dankt, dankte, gedankt ; dat ; person ; person ;
answer            ; antworten, antwortet, antwortete, geantwortet ; dat ; person ; person ;
follow            ; folgen, folgt, folgte, ist gefolgt ; dat ; person animal ; person animal ;
trust             ; vertrauen, vertraut, vertraute, vertraut ; dat ; person ; person ;
listen+to         ; zu|hören, hört, hörte, zugehört ; dat ; person ; person ;
belong+to         ; gehören, gehört, gehörte, gehört ; dat ; thing vehicle home ; person ;
give gave given   ; geben, gibt, gab, gegeben     ; give ; person ; thing food ;
show showed shown ; zeigen, zeigt, zeigte, gezeigt ; give ; person ; thing town vehicle ;
bring brought brought ; bringen, bringt, brachte, gebracht ; give ; person ; food thing ;
send sent sent    ; schicken, schickt, schickte, geschickt ; give ; person ; flat clothes ;
lend lent lent    ; leihen, leiht, lieh, geliehen ; give ; person ; thing vehicle ;
tell told told    ; erzählen, erzählt, erzählte, erzählt ; give ; person ; =story ;
wait              ; warten, wartet, wartete, gewartet ; prep/for/auf/acc ; person ; person line ;
think thought thought ; denken, denkt, dachte, gedacht ; prep/of/an/acc ; person ; person animal town ;
dream             ; träumen, träumt, träumte, geträumt ; prep/of/von/dat ; person ; person animal town vehicle ;
talk              ; sprechen, spricht, sprach, gesprochen ; prep/about/über/acc ; person ; person tale town ;
play              ; spielen, spielt, spielte, gespielt ; prep/with/mit/dat ; person animal ; young animal =ball ;
live              ; wohnen, wohnt, wohnte, gewohnt ; where ; person ; town home ;
stand stood stood ; stehen, steht, stand, gestanden ; where ; person animal upright ; part furniture area built ;
lie lay lain      ; liegen, liegt, lag, gelegen   ; where ; animal flat ; furniture area ;
sit sat sat       ; sitzen, sitzt, saß, gesessen  ; where ; person animal ; area furniture built room ;
go went gone      ; gehen, geht, ging, ist gegangen ; to ; person ; built area room ;
run ran run       ; laufen, läuft, lief, ist gelaufen ; to ; person animal ; built area room part ;
jump              ; springen, springt, sprang, ist gesprungen ; to ; animal ; furniture =river =lake ;
travel travelled travelled ; reisen, reist, reiste, ist gereist ; to ; person ; town ;
come came come    ; kommen, kommt, kam, ist gekommen ; to ; person animal ; built area room ;
put               ; stellen, stellt, stellte, gestellt ; put ; person ; upright ; furniture room
put               ; legen, legt, legte, gelegt    ; put ; person ; flat ; furniture
say said said     ; sagen, sagt, sagte, gesagt    ; that ; person ; ;
think thought thought ; glauben, glaubt, glaubte, geglaubt ; that ; person ; ;
hope              ; hoffen, hofft, hoffte, gehofft ; that ; person ; ;
know knew known   ; wissen, weiß, wusste, gewusst ; that ; person ; ;
ask               ; fragen, fragt, fragte, gefragt ; whether ; person ; ;
"""


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """One verb's principal parts in both languages, and what it goes with."""

    base: str
    particle: str
    past: str
    participle: str
    infinitive: str
    prefix: str
    third: str
    german_past: str
    german_participle: str
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
    infinitive, third, past, participle = (part.strip() for part in german.split(","))
    prefix, bar, stem = infinitive.partition("|")
    same = base in ("read", "put")
    regular = base if same else base + ("d" if base.endswith("e") else "ed")
    english_past, english_participle = irregular or (regular, regular)
    return Verb(
        base=base,
        particle=particle,
        past=english_past,
        participle=english_participle,
        infinitive=stem if bar else infinitive,
        prefix=prefix if bar else "",
        third=third,
        german_past=past,
        german_participle=participle.removeprefix("ist "),
        takes_sein=participle.startswith("ist "),
        frame=frame,
        subjects=subjects,
        objects=objects,
        extra=tuple(extra.split()),
    )


VERBS = tuple(_verb(line) for line in TABLE.strip().splitlines())


@lru_cache(maxsize=None)
def verbs_of(frame: str) -> tuple[Verb, ...]:
    """The verbs of one frame; "prep" stands for all that govern a preposition."""
    return tuple(verb for verb in VERBS if verb.frame.split("/")[0] == frame)


@lru_cache(maxsize=None)
def verbs_with_subject(noun: Noun, frames: str) -> tuple[Verb, ...]:
    """The verbs of these frames that this noun can be the subject of."""
    return tuple(
        verb
        for frame in frames.split()
        for verb in verbs_of(frame)
        if noun in nouns_of(verb.subjects)
    )


@lru_cache(maxsize=None)
def verbs_with_object(noun: Noun, frames: str) -> tuple[Verb, ...]:
    """The verbs of these frames that this noun can be the object of."""
    return tuple(
        verb
        for frame in frames.split()
        for verb in verbs_of(frame)
        if noun in nouns_of(verb.objects)
    )

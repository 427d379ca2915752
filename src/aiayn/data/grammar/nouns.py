"""The grammar's nouns (§5.1's stand-in corpus): one entry a line, as a dictionary has it.

English singular (and plural, unless regular; "-" for none) ; German article, singular,
plural ("-" for none), genitive singular ; classes of meaning ; places.

The article gives the gender. A masculine whose genitive ends in -n has that form in the
accusative and dative too (der Junge, den Jungen). Female persons carry the class `she`.
A place "in" means: where? *in the park*, *im Park*; "at/auf": *at the market*, *auf dem
Markt*. A noun without places is no place.
"""

from dataclasses import dataclass
from functools import lru_cache

TABLE = """
man men         ; der Mann, Männer, Mannes               ; person
woman women     ; die Frau, Frauen, Frau                 ; person she
boy             ; der Junge, Jungen, Jungen              ; person young
girl            ; das Mädchen, Mädchen, Mädchens         ; person young she
child children  ; das Kind, Kinder, Kindes               ; person young
teacher         ; der Lehrer, Lehrer, Lehrers            ; person
doctor          ; der Arzt, Ärzte, Arztes                ; person
student         ; der Student, Studenten, Studenten      ; person
neighbour       ; der Nachbar, Nachbarn, Nachbarn        ; person
farmer          ; der Bauer, Bauern, Bauern              ; person
cook            ; der Koch, Köche, Kochs                 ; person
baker           ; der Bäcker, Bäcker, Bäckers            ; person
king            ; der König, Könige, Königs              ; person
queen           ; die Königin, Königinnen, Königin       ; person she
mother          ; die Mutter, Mütter, Mutter             ; person she
father          ; der Vater, Väter, Vaters               ; person
sister          ; die Schwester, Schwestern, Schwester   ; person she
brother         ; der Bruder, Brüder, Bruders            ; person
grandmother     ; die Großmutter, Großmütter, Großmutter ; person she
uncle           ; der Onkel, Onkel, Onkels               ; person
aunt            ; die Tante, Tanten, Tante               ; person she
friend          ; der Freund, Freunde, Freundes          ; person
guest           ; der Gast, Gäste, Gastes                ; person
singer          ; der Sänger, Sänger, Sängers            ; person
gardener        ; der Gärtner, Gärtner, Gärtners         ; person
dog             ; der Hund, Hunde, Hundes                ; animal
cat             ; die Katze, Katzen, Katze               ; animal
horse           ; das Pferd, Pferde, Pferdes             ; animal
cow             ; die Kuh, Kühe, Kuh                     ; animal
bird            ; der Vogel, Vögel, Vogels               ; animal
mouse mice      ; die Maus, Mäuse, Maus                  ; animal
duck            ; die Ente, Enten, Ente                  ; animal
pig             ; das Schwein, Schweine, Schweins        ; animal
goat            ; die Ziege, Ziegen, Ziege               ; animal
rabbit          ; das Kaninchen, Kaninchen, Kaninchens   ; animal
monkey          ; der Affe, Affen, Affen                 ; animal
bear            ; der Bär, Bären, Bären                  ; animal
fox             ; der Fuchs, Füchse, Fuchses             ; animal
bread -         ; das Brot, -, Brotes                    ; food feed mass
cheese -        ; der Käse, -, Käses                     ; food feed mass
meat -          ; das Fleisch, -, Fleisches              ; food feed mass
soup            ; die Suppe, Suppen, Suppe               ; food dish
cake            ; der Kuchen, Kuchen, Kuchens            ; food dish
salad           ; der Salat, Salate, Salats              ; food dish
egg             ; das Ei, Eier, Eies                     ; food feed
apple           ; der Apfel, Äpfel, Apfels               ; food feed fruit
pear            ; die Birne, Birnen, Birne               ; food feed fruit
banana          ; die Banane, Bananen, Banane            ; food feed fruit
carrot          ; die Karotte, Karotten, Karotte         ; food feed fruit
potato potatoes ; die Kartoffel, Kartoffeln, Kartoffel   ; food feed dish
sausage         ; die Wurst, Würste, Wurst               ; food feed dish
water -         ; das Wasser, -, Wassers                 ; drink mass
milk -          ; die Milch, -, Milch                    ; drink mass
tea -           ; der Tee, -, Tees                       ; drink mass
coffee -        ; der Kaffee, -, Kaffees                 ; drink mass
juice -         ; der Saft, -, Saftes                    ; drink mass
wine -          ; der Wein, -, Weines                    ; drink mass
beer -          ; das Bier, -, Bieres                    ; drink mass
book            ; das Buch, Bücher, Buches               ; text thing flat
letter          ; der Brief, Briefe, Briefes             ; text thing flat
newspaper       ; die Zeitung, Zeitungen, Zeitung        ; text thing flat
story stories   ; die Geschichte, Geschichten, Geschichte ; text tale
poem            ; das Gedicht, Gedichte, Gedichts        ; text tale
postcard        ; die Postkarte, Postkarten, Postkarte   ; text thing flat
coat            ; der Mantel, Mäntel, Mantels            ; clothes thing flat
shirt           ; das Hemd, Hemden, Hemdes               ; clothes thing flat
jacket          ; die Jacke, Jacken, Jacke               ; clothes thing flat
hat             ; der Hut, Hüte, Hutes                   ; clothes thing flat
dress           ; das Kleid, Kleider, Kleides            ; clothes thing flat
skirt           ; der Rock, Röcke, Rocks                 ; clothes thing flat
shoe            ; der Schuh, Schuhe, Schuhs              ; clothes thing
cup             ; die Tasse, Tassen, Tasse               ; vessel thing upright
glass           ; das Glas, Gläser, Glases               ; vessel thing upright
bottle          ; die Flasche, Flaschen, Flasche         ; vessel thing upright
plate           ; der Teller, Teller, Tellers            ; vessel thing upright
vase            ; die Vase, Vasen, Vase                  ; vessel thing upright
basket          ; der Korb, Körbe, Korbes                ; thing upright
suitcase        ; der Koffer, Koffer, Koffers            ; thing upright
lamp            ; die Lampe, Lampen, Lampe               ; thing upright device
key             ; der Schlüssel, Schlüssel, Schlüssels   ; thing flat
knife knives    ; das Messer, Messer, Messers            ; thing flat
spoon           ; der Löffel, Löffel, Löffels            ; thing flat
fork            ; die Gabel, Gabeln, Gabel               ; thing flat
ring            ; der Ring, Ringe, Rings                 ; thing flat
ball            ; der Ball, Bälle, Balls                 ; thing
picture         ; das Bild, Bilder, Bildes               ; thing art
present         ; das Geschenk, Geschenke, Geschenks     ; thing flat
umbrella        ; der Regenschirm, Regenschirme, Regenschirms ; thing flat
blanket         ; die Decke, Decken, Decke               ; thing flat
pillow          ; das Kissen, Kissen, Kissens            ; thing flat
bag             ; die Tasche, Taschen, Tasche            ; thing upright
flower          ; die Blume, Blumen, Blume               ; thing art
camera          ; die Kamera, Kameras, Kamera            ; thing flat device
radio           ; das Radio, Radios, Radios              ; thing device upright
computer        ; der Computer, Computer, Computers      ; thing device
television      ; der Fernseher, Fernseher, Fernsehers   ; thing device
guitar          ; die Gitarre, Gitarren, Gitarre         ; instrument thing
violin          ; die Geige, Geigen, Geige               ; instrument thing
piano           ; das Klavier, Klaviere, Klaviers        ; instrument
table           ; der Tisch, Tische, Tisches    ; furniture ; on/auf under/unter
chair           ; der Stuhl, Stühle, Stuhls     ; furniture ; on/auf under/unter beside/neben
bed             ; das Bett, Betten, Bettes      ; furniture ; on/auf under/unter beside/neben
sofa            ; das Sofa, Sofas, Sofas        ; furniture ; on/auf behind/hinter beside/neben
bench benches   ; die Bank, Bänke, Bank         ; furniture ; under/unter on/auf
cupboard        ; der Schrank, Schränke, Schranks ; furniture ; behind/hinter beside/neben
car             ; das Auto, Autos, Autos        ; vehicle ; behind/hinter beside/neben
bicycle         ; das Fahrrad, Fahrräder, Fahrrads ; vehicle ; behind/hinter beside/neben
bus buses       ; der Bus, Busse, Busses        ; vehicle line
train           ; der Zug, Züge, Zuges          ; vehicle line
ship            ; das Schiff, Schiffe, Schiffes ; vehicle line
boat            ; das Boot, Boote, Bootes       ; vehicle
tree            ; der Baum, Bäume, Baumes       ; plant ; under/unter behind/hinter
garden          ; der Garten, Gärten, Gartens   ; area ; in/in
park            ; der Park, Parks, Parks        ; area ; in/in
forest          ; der Wald, Wälder, Waldes      ; area ; in/in
city cities     ; die Stadt, Städte, Stadt      ; area town ; in/in
village         ; das Dorf, Dörfer, Dorfes      ; area town ; in/in
meadow          ; die Wiese, Wiesen, Wiese      ; area ; on/auf
island          ; die Insel, Inseln, Insel      ; area town ; on/auf
street          ; die Straße, Straßen, Straße   ; area ; on/auf
bridge          ; die Brücke, Brücken, Brücke   ; built ; on/auf under/unter
market          ; der Markt, Märkte, Marktes    ; area ; at/auf
lake            ; der See, Seen, Sees           ; area ; at/an
river           ; der Fluss, Flüsse, Flusses    ; area ; at/an
station         ; der Bahnhof, Bahnhöfe, Bahnhofs ; built ; at/an behind/hinter
airport         ; der Flughafen, Flughäfen, Flughafens ; built ; at/an
house           ; das Haus, Häuser, Hauses      ; built home ; in/in behind/hinter
hotel           ; das Hotel, Hotels, Hotels     ; built home ; in/in behind/hinter
school          ; die Schule, Schulen, Schule   ; built ; in/in behind/hinter
church churches ; die Kirche, Kirchen, Kirche   ; built ; in/in behind/hinter
museum          ; das Museum, Museen, Museums   ; built ; in/in
hospital        ; das Krankenhaus, Krankenhäuser, Krankenhauses ; built ; in/in
restaurant      ; das Restaurant, Restaurants, Restaurants ; built ; in/in
library libraries ; die Bibliothek, Bibliotheken, Bibliothek ; built ; in/in
barn            ; die Scheune, Scheunen, Scheune ; built ; in/in behind/hinter
kitchen         ; die Küche, Küchen, Küche      ; room ; in/in
room            ; das Zimmer, Zimmer, Zimmers   ; room ; in/in
office          ; das Büro, Büros, Büros        ; room ; in/in
cellar          ; der Keller, Keller, Kellers   ; room ; in/in
window          ; das Fenster, Fenster, Fensters ; part ; at/an
door            ; die Tür, Türen, Tür           ; part ; at/an behind/hinter
roof            ; das Dach, Dächer, Daches      ; part ; on/auf
wall            ; die Mauer, Mauern, Mauer      ; part ; behind/hinter
"""


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """One noun's forms in both languages, and what it can mean."""

    singular: str
    plural: str
    german: str
    german_plural: str
    genitive: str
    gender: str
    classes: frozenset[str]
    places: tuple[tuple[str, str], ...]
    """(English preposition, German preposition) pairs that answer: where?"""

    @property
    def weak(self) -> bool:
        """Whether every case but the nominative singular ends in -n (der Junge)."""
        return self.gender == "m" and self.genitive.endswith("n")

    @property
    def has_plural(self) -> bool:
        return self.plural != "-"


def _noun(line: str) -> Noun:
    english, german, classes, *places = (part.strip() for part in line.split(";"))
    singular, _, plural = english.partition(" ")
    article, rest = german.split(" ", 1)
    nominative, german_plural, genitive = (form.strip() for form in rest.split(","))
    pairs = tuple(
        (pair.split("/")[0], pair.split("/")[1]) for pair in " ".join(places).split()
    )
    return Noun(
        singular=singular,
        plural=plural.strip() or _regular_plural(singular),
        german=nominative,
        german_plural=german_plural,
        genitive=genitive,
        gender={"der": "m", "die": "f", "das": "n"}[article],
        classes=frozenset(classes.split()),
        places=pairs,
    )


def _regular_plural(singular: str) -> str:
    return singular + ("es" if singular.endswith(("s", "x", "ch", "sh")) else "s")


NOUNS = tuple(_noun(line) for line in TABLE.strip().splitlines())
BY_NAME = {noun.singular: noun for noun in NOUNS}


@lru_cache(maxsize=None)
def nouns_of(classes: str) -> tuple[Noun, ...]:
    """The nouns of any of these classes; a word of "=" and a noun names that noun."""
    wanted = classes.split()
    return tuple(
        noun
        for noun in NOUNS
        if any(name in noun.classes or name == f"={noun.singular}" for name in wanted)
    )

"""The nouns of the grammar (a corpus in place of §5.1's), as a dictionary has them.

English singular (and plural, unless regular; "-" for none) ; German article, singular,
plural ("-" for none), genitive singular ; classes of meaning ; places.

The article gives the gender. A masculine whose genitive ends in -n has that form in the
accusative and dative too (der Junge, den Jungen). Female persons have the class `she`.
A place "in" means: where? *in the park*, *im Park*; "at/auf": *at the market*, *auf dem
Markt*. A noun without places is no place. `own`: goes with *my*; `kin`: with nothing
but *the* and *my*; `single`: not used in the plural.
"""

import re
from dataclasses import dataclass
from functools import cache

TABLE = """
man men ; der Mann, Männer, Mannes ; person
woman women ; die Frau, Frauen, Frau ; person she
boy ; der Junge, Jungen, Jungen ; person young
girl ; das Mädchen, Mädchen, Mädchens ; person young she
child children ; das Kind, Kinder, Kindes ; person young own
teacher ; der Lehrer, Lehrer, Lehrers ; person own
doctor ; der Arzt, Ärzte, Arztes ; person own
student ; der Student, Studenten, Studenten ; person
neighbour ; der Nachbar, Nachbarn, Nachbarn ; person own
farmer ; der Bauer, Bauern, Bauern ; person
cook ; der Koch, Köche, Kochs ; person
baker ; der Bäcker, Bäcker, Bäckers ; person
king ; der König, Könige, Königs ; person single
queen ; die Königin, Königinnen, Königin ; person she single
mother ; die Mutter, Mütter, Mutter ; person she kin own single
father ; der Vater, Väter, Vaters ; person kin own single
sister ; die Schwester, Schwestern, Schwester ; person she kin own
brother ; der Bruder, Brüder, Bruders ; person kin own
grandmother ; die Großmutter, Großmütter, Großmutter ; person she kin own single
uncle ; der Onkel, Onkel, Onkels ; person kin own
aunt ; die Tante, Tanten, Tante ; person she kin own
friend ; der Freund, Freunde, Freundes ; person own
guest ; der Gast, Gäste, Gastes ; person own
singer ; der Sänger, Sänger, Sängers ; person
dog ; der Hund, Hunde, Hundes ; animal own
cat ; die Katze, Katzen, Katze ; animal own
horse ; das Pferd, Pferde, Pferdes ; animal own
cow ; die Kuh, Kühe, Kuh ; animal own
bird ; der Vogel, Vögel, Vogels ; animal
mouse mice ; die Maus, Mäuse, Maus ; animal
duck ; die Ente, Enten, Ente ; animal own
pig ; das Schwein, Schweine, Schweins ; animal
rabbit ; das Kaninchen, Kaninchen, Kaninchens ; animal own
monkey ; der Affe, Affen, Affen ; animal
bear ; der Bär, Bären, Bären ; animal
fox ; der Fuchs, Füchse, Fuchses ; animal
bread - ; das Brot, -, Brotes ; food feed mass own
cheese - ; der Käse, -, Käses ; food feed mass own
meat - ; das Fleisch, -, Fleisches ; food feed mass own
soup ; die Suppe, Suppen, Suppe ; food dish own
cake ; der Kuchen, Kuchen, Kuchens ; food dish own
egg ; das Ei, Eier, Eies ; food feed own
apple ; der Apfel, Äpfel, Apfels ; food feed fruit own
pear ; die Birne, Birnen, Birne ; food feed fruit own
banana ; die Banane, Bananen, Banane ; food feed fruit own
carrot ; die Karotte, Karotten, Karotte ; food feed fruit own
potato potatoes ; die Kartoffel, Kartoffeln, Kartoffel ; food feed dish own
sausage ; die Wurst, Würste, Wurst ; food feed dish own
water - ; das Wasser, -, Wassers ; drink mass own
milk - ; die Milch, -, Milch ; drink mass own
tea - ; der Tee, -, Tees ; drink mass own
coffee - ; der Kaffee, -, Kaffees ; drink mass own
wine - ; der Wein, -, Weines ; drink mass own
beer - ; das Bier, -, Bieres ; drink mass own
book ; das Buch, Bücher, Buches ; text thing flat own
letter ; der Brief, Briefe, Briefes ; text thing flat own
newspaper ; die Zeitung, Zeitungen, Zeitung ; text thing flat own
story stories ; die Geschichte, Geschichten, Geschichte ; text tale own
poem ; das Gedicht, Gedichte, Gedichts ; text tale own
coat ; der Mantel, Mäntel, Mantels ; clothes thing flat own
shirt ; das Hemd, Hemden, Hemdes ; clothes thing flat own
jacket ; die Jacke, Jacken, Jacke ; clothes thing flat own
hat ; der Hut, Hüte, Hutes ; clothes thing flat own
dress ; das Kleid, Kleider, Kleides ; clothes thing flat own
shoe ; der Schuh, Schuhe, Schuhs ; clothes thing own
cup ; die Tasse, Tassen, Tasse ; vessel thing upright own
glass ; das Glas, Gläser, Glases ; vessel thing upright own
bottle ; die Flasche, Flaschen, Flasche ; vessel thing upright own
plate ; der Teller, Teller, Tellers ; vessel thing upright own
vase ; die Vase, Vasen, Vase ; vessel thing upright own
basket ; der Korb, Körbe, Korbes ; thing upright own
suitcase ; der Koffer, Koffer, Koffers ; thing upright own
lamp ; die Lampe, Lampen, Lampe ; thing upright device own
key ; der Schlüssel, Schlüssel, Schlüssels ; thing flat own
knife knives ; das Messer, Messer, Messers ; thing flat own
fork ; die Gabel, Gabeln, Gabel ; thing flat own
ring ; der Ring, Ringe, Rings ; thing flat own
ball ; der Ball, Bälle, Balls ; thing own
picture ; das Bild, Bilder, Bildes ; thing art own
present ; das Geschenk, Geschenke, Geschenks ; thing flat own
umbrella ; der Regenschirm, Regenschirme, Regenschirms ; thing flat own
pillow ; das Kissen, Kissen, Kissens ; thing flat own
bag ; die Tasche, Taschen, Tasche ; thing upright own
flower ; die Blume, Blumen, Blume ; thing art own
camera ; die Kamera, Kameras, Kamera ; thing flat device own
radio ; das Radio, Radios, Radios ; thing device upright own
computer ; der Computer, Computer, Computers ; thing device own
television ; der Fernseher, Fernseher, Fernsehers ; thing device own
guitar ; die Gitarre, Gitarren, Gitarre ; instrument thing own
violin ; die Geige, Geigen, Geige ; instrument thing own
piano ; das Klavier, Klaviere, Klaviers ; instrument own
table ; der Tisch, Tische, Tisches ; furniture own ; on/auf under/unter
chair ; der Stuhl, Stühle, Stuhls ; furniture own ; on/auf under/unter beside/neben
bed ; das Bett, Betten, Bettes ; furniture own ; on/auf under/unter beside/neben
sofa ; das Sofa, Sofas, Sofas ; furniture own ; on/auf behind/hinter beside/neben
bench benches ; die Bank, Bänke, Bank ; furniture own ; under/unter on/auf
cupboard ; der Schrank, Schränke, Schranks ; furniture own ;
    behind/hinter beside/neben
car ; das Auto, Autos, Autos ; vehicle own ; behind/hinter beside/neben
bicycle ; das Fahrrad, Fahrräder, Fahrrads ; vehicle own ; behind/hinter beside/neben
bus buses ; der Bus, Busse, Busses ; vehicle line
train ; der Zug, Züge, Zuges ; vehicle line
ship ; das Schiff, Schiffe, Schiffes ; vehicle line
tree ; der Baum, Bäume, Baumes ; plant ; under/unter behind/hinter
garden ; der Garten, Gärten, Gartens ; area own ; in/in
park ; der Park, Parks, Parks ; area ; in/in
forest ; der Wald, Wälder, Waldes ; area ; in/in
city cities ; die Stadt, Städte, Stadt ; area town own ; in/in
village ; das Dorf, Dörfer, Dorfes ; area town own ; in/in
meadow ; die Wiese, Wiesen, Wiese ; area ; on/auf
island ; die Insel, Inseln, Insel ; area town ; on/auf
street ; die Straße, Straßen, Straße ; area ; on/auf
bridge ; die Brücke, Brücken, Brücke ; built ; on/auf under/unter
market ; der Markt, Märkte, Marktes ; area ; at/auf
lake ; der See, Seen, Sees ; area ; at/an
river ; der Fluss, Flüsse, Flusses ; area ; at/an
station ; der Bahnhof, Bahnhöfe, Bahnhofs ; built ; at/an behind/hinter
house ; das Haus, Häuser, Hauses ; built home own ; in/in behind/hinter
hotel ; das Hotel, Hotels, Hotels ; built home ; in/in behind/hinter
school ; die Schule, Schulen, Schule ; built own ; in/in behind/hinter
church churches ; die Kirche, Kirchen, Kirche ; built ; in/in behind/hinter
museum ; das Museum, Museen, Museums ; built ; in/in
hospital ; das Krankenhaus, Krankenhäuser, Krankenhauses ; built ; in/in
restaurant ; das Restaurant, Restaurants, Restaurants ; built ; in/in
kitchen ; die Küche, Küchen, Küche ; room own ; in/in
room ; das Zimmer, Zimmer, Zimmers ; room own ; in/in
office ; das Büro, Büros, Büros ; room own ; in/in
cellar ; der Keller, Keller, Kellers ; room own ; in/in
window ; das Fenster, Fenster, Fensters ; part own ; at/an
door ; die Tür, Türen, Tür ; part own ; at/an behind/hinter
roof ; das Dach, Dächer, Daches ; part own ; on/auf
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


def entries(table: str) -> list[str]:
    """The entries of a table: one a line, or more where the next lines are indented."""
    return re.sub(r"\n\s+", " ", table.strip()).splitlines()


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


NOUNS = tuple(_noun(line) for line in entries(TABLE))
BY_NAME = {noun.singular: noun for noun in NOUNS}


@cache
def nouns_of(classes: str) -> tuple[Noun, ...]:
    """The nouns of any of these classes; a word of "=" and a noun names that noun."""
    wanted = classes.split()
    return tuple(
        noun
        for noun in NOUNS
        if any(name in noun.classes or name == f"={noun.singular}" for name in wanted)
    )

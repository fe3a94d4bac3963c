"""The words of the lesson in both languages, and what the grammar must know of each."""

from dataclasses import dataclass
from typing import NamedTuple

MAIN, QUESTION, SUBORDINATE = "main", "question", "subordinate"
FIRST, SECOND, THIRD, PLURAL = range(4)  # ich, du, er, wir: places in the forms of a verb


class Pair(NamedTuple):
    """A piece of text and its translation."""

    english: str
    german: str


NOTHING = Pair("", "")


@dataclass(frozen=True)
class Noun:
    """A noun; `oblique` is the singular beyond the nominative where it differs (den Jungen)."""

    plural: str
    gender: str
    german: str
    german_plural: str
    kind: str
    oblique: str = ""


@dataclass(frozen=True)
class Verb:
    """A verb and what goes with it.

    Args:
        english: The bare form, the third person and the past.
        german: The present for ich, du, er and wir, and the participle, without the particle.
        objects: The kinds of noun that can be its object; empty without an object.
        agents: The kinds of noun that can be its subject.
        case, preposition: Of the German object.
        particle: The part of the German verb that goes last in a main clause.
        before, behind: English words around the object.
        auxiliary: The auxiliary of the German perfect.
        preterite: The German past for ich, du, er and wir, where the perfect is unusual.
        extras: Parts that may be added: "place", "goal", "company", "benefit" or "recipient".
    """

    english: str
    german: str
    objects: str = ""
    agents: str = "person"
    case: str = "acc"
    preposition: str = ""
    particle: str = ""
    before: str = ""
    behind: str = ""
    auxiliary: str = "haben"
    preterite: str = ""
    extras: str = ""


NOUNS = {
    "man": Noun("men", "m", "Mann", "Männer", "person"),
    "boy": Noun("boys", "m", "Junge", "Jungen", "person", oblique="Jungen"),
    "brother": Noun("brothers", "m", "Bruder", "Brüder", "person"),
    "woman": Noun("women", "f", "Frau", "Frauen", "person"),
    "sister": Noun("sisters", "f", "Schwester", "Schwestern", "person"),
    "child": Noun("children", "n", "Kind", "Kinder", "person"),
    "girl": Noun("girls", "n", "Mädchen", "Mädchen", "person"),
    "dog": Noun("dogs", "m", "Hund", "Hunde", "animal"),
    "bear": Noun("bears", "m", "Bär", "Bären", "animal", oblique="Bären"),
    "cat": Noun("cats", "f", "Katze", "Katzen", "animal"),
    "horse": Noun("horses", "n", "Pferd", "Pferde", "animal"),
    "apple": Noun("apples", "m", "Apfel", "Äpfel", "food"),
    "pear": Noun("pears", "f", "Birne", "Birnen", "food"),
    "egg": Noun("eggs", "n", "Ei", "Eier", "food"),
    "letter": Noun("letters", "m", "Brief", "Briefe", "text"),
    "newspaper": Noun("newspapers", "f", "Zeitung", "Zeitungen", "text"),
    "book": Noun("books", "n", "Buch", "Bücher", "text"),
    "suitcase": Noun("suitcases", "m", "Koffer", "Koffer", "lid"),
    "door": Noun("doors", "f", "Tür", "Türen", "lid"),
    "window": Noun("windows", "n", "Fenster", "Fenster", "lid"),
    "chair": Noun("chairs", "m", "Stuhl", "Stühle", "thing"),
    "lamp": Noun("lamps", "f", "Lampe", "Lampen", "thing"),
    "picture": Noun("pictures", "n", "Bild", "Bilder", "thing"),
    "car": Noun("cars", "n", "Auto", "Autos", "vehicle"),
    "garden": Noun("gardens", "m", "Garten", "Gärten", "place"),
    "kitchen": Noun("kitchens", "f", "Küche", "Küchen", "place"),
    "house": Noun("houses", "n", "Haus", "Häuser", "place"),
    "station": Noun("stations", "m", "Bahnhof", "Bahnhöfe", "goal"),
    "school": Noun("schools", "f", "Schule", "Schulen", "goal"),
    "castle": Noun("castles", "n", "Schloss", "Schlösser", "goal"),
}
BEINGS = "person animal"
_GOODS = "food text thing"
_WARES = f"{_GOODS} animal vehicle"
_SEEN = f"{_WARES} person"
NAMED = f"{_SEEN} lid place goal"
_VERBS = [
    Verb("see sees saw", "sehe siehst sieht sehen gesehen", _SEEN, BEINGS, extras="place"),
    Verb("look looks looked", "suche suchst sucht suchen gesucht", _SEEN, before="for"),
    Verb("find finds found", "finde findest findet finden gefunden", _WARES, extras="place"),
    Verb("buy buys bought", "kaufe kaufst kauft kaufen gekauft", _WARES, extras="place benefit"),
    Verb("have has had", "habe hast hat haben gehabt", _WARES,
         preterite="hatte hattest hatte hatten"),
    Verb("read reads read", "lese liest liest lesen gelesen", "text", extras="place"),
    Verb("eat eats ate", "esse isst isst essen gegessen", "food", BEINGS, extras="place"),
    Verb("carry carries carried", "trage trägst trägt tragen getragen", _GOODS),
    Verb("hear hears heard", "höre hörst hört hören gehört", BEINGS),
    Verb("visit visits visited", "besuche besuchst besucht besuchen besucht", "person"),
    Verb("help helps helped", "helfe hilfst hilft helfen geholfen", BEINGS, case="dat",
         extras="place"),
    Verb("follow follows followed", "folge folgst folgt folgen gefolgt", BEINGS, BEINGS,
         case="dat", auxiliary="sein"),
    Verb("wait waits waited", "warte wartest wartet warten gewartet", BEINGS, BEINGS,
         preposition="auf", before="for"),
    Verb("speak speaks spoke", "spreche sprichst spricht sprechen gesprochen", "person",
         case="dat", preposition="mit", before="with"),
    Verb("open opens opened", "mache machst macht machen gemacht", "lid", particle="auf",
         extras="benefit"),
    Verb("close closes closed", "mache machst macht machen gemacht", "lid", particle="zu"),
    Verb("call calls called", "rufe rufst ruft rufen gerufen", "person", particle="an"),
    Verb("invite invites invited", "lade lädst lädt laden geladen", "person", particle="ein"),
    Verb("pick picks picked", "hole holst holt holen geholt", "person", particle="ab", behind="up"),
    Verb("take takes took", "nehme nimmst nimmt nehmen genommen", f"{BEINGS} {_GOODS}",
         particle="mit", behind="along"),
    Verb("give gives gave", "gebe gibst gibt geben gegeben", _GOODS, extras="recipient"),
    Verb("show shows showed", "zeige zeigst zeigt zeigen gezeigt", _WARES, extras="recipient"),
    Verb("sleep sleeps slept", "schlafe schläfst schläft schlafen geschlafen", "", BEINGS,
         extras="place"),
    Verb("work works worked", "arbeite arbeitest arbeitet arbeiten gearbeitet",
         extras="place company"),
    Verb("play plays played", "spiele spielst spielt spielen gespielt", "", BEINGS,
         extras="place company"),
    Verb("shop shops shopped", "kaufe kaufst kauft kaufen gekauft", particle="ein",
         extras="company"),
    Verb("get gets got", "stehe stehst steht stehen gestanden", "", BEINGS, particle="auf",
         behind="up", auxiliary="sein"),
    Verb("go goes went", "gehe gehst geht gehen gegangen", "", BEINGS, auxiliary="sein",
         extras="goal"),
    Verb("drive drives drove", "fahre fährst fährt fahren gefahren", auxiliary="sein",
         extras="goal"),
]  # fmt: skip
VERBS = {verb.english.split()[0]: verb for verb in _VERBS}
BE = Verb("be is was", "bin bist ist sind gewesen", preterite="war warst war waren")
ASK = Verb("ask asks asked", "frage fragst fragt fragen gefragt")
HOPE = Verb("hope hopes hoped", "hoffe hoffst hofft hoffen gehofft")
KNOW = Verb("know knows knew", "weiß weißt weiß wissen gewusst",
            preterite="wusste wusstest wusste wussten")  # fmt: skip
SAY = Verb("say says said", "sage sagst sagt sagen gesagt")

LIVING = {"old": "alt", "big": "groß", "small": "klein", "young": "jung", "friendly": "freundlich"}
LIFELESS = {"old": "alt", "big": "groß", "small": "klein", "new": "neu", "beautiful": "schön",
             "red": "rot", "black": "schwarz", "green": "grün"}  # fmt: skip
ADJECTIVES = LIVING | LIFELESS
MODALS = {
    "can": "kann kannst kann können",
    "must": "muss musst muss müssen",
    "should": "sollte solltest sollte sollten",
    "will": "werde wirst wird werden",
    "want": "will willst will wollen",
}
AUXILIARIES = {"haben": "habe hast hat haben", "sein": "bin bist ist sind"}
POSSESSIVES = {"my": "mein", "your": "dein", "his": "sein", "her": "ihr"}
THE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}
PREPOSITIONS = {
    "in": ("in", "dat"), "behind": ("hinter", "dat"), "next to": ("neben", "dat"),
    "to": ("zu", "dat"), "with": ("mit", "dat"), "without": ("ohne", "acc"), "for": ("für", "acc"),
}  # fmt: skip
CONTRACTIONS = {"in dem": "im", "zu dem": "zum", "zu der": "zur"}
LINKS = {"because": "weil", "if": "wenn", "when": "wenn", "that": "dass", "whether": "ob"}

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen",
    "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
)
TENS = (
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
)
ORDINALS = {  # those that are not the number and an ending
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
    "nine": "ninth", "twelve": "twelfth", "twenty": "twentieth",
    "eins": "ersten", "drei": "dritten", "sieben": "siebten", "acht": "achten",
}  # fmt: skip
MONTHS = {
    "January": "Januar", "March": "März", "May": "Mai", "June": "Juni", "July": "Juli",
    "October": "Oktober", "December": "Dezember",
}  # fmt: skip
CLOCK = {
    0: ("at {} o'clock", "um {} Uhr"),
    15: ("at a quarter past {}", "um Viertel nach {}"),
    30: ("at half past {}", "um halb {}"),
    45: ("at a quarter to {}", "um Viertel vor {}"),
}
TODAY, TOMORROW = Pair("today", "heute"), Pair("tomorrow", "morgen")
MONDAY, FRIDAY = Pair("on Monday", "am Montag"), Pair("on Friday", "am Freitag")
EVERY_DAY = Pair("every day", "jeden Tag")
DAYS = {  # the first two can have a time of day beside them
    "present": (TODAY, FRIDAY, Pair("now", "jetzt")),
    "past": (Pair("yesterday", "gestern"), MONDAY, Pair("last week", "letzte Woche")),
    "will": (TOMORROW, FRIDAY, Pair("next week", "nächste Woche")),
}

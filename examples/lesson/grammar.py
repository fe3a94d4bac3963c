"""Constituents and the order they take: the same phrase or clause in English and in German."""

from dataclasses import dataclass

from examples.lesson.words import (
    ADJECTIVES,
    AUXILIARIES,
    BE,
    CLOCK,
    CONTRACTIONS,
    FIRST,
    MAIN,
    MODALS,
    MONTHS,
    NOTHING,
    NOUNS,
    ONES,
    ORDINALS,
    PLURAL,
    POSSESSIVES,
    PREPOSITIONS,
    QUESTION,
    SECOND,
    STRONG,
    SUBORDINATE,
    TENS,
    THE,
    THIRD,
    Pair,
    Verb,
)

_CASES = ("nom", "acc", "dat")


@dataclass(frozen=True)
class NounPhrase:
    """A noun with what stands before it.

    Args:
        noun, adjective: The English words.
        determiner: "the", "a" (in the plural no word at all), "this", "my", "your", "his", "her",
            or a number above one.
        many: Plural; a number makes it so anyway.
    """

    noun: str
    determiner: str | int = "the"
    adjective: str = ""
    many: bool = False

    @property
    def plural(self) -> bool:
        """Whether it is more than one."""
        return self.many or isinstance(self.determiner, int)

    @property
    def person(self) -> int:
        """Its place in the forms of a verb."""
        return PLURAL if self.plural else THIRD

    @property
    def known(self) -> bool:
        """Whether it is definite: then it comes early in a German clause."""
        return self.determiner != "a" and not isinstance(self.determiner, int)

    def english(self, case: str) -> str:
        """The English, the same in every case."""
        words = spaced(self.adjective, NOUNS[self.noun].plural if self.plural else self.noun)
        word = self.determiner
        if isinstance(word, int):
            word = number(word).english
        elif word == "a":
            word = "" if self.plural else "an" if words[0] in "aeiou" else "a"
        elif word == "this" and self.plural:
            word = "these"
        return spaced(word, words)

    def german(self, case: str, negated: bool = False) -> str:
        """The German in a case; `negated` makes "kein" of "ein"."""
        noun = NOUNS[self.noun]
        column = 3 if self.plural else "mfn".index(noun.gender)
        word, ending = _determine(self.determiner, case, column, negated)
        name = noun.german if case == "nom" else noun.oblique or noun.german
        if self.plural:
            name = noun.german_plural
            name += "n" if case == "dat" and name[-1] not in "ns" else ""
        return spaced(word, ADJECTIVES[self.adjective] + ending if self.adjective else "", name)


@dataclass(frozen=True)
class Pronoun:
    """A pronoun: its English subject and object, its German cases and its form of the verb."""

    forms: str
    cases: str
    person: int
    known = True

    def english(self, case: str) -> str:
        """The English in a case."""
        return self.forms.split()[case != "nom"]

    def german(self, case: str, negated: bool = False) -> str:
        """The German in a case, whether negated or not."""
        return self.cases.split()[_CASES.index(case)]


PRONOUNS = {
    "I": Pronoun("I me", "ich mich mir", FIRST),
    "you": Pronoun("you you", "du dich dir", SECOND),
    "he": Pronoun("he him", "er ihn ihm", THIRD),
    "she": Pronoun("she her", "sie sie ihr", THIRD),
    "we": Pronoun("we us", "wir uns uns", PLURAL),
    "they": Pronoun("they them", "sie sie ihnen", PLURAL),
}
WHO = Pronoun("who whom", "wer wen wem", THIRD)
_IT = {"m": "er ihn ihm", "f": "sie sie ihr", "n": "es es ihm"}


@dataclass(frozen=True)
class Clause:
    """The constituents of a clause, in no order; `lay_out` gives them one.

    Args:
        tense: "present", "past" or a key of MODALS.
        recipient: Who gets the object.
        manner: With whom, for whom or where to.
        complement: Of the verb to be.
    """

    subject: NounPhrase | Pronoun
    verb: Verb
    tense: str = "present"
    negated: bool = False
    object: NounPhrase | Pronoun | None = None
    recipient: NounPhrase | Pronoun | None = None
    manner: Pair = NOTHING
    place: Pair = NOTHING
    time: Pair = NOTHING
    complement: Pair = NOTHING


def lay_out(clause: Clause, order: str = MAIN, front: Pair = NOTHING) -> Pair:
    """Put a clause in order in both languages.

    Args:
        clause: The constituents.
        order: MAIN, QUESTION (unless about the subject, which is MAIN) or SUBORDINATE.
        front: Goes before all else: a time or place taken out of the clause, a question word or a
            subordinate clause.
    """
    return Pair(_english(clause, order, front.english), _german(clause, order, front.german))


def _english(clause: Clause, order: str, front: str) -> str:
    verb, tense, person = clause.verb, clause.tense, clause.subject.person
    bare, third, past = verb.english.split()
    finite, helper = (third, "does") if person == THIRD else (bare, "do")
    if verb is BE:
        forms = "was were was were" if tense == "past" else "am are is are"
        bare, finite, helper = "", "", forms.split()[person]
    elif tense == "past":
        finite, helper = past, "did"
    elif tense == "want":
        finite, bare = f"{'wants' if person == THIRD else 'want'} to {bare}", f"want to {bare}"
    elif tense in MODALS:
        finite, helper = "", tense
    subject, denial = clause.subject.english("nom"), "not" if clause.negated else ""
    if order == QUESTION:
        core = spaced(helper, subject, denial, bare)
    elif denial or not finite:
        core = spaced(subject, helper, denial, bare).replace("can not", "cannot")
    else:
        core = spaced(subject, finite)
    item = clause.object.english("acc") if clause.object else ""
    recipient = f"to {clause.recipient.english('dat')}" if clause.recipient else ""
    adverbs = (clause.complement, clause.manner, clause.place, clause.time)
    adverbs = (adverb.english for adverb in adverbs)
    return spaced(front, core, verb.before, item, verb.behind, recipient, *adverbs)


def _german(clause: Clause, order: str, front: str) -> str:
    verb, item, recipient = clause.verb, clause.object, clause.recipient
    # What is known goes before the time and "nicht", what is new behind; "kein" is "nicht ein".
    early, late, denial = [], [], "nicht" if clause.negated else ""
    if recipient:
        (early if recipient.known else late).append(recipient.german("dat"))
    if item and verb.preposition:
        late += [verb.preposition, item.german(verb.case)]
    elif item:
        (early if item.known else late).append(item.german(verb.case, clause.negated))
        denial = "" if isinstance(item, NounPhrase) and item.determiner == "a" else denial
    late += [clause.manner.german, clause.place.german, clause.complement.german]
    middle = spaced(*early, clause.time.german, denial, *late)
    subject, (finite, end) = clause.subject.german("nom"), _german_verb(clause)
    if order == SUBORDINATE:
        return spaced(subject, middle, end + ("" if end == verb.particle else " ") + finite)
    if front or order == QUESTION:
        return spaced(front, finite, subject, middle, end)
    return spaced(subject, finite, middle, end)


def _german_verb(clause: Clause) -> tuple[str, str]:
    """The finite verb, and what goes last in a main clause."""
    verb, tense = clause.verb, clause.tense
    *forms, participle = verb.german.split()
    end = verb.particle
    if tense in MODALS:
        end += forms[PLURAL]
        forms = MODALS[tense].split()
    elif tense == "past" and verb.preterite:
        forms = verb.preterite.split()
    elif tense == "past":
        end += participle
        forms = AUXILIARIES[verb.auxiliary].split()
    return forms[clause.subject.person], end


def _determine(determiner: str | int, case: str, column: int, negated: bool) -> tuple[str, str]:
    """The German word before a noun, and the ending of an adjective between them."""
    strong = STRONG[case].split()[column]
    weak = "e" if (case == "nom" and column < 3) or (case == "acc" and column in (1, 2)) else "en"
    if isinstance(determiner, int):
        return number(determiner).german, strong
    if determiner == "the":
        return THE[case].split()[column], weak
    if determiner == "this":
        return f"dies{strong}", weak
    if determiner == "a" and column == 3 and not negated:
        return "", strong
    stem = POSSESSIVES.get(determiner, "kein" if negated else "ein")
    if (case, column) in {("nom", 0), ("nom", 2), ("acc", 2)}:
        return stem, strong  # the word shows no gender, so the adjective does
    return stem + strong, weak


def spaced(*parts: str) -> str:
    """The parts that are not empty, with spaces between them."""
    return " ".join(part for part in parts if part)


def refer_to(phrase: NounPhrase) -> Pronoun:
    """The pronoun for a thing or things: "it" is er, sie or es."""
    if phrase.plural:
        return PRONOUNS["they"]
    return Pronoun("it it", _IT[NOUNS[phrase.noun].gender], THIRD)


def prepositional(preposition: str, phrase: NounPhrase | Pronoun) -> Pair:
    """A preposition and what follows it, drawn together where German does so: im, zum, zur."""
    word, case = PREPOSITIONS[preposition]
    german = f"{word} {phrase.german(case)}"
    for long, short in CONTRACTIONS.items():
        if german.startswith(f"{long} "):
            german = short + german.removeprefix(long)
    return Pair(f"{preposition} {phrase.english(case)}", german)


def number(value: int) -> Pair:
    """A number from 0 to 99 in words."""
    tens, ones = divmod(value, 10) if value > 19 else (0, value)
    english, german = (words.split()[ones] for words in ONES)
    if not tens:
        return Pair(english, german)
    round_number = Pair(*(words.split()[tens - 2] for words in TENS))
    if not ones:
        return round_number
    german = "ein" if ones == 1 else german
    return Pair(f"{round_number.english}-{english}", f"{german}und{round_number.german}")


def date(day: int, month: str) -> Pair:
    """A day of an English month: on the third of May, am dritten Mai."""
    english, german = number(day)
    start, dash, last = english.rpartition("-")
    english = start + dash + ORDINALS.get(last, f"{last}th")
    german = ORDINALS.get(german, german + ("ten" if day < 20 else "sten"))
    return Pair(f"on the {english} of {month}", f"am {german} {MONTHS[month]}")


def clock(hour: int, minute: int) -> Pair:
    """A quarter of an hour, the hour from 1 to 12: at half past seven, um halb acht."""
    now, following = number(hour), number(hour % 12 + 1)
    english, german = CLOCK[minute]
    hours = following.german if minute > 15 else "ein" if (hour, minute) == (1, 0) else now.german
    return Pair(
        english.format(following.english if minute == 45 else now.english), german.format(hours)
    )

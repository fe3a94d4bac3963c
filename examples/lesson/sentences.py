"""Sentences drawn at random from the grammar, and files of them."""

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

from examples.lesson.grammar import (
    PRONOUNS,
    WHO,
    Clause,
    NounPhrase,
    Pronoun,
    clock,
    date,
    lay_out,
    number,
    prepositional,
    refer_to,
    spaced,
)
from examples.lesson.words import (
    ADJECTIVES,
    ASK,
    BE,
    BEINGS,
    CLOCK,
    DAYS,
    EVERY_DAY,
    HOPE,
    KNOW,
    LIFELESS,
    LINKS,
    LIVING,
    MAIN,
    MODALS,
    MONDAY,
    MONTHS,
    NAMED,
    NOTHING,
    NOUNS,
    POSSESSIVES,
    QUESTION,
    SAY,
    SUBORDINATE,
    THIRD,
    TODAY,
    TOMORROW,
    VERBS,
    Pair,
    Verb,
)
from resmlp_mt.files.output import whole_file

_KNOWN = ("the", "the", "the", "this", "own")  # as often as they are drawn
_FEW = (*_KNOWN, "a", "a")
_ALL = (*_FEW, "number")
_CLASHES = {"I": ("I", "we"), "we": ("I", "we"), "you": ("you",)}


@cache
def _nouns_of(kinds: str) -> list[str]:
    return [name for name, noun in NOUNS.items() if noun.kind in kinds.split()]


def _adjective(rng: random.Random, noun: str) -> str:
    return rng.choice(list(LIVING if NOUNS[noun].kind in BEINGS else LIFELESS))


def _noun_phrase(rng: random.Random, kinds: str, determiners: tuple[str, ...]) -> NounPhrase:
    noun, determiner = rng.choice(_nouns_of(kinds)), rng.choice(determiners)
    if determiner == "own":
        # "Meine Frau" is "my wife".
        determiner = "the" if noun in ("man", "woman") else rng.choice(list(POSSESSIVES))
    elif determiner == "number":
        determiner = rng.randint(2, 99)
    adjective = _adjective(rng, noun) if rng.random() < 0.35 else ""
    return NounPhrase(noun, determiner, adjective, many=rng.random() < 0.25)


def _pronoun(rng: random.Random, but: tuple[str, ...] = ()) -> Pronoun:
    return PRONOUNS[rng.choice([name for name in PRONOUNS if name not in but])]


def _other(
    rng: random.Random, kinds: str, determiners: tuple[str, ...], subject: NounPhrase | Pronoun
) -> NounPhrase | Pronoun:
    """Something or somebody beside the subject: "me" never beside "I" or "we"."""
    if "person" in kinds and subject.known and rng.random() < 0.2:
        return _pronoun(rng, _CLASHES.get(subject.english("nom"), ()))
    return _noun_phrase(rng, kinds, determiners)


def _time(rng: random.Random, tense: str, negated: bool) -> Pair:
    days = DAYS.get(tense, (TODAY, MONDAY, TOMORROW))
    choice = rng.random()
    # "nicht" follows a mere day; where it stands beside other times depends on what is meant.
    if negated or choice < 0.45:
        return rng.choice(days)
    if choice < 0.55 and tense == "present":
        return EVERY_DAY
    if choice < 0.7:
        return date(rng.randint(1, 28), rng.choice(list(MONTHS)))  # every month has 28 days
    hour, day = clock(rng.randint(1, 12), rng.choice(list(CLOCK))), rng.choice(days[:2])
    return hour if choice < 0.85 else Pair(*map(spaced, day, hour))


def _clause(rng: random.Random, tense: str = "", plain: bool = False) -> Clause:
    tense = tense or rng.choice(["present", "present", "past", rng.choice(list(MODALS))])
    verb = rng.choice([verb for verb in VERBS.values() if tense != "past" or _past_shows(verb)])
    negated = tense != "must" and rng.random() < 0.2  # "must not" is not "nicht müssen"
    known = _KNOWN if negated else _ALL
    subject = _noun_phrase(rng, verb.agents, known)
    if rng.random() < 0.4:
        subject = _pronoun(rng)
    if tense == "present" and not _past_shows(verb) and subject.person != THIRD:
        subject = PRONOUNS["she"]  # "they read" could be past, "she reads" cannot
    clause = Clause(subject, verb, tense, negated)
    if verb.objects:
        item = _other(rng, verb.objects, _FEW if negated else _ALL, subject)
        clause = replace(clause, object=item)
    if rng.random() < (0.15 if plain else 0.5):
        clause = replace(clause, time=_time(rng, tense, negated))
    extra = rng.choice(verb.extras.split() or [""])
    if extra == "goal":
        return replace(clause, manner=prepositional("to", _noun_phrase(rng, "goal", _FEW)))
    if extra == "recipient":
        # Of two pronouns the order would turn round.
        item = _noun_phrase(rng, verb.objects, _FEW if negated else _ALL)
        return replace(clause, object=item, recipient=_other(rng, "person", known, subject))
    if not extra or rng.random() < (0.8 if plain else 0.5):
        return clause
    if extra == "place":
        preposition = rng.choice(["in", "in", "behind", "next to"])
        phrase = _noun_phrase(rng, "place goal", _FEW)
        return replace(clause, place=prepositional(preposition, phrase))
    preposition = rng.choice(["with", "with", "without"]) if extra == "company" else "for"
    return replace(clause, manner=prepositional(preposition, _other(rng, "person", _ALL, subject)))


def _past_shows(verb: Verb) -> bool:
    bare, _, past = verb.english.split()
    return bare != past


def _statement(rng: random.Random) -> Pair:
    clause = _clause(rng)
    for place in ("time", "place"):
        if getattr(clause, place) != NOTHING and rng.random() < 0.5:
            rest = replace(clause, **{place: NOTHING})
            return _finish(lay_out(rest, MAIN, getattr(clause, place)))
    return _finish(lay_out(clause))


def _question(rng: random.Random) -> Pair:
    return _finish(lay_out(_clause(rng), QUESTION), "?")


def _open_question(rng: random.Random) -> Pair:
    clause = _clause(rng)
    verb = clause.verb
    asked = [
        (replace(clause, subject=WHO), MAIN, NOTHING),
        (clause, QUESTION, Pair("why", "warum")),
    ]
    if not clause.negated:
        asked.append((replace(clause, time=NOTHING), QUESTION, Pair("when", "wann")))
        if "goal" in verb.extras:
            rest = replace(clause, manner=NOTHING)
            asked.append((rest, QUESTION, Pair("where", "wohin")))
        elif "place" in verb.extras:
            asked.append((replace(clause, place=NOTHING), QUESTION, Pair("where", "wo")))
        if clause.recipient:
            asked.append((replace(clause, recipient=None), QUESTION, Pair("to whom", "wem")))
        if clause.object:
            whom = Pair("whom", spaced(verb.preposition, WHO.german(verb.case)))
            what = whom if "person" in verb.objects else Pair("what", "was")
            asked.append((replace(clause, object=None), QUESTION, what))
    return _finish(lay_out(*rng.choice(asked)), "?")


def _description(rng: random.Random) -> Pair:
    subject = _noun_phrase(rng, NAMED, _KNOWN)
    adjective = _adjective(rng, subject.noun)
    if adjective == subject.adjective:
        subject = replace(subject, adjective="")
    complement = Pair(adjective, ADJECTIVES[adjective])
    if NOUNS[subject.noun].kind in BEINGS:
        if rng.random() < 0.4:
            subject = _pronoun(rng)
        if rng.random() < 0.5:
            english, german = number(rng.randint(2, 99))
            complement = Pair(f"{english} years old", f"{german} Jahre alt")
    tense, negated = rng.choice(["present", "past"]), rng.random() < 0.25
    clause = Clause(subject, BE, tense, negated, complement=complement)
    if rng.random() < 0.25:
        return _finish(lay_out(clause, QUESTION), "?")
    return _finish(lay_out(clause))


def _condition(rng: random.Random) -> Pair:
    link = rng.choice(["because", "because", "if", "when"])
    past = link != "if" and rng.random() < 0.4
    tense = "past" if past else rng.choice(["present", rng.choice(list(MODALS))])
    main = _clause(rng, tense, plain=True)
    reason = _clause(rng, "past" if past else "present", plain=True)
    # "als" for what happened once, "wenn" for what happens or may happen.
    german = "als" if past and link == "when" else LINKS[link]
    under = Pair(*map(spaced, (link, german), lay_out(reason, SUBORDINATE)))
    if rng.random() < 0.35:
        return _finish(lay_out(main, MAIN, Pair(f"{under.english},", f"{under.german},")))
    return _finish(_join(lay_out(main), Pair(" ", ", "), under))


def _report(rng: random.Random) -> Pair:
    verb, negated = rng.choice([ASK, HOPE, KNOW, SAY]), rng.random() < 0.2
    subject = _noun_phrase(rng, "person", _KNOWN)
    if rng.random() < 0.3:
        subject = _pronoun(rng)
    matrix = Clause(subject, verb, rng.choice(["present", "past"]), negated)
    link = "whether" if verb is ASK or (verb is KNOW and negated) else "that"
    order = QUESTION if rng.random() < 0.2 else MAIN
    content = lay_out(_clause(rng, plain=True), SUBORDINATE)
    links = Pair(f" {link} ", f", {LINKS[link]} ")
    return _finish(_join(lay_out(matrix, order), links, content), "?" if order == QUESTION else ".")


def _coordination(rng: random.Random) -> Pair:
    links = rng.choice([Pair(", and ", ", und "), Pair(", but ", ", aber ")])
    first, second = (lay_out(_clause(rng, plain=True)) for _ in range(2))
    return _finish(_join(first, links, second))


def _reference(rng: random.Random) -> Pair:
    """A second clause about the object of the first: the gender of "it" is that of its noun."""
    tense = rng.choice(["present", "past", "will"])
    verbs = [verb for verb in VERBS.values() if _is_for_things(verb)]
    verb = rng.choice(verbs)
    item = replace(_noun_phrase(rng, verb.objects, _ALL), adjective="")
    subject = _noun_phrase(rng, "person", _ALL)
    if subject.noun == "child" or rng.random() < 0.3:  # a child could be "it" too
        subject = _pronoun(rng)
    first = lay_out(Clause(subject, verb, tense, object=item))
    if rng.random() < 0.4:
        verb = rng.choice([verb for verb in verbs if NOUNS[item.noun].kind in verb.objects.split()])
        second = Clause(_noun_phrase(rng, "person", _KNOWN), verb, tense, object=refer_to(item))
        return _finish(_join(first, Pair(", and ", ", und "), lay_out(second)))
    adjective = _adjective(rng, item.noun)
    second = Clause(
        refer_to(item),
        BE,
        "past" if tense == "past" else "present",
        negated=rng.random() < 0.2,
        complement=Pair(adjective, ADJECTIVES[adjective]),
    )
    if rng.random() < 0.5:
        return _finish(_join(first, Pair(", but ", ", aber "), lay_out(second)))
    return _finish(_join(first, Pair(" because ", ", weil "), lay_out(second, SUBORDINATE)))


def _is_for_things(verb: Verb) -> bool:
    people = "person" in verb.objects or verb.extras == "recipient"
    return bool(verb.objects) and not people and _past_shows(verb)


def _join(*parts: Pair) -> Pair:
    return Pair(*map("".join, zip(*parts, strict=True)))


def _finish(pair: Pair, mark: str = ".") -> Pair:
    return Pair(*(f"{text[0].upper()}{text[1:]}{mark}" for text in pair))


_SENTENCES = {  # how often each kind is drawn
    _statement: 8,
    _question: 3,
    _open_question: 3,
    _description: 2,
    _condition: 4,
    _report: 3,
    _coordination: 2,
    _reference: 3,
}
_LONGEST = 20  # words


def _sentence(rng: random.Random) -> Pair:
    return rng.choices(list(_SENTENCES), list(_SENTENCES.values()))[0](rng)


def sentence_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    """English sentences with their German translations; no side of a pair occurs twice.

    Args:
        count: How many pairs.
        seed: The same seed gives the same pairs.

    Raises:
        ValueError: If the grammar does not yield that many.
    """
    rng = random.Random(seed)
    pairs, seen = [], set()
    for _ in range(20 * count + 100):
        if len(pairs) >= count:
            break
        pair = _sentence(rng)
        if max(len(side.split()) for side in pair) > _LONGEST:
            continue
        # "Her" and "them" can share a German sentence: keep one, so that splits share none.
        if seen.isdisjoint(sides := set(enumerate(pair))):
            seen |= sides
            pairs.append(pair)
    if count < 0 or len(pairs) < count:
        raise ValueError(f"cannot make {count} different pairs; ask for fewer, and at least 0")
    return pairs


def write_lesson(
    folder: Path, train: int = 30000, valid: int = 500, test: int = 500, seed: int = 1
) -> None:
    """Write train.en, train.de, valid.en and so on; no sentence is in two of the splits.

    Args:
        folder: Where the files go; made if need be.
        train, valid, test: Pairs in each split.
        seed: The same seed gives the same files.

    Raises:
        ValueError: If a size is negative, or the grammar does not yield that many pairs.
    """
    sizes = {"train": train, "valid": valid, "test": test}
    if min(sizes.values()) < 0:
        raise ValueError(f"{sizes}: a split cannot have fewer than 0 pairs")
    pairs = sentence_pairs(sum(sizes.values()), seed)
    random.Random(seed).shuffle(pairs)  # short sentences, soon used up, crowd at the start
    start = 0
    for split, size in sizes.items():
        for side, lang in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs[start : start + size])
            with whole_file(Path(folder) / f"{split}.{lang}") as path:
                path.write_text(text, encoding="utf-8")
        start += size

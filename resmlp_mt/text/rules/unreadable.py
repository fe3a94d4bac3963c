"""Words in a script, or of letters, that a model never saw."""

import re
import unicodedata

from resmlp_mt.text.about import About, Model
from resmlp_mt.text.punctuation import Place
from resmlp_mt.text.rules.names import Names, read_names, reads_names, write_names
from resmlp_mt.text.traced import Traced


def read(text: Traced, about: About) -> tuple[Traced, Names | None] | None:
    """Put names in the place of such words; None where a translation would be made up."""
    places = find_unreadable(text.text, about.model)
    if not places or not reads_names(about):
        return text, None
    rest = text.replace((place, "") for place in places).text
    if sum(any(map(str.isalpha, word)) for word in rest.split()) < len(places):
        return None  # most words cannot be read
    said, names = read_names(text, ((place, text.text[slice(*place)]) for place in places), about)
    return (said, names) if names and names.often.total() == len(places) else None


write = write_names


def find_unreadable(text: str, model: Model) -> list[Place]:
    """The places of words that a model cannot read, without the marks around these.

    Such a word has a letter of a script that the model never saw, or it never saw more than half of
    its letters. Of one that begins with a capital it is any letter outside Latin-1, as in Škoda. A
    model may know a word with a letter of Latin-1, as Café, without a subword for that.
    """
    unknown = {  # what is in capitals is read in lower case
        letter
        for letter in set(unicodedata.normalize("NFC", text))
        if not (model.knows(letter) or model.knows(letter.lower())) and letter.isalpha()
    }
    foreign = {letter for letter in unknown if not model.knows_script(letter)}

    def is_unreadable(word: str) -> bool:
        letters = list(filter(str.isalpha, unicodedata.normalize("NFC", word)))
        lacking = [letter for letter in letters if letter in unknown]
        if len(lacking) > len(letters) / 2 or not foreign.isdisjoint(lacking):
            return True
        return max(lacking, default="") > "\xff" and letters[0].isupper()

    words = re.finditer(r"\S+", text) if unknown else ()
    places = (_take_off_marks(word, model) for word in words)
    return [place for place in places if is_unreadable(text[slice(*place)])]


def _take_off_marks(word: re.Match, model: Model) -> Place:
    """The place of a word without quotes, stops and the like around it.

    Marks that the model never saw, as 《 and 」, stay with the word, and so do vowels of Hindi and
    Thai, which are marks for Unicode.
    """
    kept = [
        i
        for i, character in enumerate(word[0], word.start())
        if unicodedata.category(character)[0] in "LMN"
        or (character > "\xff" and not model.knows(character))
    ]
    return (kept[0], kept[-1] + 1) if kept else word.span()

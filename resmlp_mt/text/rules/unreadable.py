"""Words in a script, or of letters, that a model never saw."""

import re
import unicodedata

from resmlp_mt.text.rules.names import Fixed, Names, read_names, reads_names, write_names
from resmlp_mt.text.segments import About, Model, Traced


def read(text: Traced, about: About) -> tuple[Traced, Names | None] | None:
    """Put names in the place of unreadable words; None where a translation would be made up."""
    fixed = _find(text.text, about.model)
    if not fixed or not reads_names(about):
        return text, None
    rest = text.replace((place, "") for place, _ in fixed).text
    if sum(any(map(str.isalpha, word)) for word in rest.split()) < len(fixed):
        return None  # most words cannot be read
    said, names = read_names(text, fixed, about)
    return (said, names) if names and names.often.total() == len(fixed) else None


write = write_names


def _find(text: str, model: Model) -> list[Fixed]:
    """The words, with their places, that a model cannot read, without the marks around these.

    Such a word has a letter of a script that the model never saw, or it never saw more than half of
    its letters. One that begins with a capital has any unseen letter outside Latin-1, as Škoda. A
    model may know a word with a letter of Latin-1, as Café, without a subword for that letter.
    """
    unknown = {  # text in capitals is read in lower case
        letter
        for letter in set(unicodedata.normalize("NFC", text))
        if not (model.knows(letter) or model.knows(letter.lower())) and letter.isalpha()
    }
    if not unknown:
        return []
    foreign = {letter for letter in unknown if not model.knows_script(letter)}
    # Marks that it never saw, as 《, stay with the word. So do vowels of Thai: marks to Unicode.
    marks = "".join(
        character
        for character in set(text)
        if unicodedata.category(character)[0] not in "LMN"
        and (character <= "\xff" or model.knows(character))
    )
    found = []
    for match in re.finditer(r"\S+", text):
        word = match[0].strip(marks)
        letters = list(filter(str.isalpha, unicodedata.normalize("NFC", word)))
        lacking = [letter for letter in letters if letter in unknown]
        is_name = max(lacking, default="") > "\xff" and letters[0].isupper()
        if is_name or len(lacking) > len(letters) / 2 or not foreign.isdisjoint(lacking):
            start = match.start() + match[0].index(word)
            found.append(((start, start + len(word)), word))
    return found

"""The text that a model expects: a file beside its subwords."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from resmlp_mt.errors import UserError

CARD = "text.json"
FEW = 0.1  # of training lines hold several sentences: such a model drops all but the first


@dataclass(frozen=True)
class Card:
    """The text that a model expects, by the source side of its training text.

    Attributes:
        split_sentences: It was trained on single sentences, and drops all but the first.
        usual_length: A quarter more subwords than 99 of 100 lines had at most. Of longer lines the
            model leaves out parts. None if unknown.
    """

    split_sentences: bool = False
    usual_length: int | None = None


def write_card(folder: Path, several: float, usual_length: int | None) -> None:
    """Write what a model expects of its text; `several` is by `count_several`, a share."""
    card = asdict(Card(several <= FEW, usual_length))
    card = {"lines_of_several_sentences": round(several, 4)} | card
    (folder / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def read_card(folder: Path) -> Card:
    """The text that the model in a folder expects; any text, if it has no card.

    Raises:
        UserError: If the file is broken.
    """
    path = folder / CARD
    if not path.is_file():
        return Card()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        card = Card(found["split_sentences"], found.get("usual_length"))
        length = card.usual_length
        known = length is None or type(length) is int and length > 0
        if not isinstance(card.split_sentences, bool) or not known:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(
            f'{path}: broken; it should hold {{"split_sentences": true}}, or false'
        ) from None
    return card

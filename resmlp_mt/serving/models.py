"""The models of a service: which languages they know, and which of them a request is for."""

from collections.abc import Iterable
from functools import cache

from babel import Locale, UnknownLocaleError
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from resmlp_mt.errors import UserError
from resmlp_mt.files.finding import find_export
from resmlp_mt.serving.settings import Settings
from resmlp_mt.text.sentences import base_language
from resmlp_mt.translating.translator import Translator

AUTO = "auto"
# Characters that are enough to tell a language by.
_SAMPLE = 2000


class Models:
    """The translators of a service, each behind its name; no two of the same languages.

    Attributes:
        pairs: Each by the source and the target that it is for.
        name: Of all of them.
        threads: Batches that all of them can translate side by side.
        languages: The codes of their languages.

    Raises:
        UserError: If two translate between the same languages.
    """

    def __init__(self, named: Iterable[tuple[str, Translator]]):
        self.pairs: dict[tuple[str, str], Translator] = {}
        names: dict[tuple[str, str], str] = {}
        for name, translator in named:
            codec = translator.codec
            pair = codec.source_language, codec.target_language
            if pair in names:
                raise UserError(f"{names[pair]} and {name} both translate {'-'.join(pair)}")
            names[pair], self.pairs[pair] = name, translator
        self.name = ", ".join(names.values())
        self.threads = min(translator.threads for translator in self.pairs.values())
        self.languages = list(dict.fromkeys(code for pair in self.pairs for code in pair))
        # Of each base language the first code: py3langid knows no regions.
        self._codes = {base_language(code): code for code in reversed(self.languages)}
        known = [label for label in _load_identifier().labels if label in self._codes]
        known.sort(key=lambda label: label != "en")  # what a text without letters is taken for
        self._known = [self._codes[label] for label in known]

    def detect(self, texts: Iterable[str]) -> list[tuple[str, float]]:
        """Which of the service's languages texts are in: codes, that with most text first.

        With each comes its probability among all languages that there are, from 0 to 1: the mean
        over the texts, in which a text counts by how much it is in this language. Empty, if
        py3langid knows none of the service's languages.
        """
        found, squares = dict.fromkeys(self._known, 0.0), dict.fromkeys(self._known, 0.0)
        left = _SAMPLE
        for text in texts:
            sample = text[:left]
            left -= len(sample)
            if not any(map(str.isalpha, sample)):
                continue
            for label, share in _load_identifier().rank(sample):
                if (code := self._codes.get(label)) in found:
                    found[code] += len(sample) * share
                    squares[code] += len(sample) * share**2
        ranked = sorted(found, key=found.get, reverse=True)
        return [(code, squares[code] / found[code] if found[code] else 0.0) for code in ranked]

    def find_language(self, asked: str) -> str | None:
        """The code of a language of the service that is asked for, as "en" or "EN-us".

        Where the service has no such region or script, it is the language without any. Where none
        is asked for, it is the first that there is.
        """
        known = {_plain(code): code for code in self.languages}
        same = known.get(_plain(asked)) or known.get(base_language(asked))
        return same or self._codes.get(asked.lower())

    def choose(self, source: str, target: str | None, texts: Iterable[str]) -> Translator:
        """The translator for texts.

        Args:
            source: Code of their language; "auto" finds it out where that makes a difference.
            target: Code of the language to translate to; None where there is no choice.
            texts: To translate.

        Raises:
            UserError: If there is none, or there are several.
        """
        sought = AUTO if source.lower() == AUTO else self.find_language(source)
        left = [pair for pair in self.pairs if sought in (AUTO, pair[0])]
        if target is not None:
            left = [pair for pair in left if pair[1] == self.find_language(target)]
        sources = {pair[0] for pair in left}
        if len(sources) > 1:
            found = [code for code, _ in self.detect(texts) if code in sources]
            left = [pair for pair in left if pair[0] in found[:1]] or left
        if len(left) == 1:
            return self.pairs[left[0]]
        there = ", ".join(map(" to ".join, left or self.pairs))
        if left:
            raise UserError(f"name source and target; there are models for {there}")
        asked = f"{source} to {target}" if target is not None else source
        raise UserError(f"{asked}: no model translates so; there are models for {there}")


class _NoGenerator:
    """In the place of fairseq's search: its import takes seconds and half a gigabyte."""

    def search(self, *asked):
        """UserError: it is not there."""
        said = "no_repeat_ngram_size, and terms that the model loses, take more than a plain search"
        raise UserError(f"{said}, which an export has not; serve the checkpoint")


def load_models(settings: Settings) -> Models:
    """Load the models of a service, and import what a request may need.

    Raises:
        UserError: If a model is missing or broken, or they do not go together.
    """
    named = []
    for name in settings.models:
        translator = Translator.from_pretrained(name, settings.device, settings.threads)
        if is_plain := find_export(name, settings.device) is not None:
            translator.engine.generator = _NoGenerator()
        translator.translate("One, two. (3)", no_repeat_ngram_size=0 if is_plain else 2)
        named.append((name, translator))
    return Models(named)


def name_language(code: str) -> str:
    """The English name of a language: "German (Austria)" for "de_AT"; its code if it has none."""
    try:
        return Locale.parse(code.replace("-", "_")).get_display_name("en") or code
    except (ValueError, UnknownLocaleError):
        return code


def _plain(code: str) -> str:
    return code.replace("_", "-").lower()


@cache
def _load_identifier() -> LanguageIdentifier:
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

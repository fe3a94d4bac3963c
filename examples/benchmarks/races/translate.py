"""Sentences per second, and how long one sentence takes: our engines and CTranslate2.

Counted is the search, from token indices (CTranslate2: subwords) to those of the translations.
Loading, tokenization and detokenization are not. Where there is a GPU, checkpoints and CTranslate2
take it. Memory is then the GPU's, which nobody tells of CTranslate2.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sacrebleu.metrics import BLEU

from races.rounds import Rival, forget_peak, peak_memory
from resmlp_mt.engines.options import SearchOptions
from resmlp_mt.errors import UserError
from resmlp_mt.extras import advise
from resmlp_mt.files.finding import find_checkpoint, find_export
from resmlp_mt.translating.translator import Translator

FIGURES = ("rate", "bleu", "median_ms", "p95_ms", "memory_mib")  # what is measured of each rival


@dataclass(frozen=True)
class Case:
    """Batches of so many source subwords; one sentence at a time where that is 0."""

    batch_tokens: int
    beam: int


def list_rivals(
    models: dict[str, str],
    sources: list[str],
    references: list[str],
    threads: int,
    longest: int = SearchOptions.max_len_b,
    tokenize: str = BLEU.TOKENIZER_DEFAULT,
) -> list[Rival]:
    """One rival for each name and model: what `Translator` takes, or a folder of CTranslate2.

    Those of CTranslate2 get the subwords of the first, and as long sentences as it takes. So the
    first cannot be one of them. Ours have their own subwords. Shortlists, and the vocabulary maps
    of CTranslate2, are used where there are any.

    Args:
        models: By name.
        sources, references: Raw text.
        threads: Of each rival.
        longest: Subwords of a translation.
        tokenize: SacreBLEU's tokenizer for BLEU.

    Raises:
        UserError: If there is no such model.
    """
    for name, model in models.items():
        if not (_is_of_ctranslate2(model) or find_export(model)):
            try:
                find_checkpoint(model, "text")
            except UserError as error:
                raise UserError(f"{name}: {error}") from None
    first = next(iter(models.values()))
    text = dict(sources=sources, references=references, longest=longest, tokenize=tokenize)
    shared = dict(codec_of=first, threads=threads, **text)
    return [Rival(name, _build, dict(model=model, **shared)) for name, model in models.items()]


def _is_of_ctranslate2(model: str) -> bool:
    return (Path(model) / "model.bin").is_file()


def _build(model: str, codec_of: str, threads: int, **text):
    kind = _CTranslate2 if _is_of_ctranslate2(model) else _Ours
    return kind(model, codec_of, threads, **text)


class _Runner:
    """Does a case once. A child's `search` takes what its `encode` makes."""

    def __init__(self, sources: list[str], references: list[str], longest: int, tokenize: str):
        self.sources = [self.encode(text) for text in sources]
        self.references, self.longest = references, longest
        self.bleu = BLEU(tokenize=tokenize)

    def __call__(self, case: Case) -> dict[str, float]:
        singly = case.batch_tokens == 0
        batches = [[source] for source in self.sources] if singly else [self.sources]
        seconds, translations = [], []
        for batch in batches:
            start = time.perf_counter()
            found = self.search(batch, case)
            seconds.append(time.perf_counter() - start)
            translations += found
        texts = list(map(self.decode, translations))
        latencies = 1000 * np.percentile(seconds, (50, 95)) if singly else (np.nan, np.nan)
        rate = len(texts) / sum(seconds)
        bleu = self.bleu.corpus_score(texts, [self.references]).score
        figures = (rate, bleu, *latencies, self.measure_memory())
        return dict(zip(FIGURES, figures, strict=True))

    def measure_memory(self) -> float:
        """The most memory of this case, in MiB."""
        return peak_memory()


class _Ours(_Runner):
    def __init__(self, model, codec_of, threads, **text):
        self.translator = Translator.from_pretrained(model, threads=threads)
        self.codec = self.translator.codec
        super().__init__(**text)

    def encode(self, text: str):
        return self.codec.encode(self.codec.split(text)[: self.translator.longest])

    def search(self, batch: list, case: Case) -> list:
        options = SearchOptions(case.beam, max_len_b=self.longest)
        found = self.translator.search(batch, options, case.batch_tokens)
        return [beams[0][0] for beams in found]

    def decode(self, tokens) -> str:
        return self.codec.decode(tokens)

    def measure_memory(self) -> float:
        if not self.translator.engine.device.startswith("cuda"):
            return super().measure_memory()
        import torch  # which an exported model does not need

        return torch.cuda.max_memory_allocated() / 2**20


class _CTranslate2(_Runner):
    def __init__(self, model, codec_of, threads, **text):
        try:
            import ctranslate2
        except ModuleNotFoundError:
            raise UserError(f"{model}: this needs CTranslate2: {advise('benchmark')}") from None
        self.model = model
        first = Translator.from_pretrained(codec_of)
        self.codec, self.room = first.codec, first.longest
        self.positions = first.engine.target_positions
        del first
        forget_peak()  # of that model, which is not CTranslate2's
        self.on_gpu = ctranslate2.get_cuda_device_count() > 0
        try:
            self.translator = ctranslate2.Translator(
                model,
                device="cuda" if self.on_gpu else "cpu",
                inter_threads=1 if self.on_gpu else threads,
                intra_threads=1,
            )
        except RuntimeError as error:  # a GPU without the libraries that it wants
            raise UserError(f"{model}: {error}") from None
        self.maps = (Path(model) / "vmap.txt").is_file()
        super().__init__(**text)

    def encode(self, text: str) -> list[str]:
        return list(self.codec.split(text)[: self.room])

    def search(self, batch: list, case: Case) -> list:
        # No longer than the first model's: CTranslate2 does not say how many positions it has.
        longest = min(self.longest, self.positions - 1)
        try:
            found = self.translator.translate_batch(
                batch,
                beam_size=case.beam,
                max_decoding_length=longest,
                batch_type="tokens",
                max_batch_size=case.batch_tokens,
                use_vmap=self.maps,
            )
        except RuntimeError as error:  # fewer positions than the first model has, mostly
            raise UserError(f"{self.model}: {error}") from None
        return [result.hypotheses[0] for result in found]

    def decode(self, pieces: list[str]) -> str:
        return self.codec.target_subwords.decode(pieces)

    def measure_memory(self) -> float:
        return np.nan if self.on_gpu else super().measure_memory()

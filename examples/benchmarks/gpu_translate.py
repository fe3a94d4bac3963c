"""Race searches: fairseq's Transformer and ours in fairseq's search, and CTranslate2.

python examples/benchmarks/gpu_translate.py --csv examples/benchmarks/gpu_translate.csv

The models are untrained, the sources random. All sentences have one length, and all translations
exactly the same. Rivals are in one process and take turns.
"""

import argparse
import shutil
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from races.report import (
    append_rows,
    check_table,
    describe_command,
    make_rows,
    print_table,
)
from races.rounds import take_turns
from races.train import SIZES, list_rivals, write_dictionaries
from untrained import build, save


@dataclass(frozen=True)
class Case:
    """A batch of so many sentences, all of this length, as their translations."""

    sentences: int
    length: int
    beam: int


class FairseqSearch:
    """The search of fairseq-generate with a model, on one batch."""

    def __init__(self, built: tuple, device: str, dtype: torch.dtype):
        cfg, self.task, model = built
        model.prepare_for_inference_(cfg)
        self.model, self.device = model.to(device, dtype), device

    def __call__(self, case: Case) -> dict[str, float]:
        """Translate. The memory is what the search takes beside the weights."""
        cuda = self.device == "cuda"
        limits = {"min_len": case.length, "max_len_a": 0, "max_len_b": case.length}
        generator = self.task.build_generator([self.model], Namespace(beam=case.beam, **limits))
        words = draw(case, self.task.source_dictionary).to(self.device)
        lengths = torch.full((case.sentences,), words.size(1), device=self.device)
        sample = {"net_input": {"src_tokens": words, "src_lengths": lengths}}
        if cuda:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            torch.cuda.synchronize()
        start = time.perf_counter()
        found = self.task.inference_step(generator, [self.model], sample)
        if cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        memory = (torch.cuda.max_memory_allocated() - before) / 2**20 if cuda else float("nan")
        if cuda:
            torch.cuda.empty_cache()  # all rivals are on one device
        check_lengths([len(beams[0]["tokens"]) - 1 for beams in found], case)
        return {"rate": case.sentences / seconds, "memory_mib": memory}


class CTranslate2:
    """CTranslate2 on the same batch; it does not tell of its memory."""

    def __init__(self, built: tuple, device: str, dtype: torch.dtype, data: Path):
        import ctranslate2

        cfg, task, model = built
        self.symbols = task.source_dictionary
        save(cfg, model, data / "transformer.pt")
        folder = str(data / "converted")
        converter = ctranslate2.converters.FairseqConverter(
            str(data / "transformer.pt"), str(data), source_lang="en", target_lang="de"
        )
        converter.convert(folder, force=True)
        self.translator = ctranslate2.Translator(
            folder, device, compute_type=str(dtype).removeprefix("torch."), inter_threads=1
        )

    def __call__(self, case: Case) -> dict[str, float]:
        """Translate."""
        rows = draw(case, self.symbols)[:, :-1].tolist()  # it appends the end itself
        sentences = [[self.symbols[i] for i in row] for row in rows]
        start = time.perf_counter()
        found = self.translator.translate_batch(
            sentences,
            beam_size=case.beam,
            max_batch_size=case.sentences,
            min_decoding_length=case.length,
            max_decoding_length=case.length,
        )
        seconds = time.perf_counter() - start
        check_lengths([len(result.hypotheses[0]) for result in found], case)
        return {"rate": case.sentences / seconds, "memory_mib": float("nan")}


def draw(case: Case, symbols) -> torch.Tensor:
    """Random sentences with their ends, the same each time. (sentences, length + 1)."""
    seeded = torch.Generator().manual_seed(1)
    shape = case.sentences, case.length + 1
    words = torch.randint(symbols.nspecial, len(symbols), shape, generator=seeded)
    words[:, -1] = symbols.eos()
    return words


def check_lengths(found: list[int], case: Case) -> None:
    """Refuse to compare searches that did not do the same work."""
    if set(found) != {case.length}:
        raise RuntimeError(f"translations of {sorted(set(found))} subwords, not {case.length}")


def main() -> None:
    """Race them in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--type", choices=["float16", "bfloat16", "float32"], default="float16")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--vocab-size", type=int, default=32768, metavar="N")
    parser.add_argument("--sentences", type=int, nargs="+", default=[32, 256, 1024], metavar="N")
    parser.add_argument("--length", type=int, default=32, metavar="N")
    parser.add_argument("--beam", type=int, default=5, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--csv", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        parser.error("torch finds no GPU; --device cpu tries the script on the processor")
    check_table(arguments.csv)
    folder = Path(tempfile.mkdtemp())
    try:
        runs = load(arguments, folder)
        cases = [Case(n, arguments.length, arguments.beam) for n in arguments.sentences]
        show = sys.stderr.isatty()
        results = take_turns(list(runs), list(runs.values()), cases, arguments.rounds, show)
    finally:
        shutil.rmtree(folder)
    described = {"size": arguments.size, "vocabulary": arguments.vocab_size}
    described |= {"type": arguments.type, "device": arguments.device}
    described["command"] = describe_command(arguments.csv)
    rows = make_rows(results, arguments.rounds, torch.get_num_threads(), **described)
    print_table(rows)
    append_rows(arguments.csv, rows)


def load(arguments: argparse.Namespace, data: Path) -> dict[str, Callable[[Case], dict]]:
    """The rivals by name; CTranslate2 where it is installed and finds what it needs."""
    write_dictionaries(data, arguments.vocab_size)
    dtype, rivals = getattr(torch, arguments.type), {}
    built = {
        rival.name: build(data, ["-s", "en", "-t", "de", *rival.arguments["flags"]])
        for rival in list_rivals(arguments.size, [])
    }
    try:
        # The first batch too: libraries of CUDA are looked for when they are used.
        theirs = CTranslate2(built["transformer"], arguments.device, dtype, data)
        theirs(Case(1, 2, 1))
        rivals["CTranslate2"] = theirs
    except (ImportError, RuntimeError, ValueError) as error:
        print(f"gpu_translate.py: CTranslate2 is left out: {error}", file=sys.stderr)
    ours = {name: FairseqSearch(parts, arguments.device, dtype) for name, parts in built.items()}
    return ours | rivals


if __name__ == "__main__":
    main()

"""Tokens per second and memory of full updates: forward, backward, optimizer, by fairseq's Trainer.

The batches are random tokens, the same for all rivals; the sentences of both sides have one length.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import options, tasks
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer

from resmlp_mt.benchmark.rounds import Rival, peak_memory

# name: (channels, hidden channels, layers, attention heads, vocabulary, our presets)
SIZES = {
    "tiny": (128, 256, 4, 4, 6000, "resmlp_tiny", "resmlp_plus_tiny"),
    "iwslt": (512, 1024, 6, 4, 10000, "resmlp_iwslt_de_en", "resmlp_plus_iwslt_de_en"),
    "base": (512, 2048, 6, 8, 32768, "resmlp_wmt_en_de", "resmlp_plus_wmt_en_de"),
}
_RECIPE = """--share-all-embeddings --dropout 0.1 --clip-norm 0
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam
    --adam-betas (0.9,0.98) --lr 1e-4 --max-source-positions 1024 --max-target-positions 1024
    --distributed-world-size 1 --log-format none --no-progress-bar""".split()


@dataclass(frozen=True)
class Case:
    """An update of so many target tokens, in sentences of this length; so many updates."""

    length: int
    tokens: int
    updates: int


def list_rivals(size: str, flags: list[str]) -> list[Rival]:
    """fairseq's Transformer of that size and ours; `flags` go to fairseq-train for all."""
    channels, hidden, layers, heads, vocabulary, paper, plus = SIZES[size]
    transformer = ["--arch", "transformer"]
    for side in ("encoder", "decoder"):
        transformer += [f"--{side}-embed-dim", channels, f"--{side}-ffn-embed-dim", hidden]
        transformer += [f"--{side}-layers", layers, f"--{side}-attention-heads", heads]
    architectures = {
        "transformer": list(map(str, transformer)),
        paper: ["--arch", paper],
        plus: ["--arch", plus],
    }
    return [
        Rival(name, _Updates, dict(flags=[*arch, *flags], vocabulary=vocabulary))
        for name, arch in architectures.items()
    ]


class _Updates:
    """Trains; called with a case, does its updates."""

    def __init__(self, flags: list[str], vocabulary: int):
        torch.manual_seed(1)
        with tempfile.TemporaryDirectory() as folder:
            for lang in ("en", "de"):
                symbols = Dictionary()
                for i in range(vocabulary - len(symbols)):
                    symbols.add_symbol(f"word{i}")
                symbols.save(str(Path(folder) / f"dict.{lang}.txt"))
            words = [folder, "--source-lang", "en", "--target-lang", "de", *_RECIPE, *flags]
            args = options.parse_args_and_arch(options.get_training_parser(), words)
            cfg = convert_namespace_to_omegaconf(args)
            task = tasks.setup_task(cfg.task)
        model, criterion = task.build_model(cfg.model), task.build_criterion(cfg.criterion)
        self.trainer = Trainer(cfg, task, model, criterion)
        self.symbols = task.target_dictionary

    def __call__(self, case: Case) -> dict[str, float]:
        cuda = self.trainer.cuda
        batch = self._make_batch(case)
        if cuda:
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(case.updates):
            self.trainer.train_step([batch])
        if cuda:
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        memory = torch.cuda.max_memory_allocated() / 2**20 if cuda else peak_memory()
        return {"rate": case.updates * batch["ntokens"] / seconds, "memory_mib": memory}

    def _make_batch(self, case: Case) -> dict:
        sentences = max(1, case.tokens // case.length)
        first = self.symbols.nspecial
        words = torch.randint(first, len(self.symbols), (sentences, case.length))
        words[:, -1] = self.symbols.eos()
        return {
            "id": torch.arange(sentences),
            "nsentences": sentences,
            "ntokens": words.numel(),
            "target": words,
            "net_input": {
                "src_tokens": words.flip(1).roll(-1, 1).contiguous(),
                "src_lengths": torch.full((sentences,), case.length),
                "prev_output_tokens": words.roll(1, 1),
            },
        }

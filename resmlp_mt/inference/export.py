"""A trained translator as a folder for fast translation: ONNX graphs and matrices, no code."""

import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from torch import Tensor, nn

from resmlp_mt.data.output import whole_folder
from resmlp_mt.data.subwords import find_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.inference.codec import TextCodec
from resmlp_mt.inference.loading import load_trained
from resmlp_mt.nn.fold import FoldedMixer, fold_mixer, has_offset
from resmlp_mt.nn.mixers import ToeplitzMatrix

_CONFIG, _WEIGHTS = "export.json", "mixing.safetensors"
_GRAPHS = "encoder.onnx", "step.onnx"
_NEEDED = "this needs ONNX and ONNX Runtime: pip install 'resmlp_mt[export]'"


def export_translator(model: str | Path, out: Path, int8: bool) -> None:
    """Make a folder that `Translator` translates fast with.

    Args:
        model: As for `load_trained`.
        out: The folder to make. One that was exported before is replaced.
        int8: Products in int8, a quarter of the size.

    Raises:
        UserError: If something is missing, or `out` holds something else.
    """
    graphs = _import("resmlp_mt.inference.onnx_graphs")
    trained = load_trained(model)
    encoder, decoder = trained.model.encoder, trained.model.decoder
    symbols = trained.task.target_dictionary
    config = {
        "source_lang": trained.source,
        "target_lang": trained.target,
        "int8": int8,
        "source_positions": encoder.longest,
        "target_positions": decoder.longest,
    }
    banned = [symbols.pad(), symbols.unk()]
    with whole_folder(out, mark=_CONFIG) as new:
        (new / _GRAPHS[0]).write_bytes(graphs.build_encoder(encoder, decoder, int8))
        (new / _GRAPHS[1]).write_bytes(graphs.build_step(decoder, banned, symbols.eos(), int8))
        save_file(export_mixing(trained.model), new / _WEIGHTS)
        for lang in (trained.source, trained.target):
            shutil.copy(trained.folder / f"dict.{lang}.txt", new)
            shutil.copy(find_subwords(trained.folder, lang), new)
        (new / _CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def is_exported(path: Path) -> bool:
    """Whether `export_translator` made this folder."""
    return (path / _CONFIG).is_file()


def load_exported(folder: Path, device: str = "auto"):
    """The `BeamSearch` and the `TextCodec` of a folder that `export_translator` made.

    Raises:
        UserError: If something is missing or broken, or the device is not the CPU.
    """
    search = _import("resmlp_mt.inference.search")
    if device not in ("auto", "cpu"):
        raise UserError(f"--device {device}: an exported model translates on the CPU; leave it out")
    for name in (*_GRAPHS, _WEIGHTS):
        if not (folder / name).is_file():
            raise UserError(f"{folder / name}: missing; export the model again")
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
        codec = TextCodec(folder, config["source_lang"], config["target_lang"])
        engine = search.BeamSearch(
            *((folder / name).read_bytes() for name in _GRAPHS),
            load_file(folder / _WEIGHTS),
            codec.source_dictionary,
            codec.target_dictionary,
            config["source_positions"],
            config["target_positions"],
        )
    except FileNotFoundError as error:
        raise UserError(f"{error.filename}: missing; export the model again") from None
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise UserError(f"{folder}: a broken export ({error}); export the model again") from None
    return engine, codec


def _import(name: str):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).split(".")[0] not in ("onnx", "onnxruntime"):
            raise
        raise UserError(_NEEDED) from None


@torch.no_grad()
def export_mixing(model) -> dict[str, np.ndarray]:
    """What `BeamSearch` slices by length, from a `ResMLPModel`."""
    encoder, decoder = model.encoder, model.decoder
    source = [fold_mixer(b.mix_tokens, b.norm_1, b.scale_1.gamma) for b in encoder.blocks]
    target = [fold_mixer(b.mix_tokens, b.norm_1, b.scale_1.gamma) for b in decoder.blocks]
    weights = {
        "encoder.matrix": torch.stack([_matrix(mixer.matrix) for mixer in source]),
        "decoder.matrix": torch.stack([_matrix(mixer.matrix) for mixer in target]),
        "decoder.scale": torch.cat([mixer.scale for mixer in target]),
    }
    if getattr(source[0].matrix, "bias", None) is not None:
        weights["encoder.bias"] = torch.stack([mixer.matrix.bias for mixer in source])
    if has_offset(target[0]):
        offsets = [_offset(mixer, decoder.longest) for mixer in target]
        weights["decoder.offset"] = torch.cat(offsets, dim=1)
    for name, side in (("encoder", encoder), ("decoder", decoder)):
        if side.embed.positions is not None:
            weights[f"{name}.positions"] = _positions(side.embed, side.longest)
    return {name: np.ascontiguousarray(weight.float().numpy()) for name, weight in weights.items()}


def _matrix(matrix: nn.Module) -> Tensor:
    """A, (H, N, N), or the weights of a Toeplitz A from the distance 1 - N to N - 1."""
    if not isinstance(matrix, ToeplitzMatrix):
        return matrix(0, matrix.weight.size(-1))[0]
    unseen = matrix.nearest + matrix.farthest  # N - 1 where causal: what lies ahead
    return nn.functional.pad(matrix.weight, (unseen, 0))


def _offset(mixer: FoldedMixer, positions: int) -> Tensor:
    """What a decoder's mixer adds at each position. (N, C)."""
    rows, bias = mixer.matrix(0, positions)
    offset = _by_channel(rows.sum(2), mixer.shift)
    return offset if bias is None else offset + _by_channel(bias, mixer.bias_scale)


def _by_channel(heads: Tensor, channels: Tensor) -> Tensor:
    # (H, N), (C,) -> (N, C): each channel takes the values of its head
    return heads.t().repeat_interleave(len(channels) // len(heads), dim=1) * channels


def _positions(embed: nn.Module, positions: int) -> Tensor:
    """What is added to the embeddings at each position. (N, C)."""
    tokens = torch.full((1, positions), embed.tokens.padding_idx + 1)
    return embed.positions(tokens)[0]

"""The parts of a `Translator`: the engine of one model or of several, and their codec."""

from collections.abc import Sequence
from pathlib import Path

from resmlp_mt.data.codec import TextCodec
from resmlp_mt.engines.exported import load_exported_translator
from resmlp_mt.engines.search.engine import Engine
from resmlp_mt.engines.threads import count_threads
from resmlp_mt.errors import UserError
from resmlp_mt.extras import import_extra
from resmlp_mt.files.finding import find_export


def load_engine(
    models: Sequence[str | Path], device: str, threads: int | None
) -> tuple[Engine, TextCodec, int]:
    """The engine of one model or of several, its codec, and how many batches it searches at once.

    Args:
        models, device, threads: As for `Translator.from_pretrained`.

    Raises:
        UserError: If something is missing, broken, or does not fit together.
    """
    exported = [find_export(name, device) is not None for name in models]
    if device == "auto" and any(exported):
        device = "cpu"
    engines, codecs = zip(*(_load(name, device) for name in models), strict=True)
    codec = codecs[0]
    for name, other in zip(models, codecs, strict=True):
        if not codec.speaks_as(other):
            raise UserError(
                f"{name}: its languages, dictionaries or subwords are not those of {models[0]}; "
                "only models that were trained on the same prepared data can translate together"
            )
    side_by_side = (threads or count_threads()) if all(exported) else 1
    if not all(exported) and threads is not None:  # within a batch
        import_extra("torch", "a checkpoint").set_num_threads(threads)
    if len(models) == 1:
        return engines[0], codec, side_by_side
    generator = import_extra("resmlp_mt.engines.search.generator", "an ensemble")
    symbols, pad = codec.target_dictionary, codec.source_dictionary.pad()
    return generator.Ensemble(engines, symbols, pad), codec, side_by_side


def _load(model: str | Path, device: str) -> tuple:
    """The engine of a model, and its `TextCodec`."""
    if export := find_export(model, device):
        return load_exported_translator(export, device)
    trained = import_extra("resmlp_mt.engines.trained", "a checkpoint (not an export)")
    return trained.load_trained(model, "text", device)

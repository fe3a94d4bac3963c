"""A trained model as a folder for fast inference on a CPU: matrices, no code."""

import json
import shutil
import zlib
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
from fairseq.models import BaseFairseqModel
from safetensors.numpy import save

from resmlp_mt.checkpoints.loading import (
    TrainedClassifier,
    TrainedTranslator,
    load_classifier,
    load_translator,
    read_checkpoint,
)
from resmlp_mt.data.card import CARD
from resmlp_mt.data.codec import TextCodec
from resmlp_mt.data.subwords import BESIDE, find_subwords
from resmlp_mt.errors import UserError
from resmlp_mt.export.folded_classifier import fold_or_trace
from resmlp_mt.export.parallel_text import ParallelText
from resmlp_mt.export.preview import learn_preview
from resmlp_mt.export.shortlist import ShortlistText, learn_shortlist
from resmlp_mt.files import export_layout as layout
from resmlp_mt.files.kinds import is_of_images
from resmlp_mt.files.output import whole_folder
from resmlp_mt.files.sums import sum_files
from resmlp_mt.models.folded import SharedWeights
from resmlp_mt.models.translation import ResMLPModel
from resmlp_mt.models.translation.folded import (
    describe_mixing,
    describe_translator,
    find_unfolded,
    mixes_alike,
)

BITS = range(4, 9)  # of weights in int8
_GZIP = zlib.MAX_WBITS + 16  # the format that zlib shall write


def export_model(
    model: str | Path,
    out: Path,
    int8: bool,
    shortlist: ShortlistText | None = None,
    weight_bits: int | None = None,
    preview: ParallelText | None = None,
) -> None:
    """Make a folder that `Translator` or `Classifier.from_pretrained` take, and run fast.

    Args:
        model: A name of `pretrained_names`, a folder, or a checkpoint.
        out: The folder to make. One that was exported before is replaced.
        int8: Products in int8, a quarter of the size.
        shortlist: The text to learn a shortlist from, for a translator.
        weight_bits: Round the weights of int8 to so many bits, one of `BITS`, and compress them.
        preview: The text to learn a preview from, for a translator.

    Raises:
        UserError: If something is missing, `out` holds something else, or the model cannot be
            exported.
    """
    if weight_bits is not None and not (int8 and weight_bits in BITS):
        raise UserError(
            f"--weight-bits {weight_bits}: weights of --int8 can have {BITS[0]} to {BITS[-1]} bits"
        )
    path, state = read_checkpoint(model)
    if is_of_images(state["cfg"].task.get("_name")):
        for flag, text in (("shortlist", shortlist), ("preview", preview)):
            if text:
                raise UserError(f"--{flag}: a classifier has no vocabulary")
        export, trained = _export_classifier, load_classifier(path, state)
    else:
        export = partial(_export_translator, shortlist=shortlist, preview=preview)
        trained = load_translator(path, state)
    with whole_folder(out, layout.CONFIG, *layout.MADE, *BESIDE) as new:
        shared = SharedWeights(weight_bits or BITS[-1])
        config = {"format": layout.FORMAT} | export(trained, new, int8, shared)
        if shared.arrays and weight_bits:
            (new / layout.COMPRESSED).write_bytes(_compress(save(shared.arrays)))
        elif shared.arrays:
            (new / layout.WEIGHTS).write_bytes(save(shared.arrays))
        elif weight_bits:
            raise UserError("--weight-bits: the weights of this classifier lie within its graph")
        config |= {"int8": int8, "weight_bits": weight_bits}
        config["sha256"] = sum_files(new, sorted(path.name for path in new.iterdir()))
        (new / layout.CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


def _compress(data: bytes) -> bytes:
    """As gzip does it, without a search for repeats: weights have none, and it takes a third.

    Only Huffman's code is used. Values near 0, which most weights have, take fewer bits.
    """
    compressor = zlib.compressobj(wbits=_GZIP, strategy=zlib.Z_HUFFMAN_ONLY)
    return compressor.compress(data) + compressor.flush()


def _export_translator(
    trained: TrainedTranslator,
    out: Path,
    int8: bool,
    shared: SharedWeights,
    shortlist: ShortlistText | None,
    preview: ParallelText | None,
) -> dict:
    _refuse_unfolded(trained.model)
    described = describe_translator(trained.model, int8, shared)
    if shortlist or preview:
        dictionaries = trained.task.source_dictionary, trained.task.target_dictionary
        languages = trained.source, trained.target
        codec = TextCodec.from_folder(trained.folder, languages, dictionaries)
    if shortlist:
        (out / layout.SHORTLIST).write_bytes(save(learn_shortlist(shortlist, codec)))
    if preview:
        (out / layout.PREVIEW).write_bytes(save(learn_preview(preview, trained.model, codec)))
    # Not `save_file`, whose file only its owner may read: a service may run as another user.
    mixing = describe_mixing(trained.model)
    if int8:  # half the size, and still more exact than the products
        mixing = {name: array.astype(np.float16) for name, array in mixing.items()}
    (out / layout.MIXING).write_bytes(save(mixing))
    for lang in (trained.source, trained.target):
        shutil.copy(trained.folder / f"dict.{lang}.txt", out)
        shutil.copy(find_subwords(trained.folder, lang), out)
    if (trained.folder / CARD).is_file():
        shutil.copy(trained.folder / CARD, out)
    return {
        "kind": "translator",
        "source_lang": trained.source,
        "target_lang": trained.target,
        **described,
        "shortlist": shortlist and {"best": shortlist.best, "first": shortlist.first},
        "preview": preview is not None,
    }


def _refuse_unfolded(model: BaseFairseqModel) -> None:
    """Refuse a translator with layers that have no folded form."""
    if not isinstance(model, ResMLPModel):
        what = f"{type(model).__name__}, whose self-attention is none of the matrices"
    elif not model.encoder.blocks:
        what = "translator without encoder blocks (--encoder-layers 0)"
    elif unfolded := find_unfolded(model):
        what = f"translator with a {unfolded}, which has no folded form"
    elif not mixes_alike(model):
        what = "translator whose layers have matrices of several kinds, or of different heads"
    else:
        return
    raise UserError(f"there is no export of a {what}; translate with the checkpoint itself")


def _export_classifier(
    trained: TrainedClassifier, out: Path, int8: bool, shared: SharedWeights
) -> dict:
    cfg = trained.task.cfg
    about = cfg.mean, cfg.std, cfg.image_size, int8, shared
    described, graph = fold_or_trace(trained.model, *about)
    if graph:
        (out / layout.CLASSIFIER).write_bytes(graph)
    return {
        "kind": "classifier",
        "classes": trained.classes,
        "network": described,
        "pictures": asdict(trained.task.cut),
    }

"""`resmlp-mt train --hyperrule`: flags chosen by BiT's HyperRule, and printed before training."""

import math
import os
from argparse import Namespace

from resmlp_mt.errors import UserError, name_flag

_FLAG = "--hyperrule"


def apply_hyperrule(arguments: list[str]) -> list[str]:
    """Put the flags that the rule chooses for the data in the place of --hyperrule, and print them.

    A flag that is given stays as it is, and so does all of a command line without --hyperrule.

    Raises:
        UserError: If there is no such version, the task is not classification, or the data is not
            there.
    """
    asked = [word for word in arguments if word.split("=")[0] == _FLAG]
    if not asked:
        return arguments
    from fairseq import options

    from resmlp_mt.data.image_folder import ImageFolder
    from resmlp_mt.files.kinds import CLASSIFICATION
    from resmlp_mt.tasks.hyperrule import VERSIONS, choose_rule, measure_images

    version = asked[-1].partition("=")[2] or VERSIONS[0]
    if version not in VERSIONS:
        raise UserError(f"{_FLAG}={version}: there are {' and '.join(VERSIONS)}")
    rest = [word for word in arguments if word not in asked]
    # What has flags of its own stands first: a given choice, which comes later, counts.
    choices = ["--optimizer", "sgd", "--lr-scheduler", "hyperrule"]
    parser = options.get_training_parser()
    flags = options.parse_args_and_arch(parser, [*choices, *rest])
    if flags.task != CLASSIFICATION:
        raise UserError(f"{_FLAG} is for --task {CLASSIFICATION}, not {flags.task}")
    folder = ImageFolder(flags.data, "train", flags.in_chans)
    width, height = measure_images(folder)
    rule = choose_rule(len(folder), width * height, version)
    # A flag may have another name: what was given is what the parser fills in.
    filled = vars(parser.parse_args(rest, Namespace(**dict.fromkeys(vars(flags)))))
    given = {name_flag(name) for name, value in filled.items() if value is not None}
    found = _list_flags(rule, flags, given, len(folder))
    chosen = {name: value for name, value in found.items() if name not in given}
    words = [word for name, value in chosen.items() for word in (name, str(value))]
    if os.environ.get("RANK", "0") != "0":  # the first worker speaks for all of them
        return [*words, *rest]
    print(
        f"HyperRule, as in BiT's {version}: {len(folder):,} training images, of {width} x {height} "
        f"pixels: a {rule.size} task"
    )
    if kept := sorted(given & found.keys()):
        print(f"  given, and kept: {' '.join(kept)}")
    print(f"  chosen: {' '.join(words)}", flush=True)
    return [*words, *rest]


def _list_flags(rule, flags, given: set[str], images: int) -> dict[str, object]:
    """The flags of a rule."""
    from resmlp_mt.compat.workers import count_workers
    from resmlp_mt.tasks.hyperrule import BATCH

    crop = flags.image_size if "--image-size" in given else rule.crop
    workers = count_workers(flags.distributed_world_size)
    batch = flags.batch_size if "--batch-size" in given else max(1, BATCH // workers)
    seen = batch * workers
    updates = (flags.supports if "--supports" in given else rule.supports)[-1]
    found = {
        "--image-size": crop,
        "--square-resize": round(crop * rule.resize / rule.crop),
        "--crop-mode": "squash",
        "--crop-pct": 1.0,
        "--color-jitter": 0,
        "--mixup": rule.mixup,
        "--optimizer": "sgd",
        "--momentum": 0.9,
        "--weight-decay": 0,
        "--lr": 0.003,
        "--lr-scheduler": "hyperrule",
        "--supports": ",".join(map(str, rule.supports)),
        "--max-update": updates,
        "--batch-size": batch,
        "--update-freq": max(1, round(BATCH / seen)),
        # By default fairseq would cut a last batch of 36 images into 32 and 4.
        "--required-batch-size-multiple": 1,
    }
    # What only the rule's own optimizer and schedule take.
    if flags.optimizer != "sgd":
        del found["--momentum"]
    if flags.lr_scheduler != "hyperrule":
        del found["--supports"]
    # Not of the rule: small sets have short epochs, and fairseq validates after each.
    if (epochs := updates // math.ceil(images / BATCH) // 20) > 1:
        found |= {"--validate-interval": epochs, "--save-interval": epochs}
    return found

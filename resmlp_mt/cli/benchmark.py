r"""Race models against what would be used instead, on the same work and machine.

Every rival has a process of its own. After a round to warm up they take turns for --rounds rounds.
A ratio is the rate of a rival divided by that of the first rival, within a round. The table has its
median, least and most.

  resmlp-mt benchmark translate --input test.en --reference test.de \
      --models ours=checkpoints/fast transformer=checkpoints/transformer ctranslate2=ct2-model
  resmlp-mt benchmark train --size iwslt --length 16 64 256
  resmlp-mt benchmark images --arch resmlp_s12 --batch-size 1 32 --timm
  resmlp-mt benchmark images --arch resmlp_s12 mixer_s16 "resmlp_s12 --token-mixer mlp"

Of one classifier the exports are raced too, of several each as it is.
"""

import argparse
import math
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from resmlp_mt.cli.bleu import add_tokenize, make_bleu
from resmlp_mt.cli.flags import check_positive, check_threads
from resmlp_mt.errors import UserError

_MOST_PIXELS = 65535  # of a side of an image, as of a JPEG


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="translate|train|images")

    translate = kinds.add_parser("translate", help="sentences per second and latency")
    translate.add_argument(
        "--models",
        nargs="+",
        required=True,
        metavar="NAME=MODEL",
        help="what 'translate --model' takes, or a folder of CTranslate2, of the same subwords",
    )
    translate.add_argument("--input", type=Path, required=True, metavar="FILE")
    translate.add_argument("--reference", type=Path, required=True, metavar="FILE")
    add_tokenize(translate)
    translate.add_argument(
        "--beam", type=int, nargs="+", default=[5], metavar="N", help="(default: 5)"
    )
    translate.add_argument(
        "--batch-tokens",
        type=int,
        nargs="+",
        default=[0, 512, 2048, 8192],
        metavar="N",
        help="source subwords in a batch; 0: a sentence at a time (default: 0 512 2048 8192)",
    )

    train = kinds.add_parser("train", help="target tokens per second and memory of full updates")
    train.add_argument("--size", choices=["tiny", "iwslt", "base"], default="base")
    train.add_argument("--length", type=int, nargs="+", default=[32], metavar="N")
    train.add_argument(
        "--max-tokens", type=int, default=4096, metavar="N", help="target tokens of an update"
    )
    train.add_argument("--updates", type=int, default=2, metavar="N", help="of a run")
    train.add_argument(
        "--flags", default="", metavar="FLAGS", help="more for fairseq-train: --flags='--bf16'"
    )

    images = kinds.add_parser("images", help="size, cost and images per second of classifiers")
    images.add_argument(
        "--arch",
        nargs="+",
        default=["resmlp_s12"],
        metavar="PRESET",
        help="one or more; in quotes flags of its model may follow (default: resmlp_s12)",
    )
    images.add_argument(
        "--image-size", type=int, metavar="N", help="default: the preset's, mostly 224"
    )
    images.add_argument(
        "--num-classes", type=int, default=1000, metavar="K", help="default: %(default)s"
    )
    images.add_argument("--batch-size", type=int, nargs="+", default=[1, 32], metavar="N")
    images.add_argument(
        "--images", type=int, default=64, metavar="N", help="of a run, in whole batches"
    )
    images.add_argument(
        "--timm", action="store_true", help="race against timm's model too, plain and compiled"
    )

    for kind in (translate, train, images):
        kind.add_argument("--rounds", type=int, default=5, metavar="N")
        kind.add_argument("--threads", type=int, default=2, metavar="N", help="of each rival")
        kind.add_argument("--csv", type=Path, metavar="FILE", help="append rows to it")


def run(arguments: argparse.Namespace) -> None:
    """Measure, print a table, and append to the CSV."""
    from resmlp_mt.benchmark.report import append_rows, check_table, make_rows, print_table
    from resmlp_mt.benchmark.rounds import Result, race

    check_positive(arguments, "rounds")
    check_threads(arguments)
    plan = {"translate": _plan_translate, "train": _plan_train, "images": _plan_images}[
        arguments.kind
    ]
    rivals, cases, describe, figures = plan(arguments)

    def describe_all(results: list[Result]) -> list[dict]:
        return [
            row
            for result in results
            for row in make_rows(
                [result], arguments.rounds, arguments.threads, **describe(result.rival)
            )
        ]

    if arguments.csv:
        unknown = dict.fromkeys(figures, math.nan)
        example = Result(rivals[0].name, cases[0], unknown, math.nan, (math.nan, math.nan))
        check_table(arguments.csv, *describe_all([example]))
    results = race(rivals, cases, arguments.rounds, arguments.threads, sys.stderr.isatty())
    rows = describe_all(results)
    print_table(rows, results[0].figures)
    if arguments.csv:
        append_rows(arguments.csv, rows)


# What a plan is: the rivals, the cases, what rows say of a rival, and the names of the figures.
_Plan = tuple[list, list, Callable[[str], dict], tuple[str, ...]]


def _plan_translate(arguments: argparse.Namespace) -> _Plan:
    from resmlp_mt.benchmark.translate import FIGURES, Case, list_rivals
    from resmlp_mt.data.reading import read_parallel

    check_positive(arguments, "beam")
    if min(arguments.batch_tokens) < 0:
        raise UserError("--batch-tokens cannot be negative")
    if bad := [model for model in arguments.models if "=" not in model]:
        raise UserError(f"{bad[0]}: write NAME=MODEL")
    names = [model.split("=")[0] for model in arguments.models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"--models: two models are called {twice[0]}; give each its own name")
    sources, references = read_parallel(arguments.input, arguments.reference)
    make_bleu(arguments.tokenize, references)  # what there is not is refused before the race
    models = dict(model.split("=", 1) for model in arguments.models)
    rivals = list_rivals(
        models, sources, references, arguments.threads, tokenize=arguments.tokenize
    )
    cases = [Case(tokens, beam) for tokens in arguments.batch_tokens for beam in arguments.beam]
    about = {"text": arguments.input.name, "sentences": len(sources)}
    return rivals, cases, lambda rival: about, FIGURES


def _plan_train(arguments: argparse.Namespace) -> _Plan:
    from resmlp_mt.benchmark.train import FIGURES, Case, list_rivals

    check_positive(arguments, "length", "max_tokens", "updates")
    try:
        flags = shlex.split(arguments.flags)
    except ValueError as error:  # a quote that nothing closes
        raise UserError(f"--flags {arguments.flags}: {error}; mend its quotes") from None
    rivals = list_rivals(arguments.size, flags, max(arguments.length))
    cases = [Case(length, arguments.max_tokens, arguments.updates) for length in arguments.length]
    about = {"size": arguments.size, "flags": arguments.flags}
    return rivals, cases, lambda rival: about, FIGURES


def _plan_images(arguments: argparse.Namespace) -> _Plan:
    from resmlp_mt.benchmark.image_models import ModelCase, usual_size
    from resmlp_mt.benchmark.images import FIGURES, Case, list_rivals

    check_positive(arguments, "batch_size", "images", "image_size", "num_classes")
    size = arguments.image_size
    if size and size > _MOST_PIXELS:
        raise UserError(f"--image-size is at most {_MOST_PIXELS}, not {size}")
    models = [
        ModelCase(arch, size or usual_size(arch), arguments.num_classes) for arch in arguments.arch
    ]
    # What cannot be built is refused before anything is measured.
    about = {m.arch: {"arch": m.arch, "image_size": m.image_size} | m.count() for m in models}
    rivals = list_rivals(models, arguments.timm, arguments.threads)
    cases = [Case(size, max(1, arguments.images // size)) for size in arguments.batch_size]
    return rivals, cases, lambda rival: about.get(rival) or about[models[0].arch], FIGURES

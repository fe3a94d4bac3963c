r"""Race models against what would be used instead, on the same work and machine.

Every rival has a process of its own. After a round to warm up they take turns for --rounds rounds.
A ratio is the rate of a rival divided by that of the first rival, within a round. The table has its
median, least and most.

  python examples/benchmarks/race.py translate --input test.en --reference test.de \
      --models ours=checkpoints/fast transformer=checkpoints/transformer ctranslate2=ct2-model
  python examples/benchmarks/race.py train --size iwslt --length 16 64 256
  python examples/benchmarks/race.py images --arch resmlp_s12 --batch-size 1 32 --timm
  python examples/benchmarks/race.py images --arch resmlp_s12 "resmlp_s12 --token-mixer mlp"

Of one classifier the exports are raced too, of several each as it is.
"""

import argparse
import math
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from races.report import append_rows, check_table, make_rows, print_table
from races.rounds import Result, race

from resmlp_mt.cli.bleu import add_tokenize, make_bleu
from resmlp_mt.cli.flags import HelpFormatter, positive, thread_count
from resmlp_mt.errors import UserError

# Rivals, cases, what rows say of a rival by its name, and the names of the figures.
Plan = tuple[list, list, Callable[[str], dict], tuple[str, ...]]


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print a table, and append to the CSV; status 2 where that cannot be."""
    # Exit as after an error, so that the rivals end too.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    arguments = build_parser().parse_args(words)
    try:
        run(arguments)
    except UserError as error:
        print(f"race.py {arguments.kind}: {error}", file=sys.stderr)
        return 2
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=HelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="translate|train|images")

    def add(kind: str, plan: Callable[[argparse.Namespace], Plan], said: str):
        found = kinds.add_parser(kind, help=said, formatter_class=HelpFormatter)
        found.set_defaults(plan=plan)
        found.add_argument("--rounds", type=positive, default=5)
        found.add_argument("--threads", type=thread_count, default=2, help="of each rival")
        found.add_argument("--csv", type=Path, help="append rows to it")
        return found

    translate = add("translate", plan_translate, "sentences per second and latency")
    translate.add_argument(
        "--models",
        nargs="+",
        required=True,
        type=_read_model,
        metavar="NAME=MODEL",
        help="what 'translate --model' takes, or a folder of CTranslate2, of the same subwords",
    )
    translate.add_argument("--input", type=Path, required=True)
    translate.add_argument("--reference", type=Path, required=True)
    add_tokenize(translate)
    translate.add_argument("--beam", type=positive, nargs="+", default=[5])
    translate.add_argument(
        "--batch-tokens",
        type=int,
        nargs="+",
        default=[0, 512, 2048, 8192],
        help="source subwords in a batch; 0: a sentence at a time",
    )
    translate.add_argument(
        "--longest", type=positive, default=200, help="subwords of a translation at most"
    )

    train = add("train", plan_train, "target tokens per second and memory of full updates")
    train.add_argument("--size", choices=["tiny", "iwslt", "base"], default="base")
    train.add_argument("--length", type=positive, nargs="+", default=[32])
    train.add_argument("--max-tokens", type=positive, default=4096, help="of an update's targets")
    train.add_argument("--updates", type=positive, default=2, help="of a run")
    train.add_argument(
        "--flags", type=_split, default="", help="more for fairseq-train: --flags='--bf16'"
    )

    images = add("images", plan_images, "size, cost and images per second of classifiers")
    images.add_argument(
        "--arch",
        nargs="+",
        default=["resmlp_s12"],
        help="presets; in quotes flags of its model may follow",
    )
    images.add_argument("--image-size", type=positive, help="else the preset's, mostly 224")
    images.add_argument("--num-classes", type=positive, default=1000)
    images.add_argument("--batch-size", type=positive, nargs="+", default=[1, 32])
    images.add_argument("--images", type=positive, default=64, help="of a run, in whole batches")
    images.add_argument("--timm", action="store_true", help="race against timm's model too")
    return parser


def run(arguments: argparse.Namespace) -> None:
    """Do what the flags say."""
    rivals, cases, describe, figures = arguments.plan(arguments)

    def describe_all(results: list[Result]) -> list[dict]:
        numbers = arguments.rounds, arguments.threads
        return [row for r in results for row in make_rows([r], *numbers, **describe(r.rival))]

    if arguments.csv:
        unknown = dict.fromkeys(figures, math.nan)
        example = Result(rivals[0].name, cases[0], unknown, math.nan, (math.nan, math.nan))
        check_table(arguments.csv, *describe_all([example]))
    results = race(rivals, cases, arguments.rounds, arguments.threads, sys.stderr.isatty())
    rows = describe_all(results)
    print_table(rows, results[0].figures)
    if arguments.csv:
        append_rows(arguments.csv, rows)


def plan_translate(arguments: argparse.Namespace) -> Plan:
    """The race of translators."""
    from races.translate import FIGURES, Case, list_rivals

    from resmlp_mt.data.reading import read_parallel

    models = dict(arguments.models)
    if len(models) < len(arguments.models):
        raise UserError("--models: two of them have one name")
    sources, references = read_parallel(arguments.input, arguments.reference)
    make_bleu(arguments.tokenize, references)  # what there is not is refused before the race
    rivals = list_rivals(
        models,
        sources,
        references,
        arguments.threads,
        arguments.longest,
        arguments.tokenize,
    )
    cases = [Case(tokens, beam) for tokens in arguments.batch_tokens for beam in arguments.beam]
    about = {"text": arguments.input.name, "sentences": len(sources)}
    return rivals, cases, lambda rival: about, FIGURES


def plan_train(arguments: argparse.Namespace) -> Plan:
    """The race of trainings."""
    from races.train import FIGURES, Case, list_rivals

    rivals = list_rivals(arguments.size, arguments.flags, max(arguments.length))
    cases = [Case(length, arguments.max_tokens, arguments.updates) for length in arguments.length]
    about = {"size": arguments.size, "flags": " ".join(arguments.flags)}
    return rivals, cases, lambda rival: about, FIGURES


def plan_images(arguments: argparse.Namespace) -> Plan:
    """The race of classifiers."""
    from races.image_models import ModelCase, usual_size
    from races.images import FIGURES, Case, list_rivals

    models = [
        ModelCase(arch, arguments.image_size or usual_size(arch), arguments.num_classes)
        for arch in arguments.arch
    ]
    # What cannot be built is refused before anything is measured.
    about = {m.arch: {"arch": m.arch, "image_size": m.image_size} | m.count() for m in models}
    rivals = list_rivals(models, arguments.timm, arguments.threads)
    cases = [Case(size, max(1, arguments.images // size)) for size in arguments.batch_size]
    return rivals, cases, lambda rival: about.get(rival) or about[models[0].arch], FIGURES


def _read_model(text: str) -> list[str]:
    if "=" not in text:
        raise argparse.ArgumentTypeError(f"{text}: write NAME=MODEL")
    return text.split("=", 1)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:  # a quote that nothing closes
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


if __name__ == "__main__":
    sys.exit(main())

"""Translate for others over HTTP: POST /translate, a page at /, /docs, /healthz, /metrics.

It speaks LibreTranslate's interface too. Requests that come together are translated together. A
model may be a checkpoint. What 'resmlp-mt export' made is faster on a CPU. There is no TLS: leave
the server on loopback, or put a proxy before it.

  resmlp-mt serve multi30k-en-de
  curl localhost:8080/translate -H content-type:application/json -d '{"text": "A man rides."}'
"""

import argparse
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from resmlp_mt.cli.flags import add_device, positive, thread_count, within
from resmlp_mt.errors import UserError, name_flag
from resmlp_mt.serving.settings import Limits, Settings

_COUNTS = "batch_size queue_size max_beam max_request_bytes max_answer_bytes".split()
# As browsers write an origin: without the port where it is the usual one. "null" is that of files.
_ORIGIN = re.compile(r"(?!http:.*:80$|https:.*:443$)(\*|null|[a-z][a-z0-9+.-]*://[^/?#@*\sA-Z]+)")
_HOST = re.compile(r"[^/?#@*:\s]+|\[?[0-9A-Fa-f:.]+\]?")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "models",
        nargs="*",
        metavar="NAME|DIR|FILE",
        help="a shipped model, folder, checkpoint, or export; several for several languages "
        "(default: all translators that are shipped; of two for the same languages the one whose "
        "name says no more)",
    )
    add = parser.add_argument
    again, n = {"action": "append", "default": []}, {"type": positive, "metavar": "N"}
    port = within(0, 65_535)
    add("--host", default="127.0.0.1", help="address to listen at")
    add("--port", type=port, default=8080, help="0 for any free one")
    said = "a name that requests may call the server by, besides localhost, --host and addresses"
    add("--allow-host", **again, type=_host, metavar="NAME", help=f"{said}; may be given again")
    said = "pages that may ask in a browser, as https://example.org; * for all; may be given again"
    add("--allow-origin", **again, type=_origin, metavar="ORIGIN", help=said)
    said = "answer only requests with one of these keys: one a line, and behind it its requests a"
    add("--api-keys", type=Path, metavar="FILE", help=f"{said} minute where they differ")
    said = "of each key; 0 for any number"
    add("--requests-per-minute", default=0, type=within(0), metavar="N", help=said)
    add("--access-log", action="store_true", help="write a line for each request to stdout")
    said = "show /metrics there, and not at --port; 0 for any free one"
    add("--metrics-port", type=port, metavar="PORT", help=said)
    add("--metrics-host", default="127.0.0.1", metavar="HOST", help="address of --metrics-port")
    said = "processes that answer at the port, each with the models and limits of its own"
    add("--workers", default=1, **n, help=said)
    said = "texts translated together; fewer where they are long"
    add("--batch-size", default=Limits.batch_size, **n, help=said)
    said = "texts that may wait; more are answered with 429"
    add("--queue-size", default=Limits.queue_size, **n, help=said)
    said = "widest beam that a request may ask for; more is answered with 422"
    add("--max-beam", default=Limits.beam, **n, help=said)
    said = "larger requests are answered with 413"
    add("--max-request-bytes", default=Limits.request_bytes, **n, help=said)
    said = "requests with larger answers are answered with 413"
    add("--max-answer-bytes", default=Limits.answer_bytes, **n, help=said)
    said, seconds = "for a request to arrive, and to be translated; each", within(1, 86_400, float)
    add("--timeout", type=seconds, default=Limits.timeout, metavar="SECONDS", help=said)
    said = "threads of a worker (default: they share the cores)"
    add("--threads", type=thread_count, metavar="N", help=said)
    add_device(parser)


def run(arguments: argparse.Namespace) -> int:
    """Answer until SIGTERM or SIGINT; returns the status to end with."""
    from resmlp_mt.engines.threads import count_threads
    from resmlp_mt.files.finding import locate_model, shipped_translators
    from resmlp_mt.serving.keys import read_keys
    from resmlp_mt.serving.worker import supervise

    if arguments.requests_per_minute and not arguments.api_keys:
        raise UserError("--requests-per-minute is for each key of --api-keys; give these too")
    models = tuple(arguments.models or shipped_translators())
    for model in models:
        locate_model(model, "text")
    if arguments.api_keys:
        read_keys(arguments.api_keys, 0)  # what is wrong is said at once
    sockets, address = [], _listen(arguments, "host", "port")
    sockets.append(address[0])
    metrics_port = None
    if arguments.metrics_port is not None:
        listener, shown = _listen(arguments, "metrics_host", "metrics_port")
        sockets.append(listener)
        metrics_port = listener.getsockname()[1]
        print(f"metrics at {shown}/metrics", file=sys.stderr, flush=True)
    with TemporaryDirectory(prefix="resmlp-mt-") as folder:  # where workers share their counts
        if arguments.workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        limits = {n.removeprefix("max_"): getattr(arguments, n) for n in (*_COUNTS, "timeout")}
        settings = Settings(
            models=models,
            device=arguments.device,
            threads=arguments.threads or max(1, count_threads() // arguments.workers),
            limits=Limits(**limits),
            hosts=("localhost", arguments.host, *arguments.allow_host),
            origins=tuple(arguments.allow_origin),
            keys=arguments.api_keys,
            a_minute=arguments.requests_per_minute,
            folder=Path(folder),
            metrics_port=metrics_port,
            address=address[1],
        )
        return supervise(settings, sockets, arguments.workers, arguments.access_log)


def _host(text: str) -> str:
    """A name that a request may have, for argparse: others would never match."""
    if not _HOST.fullmatch(text) or text.count(":") == 1:
        rule = "must be a name alone, as mt.example.org: no port, path or *"
        raise argparse.ArgumentTypeError(f"{text} {rule}")
    return text


def _origin(text: str) -> str:
    """An origin as a request has it, for argparse."""
    if not _ORIGIN.fullmatch(text):
        rule = "must be as browsers say it, https://www.example.org: in small letters, with no / at"
        raise argparse.ArgumentTypeError(f"{text} {rule} its end and no usual port; or *")
    return text


def _listen(arguments: argparse.Namespace, host: str, port: int):
    """A socket at the address that two flags name, and how it is called."""
    from resmlp_mt.serving.worker import listen

    name, number = getattr(arguments, host), getattr(arguments, port)
    try:
        listener = listen(name, number)
    except (OSError, UnicodeError) as error:  # the latter of a name that no host can have
        where = f"{name_flag(host)} {name} {name_flag(port)} {number}"
        said = getattr(error, "strerror", "no name of a host")
        raise UserError(f"{where}: {said}; choose another port or address") from None
    found, number = listener.getsockname()[:2]
    return listener, f"http://{f'[{found}]' if ':' in found else found}:{number}"

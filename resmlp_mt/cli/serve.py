"""Translate for others over HTTP: POST /translate, a page at /, /docs, /healthz, /metrics.

Requests that come together are translated together. The model may be a checkpoint, or faster on a
CPU, what 'resmlp-mt export' made. There is no password and no TLS: leave it on loopback, or put a
proxy before it.

  resmlp-mt serve multi30k-en-de
  curl localhost:8080/translate --json '{"text": "A man rides a bike."}'
"""

import argparse
import signal
import sys

from resmlp_mt.cli.flags import add_device, check_positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "model", metavar="NAME|DIR|FILE", help="a shipped model, folder, checkpoint, or export"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=8080, help="0 for any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--allow-host",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names that requests may call the server by, besides localhost, --host and addresses",
    )
    parser.add_argument(
        "--batch-size",
        type=int,
        default=64,
        metavar="N",
        help="texts translated together (default: %(default)s)",
    )
    parser.add_argument(
        "--queue-size",
        type=int,
        default=2000,
        metavar="N",
        help="texts that may wait; more are answered with 429 (default: %(default)s)",
    )
    parser.add_argument(
        "--max-request-bytes",
        type=int,
        default=1_000_000,
        metavar="N",
        help="larger requests are answered with 413 (default: %(default)s)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for a request to arrive, and to be translated (default: %(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads on a CPU (default: one a core)"
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Load the model and answer until SIGTERM or SIGINT."""
    from resmlp_mt.errors import UserError
    from resmlp_mt.inference.translator import Translator

    check_positive(arguments, "batch_size", "queue_size", "max_request_bytes", "timeout")
    if arguments.threads is not None:
        check_positive(arguments, "threads")
    if not 0 <= arguments.port < 65536:
        raise UserError(f"--port {arguments.port} must be between 0 and 65535")
    try:
        from resmlp_mt.serving.app import build_app
        from resmlp_mt.serving.limits import LOOPBACK, Limits
        from resmlp_mt.serving.server import listen, serve
    except ModuleNotFoundError as error:
        if str(error.name).startswith("resmlp_mt"):
            raise
        raise UserError(f"this needs {error.name}: pip install 'resmlp_mt[serve]'") from None
    try:
        socket = listen(arguments.host, arguments.port)
    except OSError as error:
        where = f"--host {arguments.host} --port {arguments.port}"
        raise UserError(f"{where}: {error.strerror}; choose another port or address") from None
    loaded = Translator.from_pretrained(arguments.model, arguments.device, arguments.threads)
    translator, workers = Translator(loaded.engine, loaded.codec), loaded.threads
    limits = Limits(
        arguments.batch_size,
        arguments.queue_size,
        arguments.max_request_bytes,
        timeout=arguments.timeout,
    )
    hosts = LOOPBACK | {arguments.host, *arguments.allow_host}
    app = build_app(translator, workers, arguments.model, limits, hosts)
    # The server ends by itself on these, and passes them on when it is done.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    host, port = socket.getsockname()[:2]
    print(f"translating at http://{f'[{host}]' if ':' in host else host}:{port}", file=sys.stderr)
    serve(app, socket)

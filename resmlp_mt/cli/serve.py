"""Translate for others over HTTP: POST /translate, a page at /, /docs, /healthz, /metrics.

Requests that come together are translated together. The model may be a checkpoint. What 'resmlp-mt
export' made is faster on a CPU. There is no password and no TLS: leave the server on loopback, or
put a proxy before it.

  resmlp-mt serve multi30k-en-de
  curl localhost:8080/translate --json '{"text": "A man rides a bike."}'
"""

import argparse
import signal
import sys

from resmlp_mt.cli.flags import add_device, check_positive

_COUNTS = """batch_size queue_size max_beam max_request_bytes max_answer_bytes max_connections
    max_connections_per_client""".split()
_DAY = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "models",
        nargs="+",
        metavar="NAME|DIR|FILE",
        help="a shipped model, folder, checkpoint, or export; several for several languages",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=8080, help="0 for any free one (default: %(default)s)"
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that requests may call the server by, besides localhost, --host and addresses;"
        " may be given again",
    )
    for flag, default, said in (
        ("--batch-size", 64, "texts translated together; fewer where the beam is wider than 5"),
        ("--queue-size", 2000, "texts that may wait; more are answered with 429"),
        ("--max-beam", 32, "widest beam that a request may ask for; more is answered with 422"),
        ("--max-request-bytes", 1_000_000, "larger requests are answered with 413"),
        ("--max-answer-bytes", 10_000_000, "requests with larger answers are answered with 413"),
        ("--max-connections", 1000, "connections at once; idle ones are closed for new ones"),
        ("--max-connections-per-client", 250, "from one address, which may be a proxy's"),
    ):
        text = f"{said} (default: %(default)s)"
        parser.add_argument(flag, type=int, default=default, metavar="N", help=text)
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for a request to arrive, to be translated, and for its answer to be read; each "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads on a CPU (default: one a core)"
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Load the model and answer until SIGTERM or SIGINT."""
    from resmlp_mt.errors import UserError
    from resmlp_mt.inference.translator import Translator

    check_positive(arguments, *_COUNTS)
    if arguments.threads is not None:
        check_positive(arguments, "threads")
    if not 1 <= arguments.timeout <= _DAY:
        raise UserError(f"--timeout {arguments.timeout:g} must be between 1 and {_DAY}")
    if not 0 <= arguments.port < 65536:
        raise UserError(f"--port {arguments.port} must be between 0 and 65535")
    try:
        from resmlp_mt.serving.app import build_app
        from resmlp_mt.serving.limits import LOOPBACK, Limits
        from resmlp_mt.serving.models import Model, Models
        from resmlp_mt.serving.server import Server, allow_files, listen
    except ModuleNotFoundError as error:
        if str(error.name).startswith("resmlp_mt"):
            raise
        raise UserError(f"this needs {error.name}: pip install 'resmlp_mt[serve]'") from None
    try:
        allow_files(arguments.max_connections)
    except ValueError as error:
        raise UserError(f"--max-connections {arguments.max_connections}: {error}") from None
    try:
        socket = listen(arguments.host, arguments.port)
    except OSError as error:
        where = f"--host {arguments.host} --port {arguments.port}"
        raise UserError(f"{where}: {error.strerror}; choose another port or address") from None
    models = Models(
        [
            Model(name, Translator.from_pretrained(name, arguments.device, arguments.threads))
            for name in arguments.models
        ]
    )
    limits = Limits(
        **{name.removeprefix("max_"): getattr(arguments, name) for name in (*_COUNTS, "timeout")}
    )
    hosts = LOOPBACK | {arguments.host, *arguments.allow_host}
    app = build_app(models, limits, hosts)
    server = Server(app, limits)
    # Before it says that it is there, so that no signal is lost.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, server.handle_exit)
    host, port = socket.getsockname()[:2]
    print(f"translating at http://{f'[{host}]' if ':' in host else host}:{port}", file=sys.stderr)
    server.run(sockets=[socket])
    if server.unanswered:
        requests = f"{server.unanswered} request{'s' * (server.unanswered > 1)}"
        sys.exit(f"ended at the second signal; {requests} not answered")

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
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from resmlp_mt.cli.flags import add_device, check_positive, check_threads
from resmlp_mt.errors import UserError, name_flag

_COUNTS = """batch_size queue_size max_beam max_request_bytes max_answer_bytes max_connections
    max_connections_per_client""".split()
_DAY = 86_400
# As browsers write an origin: without the port where it is the usual one. "null" is that of files.
_ORIGIN = re.compile(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#@*\sA-Z]+")
_USUAL_PORT = re.compile(r"http:.*:80|https:.*:443")
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
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages from there, as https://example.org, ask in a browser; * for all; may be "
        "given again",
    )
    parser.add_argument(
        "--api-keys",
        type=Path,
        metavar="FILE",
        help="answer only requests with one of these keys: one a line, and behind it its requests "
        "a minute where they differ",
    )
    parser.add_argument(
        "--requests-per-minute",
        type=int,
        default=0,
        metavar="N",
        help="of each key; 0 for any number (default: %(default)s)",
    )
    parser.add_argument(
        "--glossary",
        action="append",
        default=[],
        metavar="[SOURCE-TARGET=]FILE",
        help="terms that hold in every request: lines with a term, a tab, and what translations "
        "must hold for it. Of several models the languages come before it, as en-de=terms.tsv; may "
        "be given again",
    )
    parser.add_argument(
        "--access-log",
        metavar="FILE",
        help="write a line for each request; - for standard error",
    )
    parser.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="show /metrics there, and not at --port; 0 for any free one",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes that answer at the port, each with the models and limits of its own "
        "(default: %(default)s)",
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
        "--threads",
        type=int,
        metavar="N",
        help="threads of a worker (default: they share the cores)",
    )
    add_device(parser)


def run(arguments: argparse.Namespace) -> None:
    """Load the models and answer until SIGTERM or SIGINT."""
    from resmlp_mt.engines.threads import count_threads
    from resmlp_mt.extras import advise
    from resmlp_mt.files.finding import shipped_translators

    _check(arguments)
    _heed_hangups()
    try:
        from resmlp_mt.serving.house import follow_terms
        from resmlp_mt.serving.keys import follow_keys
        from resmlp_mt.serving.limits import Limits
        from resmlp_mt.serving.middleware import LOOPBACK
        from resmlp_mt.serving.plan import Plan
        from resmlp_mt.serving.server import allow_files, listen
    except ModuleNotFoundError as error:
        if str(error.name).startswith("resmlp_mt"):
            raise
        raise UserError(f"this needs {error.name}: {advise('serve')}") from None
    try:
        allow_files(arguments.max_connections)
    except ValueError as error:
        raise UserError(f"--max-connections {arguments.max_connections}: {error}") from None
    keys = None
    if arguments.api_keys:
        keys = follow_keys(arguments.api_keys, arguments.requests_per_minute)
    terms = tuple(
        (direction, follow_terms(Path(file)))
        for direction, file in map(_divide, arguments.glossary)
    )
    try:
        socket = listen(arguments.host, arguments.port)
    except (OSError, UnicodeError) as error:  # the latter of a name that no host can have
        where = f"--host {arguments.host} --port {arguments.port}"
        said = getattr(error, "strerror", "no name of a host")
        raise UserError(f"{where}: {said}; choose another port or address") from None
    threads = arguments.threads
    if threads is None and arguments.workers > 1:
        threads = max(1, count_threads() // arguments.workers)
    numbers = {name: getattr(arguments, name) for name in (*_COUNTS, "timeout")}
    plan = Plan(
        models=tuple(arguments.models or shipped_translators()),
        device=arguments.device,
        threads=threads,
        limits=Limits(**{name.removeprefix("max_"): value for name, value in numbers.items()}),
        hosts=LOOPBACK | {arguments.host, *arguments.allow_host},
        origins=tuple(arguments.allow_origin),
        keys=keys,
        terms=terms,
        access_log=arguments.access_log,
        shows_metrics=arguments.metrics_port is None,
    )
    unanswered = (_run_here if arguments.workers == 1 else _run_workers)(plan, socket, arguments)
    if unanswered:
        requests = f"{unanswered} request{'s' * (unanswered > 1)}"
        sys.exit(f"ended at the second signal; {requests} not answered")


def _check(arguments: argparse.Namespace) -> None:
    """Check the numbers, and the names that would never match.

    Raises:
        UserError: If one of them is impossible.
    """
    check_positive(arguments, *_COUNTS, "workers")
    check_threads(arguments)
    if not 1 <= arguments.timeout <= _DAY:
        raise UserError(f"--timeout {arguments.timeout:g} must be between 1 and {_DAY}")
    for name in ("port", "metrics_port"):
        if not 0 <= (getattr(arguments, name) or 0) < 65536:
            said = f"{name_flag(name)} {getattr(arguments, name)}"
            raise UserError(f"{said} must be between 0 and 65535")
    for name in arguments.allow_host:
        if not _HOST.fullmatch(name) or name.count(":") == 1:
            rule = "must be a name alone, as mt.example.org: no port, path or *"
            raise UserError(f"--allow-host {name} {rule}")
    for name in arguments.allow_origin:
        if not _ORIGIN.fullmatch(name) or _USUAL_PORT.fullmatch(name):
            rule = "must be as browsers say it, https://www.example.org: in small letters, with no"
            raise UserError(f"--allow-origin {name} {rule} / at its end and no usual port; or *")
    for given in arguments.glossary:
        if not all(given.partition("=")[::2] if "=" in given else [given]):
            raise UserError(f"--glossary {given}: write SOURCE-TARGET=FILE, as en-de=terms.tsv")
    if arguments.requests_per_minute < 0:
        raise UserError("--requests-per-minute must be 0 or more")
    if arguments.requests_per_minute and not arguments.api_keys:
        raise UserError("--requests-per-minute is for each key of --api-keys; give these too")


def _divide(given: str) -> tuple[str, str]:
    """The direction of a --glossary, empty if it has none, and the file."""
    direction, equals, file = given.partition("=")
    return (direction, file) if equals else ("", given)


def _run_here(plan, listener, arguments: argparse.Namespace) -> int:
    """Answer in this process; returns how many requests were not answered."""
    from resmlp_mt.serving.metrics import Metrics

    metrics = Metrics()
    shown = _show_metrics(metrics.registry, arguments)
    server = plan.build(metrics)
    _heed_signals(server.handle_exit)
    _announce(listener, shown)
    server.run(sockets=[listener])
    return server.unanswered


def _run_workers(plan, listener, arguments: argparse.Namespace) -> int:
    """Answer in several processes; returns how many requests were not answered."""
    from resmlp_mt.serving.workers import Workers

    workers = Workers(plan, listener, arguments.workers)
    shown = _show_metrics(workers.registry, arguments)
    _heed_signals(workers.handle_exit)
    return workers.run(lambda: _announce(listener, shown))


def _heed_hangups() -> None:
    """End at SIGHUP as at SIGTERM where the terminal has gone, and go on elsewhere.

    A service is sent it so that it reads its files again, which it does without.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup
        return
    had_terminal = _has_terminal()

    def handle(*_) -> None:
        if had_terminal and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)

    signal.signal(signal.SIGHUP, handle)


def _has_terminal() -> bool:
    try:
        os.close(os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _heed_signals(handle: Callable) -> None:
    # Before it says that it is there, so that no signal is lost.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _show_metrics(registry, arguments: argparse.Namespace) -> int | None:
    """Show them at a port of their own, if that is wanted; returns the port."""
    from prometheus_client import start_http_server

    if arguments.metrics_port is None:
        return None
    try:
        server, _ = start_http_server(arguments.metrics_port, arguments.host, registry)
    except OSError as error:
        where = f"--metrics-port {arguments.metrics_port}"
        raise UserError(f"{where}: {error.strerror}; choose another port") from None
    return server.server_port


def _announce(listener, metrics_port: int | None) -> None:
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}"
    print(f"translating at {address}:{port}", file=sys.stderr, flush=True)
    if metrics_port is not None:
        print(f"metrics at {address}:{metrics_port}/metrics", file=sys.stderr, flush=True)

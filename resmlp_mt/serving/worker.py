"""The processes of a service: uvicorn's supervisor, and what each of its workers begins with.

A worker imports what it needs within `create_app`, so that the supervisor stays small and hears
from it at once.
"""

import gc
import logging
import os
import socket
import sys
from copy import deepcopy
from functools import partial

import uvicorn
from uvicorn.config import LOGGING_CONFIG, STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from resmlp_mt.errors import UserError
from resmlp_mt.extras import advise
from resmlp_mt.serving.settings import Settings

# Seconds in which a worker must show that it lives, and a new one be ready where files are read
# again. A checkpoint takes many of them on a busy machine.
_HEALTH_SECONDS = 30
_BACKLOG = 1000  # connections that wait to be accepted


def listen(host: str, port: int) -> socket.socket:
    """Open a socket at an address, before anything slow happens; OSError if there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    both = family == socket.AF_INET6
    server = socket.create_server(address, family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    # It does not say the protocol, and neither does uvicorn: asyncio then does not set TCP_NODELAY,
    # and answers wait 40 ms for an acknowledgement.
    return socket.socket(family, kind, protocol, fileno=server.detach())


def supervise(
    settings: Settings, sockets: list[socket.socket], workers: int, access_log: bool
) -> int:
    """Answer at sockets until SIGTERM or SIGINT. SIGHUP exchanges the workers one by one.

    Returns:
        The status to end with: 2 if a worker cannot start.
    """
    logs = deepcopy(LOGGING_CONFIG)
    logs["filters"] = {"discreet": {"()": "resmlp_mt.serving.front.Discreet"}}
    logs["handlers"]["access"]["filters"] = ["discreet"]
    config = uvicorn.Config(
        partial(create_app, settings),
        factory=True,
        workers=workers,
        http="h11",
        ws="none",
        lifespan="on",
        log_config=logs,
        access_log=access_log,
        # Those who wait are answered, or told that the time is over.
        timeout_graceful_shutdown=int(settings.limits.timeout) + 5,
        timeout_worker_healthcheck=_HEALTH_SECONDS,
    )
    supervisor = Multiprocess(config, sockets)
    supervisor.run()
    refused = [process.exitcode == STARTUP_FAILURE for process in supervisor.processes]
    return 2 if any(refused) else 0


def create_app(settings: Settings):
    """Load the models and make the application of a worker.

    What is wrong is said on stderr, and the status then has the supervisor end.
    """
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    try:
        from resmlp_mt.serving.app import build_app
        from resmlp_mt.serving.models import load_models

        app = build_app(load_models(settings), settings)
    except (UserError, ModuleNotFoundError) as error:
        said = str(error)
        if isinstance(error, ModuleNotFoundError):
            said = f"this needs {error.name}: {advise('serve')}"
        sys.stderr.write(f"resmlp-mt serve: {said}\n")
        sys.exit(STARTUP_FAILURE)
    # What is there now stays, and need not be looked through for garbage: that holds all threads.
    gc.collect()
    gc.freeze()
    # Workers share stderr, and `print` may write the end of a line by itself.
    sys.stderr.write(f"worker {os.getpid()} is translating at {settings.address}\n")
    return app

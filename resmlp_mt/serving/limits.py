"""What a server takes, and what a request may ask of it."""

from dataclasses import dataclass


class AnswerTooLarge(Exception):
    """The translations of a request are larger than an answer may be."""


@dataclass(frozen=True)
class Limits:
    """What a server takes.

    A text too long for the model counts in parts.

    Args:
        batch_size: Texts translated together, of requests that ask for the usual beam.
        queue_size: Texts that wait, of all requests together.
        request_bytes: Bytes of a request.
        answer_bytes: Bytes of an answer.
        beam: The widest beam that a request may ask for.
        timeout: Seconds for a request to arrive, to be translated, and for its answer to be read.
        connections: Connections at once.
        connections_per_client: Connections at once from one address.
    """

    batch_size: int = 64
    queue_size: int = 2000
    request_bytes: int = 1_000_000
    answer_bytes: int = 10_000_000
    beam: int = 32
    timeout: float = 60.0
    connections: int = 1000
    connections_per_client: int = 250

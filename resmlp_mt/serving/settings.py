"""The settings of a service, picklable: each of its workers is built of them."""

from dataclasses import dataclass
from pathlib import Path

USUAL_BEAM = 5
_USUAL_LENGTH = 40  # of a sentence, in subwords


@dataclass(frozen=True)
class Limits:
    """Limits of what a worker takes, and of what a request may ask of it.

    Args:
        batch_size: Sentences translated together, at most.
        queue_size: Sentences that wait, of all requests together.
        request_bytes: Bytes of a request.
        answer_bytes: Bytes of an answer.
        beam: The widest beam that a request may ask for.
        timeout: Seconds for a request to arrive, and to be translated.
    """

    batch_size: int = 64
    queue_size: int = 2000
    request_bytes: int = 1_000_000
    answer_bytes: int = 10_000_000
    beam: int = 32
    timeout: float = 60.0

    @property
    def steps(self) -> int:
        """Steps of a request's beams, at most: those of a full queue of usual sentences."""
        return self.queue_size * USUAL_BEAM * _USUAL_LENGTH


@dataclass(frozen=True)
class Settings:
    """Settings of a service.

    Attributes:
        models: Names, folders, checkpoints or exports.
        device, threads: As for `Translator.from_pretrained`.
        limits: Of the requests that each worker takes.
        hosts: Names that requests may call the service by. Addresses are taken as they are.
        origins: Whose pages browsers let read the answers; "*" for all.
        keys: The file of the keys of which requests need one; None if they need none.
        a_minute: Requests of each key in a minute; 0 for any number.
        folder: Where workers share what they count; None if there is but one.
        metrics_port: Where /metrics is, and nothing else; None: at the port of the service.
        address: Of the service, as it is announced.
    """

    models: tuple[str, ...] = ()
    device: str = "auto"
    threads: int | None = None
    limits: Limits = Limits()
    hosts: tuple[str, ...] = ("localhost",)
    origins: tuple[str, ...] = ()
    keys: Path | None = None
    a_minute: int = 0
    folder: Path | None = None
    metrics_port: int | None = None
    address: str = ""

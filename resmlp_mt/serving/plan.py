"""What a server is made of, in a form that can be handed to another process."""

from dataclasses import dataclass

from resmlp_mt.serving.access_log import open_access_log
from resmlp_mt.serving.app import build_app
from resmlp_mt.serving.buckets import Buckets
from resmlp_mt.serving.followed import FollowedFile
from resmlp_mt.serving.house import TermsFile
from resmlp_mt.serving.keys import Key, Keys
from resmlp_mt.serving.limits import Limits
from resmlp_mt.serving.metrics import Metrics
from resmlp_mt.serving.models import Model, Models, give_terms
from resmlp_mt.serving.server import Server
from resmlp_mt.translating.translator import Translator


@dataclass(frozen=True)
class Plan:
    """What a server is made of.

    Attributes:
        models: Names, folders, checkpoints or exports.
        device, threads: As for `Translator.from_pretrained`.
        limits: What it takes.
        hosts: Names that requests may call it by.
        origins: Whose pages browsers let read the answers; "*" for all.
        keys: Those of which requests need one; None if they need none.
        terms: Of the house: as for `give_terms`.
        access_log: As for `open_access_log`; None for none.
        shows_metrics: Whether it has /metrics.
    """

    models: tuple[str, ...]
    device: str
    threads: int | None
    limits: Limits
    hosts: frozenset[str]
    origins: tuple[str, ...]
    keys: FollowedFile[list[Key]] | None
    terms: tuple[tuple[str, TermsFile], ...]
    access_log: str | None
    shows_metrics: bool

    def build(self, metrics: Metrics, buckets: Buckets | None = None) -> Server:
        """Load the models and make the server.

        Args:
            metrics: Where it counts.
            buckets: Of the keys, if it shares them with other processes.

        Raises:
            UserError: If a model is missing or broken, or they do not go together, nor with the
                terms.
        """
        log = open_access_log(self.access_log) if self.access_log else None
        models = [
            Model(name, Translator.from_pretrained(name, self.device, self.threads))
            for name in self.models
        ]
        models = Models(give_terms(models, self.terms))
        keys = Keys(self.keys.read, buckets) if self.keys else Keys()
        hosts, origins = self.hosts, self.origins
        shown = self.shows_metrics
        app = build_app(models, self.limits, metrics, hosts, origins, keys, log, shown)
        return Server(app, self.limits)

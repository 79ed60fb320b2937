"""`/healthz` and `/readyz` of this boot server alone."""

from aiohttp import web

from netboot.boot import answers
from netboot.boot.live import Live
from netboot.stores.journal import SqliteJournal


class Readiness:
    """Alive is answering at all; ready is being able to boot a machine. A broken edit does not make it unready."""

    def __init__(self, live: Live, journal: SqliteJournal) -> None:
        self._live, self._journal = live, journal
        self.stopping = False

    def healthy(self) -> web.Response:
        """The process answers."""
        return answers.document(200, {"healthy": True})

    def ready(self) -> web.Response:
        """200, or 503 with why; `problems` may have something to say in either case."""
        catalogue = self._live.catalogue
        problems = [words for words in (self._live.problem, self._journal.failure) if words is not None]
        if self.stopping:
            problems.insert(0, "the service is stopping")
        ready = catalogue is not None and self._journal.failure is None and not self.stopping
        value = {
            "ready": ready,
            "machines": len(catalogue.view.index) if catalogue is not None else None,
            "published_ms": catalogue.snapshot.published_ms if catalogue is not None else None,
            "problems": problems,
        }
        return answers.document(200 if ready else 503, value)

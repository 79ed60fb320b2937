"""What is refused with 401, 403, 404, 410 or 429: counted by status and route, and in the log, a few lines a minute.

Of whoever may act the audit has what was refused (`netboot.web.operators`): that is counted here, and not logged again.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic

from flask import Flask, Response, current_app, g, request
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from netboot.web import request_ids
from netboot.web.operations import template

STATUSES = (401, 403, 404, 410, 429)
EXTENSION = "netboot.refusals"
NOWHERE = ""
"""The route of what there is not: whoever asks makes up paths, and each would be a series."""
WINDOW_SECONDS = 60.0
MOST_LINES = 20
"""Of each status in a window: strangers fill no disk, and those of one status do not hide others."""
LONGEST_PATH = 200

log = logging.getLogger(__name__)


class Refusals:
    """What was refused, since this process was started. Safe for threads."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now, self._lock = now, threading.Lock()
        self._counts = Counter[tuple[int, str]]()
        self._windows: dict[int, tuple[float, int]] = {}
        """By status: since when, and how many there were."""

    def count(self, status: int, route: str, *, audited: bool = False) -> int | None:
        """One more. How many before it are in no line of the log, for this one's; None: it is in none, too. `audited`:
        it takes no line from others, for the audit has it."""
        with self._lock:
            self._counts[status, route] += 1
            if audited:
                return None
            begun, lines = self._windows.get(status, (float("-inf"), 0))
            left_out = max(0, lines - MOST_LINES)
            if fresh := self._now() - begun >= WINDOW_SECONDS:
                begun, lines = self._now(), 0
            self._windows[status] = begun, lines + 1
            if lines >= MOST_LINES:
                return None
            return left_out if fresh else 0

    def by_status(self) -> dict[str, int]:
        """Of all routes together."""
        total = Counter[str]()
        for (status, _), count in self.counts().items():
            total[str(status)] += count
        return dict(total)

    def counts(self) -> Mapping[tuple[int, str], int]:
        """By status and route."""
        with self._lock:
            return dict(self._counts)


def install(app: Flask, refusals: Refusals) -> None:
    """Give requests of `app` ids, and count and log what is refused."""
    app.extensions[EXTENSION] = refusals
    request_ids.install(app, _count)


def refused_as(status: int) -> None:
    """What this request is refused with, where its answer has another status."""
    setattr(g, request_ids.REFUSED_AS, status)


def _count(response: Response) -> None:
    status = g.get(request_ids.REFUSED_AS, response.status_code)
    if status not in STATUSES or request_ids.INSIDE in request.environ:  # of what the page asks, its answer is counted
        return
    refusals: Refusals = current_app.extensions[EXTENSION]
    route = template(request.url_rule.rule) if request.url_rule is not None else NOWHERE
    left_out = refusals.count(status, route, audited="audited" in g)
    if left_out is not None:
        of = {"status": status, "method": request.method[:20], "path": request.path[:LONGEST_PATH]}
        more = {"peer": request.remote_addr or ""} | ({"left_out": left_out} if left_out else {})
        log.info("refused", extra={"fields": of | more})


class Refused(Collector):
    """As a metric."""

    def __init__(self, refusals: Refusals) -> None:
        self._refusals = refusals

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead of time: which routes there are to tell of depends on who asked."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Called by the registry for each scrape."""
        text = "Requests that were refused at the operators' listener, since the process was started."
        family = CounterMetricFamily("netboot_management_refused", text, labels=["code", "route"])
        for (status, route), count in sorted(self._refusals.counts().items()):
            family.add_metric([str(status), route], count)
        yield family

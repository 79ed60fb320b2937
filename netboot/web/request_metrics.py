"""How many requests the operators' listener answered, with which status, and how long each took until its answer began.

By route, as the table of routes has it, and never by path: whoever asks makes up paths, and each would be a series.
"""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import NamedTuple

from flask import Flask, Response, g, request
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from netboot.web import request_ids
from netboot.web.operations import template
from netboot.web.refusals import NOWHERE

EXTENSION = "netboot.requests"
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds; requests have 15 (docs/http-management.md)."""


class Asked(NamedTuple):
    """What was asked for. Both empty: there is no such thing."""

    method: str
    route: str


class Requests(Collector):
    """Since this process was started. Safe for threads. `now`: seconds of a clock that nobody sets."""

    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self.now, self._lock = now, threading.Lock()
        self._codes = Counter[tuple[Asked, int]]()
        self._buckets: dict[Asked, list[int]] = {}
        self._seconds: dict[Asked, float] = {}

    def count(self, asked: Asked, status: int, seconds: float) -> None:
        """One more."""
        with self._lock:
            self._codes[asked, status] += 1
            buckets = self._buckets.setdefault(asked, [0] * (len(BUCKETS) + 1))
            buckets[bisect_left(BUCKETS, seconds)] += 1
            self._seconds[asked] = self._seconds.get(asked, 0.0) + seconds

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead of time: which routes there are to tell of depends on who asked."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Called by the registry for each scrape."""
        text = "Requests that the operators' listener answered, since the process was started."
        counted = CounterMetricFamily("netboot_management_requests", text, labels=["method", "route", "code"])
        text = "The same by seconds until their answer began."
        name = "netboot_management_request_duration_seconds"
        durations = HistogramMetricFamily(name, text, labels=["method", "route"])
        with self._lock:
            for (asked, status), count in sorted(self._codes.items()):
                counted.add_metric([*asked, str(status)], count)
            for asked, buckets in sorted(self._buckets.items()):
                durations.add_metric([*asked], _cumulative(buckets), self._seconds[asked])
        yield from (counted, durations)


def _cumulative(buckets: Iterable[int]) -> list[tuple[str, float]]:
    """As Prometheus has them: of each bound, how many took no longer."""
    total, made = 0, list[tuple[str, float]]()
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
        total += count
        made.append((bound, total))
    return made


def install(app: Flask, requests: Requests) -> None:
    """Count what `app` answers; before whatever else is asked before a request. What the page asks of the API while it
    answers is not counted again."""
    app.extensions[EXTENSION] = requests

    def begin() -> None:
        g.begun = requests.now()

    def end(response: Response) -> Response:
        if request_ids.INSIDE not in request.environ:
            rule = request.url_rule
            asked = Asked(request.method, template(rule.rule)) if rule is not None else Asked("", NOWHERE)
            requests.count(asked, response.status_code, requests.now() - g.begun)
        return response

    app.before_request(begin)
    app.after_request(end)

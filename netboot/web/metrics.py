"""`/metrics`: Prometheus' text format, without a token. What the boot servers count, and what is so now.

Names follow Prometheus' conventions, and each stands in docs/metrics.md: a test holds both against what is exposed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from flask import Response, current_app
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from images.values.strict import Strict
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.health import STALE_MS
from netboot.lifecycle.history import History
from netboot.lifecycle.ports import Clock, States
from netboot.lifecycle.remedies import RemediesStatus
from netboot.status.boot import BootStatus
from netboot.status.controllers import LifecycleStatus, ProjectionStatus, PublisherStatus, RolloutsStatus
from netboot.status.fetcher import FetcherStatus
from netboot.status.pause import PauseStatus
from netboot.status.supervisor import ProcessStatus, SupervisorStatus
from netboot.status.traces import TracesStatus
from netboot.stores.live import LiveView
from netboot.stores.status import StatusFolder
from netboot.web import refusals, request_metrics
from netboot.web.dependencies import dependencies
from netboot.web.metrics_attention import Attention
from netboot.web.metrics_clusters import clusters
from netboot.web.metrics_info import build_info, machine_info
from netboot.web.metrics_lifecycle import lifecycle
from netboot.web.metrics_objective import objective
from netboot.web.metrics_pause import pause_signal
from netboot.web.metrics_remedies import remedies
from netboot.web.metrics_resources import OF_OBJECTS
from netboot.web.metrics_rollouts import rollouts
from netboot.web.metrics_traces import traces

S = TypeVar("S", bound=Strict)
_LABELLED = {
    "scripts": ("netboot_scripts", "Scripts served.", "outcome"),
    "events": ("netboot_boot_events", "Boot events posted by machines.", "result"),
    "health": ("netboot_health_reports", "Health reports posted.", "result"),
    "discovery": ("netboot_discovery_reports", "Reports of the hardware of unknown machines posted.", "result"),
    "transfers": ("netboot_transfers", "Files sent.", "result"),
}
"""Field of a `BootStatus` → name, text, label."""
_PLAIN = {
    "bytes_sent": ("netboot_sent_bytes", "Bytes of files sent."),
    "refused": ("netboot_connections_refused", "Connections beyond the limits."),
    "scripts_repeated": (
        "netboot_scripts_repeated",
        "Scripts served again with the boot id of the one before, because too many were asked for.",
    ),
    "discoveries_dropped": ("netboot_discoveries_dropped", "Sightings not journalled because there were too many."),
}
_PRESENT = {
    "journal_lag": ("netboot_journal_lag_records", "Records not yet projected."),
    "open_connections": ("netboot_open_connections", "Open connections."),
}
HEALTH = ("pass", "warn", "fail", "unknown", "stale", "none")


def metrics() -> Response:
    """Every metric of the service, in Prometheus' text format."""
    deps = dependencies()

    def made() -> bytes:
        known = current_app.extensions
        asked, refused = known[request_metrics.EXTENSION], refusals.Refused(known[refusals.EXTENSION])
        return deps.metrics() + exposition(Attention(deps)) + exposition(asked) + exposition(refused)

    return Response(deps.scrapes.of(made), content_type="text/plain; version=0.0.4; charset=utf-8")


def exposition(collector: Collector) -> bytes:
    """What it collects, in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry)


class Now(Collector):
    """Metrics computed from the snapshot, the state and what the processes say of themselves.

    What cannot be told right now is left out: a gap in a graph is honest, a zero is not.
    """

    def __init__(self, live: LiveView, states: States, history: History, status: StatusFolder, clock: Clock) -> None:
        self._live, self._states, self._history = live, states, history
        self._status, self._clock = status, clock

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead of time: what there is to tell depends on the moment."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every metric that can be told now; called by the registry for each scrape."""
        yield from build_info()
        yield from self._snapshot()
        yield from self._machines()
        with suppress(CannotTellError):
            yield from objective(self._history.durations())
        for process, model, tell in _SAID:
            if (said := self._read(process, model)) is not None:
                yield from tell(said)
        if (supervisor := self._read("supervisor", SupervisorStatus)) is not None:
            yield from _processes(supervisor.processes)
            yield from self._boot_servers(supervisor.processes)
            yield from clusters(sorted(supervisor.processes), self._read)

    def _read(self, process: str, model: type[S]) -> S | None:
        try:
            return self._status.read(process, model)
        except CannotTellError:  # `/readyz` says why
            return None

    def _snapshot(self) -> Iterator[Metric]:
        try:
            snapshot = self._live.view().snapshot
        except CannotTellError:
            return
        yield _gauge("netboot_machines", "Machines of the inventory in force.", len(snapshot.inventory.machines))
        yield _gauge(
            "netboot_snapshot_published_timestamp_seconds",
            "When the snapshot in force was published, seconds since 1970.",
            snapshot.published_ms / 1000,
        )
        with suppress(CannotTellError):
            yield from machine_info(snapshot, self._states)

    def _machines(self) -> Iterator[Metric]:
        try:
            counts = self._states.counts()
            health = self._states.health_counts(self._clock.now_ms() - STALE_MS)
            removed = self._states.removed()
            declared = len(self._live.view().snapshot.inventory.machines)
        except CannotTellError:
            return
        silent = max(0, declared - sum(counts.values()))
        counts, health = {**counts, "none": silent}, {**health, "none": health.get("none", 0) + silent}
        text = "Machines by the state of their current boot; none: no boot of theirs reported anything yet."
        by_state = GaugeMetricFamily("netboot_machines_by_state", text, labels=["state"])
        for state, count in sorted(counts.items()):
            by_state.add_metric([state], count)
        yield by_state
        text = "Machines by the worst that their current boot's checks report; stale: no report for long; none: never."
        by_health = GaugeMetricFamily("netboot_machines_by_health", text, labels=["status"])
        for status in HEALTH:
            by_health.add_metric([status], health.get(status, 0))
        yield by_health
        text = "Machines that the inventory no longer has and whose boots are known still; counted nowhere else."
        yield _gauge("netboot_machines_removed", text, removed)

    def _boot_servers(self, processes: Mapping[str, ProcessStatus]) -> Iterator[Metric]:
        """What all of them counted together; of what is so now, the share of those that are there."""
        said = {name: self._read(name, BootStatus) for name in processes if name.startswith("boot-")}
        statuses = [status for status in said.values() if status is not None]
        if not statuses:
            return
        for field, (name, text, label) in _LABELLED.items():
            family = CounterMetricFamily(name, text, labels=[label])
            for value, count in _sum(getattr(status, field) for status in statuses).items():
                family.add_metric([value], count)
            yield family
        for field, (name, text) in _PLAIN.items():
            yield CounterMetricFamily(name, text, value=sum(getattr(status, field) for status in statuses))
        present = [status for name, status in said.items() if status is not None and processes[name].ready]
        for field, (name, text) in _PRESENT.items():
            yield _gauge(name, text, sum(getattr(status, field) for status in present))


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)  # zeroes too: each value is there from the start, and its first rise is one
    return total


def _publisher(status: PublisherStatus) -> Iterator[Metric]:
    text = "1: the inventory, as it is declared now, is in force, whole."
    yield _gauge("netboot_inventory_valid", text, int(status.inventory.valid))
    text = "Faults of objects that are left out of the inventory, while all others are in force."
    yield _gauge("netboot_inventory_left_out_faults", text, status.inventory.left_out)
    text = "Machines that would go with an inventory that waits for `netboot config accept`."
    pending = status.inventory.pending
    yield _gauge("netboot_inventory_pending_removals", text, pending.removed if pending is not None else 0)
    text = "Machines that it would make others: recognised by something else, or let in by another proof."
    yield _gauge("netboot_inventory_pending_others", text, pending.others if pending is not None else 0)
    text = "1: every channel that is set points to a usable image."
    yield _gauge("netboot_images_usable", text, int(status.images.ok))
    text = "1: the signed site bundle is what the configuration says."
    yield _gauge("netboot_bundle_fits", text, int(status.bundle.ok))


def _projection(status: ProjectionStatus) -> Iterator[Metric]:
    text = "Records of a journal that the projection has yet to take over."
    lag = GaugeMetricFamily("netboot_projection_lag_records", text, labels=["journal"])
    for journal, records in sorted(status.lag_records.items()):
        lag.add_metric([journal], records)
    text = "Rows that were set aside since the projection started; origin: journal or state.db."
    set_aside = CounterMetricFamily("netboot_projection_set_aside", text, labels=["origin"])
    for origin in sorted({"state.db", *status.lag_records, *status.set_aside}):
        set_aside.add_metric([origin], status.set_aside.get(origin, 0))
    yield from (lag, set_aside)


def _fetcher(status: FetcherStatus) -> Iterator[Metric]:
    text = "Images of channels that are not in the store yet."
    yield _gauge("netboot_upstream_missing_images", text, len(status.images))
    text = "Images fetched from upstream, since the process was started."
    yield CounterMetricFamily("netboot_upstream_fetched_images", text, value=status.fetched)
    text = "Bytes of images fetched from upstream, since the process was started."
    yield CounterMetricFamily("netboot_upstream_fetched_bytes", text, value=status.bytes)
    text = "Tries to fetch an image that failed, since the process was started."
    yield CounterMetricFamily("netboot_upstream_failures", text, value=status.failed)


def _processes(processes: dict[str, ProcessStatus]) -> Iterator[Metric]:
    ready = GaugeMetricFamily("netboot_process_ready", "1: the process runs and is ready.", labels=["process"])
    text = "Times that the process was started again, since the service was started."
    restarts = CounterMetricFamily("netboot_process_restarts", text, labels=["process"])
    for name, process in sorted(processes.items()):
        ready.add_metric([name], int(process.ready))
        restarts.add_metric([name], process.restarts)
    yield from (ready, restarts)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


_SAID: tuple[tuple[str, type[Strict], Callable[[Any], Iterator[Metric]]], ...] = (
    ("publisher", PublisherStatus, _publisher),
    ("projection", ProjectionStatus, _projection),
    ("lifecycle", LifecycleStatus, lifecycle),
    ("rollouts", RolloutsStatus, rollouts),
    ("remedies", RemediesStatus, remedies),
    ("fetcher", FetcherStatus, _fetcher),
    ("pause", PauseStatus, pause_signal),
    ("traces", TracesStatus, traces),
    *OF_OBJECTS,
)
"""What processes, and loops, say of themselves, and the metrics of it."""

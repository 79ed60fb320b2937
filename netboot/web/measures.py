"""What `/metrics` says beside the boot workers' own counts: what is so at the moment of asking."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.health import STALE_MS
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.state import States
from netboot.stores.live import LiveView

Status = Callable[[str], dict[str, Any] | None]


class Now(Collector):
    """Gauges computed from the snapshot, the state and what the processes say of themselves.

    What cannot be told right now is left out: a gap in a graph is honest, a zero is not.
    """

    def __init__(self, live: LiveView, states: States, status: Status, clock: Clock) -> None:
        self._live, self._states, self._status, self._clock = live, states, status, clock

    def describe(self) -> Iterable[Metric]:
        """Nothing ahead of time."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All gauges."""
        yield from self._snapshot()
        yield from self._machines()
        yield from self._publisher(self._status("publisher") or {})
        yield from self._projector(self._status("projection") or {})
        yield from self._fetcher(self._status("fetcher") or {})
        processes = self._status("processes") or {}
        yield from self._processes(processes)
        yield from self._clusters(sorted(processes.get("processes", {})))

    def _snapshot(self) -> Iterator[Metric]:
        try:
            snapshot = self._live.view().snapshot
        except CannotTellError:
            return
        yield _gauge("netboot_machines", "Machines of the inventory in force.", len(snapshot.inventory.machines))
        published = snapshot.published_ms / 1000
        yield _gauge("netboot_snapshot_published_seconds", "When it was published, seconds since 1970.", published)

    def _machines(self) -> Iterator[Metric]:
        try:
            counts = self._states.counts()
            health = self._states.health_counts(self._clock.now_ms() - STALE_MS)
        except CannotTellError:
            return
        words = "Machines by the state of their current boot."
        family = GaugeMetricFamily("netboot_machines_by_state", words, labels=["state"])
        for state, count in sorted(counts.items()):
            family.add_metric([state], count)
        yield family
        words = "Machines by the worst that their current boot's checks report; stale: no report for long; none: never."
        checked = GaugeMetricFamily("netboot_machines_by_health", words, labels=["status"])
        for status in ("pass", "warn", "fail", "unknown", "stale", "none"):
            checked.add_metric([status], health.get(status, 0))
        yield checked

    def _publisher(self, said: dict[str, Any]) -> Iterator[Metric]:
        for name, metric, words in (
            ("inventory", "netboot_inventory_valid", "1: the inventory's files, as they are now, are in force."),
            ("images", "netboot_images_usable", "1: every channel that is set points to a usable image."),
            ("bundle", "netboot_bundle_fits", "1: the signed site bundle is what the configuration says."),
        ):
            if isinstance(said.get(name), dict):
                yield _gauge(metric, words, int(bool(said[name].get("valid", said[name].get("ok")))))

    def _projector(self, said: dict[str, Any]) -> Iterator[Metric]:
        if "lag_records" in said:
            words = "Records of a journal that the projection has yet to take over."
            family = GaugeMetricFamily("netboot_projection_lag_records", words, labels=["journal"])
            for journal, lag in sorted(said["lag_records"].items()):
                family.add_metric([journal], lag)
            yield family

    def _fetcher(self, said: dict[str, Any]) -> Iterator[Metric]:
        if "images" in said:
            words = "Images of channels that are not in the store yet."
            yield _gauge("netboot_upstream_missing_images", words, len(said["images"]))
            for key, metric, words in (
                ("fetched", "netboot_upstream_images", "Images fetched from upstream."),
                ("bytes", "netboot_upstream_bytes", "Bytes of them."),
                ("failed", "netboot_upstream_failures", "Tries to fetch one that failed."),
            ):
                yield CounterMetricFamily(metric, f"{words[:-1]}, since the process was started.", value=said[key])

    def _processes(self, said: dict[str, Any]) -> Iterator[Metric]:
        processes: dict[str, dict[str, Any]] = said.get("processes", {})
        ready = GaugeMetricFamily("netboot_plane_ready", "1: the process runs and is ready.", labels=["plane"])
        restarts = GaugeMetricFamily("netboot_plane_restarts", "Restarts since the service began.", labels=["plane"])
        for name, process in sorted(processes.items()):
            ready.add_metric([name], int(bool(process.get("ready"))))
            restarts.add_metric([name], int(process.get("restarts", 0)))
        yield from (ready, restarts)

    def _clusters(self, processes: Iterable[str]) -> Iterator[Metric]:
        words = "Certificate requests by what the approver did, since it was started; reason or purpose."
        decided = CounterMetricFamily("netboot_certificate_requests", words, labels=["cluster", "outcome", "what"])
        words = "Times that the cluster could not be asked, since the process was started."
        unavailable = CounterMetricFamily("netboot_cluster_unavailable", words, labels=["plane"])
        waiting = GaugeMetricFamily(
            "netboot_certificate_requests_waiting", "Requests that the approver has to see to.", labels=["cluster"]
        )
        words = "Nodes of machines of the inventory, as the cluster has them."
        nodes = GaugeMetricFamily("netboot_nodes", words, labels=["cluster", "state"])
        for name in processes:
            kind, _, cluster = name.partition("-")
            said = self._status(name) if kind in ("approver", "nodes") else None
            if said is None:
                continue
            unavailable.add_metric([name], said.get("unavailable", 0))
            if kind == "approver":
                waiting.add_metric([cluster], said.get("waiting", 0))
                for outcome, what, count in said.get("decided", ()):
                    decided.add_metric([cluster, outcome, what], count)
            else:
                for state in ("registered", "ready"):
                    nodes.add_metric([cluster, state], said.get(state, 0))
        yield from (decided, unavailable, waiting, nodes)


def exposition(folder: Path, now: Now) -> bytes:
    """All metrics in Prometheus' text format; `folder`: where the boot workers count (multiprocess mode)."""
    registry = CollectorRegistry()
    folder.mkdir(parents=True, exist_ok=True)
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    registry.register(now)
    return generate_latest(registry)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(name, words, value=value)

"""What a boot server counts. Plain integers in the hot path; once a second they go into Prometheus' files.

prometheus_client's multiprocess mode keeps a memory-mapped file for each process in `data/metrics`, which the
management server reads. The mode is chosen by an environment variable when prometheus_client is first imported, so that
happens only when `Exporter` is made, after the process has set it.
"""

from dataclasses import dataclass, field

from netboot.boot.transfers import Transfer

REPORTS = ("accepted", "refused", "limited")
"""What becomes of a report; `limited`: it was one too many for now."""


@dataclass(slots=True)
class Counters:
    """Counts since the process started."""

    scripts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("boot", "unknown", "refused", "unavailable"), 0)
    )
    """By outcome."""
    events: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REPORTS, 0))
    health: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REPORTS, 0))
    transfers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("whole", "broken"), 0))
    bytes_sent: int = 0
    discoveries_dropped: int = 0
    scripts_repeated: int = 0
    """Scripts with the boot id of the one before; see `scripts.Scripts`."""

    def ended(self, transfer: Transfer) -> None:
        """Count a transfer that has ended, well or not."""
        self.transfers["whole" if transfer.whole else "broken"] += 1
        self.bytes_sent += transfer.sent


class Exporter:
    """Carries the counters over into Prometheus' counters."""

    def __init__(self, counters: Counters) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        # A registry of its own, unless the files of the multiprocess mode are the registry anyway: tests make several.
        registry = CollectorRegistry()
        self._counters = counters
        self._seen: dict[str, int] = {}
        self._labelled = {
            "scripts": Counter("netboot_scripts", "Scripts served.", ["outcome"], registry=registry),
            "events": Counter("netboot_boot_events", "Boot events posted by machines.", ["result"], registry=registry),
            "health": Counter("netboot_health_reports", "Health reports posted.", ["result"], registry=registry),
            "transfers": Counter("netboot_transfers", "Files sent.", ["result"], registry=registry),
        }
        for name, counter in self._labelled.items():  # so that each is there at 0, and its first rise is one
            for label in getattr(counters, name):
                counter.labels(label)
        self._plain = {
            "bytes_sent": Counter("netboot_sent_bytes", "Bytes of files sent.", registry=registry),
            "scripts_repeated": Counter(
                "netboot_scripts_repeated",
                "Scripts served again with the boot id of the one before, because too many were asked for.",
                registry=registry,
            ),
            "refused": Counter("netboot_connections_refused", "Connections beyond the limits.", registry=registry),
            "discoveries_dropped": Counter(
                "netboot_discoveries_dropped",
                "Sightings not journalled because there were too many.",
                registry=registry,
            ),
        }
        self._lag = Gauge(
            "netboot_journal_lag_records", "Records not yet projected.", registry=registry, multiprocess_mode="livesum"
        )
        self._open = Gauge(
            "netboot_open_connections", "Open connections.", registry=registry, multiprocess_mode="livesum"
        )

    def flush(self, *, lag: int, open_connections: int, refused: int) -> None:
        """Bring the counters up to date; called about once a second."""
        for name, counter in self._labelled.items():
            for label, value in getattr(self._counters, name).items():
                if more := self._more(f"{name}/{label}", value):
                    counter.labels(label).inc(more)
        totals = {
            "bytes_sent": self._counters.bytes_sent,
            "discoveries_dropped": self._counters.discoveries_dropped,
            "scripts_repeated": self._counters.scripts_repeated,
            "refused": refused,
        }
        for name, value in totals.items():
            if more := self._more(name, value):
                self._plain[name].inc(more)
        self._lag.set(lag)
        self._open.set(open_connections)

    def _more(self, key: str, value: int) -> int:
        more = value - self._seen.get(key, 0)
        self._seen[key] = value
        return more

"""What a boot server counts. Plain integers in the hot path; about once a second they are written to its status file,
from which the management server makes Prometheus' text (docs/decisions/031).
"""

from dataclasses import dataclass, field

from netboot.boot.transfers import Transfer
from netboot.status.boot import BootStatus

COUNTED = (
    "scripts",
    "scripts_repeated",
    "events",
    "health",
    "discovery",
    "transfers",
    "bytes_sent",
    "refused",
    "discoveries_dropped",
)
"""Fields of `Counters` that go into a `BootStatus` as they are."""

MOST = 2**53
"""Of a count: beyond it Prometheus' numbers are not exact."""
REPORTS = ("accepted", "refused", "limited")
"""What becomes of a report; `limited`: it was one too many for now."""


@dataclass(slots=True)
class Counters:
    """Counts since the service began: one that takes the place of another goes on where that one was."""

    scripts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("boot", "discovery", "unknown", "refused", "unavailable"), 0)
    )
    """By outcome."""
    events: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REPORTS, 0))
    health: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REPORTS, 0))
    discovery: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REPORTS, 0))
    """Reports of the hardware of machines that nobody has declared."""
    transfers: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("whole", "broken"), 0))
    bytes_sent: int = 0
    refused: int = 0
    """Connections beyond the limits."""
    discoveries_dropped: int = 0
    scripts_repeated: int = 0
    """Scripts with the boot id of the one before; see `scripts.Scripts`."""

    def of_report(self, kind: str) -> dict[str, int]:
        """Where a report is counted that was posted to a path that ends so."""
        return {"health": self.health, "discovery": self.discovery}.get(kind, self.events)

    def ended(self, transfer: Transfer) -> None:
        """Count a transfer that has ended, well or not."""
        self.transfers["whole" if transfer.whole else "broken"] += 1
        self.bytes_sent += transfer.sent

    def go_on(self, before: BootStatus) -> None:
        """Begin where one that ended was when it last said so, at most about a second before its end."""
        for name in COUNTED:
            mine, value = getattr(self, name), getattr(before, name)
            if isinstance(mine, dict):  # other processes write in that folder too: only what it can have been
                mine |= {label: count for label, count in value.items() if label in mine and 0 <= count < MOST}
            elif 0 <= value < MOST:
                setattr(self, name, value)

    def status(self, at_ms: int, *, open_connections: int, journal_lag: int) -> BootStatus:
        """For the management server's metrics."""
        counted = {name: getattr(self, name) for name in COUNTED}
        return BootStatus(at_ms=at_ms, open_connections=open_connections, journal_lag=journal_lag, **counted)

"""Alerts of machines, in the status of their Enrolments: bounded, and written seldom, for anybody on the wire may bring
them about."""

import logging
import threading

from netboot.clock import moment_ms, rfc3339
from netboot.join.enrolment import ALERTS_KEPT_MS, LONGEST_ALERT, Alert
from netboot.join.enrolment_documents import AlertTold, EnrolmentStatus
from netboot.join.enrolment_objects import EnrolmentObject, EnrolmentObjects
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.join.ports import AlertKind

log = logging.getLogger(__name__)

ATTEMPTS = 8
"""At an object that somebody else keeps writing."""
ALERT_MS = 60_000
"""At most so often one alert of a machine is written, whatever comes on the wire; what comes meanwhile is counted."""


class ObjectAlerts:
    """Safe for threads, processes and replicas."""

    def __init__(self, objects: EnrolmentObjects) -> None:
        self._objects, self._lock = objects, threading.Lock()
        self._written: dict[tuple[str, str], tuple[int, int]] = {}
        """Of each alert: when it was written, and how many came since."""

    def alert(self, machine: str, kind: AlertKind, message: str, now_ms: int) -> None:
        with self._lock:
            last_ms, more = self._written.get((machine, kind), (0, 0))
            self._written[machine, kind] = (last_ms, more + 1)
            if last_ms and 0 <= now_ms - last_ms < ALERT_MS:
                return
        for _ in range(ATTEMPTS):
            found = self._objects.read(machine)
            if found is None:
                log.warning("alert: not written down: there is no Enrolment of %s", machine)
                return
            try:
                self._objects.write_status(_alerted(found, kind, message, more + 1, now_ms), found)
            except ConflictError:
                continue
            with self._lock:
                self._written[machine, kind] = (now_ms, self._written[machine, kind][1] - more - 1)
            return
        raise busy(machine)

    def alerts(self, machine: str) -> list[Alert]:
        found = self._objects.read(machine)
        return sorted(alerts_of(found), key=lambda each: (-each.last_ms, each.kind)) if found is not None else []

    def latest_alerts(self) -> dict[str, int]:
        latest: dict[str, int] = {}
        for alert in (alert for found in self._objects.all() for alert in alerts_of(found)):
            latest[alert.kind] = max(latest.get(alert.kind, 0), alert.last_ms)
        return latest


def busy(machine: str) -> ClusterUnavailableError:
    """Somebody else is always first."""
    return ClusterUnavailableError(f"the Enrolment of {machine} is written by others all the time; try again")


def alerts_of(found: EnrolmentObject) -> list[Alert]:
    """Those that its status has."""
    return [
        Alert(
            machine=found.name,
            kind=told.kind,
            first_ms=moment_ms(told.first),
            last_ms=moment_ms(told.last),
            count=told.count,
            said=told.said,
        )
        for told in found.status.alerts
    ]


def _alerted(found: EnrolmentObject, kind: AlertKind, message: str, count: int, now_ms: int) -> EnrolmentStatus:
    kept = {told.kind: told for told in found.status.alerts if moment_ms(told.last) >= now_ms - ALERTS_KEPT_MS}
    before, now = kept.get(kind), rfc3339(now_ms)
    first, many = (before.first, before.count) if before is not None else (now, 0)
    kept[kind] = AlertTold(kind=kind, first=first, last=now, count=many + count, said=message[:LONGEST_ALERT])
    return found.status.model_copy(update={"alerts": tuple(kept.values())})

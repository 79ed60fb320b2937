"""What is on record of enrolments, before and after something that writes all of it anew. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from netboot.clock import rfc3339
from netboot.join.enrolment import ALERTS_KEPT_MS, Alert, Record, short
from netboot.join.enrolment_objects import described


class OnRecord(NamedTuple):
    """By machine: its record, where that says anything; TPMs that were taken out of it; its alerts, by kind."""

    records: Mapping[str, Record]
    replaced: Mapping[str, frozenset[str]]
    alerts: Mapping[str, Mapping[str, Alert]]

    @property
    def machines(self) -> set[str]:
        """Of which anything is on record."""
        return {*self.records, *self.replaced, *self.alerts}


class Difference(NamedTuple):
    """`words`: what, before → after. `loses`: whether something is undone that is not made again by itself: a
    retirement, a TPM that is let in no more, a generation, an alert."""

    words: str
    loses: bool = False


NOTHING = OnRecord({}, {}, {})


def on_record(
    records: Sequence[Record], replaced: Mapping[str, Sequence[str]], alerts: Sequence[Alert], now_ms: int
) -> OnRecord:
    """As it can be kept: a TPM is one machine's, and on record before it was taken out; alerts are forgotten when they
    are old."""
    in_use = {one.ek_sha256 for one in records}
    owners = {ek: machine for machine, eks in replaced.items() for ek in eks if ek not in in_use}
    out: dict[str, set[str]] = {}
    for ek, machine in owners.items():
        out.setdefault(machine, set()).add(ek)
    told: dict[str, dict[str, Alert]] = {}
    for alert in alerts:
        if alert.last_ms >= now_ms - ALERTS_KEPT_MS:
            told.setdefault(alert.machine, {})[alert.kind] = alert
    said = {one.machine: one for one in records if _says(one)}
    return OnRecord(said, {machine: frozenset(eks) for machine, eks in out.items()}, told)


def _says(record: Record) -> bool:
    return record.enrolment() != Record(machine=record.machine).enrolment()


def differences(before: OnRecord, after: OnRecord) -> dict[str, list[Difference]]:
    """Of each machine of which another thing is on record, by name."""
    out = frozenset[str]().union(*after.replaced.values())
    found = {name: [*_of_machine(name, before, after, out)] for name in sorted(before.machines | after.machines)}
    return {name: each for name, each in found.items() if each}


def _of_machine(name: str, before: OnRecord, after: OnRecord, out: frozenset[str]) -> Iterator[Difference]:
    """`out`: TPMs that are taken out of any machine, afterwards."""
    was, now = (each.records.get(name, Record(machine=name)) for each in (before, after))
    for key, old, new in zip(_KEYS, _said(was), _said(now), strict=True):
        back = key == "state" and old == "retired"
        falls = key == "generation" and now.generation < was.generation
        if old != new:
            yield Difference(f"{key}: {old} → {new}", back or falls)
    if was.ek_sha256 and now.ek_sha256 and described(was.details) != described(now.details):
        yield Difference("details: what is said of the TPM")
    eks, theirs = (each.replaced.get(name, frozenset()) for each in (before, after))
    if eks != theirs:
        yield Difference(f"replaced: {_listed(eks)} → {_listed(theirs)}", not eks <= out)
    alerts, told = (each.alerts.get(name, {}) for each in (before, after))
    for kind in sorted({*alerts, *told}):
        old_alert, new_alert = alerts.get(kind), told.get(kind)
        if old_alert != new_alert:
            words = f"alert {kind}: {_alert(old_alert)} → {_alert(new_alert)}"
            yield Difference(words, old_alert is not None and _last(new_alert) < old_alert.last_ms)


_KEYS = ("ek_sha256", "state", "before it", "source", "generation", "window")


def _said(record: Record) -> tuple[str, ...]:
    window = "none"
    if record.window is not None:
        window = f"{record.window} {record.window_id} until {rfc3339(record.window_until_ms)}"
    source = record.source or "none"
    return record.ek_sha256 or "none", record.state, record.retired_from, source, str(record.generation), window


def _listed(eks: frozenset[str]) -> str:
    return ", ".join(map(short, sorted(eks))) or "none"


def _alert(alert: Alert | None) -> str:
    return f"{alert.count} until {rfc3339(alert.last_ms)}" if alert is not None else "none"


def _last(alert: Alert | None) -> int:
    return alert.last_ms if alert is not None else -1

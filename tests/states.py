"""The state in memory: what the web's tests use, and what the contract suite holds against the one on disk."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from netboot.lifecycle import state
from netboot.lifecycle.arrivals import Arrivals
from netboot.lifecycle.errors import NoSuchBootError
from netboot.lifecycle.events import (
    AnyRecord,
    CertificateRecord,
    ConsoleRecord,
    CrashRecord,
    DiscoveryRecord,
    HardwareRecord,
    HealthRecord,
    ScriptRecord,
    SharedRecord,
    WaitRecord,
)
from netboot.lifecycle.hardware import MOST_MACHINES
from netboot.lifecycle.phases import Phase, source_of
from netboot.lifecycle.sightings import Discovered, Told, seen_again, sighting, told_again
from netboot.lifecycle.state import Batch, Checked, Claims, FeedEntry, MachineState
from netboot.lifecycle.trace import Trace, apply

_NO_STEPS = CrashRecord | ConsoleRecord | CertificateRecord | SharedRecord


class MemoryStates:
    """Reads and writes; the obvious way."""

    def __init__(self) -> None:
        self.cursors: dict[str, tuple[int, int]] = {}
        self.traces: dict[str, Trace] = {}
        self.served: dict[str, Claims] = {}
        self.seen: dict[str, Discovered] = {}
        self.made_of: dict[str, tuple[int, Told]] = {}
        self.reports: dict[str, HealthRecord] = {}
        self.entries: list[FeedEntry] = []
        self.taken_ms: dict[str, int] = {}
        """The latest moment of each journal's records."""
        self.arrivals = Arrivals()
        self.since: dict[str, tuple[state.Standing, int]] = {}
        """Of each boot its standing, and the number of the fact that gave it."""
        self.crashes: list[CrashRecord] = []
        """All that were ever found; of each boot those are kept that its trace names."""
        self.consoles: dict[str, ConsoleRecord] = {}
        self.reported: dict[str, int] = {}
        """Of each boot the number of its latest health report."""
        self.gone: dict[str, int] = {}
        """Machines that the inventory no longer has: for how many seconds."""
        self.again: dict[str, tuple[int, int]] = {}
        """Of journals that were rewound: up to which id, and moment, records were counted before."""

    def cursor(self, journal: str) -> tuple[int, int]:
        return self.cursors.get(journal, (0, 0))

    def rewind(self, journal: str, upto: int) -> None:
        self.again[journal] = (upto, self.taken_ms.get(journal, 0))
        self.cursors[journal] = (self.cursor(journal)[0], 0)

    def inspect(self) -> None:
        return None

    def settle(self) -> None:
        self.arrivals.settle()

    def declare(self, machines: Collection[str], seconds: int) -> int:
        known = {trace.machine for trace in self.traces.values()} | set(self.served)
        left = {name: self.gone[name] + seconds if name in self.gone else 0 for name in known - set(machines)}
        by_age = sorted(left, key=lambda name: (left[name], name))[: state.REMOVED_KEPT]
        self.gone = {name: left[name] for name in by_age if left[name] < state.REMOVED_KEPT_SECONDS}
        for name in left.keys() - self.gone.keys():
            self.served.pop(name, None)
            self.traces = {boot: trace for boot, trace in self.traces.items() if trace.machine != name}
            self.reports = {boot: report for boot, report in self.reports.items() if report.machine != name}
        self.consoles = {boot: one for boot, one in self.consoles.items() if boot in self.traces}
        return len(left) - len(self.gone)

    def removed(self) -> int:
        return len(self.gone)

    def running(self) -> dict[str, str]:
        current = {name: one.current for name, one in self.machines().items()}
        return {name: trace.script.image for name, trace in current.items() if trace and trace.script}

    def images(self, latest: int) -> set[str]:
        shown = [trace for one in self.machines().values() for trace in (one.current, one.pending)]
        return {trace.script.image for trace in (*shown, *self.boots(None, latest)) if trace and trace.script}

    def take(self, batch: Batch) -> Mapping[str, int]:
        identity, last = self.cursor(batch.journal)
        if identity == batch.identity and batch.last <= last:
            return {}
        if identity != batch.identity:
            self.again.pop(batch.journal, None)
            self.taken_ms.pop(batch.journal, None)
        upto, until_ms = self.again.get(batch.journal, (0, 0))
        self.cursors[batch.journal] = (batch.identity, batch.last)
        latest = max((record.at_ms for record in batch.records), default=0)
        self.taken_ms[batch.journal] = max(latest, self.taken_ms.get(batch.journal, 0))
        ids = batch.ids or range(batch.last - len(batch.records) + 1, batch.last + 1)
        for number, record in zip(ids, batch.records, strict=True):
            counted = number <= upto and record.at_ms <= until_ms
            if isinstance(record, SharedRecord):
                self.arrivals.see(max(record.since, record.arrived), record.at_ms)
                self._take_shared(record)
                continue
            self._take(record, counted, 0 if counted else self.arrivals.number(batch.journal, record.at_ms))
        self._prune()
        for machine in {record.machine for record in batch.records if isinstance(record, HealthRecord | SharedRecord)}:
            self._prune_reports(machine)
        for machine in {record.machine for record in batch.records if isinstance(record, ConsoleRecord)}:
            self._prune_consoles(machine)
        return Counter(row.origin for row in batch.set_aside)

    def _take(self, record: AnyRecord, counted: bool, arrived: int) -> None:
        if isinstance(record, DiscoveryRecord | HardwareRecord | WaitRecord):
            self._pass_by(record, counted, arrived)
            return
        if isinstance(record, HealthRecord):
            if arrived >= self.reported.get(record.boot, 0) or record.boot not in self.reports:
                self.reports[record.boot] = record
                self.reported[record.boot] = arrived
            return
        if isinstance(record, CrashRecord):
            self.crashes.append(record)
        before = self.traces.get(record.boot)
        self.traces[record.boot] = apply(before, record)
        if isinstance(record, ConsoleRecord):
            self._hear(record)
        standing = state.standing(self.traces[record.boot])
        if before is None or standing > self.since[record.boot][0]:
            self.since[record.boot] = (standing, arrived)
        if counted or self.traces[record.boot] is before or isinstance(record, _NO_STEPS):
            return
        phase = Phase.SCRIPT_SERVED if isinstance(record, ScriptRecord) else record.phase
        said = {} if isinstance(record, ScriptRecord) else {"uptime_ms": record.uptime_ms, "detail": record.detail}
        entry = {"id": len(self.entries) + 1, "at_ms": record.at_ms, "boot": record.boot, "phase": phase}
        known = {"machine": record.machine, "source": source_of(phase)}
        self.entries.append(FeedEntry.model_validate(entry | known | said))
        if isinstance(record, ScriptRecord):
            claims = self.served.get(record.machine, Claims())
            counted_now = {"served": claims.served + 1, "last_ms": record.at_ms}
            self.served[record.machine] = claims.model_copy(update=counted_now)

    def _take_shared(self, record: SharedRecord) -> None:
        if record.health is not None and record.arrived > self.reported.get(record.boot, -1):
            about = {"boot": record.boot, "machine": record.machine}
            self.reports[record.boot] = record.health.model_copy(update=about)
            self.reported[record.boot] = record.arrived
        self.traces[record.boot] = apply(self.traces.get(record.boot), record)
        standing = state.standing(self.traces[record.boot])
        had, number = self.since.get(record.boot, (-1, 0))
        gives = state.standing_by(record)
        if gives > had or (gives == had and record.since < number):
            self.since[record.boot] = (standing, record.since)

    def numbers(self, boots: Sequence[str]) -> dict[str, tuple[int, int]]:
        known = [boot for boot in boots if boot in self.traces]
        return {boot: (self.since[boot][1], self.reported[boot] if boot in self.reports else 0) for boot in known}

    def _hear(self, record: ConsoleRecord) -> None:
        newest = self.traces[record.boot].console
        if newest is not None and newest.which == (record.uptime_ms, record.sha256):
            first = {"at_ms": newest.at_ms, "peer": newest.peer}
            self.consoles[record.boot] = record.model_copy(update=first)

    def machines(self, names: Sequence[str] | None = None) -> dict[str, MachineState]:
        known = {trace.machine for trace in self.traces.values()} | set(self.served)
        found = {}
        for name in known if names is None else known & set(names):
            current, pending = current_and_pending(self._of(name), self.since)
            claims = self.served.get(name, Claims())
            if current or claims.served or claims.waited:
                found[name] = MachineState(
                    machine=name, current=current, pending=pending, claims=claims, checked=self._checked(current)
                )
        return found

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, one in self.machines().items():
            if one.current is not None and name not in self.gone:
                found[one.current.state] = found.get(one.current.state, 0) + 1
        return found

    def health_counts(self, since_ms: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, one in self.machines().items():
            if one.current is not None and name not in self.gone:
                known = one.checked
                status = "none" if known is None else "stale" if known.at_ms < since_ms else known.status
                found[status] = found.get(status, 0) + 1
        return found

    def health(self, boot: str) -> HealthRecord | None:
        return self.reports.get(boot)

    def boots(self, machine: str | None, limit: int, after: str | None = None) -> list[Trace]:
        if after is None:
            return self._of(machine)[:limit]
        if after not in self.traces:
            raise NoSuchBootError(after)
        behind = self._of(None)[[one.boot for one in self._of(None)].index(after) + 1 :]
        return [one for one in behind if machine in (None, one.machine)][:limit]

    def since_ready(self, machine: str, least: state.Standing, limit: int) -> list[Trace]:
        mine = self._of(machine)
        ready = max((self.since[one.boot][1] for one in mine if one.state is Phase.READY), default=-1)
        kept = [one for one in mine if self.since[one.boot][1] > ready and state.standing(one) >= least]
        return kept[:limit]

    def boot(self, boot: str) -> Trace | None:
        return self.traces.get(boot)

    def proven(self, machines: Sequence[str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for one in reversed(self._of(None)):
            if state.standing(one) is state.Standing.PROVEN and one.machine in machines:
                found[one.machine] = (*found.get(one.machine, ()), one.boot)
        return found

    def proven_machines(self) -> set[str]:
        return {one.machine for one in self.traces.values() if state.standing(one) is state.Standing.PROVEN}

    def crash_texts(self, boot: str) -> dict[str, str]:
        named = {crash.sha256 for crash in self.traces[boot].crashes} if boot in self.traces else set()
        return {record.sha256: record.text for record in self.crashes if record.boot == boot and record.sha256 in named}

    def console(self, boot: str) -> ConsoleRecord | None:
        return self.consoles.get(boot)

    def discovered(self, limit: int) -> list[Discovered]:
        return list(reversed(self.seen.values()))[:limit]

    def _pass_by(self, record: DiscoveryRecord | HardwareRecord | WaitRecord, counted: bool, arrived: int) -> None:
        if isinstance(record, WaitRecord):
            if not counted:
                claims = self.served.get(record.machine, Claims())
                waited = state.waited(claims.waited, record)
                self.served[record.machine] = claims.model_copy(update={"waited": waited})
            return
        if isinstance(record, DiscoveryRecord):
            if not counted:
                new = sighting(record)
                self.seen[new.key] = seen_again(self.seen.pop(new.key, None), new)
            return
        last, before = self.made_of.get(record.report.mac, (0, None))
        if arrived >= last:
            self.made_of[record.report.mac] = (arrived, told_again(before, record))

    def hardware(self) -> list[Told]:
        told = sorted(self.made_of.values(), key=lambda one: (-one[0], one[1].report.mac))
        return [record for _, record in told[:MOST_MACHINES]]

    def feed(self, after: int | None, limit: int) -> list[FeedEntry]:
        if after is None:
            return self.entries[-limit:]
        return [entry for entry in self.entries if entry.id > after][:limit]

    def _of(self, machine: str | None) -> list[Trace]:
        found = [one for one in self.traces.values() if machine in (None, one.machine)]
        return sorted(found, key=lambda one: (self.since[one.boot][1], one.boot), reverse=True)

    def _checked(self, trace: Trace | None) -> Checked | None:
        record = self.reports.get(trace.boot) if trace else None
        return Checked(status=record.report.status, at_ms=record.at_ms) if record else None

    def _prune_reports(self, machine: str) -> None:
        of_machine = [boot for boot, one in self.reports.items() if one.machine == machine]
        mine = sorted(of_machine, key=self._age, reverse=True)
        for standing in state.Standing:
            known = [boot for boot in mine if self._standing(boot) is standing]
            for boot in known[state.REPORTS_KEPT :]:
                del self.reports[boot]

    def _prune_consoles(self, machine: str) -> None:
        for standing in state.Standing:
            sent = [one.boot for one in self._of(machine) if one.boot in self.consoles]
            turns: Counter[str] = Counter()
            placed = []
            for place, boot in enumerate(each for each in sent if self.since[each][0] is standing):
                peer = self.consoles[boot].peer
                placed.append((turns[peer], place, boot))
                turns[peer] += 1
            for place, (turn, _, boot) in enumerate(sorted(placed)):
                if turn >= state.CONSOLES_OF_ADDRESS or place >= state.CONSOLES_KEPT:
                    del self.consoles[boot]

    def _age(self, boot: str) -> tuple[int, int, str]:
        return (self.since[boot][1] if boot in self.traces else -1, self.reported[boot], boot)

    def _standing(self, boot: str) -> state.Standing:
        return state.standing(self.traces[boot]) if boot in self.traces else state.Standing.CLAIMED

    def _prune(self) -> None:
        for machine in {trace.machine for trace in self.traces.values()}:
            for standing, most in state.KEPT.items():
                for trace in [one for one in self._of(machine) if state.standing(one) is standing][most:]:
                    del self.traces[trace.boot]
                    self.consoles.pop(trace.boot, None)
        oldest = list(self.seen.values())
        for one in oldest[: max(0, len(oldest) - state.DISCOVERED_KEPT)]:
            del self.seen[one.key]


def current_and_pending(
    boots: Iterable[Trace], since: Mapping[str, tuple[state.Standing, int]]
) -> tuple[Trace | None, Trace | None]:
    """Of one machine's boots the current one, and a newer one that has not proven itself (yet): the rule of
    `netboot.lifecycle.state`, told the obvious way."""
    told = [boot for boot in boots if not state.is_claim(boot)]
    by_age = sorted(told, key=lambda boot: (since[boot.boot][1], boot.boot))
    proven = [boot for boot in by_age if state.standing(boot) is state.Standing.PROVEN]
    if not proven:
        return by_age[-1] if by_age else None, None
    current = proven[-1]
    newer = [boot for boot in by_age if boot not in proven and since[boot.boot][1] > since[current.boot][1]]
    return current, newer[-1] if newer else None

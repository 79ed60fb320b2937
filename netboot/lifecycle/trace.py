"""From journalled records to the trace of a boot: a pure fold.

Records come from several journals, in any order and sometimes twice. So the fold does not depend on order and taking a
record twice changes nothing: of each phase the first time is kept, and nothing is dropped for having come late.
"""

from images.values.strict import Strict
from images.values.types import Name
from netboot.lifecycle.boot_facts import (
    Certificate,
    Console,
    Crash,
    Script,
    crash_of,
    decided,
    newest_console,
    with_certificate,
)
from netboot.lifecycle.events import (
    BootId,
    CertificateRecord,
    ConsoleRecord,
    CrashRecord,
    EventRecord,
    ScriptRecord,
    TraceRecord,
)
from netboot.lifecycle.phases import Phase, Source, source_of
from netboot.lifecycle.reached import Failure, Reached, ends, with_failure, with_phase
from netboot.lifecycle.registrations import uid_in

MOST_CRASHES = 4
"""Crashes kept for each boot that found them: the first two, for an oops is why the next came, and the last two."""


class Trace(Strict):
    """All that is known of one boot."""

    boot: BootId
    machine: Name
    script: Script | None = None
    """None: its record has not been seen yet (another worker's journal), the events have."""
    reached: tuple[Reached, ...] = ()
    """Sorted by the order of phases; at most one of each."""
    failures: tuple[Failure, ...] = ()
    """Sorted by time."""
    crashes: tuple[Crash, ...] = ()
    """Of kernels before this boot's, sorted by when they crashed."""
    console: Console | None = None
    """The newest. It is nothing that happened: no deadline, and no moment of the boot, is by it."""
    certificates: tuple[Certificate, ...] = ()
    """Client certificates that were signed for it, sorted by when they end; reports under them are its own."""

    def phase(self, phase: Phase) -> Reached | None:
        """When and how a phase was first reached."""
        return next((reached for reached in self.reached if reached.phase is phase), None)

    @property
    def node_uid(self) -> str:
        """Of the Node that it registered; "": none was seen."""
        registered = self.phase(Phase.NODE_REGISTERED)
        return uid_in(registered.detail) if registered is not None else ""

    @property
    def started_ms(self) -> int:
        """The first that was heard of it, milliseconds since 1970."""
        return min(self._times())

    @property
    def last_ms(self) -> int:
        """The last that was heard of it, milliseconds since 1970."""
        return max(self._times())

    @property
    def state(self) -> Phase:
        """The furthest phase; FAILED while a failure is the last that was heard of it.

        What was observed stands above what is reported: once the cluster has seen the node Ready, no report that
        anybody could send makes it a failure.
        """
        latest = max((reached.at_ms for reached in self.reached), default=-1)
        if self.failures and self.failures[-1].at_ms >= latest and self.phase(Phase.READY) is None:
            return Phase.FAILED
        return self.reached[-1].phase if self.reached else Phase.SCRIPT_SERVED  # else there would be no boot id

    @property
    def reason(self) -> str:
        """Why it is FAILED; empty in any other state."""
        return self.failures[-1].detail if self.state is Phase.FAILED else ""

    @property
    def last_served(self) -> Phase | None:
        """The furthest phase that we served: what was handed out, whoever took it."""
        return self._furthest(Source.SERVED)

    @property
    def last_reported(self) -> Phase | None:
        """The furthest phase that the machine reported: what it says happened."""
        return self._furthest(Source.REPORTED)

    @property
    def last_observed(self) -> Phase | None:
        """The furthest phase that was observed: what nobody on the wire can claim."""
        return self._furthest(Source.OBSERVED)

    @property
    def kernel_ms(self) -> int | None:
        """When its kernel started, by our clock: the earliest that its reports' uptimes say, for by one that came late
        it started later; never before its script was served, whatever uptime somebody reports."""
        said = [reached.at_ms - reached.uptime_ms for reached in self.reached if reached.uptime_ms is not None]
        if not said:
            return None
        served = self.phase(Phase.SCRIPT_SERVED)
        return min(said) if served is None else max(min(said), served.at_ms)

    @property
    def seconds_to_ready(self) -> float | None:
        """From the start of the kernel to the Ready node."""
        ready, kernel = self.phase(Phase.READY), self.kernel_ms
        return None if ready is None or kernel is None else (ready.at_ms - kernel) / 1000

    def _times(self) -> list[int]:
        said: tuple[Reached | Failure | Crash, ...] = (*self.reached, *self.failures, *self.crashes)
        if not said and self.console is not None:
            return [self.console.first_ms]  # that it comes again is nothing that happened
        return [fact.at_ms for fact in said or self.certificates]  # a renewal is not heard of the boot: it is issued

    def _furthest(self, source: Source) -> Phase | None:
        return next((reached.phase for reached in reversed(self.reached) if reached.source is source), None)


def apply(trace: Trace | None, record: TraceRecord) -> Trace:
    """The trace with one more record of the same boot; None: the first record of a boot. The very same trace: it has
    that failure, crash, console or certificate already.

    Raises:
        ValueError: the record is of another boot.
    """
    if trace is None:
        if isinstance(record, ScriptRecord):  # by far the most of them, so made at once
            return Trace(boot=record.boot, machine=record.machine, script=decided(record), reached=(_served(record),))
        trace = Trace(boot=record.boot, machine=record.machine)
    if (trace.boot, trace.machine) != (record.boot, record.machine):
        raise ValueError(f"a record of boot {record.boot} is not one of boot {trace.boot}")
    if isinstance(record, ScriptRecord):
        return _script(trace, record)
    if isinstance(record, EventRecord):
        return _event(trace, record)
    if isinstance(record, CrashRecord):
        crashes = _with_crash(trace.crashes, crash_of(record))
        return trace if crashes == trace.crashes else trace.model_copy(update={"crashes": crashes})
    if isinstance(record, ConsoleRecord):
        console = newest_console(trace.console, record)
        return trace if console == trace.console else trace.model_copy(update={"console": console})
    if isinstance(record, CertificateRecord):
        certificates = with_certificate(trace.certificates, record)
        return trace if certificates == trace.certificates else trace.model_copy(update={"certificates": certificates})
    for fact in record.facts:
        trace = apply(trace, fact.model_copy(update={"machine": record.machine}))
    return trace


def _event(trace: Trace, record: EventRecord) -> Trace:
    if record.phase is Phase.FAILED:
        failure = Failure(at_ms=record.at_ms, uptime_ms=record.uptime_ms, detail=record.detail, peer=record.peer)
        failures = with_failure(trace.failures, failure)
        return trace if failures == trace.failures else trace.model_copy(update={"failures": failures})
    reached = Reached(
        at_ms=record.at_ms,
        phase=record.phase,
        source=source_of(record.phase),
        uptime_ms=record.uptime_ms,
        detail=record.detail,
        peer=record.peer,
        sha256=record.sha256,
    )
    return trace.model_copy(update={"reached": with_phase(trace.reached, reached)})


def _script(trace: Trace, record: ScriptRecord) -> Trace:
    script, served = decided(record), _served(record)
    first = script if trace.script is None else min(trace.script, script, key=_of_script)
    return trace.model_copy(update={"script": first, "reached": with_phase(trace.reached, served)})


def _of_script(script: Script) -> tuple[str, bool, str]:
    """Which of two is kept: where all else is the same, the one of which it is known who asked."""
    return script.model_dump_json(exclude={"peer"}), not script.peer, script.peer


def _served(record: ScriptRecord) -> Reached:
    return Reached(at_ms=record.at_ms, phase=Phase.SCRIPT_SERVED, source=Source.SERVED, peer=record.peer)


def _with_crash(crashes: tuple[Crash, ...], new: Crash) -> tuple[Crash, ...]:
    """A machine that got no answer sends the same again: of these the earliest stays."""
    kept: dict[object, Crash] = {}
    for crash in sorted({*crashes, new}, key=lambda crash: (*crash.which, crash.at_ms, crash.peer)):
        kept.setdefault(crash.which, crash)
    return ends(tuple(kept.values()), MOST_CRASHES)

"""This machine's clock against the service's, measured when it was asked what to expect (now_ms of its answer)."""

from ..machine import Machine
from ..result import Check, Result

TOLERATED_MS = 5_000
"""Without `clock_ms`: a clock without a time service is set from the board's, which counts seconds."""
BROKEN_MS = 60_000
"""Certificates, logs and Leases are wrong from here on; the join agent sets such a clock, too."""


def look(machine: Machine) -> Result:
    """The difference, less what the network may have taken."""
    measured = machine.offset
    if measured is None:
        return Result("unknown", "the service could not be asked for its time", "see the check expectations")
    facts = {"ahead_ms": measured.ahead_ms, "within_ms": measured.within_ms}
    tolerated = TOLERATED_MS if machine.expected.clock_ms is None else machine.expected.clock_ms
    off = max(0, abs(measured.ahead_ms) - measured.within_ms)
    way = "ahead of" if measured.ahead_ms > 0 else "behind"
    summary = f"{off / 1000:g} s {way} the service's clock; {tolerated / 1000:g} s are tolerated"
    if off <= tolerated:
        return Result("pass", f"within {(off + measured.within_ms) / 1000:g} s of the service's clock", facts=facts)
    remedy = "run a time service (systemd-timesyncd, chrony) in the image, and see that it reaches its servers"
    return Result("fail" if off > BROKEN_MS else "warn", summary, remedy, facts)


CHECK = Check("clock", "minor", 30, look)

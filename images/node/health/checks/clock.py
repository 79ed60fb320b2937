"""This machine's clock against the service's, measured when it was asked what to expect (now_ms of its answer).

Where the service does not answer, the kernel's word that a time service holds the clock is enough. A fail keeps the
node out of service: certificates, logs and Leases would be wrong.
"""

from ..machine import Machine
from ..result import Check, Result

TOLERATED_MS = 5_000
"""Without `clock_ms`: a clock without a time service is set from the board's, which counts seconds."""
BROKEN_MS = 60_000
"""Beyond this a clock is wrong where the site does not say `clock_ms`; the join agent sets such a clock, too."""


def look(machine: Machine) -> Result:
    """The difference, less what the network may have taken."""
    measured, said = machine.offset, machine.expected.clock_ms
    if measured is None:
        unanswered = "the service could not be asked for its time"
        if machine.clock_is_held():
            return Result("pass", f"a time service holds the clock; {unanswered}")
        return Result("unknown", unanswered, "see the check expectations")
    facts = {"ahead_ms": measured.ahead_ms, "within_ms": measured.within_ms}
    tolerated = TOLERATED_MS if said is None else said
    off = max(0, abs(measured.ahead_ms) - measured.within_ms)
    way = "ahead of" if measured.ahead_ms > 0 else "behind"
    summary = f"{off / 1000:g} s {way} the service's clock; {tolerated / 1000:g} s are tolerated"
    if off <= tolerated:
        return Result("pass", f"within {(off + measured.within_ms) / 1000:g} s of the service's clock", facts=facts)
    remedy = "run a time service (systemd-timesyncd, chrony) in the image, and see that it reaches its servers"
    return Result("fail" if said is not None or off > BROKEN_MS else "warn", summary, remedy, facts)


CHECK = Check("clock", "major", 30, look)

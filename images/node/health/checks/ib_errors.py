"""Errors of RDMA ports, by how much they grew. Source: Linux Documentation/ABI/stable/sysfs-class-infiniband."""

from ..kept import outgrown
from ..machine import Machine
from ..rdma import HOME, physical
from ..result import Check, Finding, Result, counted, judged

_COUNTERS = {
    "symbol_error": "ib_symbol_errors",
    "link_error_recovery": "ib_link_error_recovery",
    "port_rcv_errors": "ib_receive_errors",
    "local_link_integrity_errors": "ib_link_integrity",
    "excessive_buffer_overrun_errors": "ib_buffer_overruns",
    "link_downed": "ib_link_downed",
}
_REMEDY = "clean or change the cable or transceiver, then its port of the switch, then the card"


def look(machine: Machine) -> Result:
    """Of every port with a cable. A port that was down, be it for a moment, fails: collectives stop for it."""
    present = physical(machine)
    if not present:
        return Result("absent", "no RDMA port")
    counts: dict[tuple[str, str], int] = {}
    findings = []
    for port in present:
        for name, limit in _COUNTERS.items():
            count = machine.whole(f"{HOME}/{port.device}/ports/{port.number}/counters/{name}")
            if count is not None:
                counts[port.name, limit] = count
        if port.layer == "InfiniBand" and (port.name, "ib_symbol_errors") not in counts:
            findings.append(Finding("unknown", f"{port.name} does not tell its errors", "see the kernel log for mlx5"))
    facts = {"counters": [f"{where} {limit} {count}" for (where, limit), count in counts.items() if count]}
    findings += outgrown(machine, CHECK.name, counts, _REMEDY, failing=("ib_link_downed",))
    return judged(findings, Result("pass", f"{counted(len(present), 'port')} without errors too many", facts=facts))


CHECK = Check("ib-errors", "major", 30, look)

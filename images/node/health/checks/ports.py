"""Ports that the class names. Sources: Linux Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-class-net
(`operstate`, `speed` in Mbit/s)."""

from ..machine import Machine
from ..rdma import physical
from ..result import Check, Finding, Result, counted, judged

_HOME = "sys/class/net"
_REMEDY = "see cable and switch port, and whether the card is on the PCI bus"


def look(machine: Machine) -> Result:
    """Each of `ports` of the inventory is there, and up."""
    names = dict.fromkeys(machine.expected.ports)
    cards = [name for name in machine.names(_HOME) if machine.names(f"{_HOME}/{name}/device")]
    facts = {"interfaces": [f"{name} {_state(machine, name)} {_speed(machine, name)}" for name in cards]}
    if not names:
        return Result("absent", "the class names no port", facts=facts)
    rdma = {port.name: port for port in physical(machine)}
    findings = []
    for name in names:
        if "/" in name and (port := rdma.get(name)):
            wrong = "" if port.up else f"{name} is {port.state} ({port.physical})"
        elif "/" in name:
            wrong = f"{name} is not there"
        else:
            wrong = _interface(machine, name)
        if wrong:
            findings.append(Finding("fail", wrong, _REMEDY))
    return judged(findings, Result("pass", f"{counted(len(names), 'named port')} up", facts=facts))


def _state(machine: Machine, name: str) -> str | None:
    return machine.text(f"{_HOME}/{name}/operstate")


def _speed(machine: Machine, name: str) -> int:
    return machine.whole(f"{_HOME}/{name}/speed") or 0


def _interface(machine: Machine, name: str) -> str:
    """What is wrong with an interface; "": nothing."""
    state = _state(machine, name)
    if state is None:
        return f"{name} is not there"
    return "" if state == "up" else f"{name} is {state}"


CHECK = Check("ports", "critical", 30, look)

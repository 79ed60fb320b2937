"""InfiniBand ports: state, rate, LID. Source: Linux Documentation/ABI/stable/sysfs-class-infiniband."""

from ..machine import Machine
from ..rdma import Port, physical
from ..result import Check, Result, counted, listed

_NO_LID = (0, 0xFFFF)


def look(machine: Machine) -> Result:
    """Those of link layer InfiniBand; as many as the class says must be whole, the others may be unplugged."""
    present = physical(machine, "InfiniBand")
    expected, rate = machine.expected.ib_ports, machine.expected.ib_rate_gbps
    facts = {"ports": [f"{port.name} {port.state} {port.rate_gbps:g} LID {port.lid}" for port in present]}
    if not present and not expected:
        return Result("absent", "no InfiniBand port, and none is expected", facts=facts)
    if expected is not None and len(present) < expected:
        summary = f"{counted(expected, 'InfiniBand port')} expected, {len(present) or 'none'} found"
        remedy = "is the card on the PCI bus, its module (mlx5_ib) loaded, its link type InfiniBand?"
        return Result("fail", summary, remedy, facts)
    wrong = [fault for port in present if (fault := _wrong(port, rate))]
    well = len(present) - len(wrong)
    if expected is not None and well < expected:
        remedy = (
            "see cable and switch port (`ibstat`, `iblinkinfo`); INIT and LID 0 mean that no subnet manager answers"
        )
        return Result("fail", f"{expected} InfiniBand ports expected, {well} in order: {listed(wrong)}", remedy, facts)
    if expected is None and wrong:
        return Result("warn", f"InfiniBand: {listed(wrong)}", "say how many there should be: `health.ib_ports`", facts)
    return Result("pass", f"{counted(well, 'InfiniBand port')} up", facts=facts)


def _wrong(port: Port, rate: float | None) -> str:
    """What is wrong with it; "": nothing."""
    if not port.up:
        return f"{port.name} is {port.state} ({port.physical})"
    if rate is not None and port.rate_gbps < rate:
        return f"{port.name} has {port.rate_gbps:g} of {rate:g} Gb/s"
    return f"{port.name} has no LID" if port.lid in _NO_LID else ""


CHECK = Check("ib-ports", "critical", 30, look)

"""Network cards of the class: models, ports, speeds.

Sources: Linux Documentation/ABI/testing/sysfs-class-net (`speed` in Mbit/s,
`operstate`), stable/sysfs-class-infiniband (`rate`).
"""

from ..cards import ids_of
from ..hardware import Nics
from ..machine import Machine
from ..pci import Device, devices
from ..rdma import Port, physical
from ..result import Check, Finding, Result, counted, judged, listed

_NET = "sys/class/net"


def look(machine: Machine) -> Result:
    """As many ports of each model as the class says, each of its speed. A port that is down is found here where no
    other expectation is about it."""
    wanted = machine.expected.hardware.nics
    if not wanted:
        return Result("absent", "the class says nothing of network cards")
    cards = [card for card in devices(machine) if card.kind >> 16 == 0x02 and not card.is_virtual]
    ids = [f"{card.vendor:04x}:{card.device:04x}" for card in cards]
    findings, ports, rdma = [], 0, physical(machine)
    for nics in wanted:
        known = ids_of(nics.model)
        if not known:
            remedy = "say its id on the PCI bus, like 15b3:1021 (`lspci -nn`), as `model` of the class"
            findings.append(Finding("unknown", f"nobody here knows a network card called {nics.model}", remedy))
            continue
        of_model = [card for card, id_ in zip(cards, ids, strict=True) if id_ in known]
        ports += len(of_model)
        findings += _judge(machine, nics, of_model, rdma)
    facts = {"cards": [f"{card.address} {id_}" for card, id_ in zip(cards, ids, strict=True)]}
    return judged(findings, Result("pass", f"{counted(ports, 'port')} of the class's network cards", facts=facts))


def _judge(machine: Machine, nics: Nics, cards: list[Device], rdma: list[Port]) -> list[Finding]:
    """Each function of a card is a port."""
    if len(cards) < nics.count:
        remedy = "see the PCI bus (`lspci`), the BMC's log and the slot; or correct the class"
        here = len(cards) or "none"
        return [Finding("fail", f"{counted(nics.count, 'port')} of {nics.model} expected, {here} there", remedy)]
    if len(cards) > nics.count:
        text = f"{counted(nics.count, 'port')} of {nics.model} expected, {len(cards)} there"
        return [Finding("warn", text, "correct `nics` of the class")]
    slow = [words for card in cards for words in _slow(machine, card, nics.speed_mbps, rdma)]
    remedy = "see cable, transceiver and switch port (`ethtool`, `mlxlink`): both ends must be able to"
    return [Finding("fail", f"{nics.model}: {listed(slow)}", remedy)] if slow else []


def _slow(machine: Machine, card: Device, mbps: int, rdma: list[Port]) -> list[str]:
    """What is wrong with the links of a card."""
    at = f"sys/bus/pci/devices/{card.address}"
    if names := machine.names(f"{at}/infiniband"):
        words = [_rdma(machine, port, mbps) for port in rdma if port.device in names]
    else:
        words = [_ethernet(machine, name, mbps) for name in machine.names(f"{at}/net")]
    return [said for said in words if said] if words else [f"{card.address} has no driver"]


def _rdma(machine: Machine, port: Port, mbps: int) -> str:
    """InfiniBand by ib-ports, and whether RoCE is up by roce-gids, where the class says how many there should be."""
    expected = machine.expected
    if port.layer == "InfiniBand" and (expected.ib_ports is not None or expected.ib_rate_gbps is not None):
        return ""
    if not port.up:
        return "" if expected.roce_ports is not None else f"{port.name} is {port.state}"
    return "" if port.rate_gbps * 1000 >= mbps else f"{port.name} has {port.rate_gbps:g} of {mbps / 1000:g} Gbit/s"


def _ethernet(machine: Machine, name: str, mbps: int) -> str:
    state, speed = machine.text(f"{_NET}/{name}/operstate"), machine.whole(f"{_NET}/{name}/speed")
    if state != "up":
        return "" if name in machine.expected.ports else f"{name} is {state or 'unreadable'}"
    if speed is None or speed <= 0:
        return f"{name} does not tell its speed"
    return "" if speed >= mbps else f"{name} has {speed / 1000:g} of {mbps / 1000:g} Gbit/s"


CHECK = Check("nics", "major", 30, look)

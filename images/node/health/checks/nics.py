"""Network cards of the class: models, ports, speeds.

Sources: ids by pci.ids (pci-ids.ucw.cz); Linux Documentation/ABI/testing/sysfs-class-net (`speed` in Mbit/s,
`operstate`), stable/sysfs-class-infiniband (`rate`).
"""

import re

from ..hardware import Nics
from ..machine import Machine
from ..pci import Device, devices
from ..rdma import Port, physical
from ..result import Check, Finding, Result, counted, judged, listed

MODELS: dict[str, tuple[str, ...]] = {
    "connectx-4": ("15b3:1013",),
    "connectx-4 lx": ("15b3:1015",),
    "connectx-5": ("15b3:1017", "15b3:1019"),
    "connectx-6": ("15b3:101b",),
    "connectx-6 dx": ("15b3:101d",),
    "connectx-6 lx": ("15b3:101f",),
    "connectx-7": ("15b3:1021",),
    "connectx-8": ("15b3:1023",),
    "bluefield-2": ("15b3:a2d6",),
    "bluefield-3": ("15b3:a2dc",),
    "e810": ("8086:1592", "8086:1593", "8086:159b"),
    "x710": ("8086:1572",),
    "x550": ("8086:1563",),
    "i350": ("8086:1521",),
    "bcm57414": ("14e4:16d7",),
    "bcm57508": ("14e4:1750",),
}
"""Name in small letters -> ids on the PCI bus. Of all others the class says the id itself: `15b3:1021`."""
_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}", re.ASCII)
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
        known = MODELS.get(nics.model.lower(), (nics.model.lower(),) * bool(_ID.fullmatch(nics.model.lower())))
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

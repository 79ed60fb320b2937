"""Speed of PCIe links. Sources: Linux Documentation/ABI/testing/sysfs-bus-pci (`current_link_speed`,
`max_link_speed`); nvidia-smi(1), "PCIe Generation".

Network cards and disks keep their speed. An idle GPU lowers its own to save power, so of a GPU what counts is the
generation that it and its slot could agree on (`Max`) against what it can by itself (`Device Max`).
"""

from ..machine import Machine
from ..nvidia import unread
from ..pci import Device, devices, gpus
from ..result import Check, Finding, Result, counted, judged
from ..smi import details, whole

_REMEDY = "reseat the card or its riser; see the firmware's set-up for the slot's speed"
_MAX, _DEVICE = "PCIe Generation/Max", "PCIe Generation/Device Max"


def look(machine: Machine) -> Result:
    """What each link has against what the card could have, or the class should."""
    cards = [card for card in devices(machine) if (card.is_nic or card.is_disk) and not card.is_virtual]
    if not cards and not gpus(machine):
        return Result("absent", "no GPU, RDMA card or NVMe disk is on the PCI bus")
    findings = [finding for card in cards if (finding := _slow(card, machine.expected.pcie_gts))]
    told = details(machine) if gpus(machine) else []
    if told:
        findings += unread(machine, told, (_MAX, _DEVICE))
    for at, row in enumerate(told):
        now, most = whole(row.get(_MAX, "")), whole(row.get(_DEVICE, ""))
        if now is not None and most is not None and now < most:
            findings.append(Finding("fail", f"GPU {at} reaches PCIe generation {now} of {most}", _REMEDY))
        elif _MAX not in row or _DEVICE not in row:
            text = f"GPU {at} does not tell its PCIe generation"
            findings.append(Finding("unknown", text, "see `nvidia-smi -q`: this driver has other words for it"))
    generations = [whole(row.get(_MAX, "")) for row in told]
    facts = {"links": [f"{card.address} {card.speed or 0:g}" for card in cards], "gpu_generations": generations}
    return judged(
        findings, Result("pass", f"{counted(len(cards) + len(told), 'PCIe link')} at full speed", facts=facts)
    )


def _slow(card: Device, expected: float | None) -> Finding | None:
    full = min((speed for speed in (expected, card.max_speed) if speed is not None), default=None)
    if card.width is None:
        return None  # no link: part of the chip set, or of a virtual machine
    if card.speed is None:
        return Finding("unknown", f"{card.address} does not tell the speed of its link", "see `lspci -vv`")
    if full is None or card.speed >= full:
        return None
    return Finding("fail", f"{card.address} has {card.speed:g} of {full:g} GT/s", _REMEDY)


CHECK = Check("pcie-speed", "major", 60, look)

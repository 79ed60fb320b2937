"""Lanes of the PCIe links of GPUs and RDMA cards. Their speed is not judged: idle GPUs lower it to save power."""

from ..machine import Machine
from ..pci import Device, devices
from ..result import Check, Result, counted, listed


def look(machine: Machine) -> Result:
    """What each link has against what the card could have, and the class should."""
    cards = [card for card in devices(machine) if card.is_gpu or card.is_nic]
    facts = {"links": [f"{card.address} x{card.width or '?'}" for card in cards]}
    expected = machine.expected.pcie_width
    if not cards:
        if expected and machine.expected.gpus:
            return Result(
                "unknown", f"x{expected} expected, and no GPU is on the PCI bus", "see the check gpu-count", facts
            )
        return Result("absent", "neither a GPU nor an RDMA card is on the PCI bus", facts=facts)
    narrow = [
        f"{card.address} has x{card.width} of x{_full(card, expected)}" for card in cards if _narrow(card, expected)
    ]
    if narrow:
        remedy = "reseat the card or its riser; see the firmware's set-up for bifurcation"
        return Result("fail", f"PCIe links are narrower than they should be: {listed(narrow)}", remedy, facts)
    if not any(card.width for card in cards):
        return Result(
            "unknown", f"the kernel does not say how wide the links of {counted(len(cards), 'card')} are", "", facts
        )
    return Result("pass", f"{counted(len(cards), 'PCIe link')} at full width", facts=facts)


def _full(card: Device, expected: int | None) -> int:
    """GPUs by the class, all others by what they can."""
    return expected if card.is_gpu and expected is not None else card.max_width or 0


def _narrow(card: Device, expected: int | None) -> bool:
    return card.width is not None and card.width < _full(card, expected)


CHECK = Check("pcie-width", "major", 30, look)

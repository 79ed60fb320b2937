"""Lanes of the PCIe links of GPUs and RDMA cards. Their speed is not judged: idle GPUs lower it to save power."""

from ..machine import Machine
from ..pci import Device, devices
from ..result import Check, Result, counted, listed


def look(machine: Machine) -> Result:
    """What each link has against what the card could have, and the class should."""
    found = [one for one in devices(machine) if one.is_gpu or one.is_nic]
    facts = {"links": [f"{one.address} x{one.width or '?'}" for one in found]}
    wanted = machine.expected.pcie_width
    if not found:
        if wanted and machine.expected.gpus:
            return Result(
                "unknown", f"x{wanted} expected, and no GPU is on the PCI bus", "see the check gpu-count", facts
            )
        return Result("absent", "neither a GPU nor an RDMA card is on the PCI bus", facts=facts)
    narrow = [f"{one.address} has x{one.width} of x{_full(one, wanted)}" for one in found if _narrow(one, wanted)]
    if narrow:
        remedy = "reseat the card or its riser; see the firmware's set-up for bifurcation"
        return Result("fail", f"PCIe links are narrower than they should be: {listed(narrow)}", remedy, facts)
    if not any(one.width for one in found):
        return Result(
            "unknown", f"the kernel does not say how wide the links of {counted(len(found), 'card')} are", "", facts
        )
    return Result("pass", f"{counted(len(found), 'PCIe link')} at full width", facts=facts)


def _full(one: Device, wanted: int | None) -> int:
    """GPUs by the class, all others by what they can."""
    return wanted if one.is_gpu and wanted is not None else one.max_width or 0


def _narrow(one: Device, wanted: int | None) -> bool:
    return one.width is not None and one.width < _full(one, wanted)


CHECK = Check("pcie-width", "major", 30, look)

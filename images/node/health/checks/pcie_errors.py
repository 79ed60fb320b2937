"""Errors of PCIe links, by how much they grew. Sources: Linux Documentation/ABI/testing/sysfs-bus-pci-devices-aer_stats
(`TOTAL_ERR_COR`, `TOTAL_ERR_NONFATAL`, `TOTAL_ERR_FATAL`); nvidia-smi(1), "Replays Since Reset"."""

import re

from ..kept import outgrown
from ..machine import Machine
from ..nvidia import unread
from ..pci import devices, gpus
from ..result import Check, Result, counted, judged
from ..smi import details, whole

_KINDS = ("correctable", "nonfatal", "fatal")
_REPLAYS = "PCI/Replays Since Reset"
_REMEDY = "reseat the card or its riser; see the kernel log for AER; then the card, then the board"


def total(text: str) -> int | None:
    """From one of a device's `aer_dev_...` files; None: it does not say. Never raises."""
    match = re.search(r"^TOTAL_ERR_\w{1,10} (\d{1,18})$", text, re.MULTILINE | re.ASCII)
    return int(match[1]) if match else None


def look(machine: Machine) -> Result:
    """Of GPUs, NVSwitches, network cards and disks, where the kernel counts them; replays of GPUs."""
    cards = [card for card in devices(machine) if card.is_gpu or card.is_nvswitch or card.is_nic or card.is_disk]
    counts = {}
    for card in cards:
        for kind in _KINDS:
            count = total(machine.text(f"sys/bus/pci/devices/{card.address}/aer_dev_{kind}") or "")
            if count is not None:
                counts[card.address, f"pcie_{kind}"] = count
    told = details(machine) if gpus(machine) else []
    for at, row in enumerate(told):
        replays = whole(row.get(_REPLAYS, ""))
        if replays is not None:
            counts[f"GPU {at}", "pcie_replays"] = replays
    if not cards or not counts:
        return Result("absent", f"no counter of PCIe errors, of {counted(len(cards), 'card')}")
    findings = unread(machine, told, (_REPLAYS,)) if told else []
    findings += outgrown(machine, CHECK.name, counts, _REMEDY, failing=("pcie_nonfatal", "pcie_fatal"))
    return judged(findings, Result("pass", f"no PCIe error too many, by {counted(len(counts), 'counter')}"))


CHECK = Check("pcie-errors", "major", 60, look)

"""How many NVIDIA GPUs are on the PCI bus, whether any driver knows them or not."""

from ..machine import Machine
from ..pci import gpus
from ..result import Check, Result, counted


def look(machine: Machine) -> Result:
    """By sysfs, so that a GPU that no driver could start is seen too."""
    found = gpus(machine)
    wanted = machine.expected.gpus
    driven = [one.address for one in found if machine.names(f"sys/bus/pci/devices/{one.address}/driver")]
    facts = {"gpus": len(found), "addresses": [one.address for one in found], "with_driver": len(driven)}
    if not found and not wanted:
        return Result("absent", "no NVIDIA GPU is on the PCI bus, and none is expected", facts=facts)
    if wanted is not None and len(found) < wanted:
        here = "none" if not found else f"only {len(found)}"
        remedy = "power-cycle it; then see the BMC's log and the board: no driver brings back what is not on the bus"
        return Result("fail", f"{counted(wanted, 'GPU')} expected, {here} on the PCI bus", remedy, facts)
    if wanted is not None and len(found) > wanted:
        words = f"{counted(wanted, 'GPU')} expected, {len(found)} on the PCI bus"
        return Result("warn", words, "correct `health.gpus`", facts)
    return Result("pass", f"{counted(len(found), 'GPU')} on the PCI bus", facts=facts)


CHECK = Check("gpu-count", "critical", 30, look)

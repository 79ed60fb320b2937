"""How many NVIDIA GPUs are on the PCI bus, whether any driver knows them or not."""

from ..machine import Machine
from ..pci import gpus
from ..result import Check, Result, counted


def look(machine: Machine) -> Result:
    """By sysfs, so that a GPU that no driver could start is seen too."""
    on_bus = gpus(machine)
    expected = machine.expected.gpus
    driven = [gpu.address for gpu in on_bus if machine.names(f"sys/bus/pci/devices/{gpu.address}/driver")]
    facts = {"gpus": len(on_bus), "addresses": [gpu.address for gpu in on_bus], "with_driver": len(driven)}
    if not on_bus and not expected:
        return Result("absent", "no NVIDIA GPU is on the PCI bus, and none is expected", facts=facts)
    if expected is not None and len(on_bus) < expected:
        here = "none" if not on_bus else f"only {len(on_bus)}"
        remedy = "power-cycle it; then see the BMC's log and the board: no driver brings back what is not on the bus"
        return Result("fail", f"{counted(expected, 'GPU')} expected, {here} on the PCI bus", remedy, facts)
    if expected is not None and len(on_bus) > expected:
        summary = f"{counted(expected, 'GPU')} expected, {len(on_bus)} on the PCI bus"
        return Result("warn", summary, "correct `health.gpus`", facts)
    return Result("pass", f"{counted(len(on_bus), 'GPU')} on the PCI bus", facts=facts)


CHECK = Check("gpu-count", "critical", 30, look)

"""The GPUs that the driver has: each with a UUID of its own, and of the model that the class has."""

from ..machine import Machine
from ..nvidia import nothing_to_ask, query, unread
from ..pci import gpus
from ..result import Check, Result, counted, judged, listed

_FIELDS = ("index", "uuid", "name", "pci.bus_id", "driver_version")


def look(machine: Machine) -> Result:
    """As many as on the bus, UUIDs that differ, and the class's model in every name."""
    if nothing := nothing_to_ask(machine):
        return nothing
    rows = query(machine, _FIELDS)
    uuids = [row["uuid"] for row in rows]
    models = sorted({row["name"] for row in rows})
    facts = {"uuids": uuids, "models": models, "driver": rows[0]["driver_version"]}
    on_bus = len(gpus(machine))
    if len(rows) < on_bus:
        missing = f"{counted(on_bus, 'GPU')} on the PCI bus, the driver has {len(rows)}"
        return Result("fail", missing, "see the kernel log for NVRM; a power cycle, then the board", facts)
    if broken := unread(machine, rows, _FIELDS):
        return judged(broken, Result("pass", "", facts=facts))
    if len(set(uuids)) < len(uuids) or not all(uuids):
        return Result(
            "fail", "GPUs without a UUID of their own", "see `nvidia-smi -L`; have the board looked at", facts
        )
    model = machine.expected.gpu_model
    others = [name for name in models if model is not None and model.lower() not in name.lower()]
    if others:
        return Result("fail", f"model {model} expected, there is {listed(others)}", "correct `health.gpu_model`", facts)
    return Result("pass", f"{counted(len(rows), 'GPU')}: {listed(models)}", facts=facts)


CHECK = Check("gpu-uuid", "critical", 60, look)

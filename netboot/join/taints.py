"""With which taints a node is to register."""

from netboot.machines.values import HELD, UNATTESTED, UNCHECKED, AssuranceLevel, Machine


def taints_of(machine: Machine, assurance: AssuranceLevel, *, held: bool = False) -> tuple[str, ...]:
    """With which taints the node is to register: those that are declared, and ours; an empty value is none. `held`:
    whether the machine is."""
    taints = [taint.replace("=:", ":") for taint in machine.node.taints]
    ours = ((UNCHECKED,) if assurance == "tpm" else (UNCHECKED, UNATTESTED)) + ((HELD,) if held else ())
    keys = {_key(taint) for taint in taints}
    return (*taints, *(f"{key}:NoSchedule" for key in ours if key not in keys))


def _key(taint: str) -> str:
    return taint.partition(":")[0].partition("=")[0]

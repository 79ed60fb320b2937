"""With which taints a node is to register."""

from netboot.lifecycle.transitions import Mark
from netboot.machines.values import HELD, UNATTESTED, UNCHECKED, AssuranceLevel, Machine


def taints_of(machine: Machine, assurance: AssuranceLevel, *, held: bool = False) -> tuple[str, ...]:
    """With which taints the node is to register: those that are declared, and ours; an empty value is none. `held`:
    whether the machine is; the taint says by its value that it is ours, to take off again."""
    taints = [taint.replace("=:", ":") for taint in machine.node.taints]
    ours = (UNCHECKED,) if assurance == "tpm" else (UNCHECKED, UNATTESTED)
    keys = {_key(taint) for taint in taints}
    taints += [f"{key}:NoSchedule" for key in ours if key not in keys]
    kept_off = any(_key(taint) == HELD and taint.endswith(":NoSchedule") for taint in taints)
    return (*taints, f"{HELD}={Mark.HELD}:NoSchedule") if held and not kept_off else tuple(taints)


def _key(taint: str) -> str:
    return taint.partition(":")[0].partition("=")[0]

"""With which taints a node is to register, and whether what operators want of its machine lets it."""

from netboot.join.errors import RefusedError
from netboot.lifecycle.intents import Intents, marks_of
from netboot.lifecycle.transitions import Mark
from netboot.machines.values import HELD, UNATTESTED, UNCHECKED, AssuranceLevel, Machine

CHECK_FIRST = f"{UNCHECKED}:NoExecute"
"""NoExecute, for a kubelet turns away Pods that are bound to its node already by this effect alone
(kubernetes/pkg/kubelet/lifecycle/predicate.go): those of the boot before, which a power cut left there."""


def held(intents: Intents, machine: str, now_ms: int) -> bool:
    """Whether it is held: then its node registers with the taint that says so.

    Raises:
        RefusedError: it is in quarantine; why, the machine is not told. CannotTellError: it cannot be told.
    """
    marks = marks_of(intents.of(machine, now_ms))
    if Mark.QUARANTINED in marks:
        raise RefusedError(f"{machine} is in quarantine: `netboot machine readmit {machine}` lets it join again")
    return Mark.HELD in marks


def taints_of(machine: Machine, assurance: AssuranceLevel, *, held: bool = False) -> tuple[str, ...]:
    """With which taints the node is to register: those that are declared, and ours; an empty value is none. `held`:
    whether the machine is; the taint says by its value that it is ours, to take off again."""
    taints = [taint.replace("=:", ":") for taint in machine.node.taints]
    ours = (CHECK_FIRST,) if assurance == "tpm" else (CHECK_FIRST, f"{UNATTESTED}:NoSchedule")
    keys = {_key(taint) for taint in taints}
    taints += [taint for taint in ours if _key(taint) not in keys]
    kept_off = any(_key(taint) == HELD and taint.endswith(":NoSchedule") for taint in taints)
    return (*taints, f"{HELD}={Mark.HELD}:NoSchedule") if held and not kept_off else tuple(taints)


def _key(taint: str) -> str:
    return taint.partition(":")[0].partition("=")[0]

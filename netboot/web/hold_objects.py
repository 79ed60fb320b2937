"""Holds that are objects are let go by deleting those (`kubectl delete hold`), and not here: they would come back."""

from netboot.lifecycle.errors import ActRefusedError
from netboot.lifecycle.holds import of_owner, owner_of, shown
from netboot.lifecycle.intents import Change, Order, TakeOff
from netboot.lifecycle.transitions import Mark
from netboot.web.dependencies import dependencies


def refuse_alone(machine: str, act: str) -> None:
    """Where there are several replicas, whose leader would undo what is put on here.

    Raises:
        ActRefusedError: says what to do.
    """
    if not dependencies().replicas:
        return
    how = f"put it on as a Hold object (docs/custom-resources.md), which all replicas know: machine {machine}"
    if act != "hold":
        how = "hold it by a Hold object, which all replicas know, and retire it where it must not join"
    if act == "accept":
        how = "say in the inventory what its class's gate requires"
    raise ActRefusedError(f"`{act}` is known to this replica alone, and another that leads would undo it: {how}")


def unholding(reason: str) -> TakeOff:
    """Hold it no more, whoever held it but objects of the namespace that is followed."""
    namespace = dependencies().holds_in
    return TakeOff(Mark.HELD, reason, but=owner_of(namespace, "") if namespace else "")


def refuse(machine: str, order: Order, change: Change) -> None:
    """Where objects alone hold it.

    Raises:
        ActRefusedError: says which, and what to do.
    """
    if not change.act and (how := _how(order, change)):
        raise ActRefusedError(f"{machine} is held by an object of Kubernetes, for as long as that is there: {how}")


def still(order: Order, change: Change) -> str:
    """What follows where other holds were let go, and objects hold it still; "": none does."""
    return f"it is held still, by an object of Kubernetes: {how}" if (how := _how(order, change)) else ""


def _how(order: Order, change: Change) -> str:
    """How to let go what an order left; "": it left nothing, or is none that leaves anything."""
    stays = change.stands if isinstance(order, TakeOff) else ()
    if not stays:
        return ""
    names = " ".join(shown(of_owner(one.owner)[1]) for one in stays)
    return f"`kubectl delete -n {dependencies().holds_in} {names}` (where there is none any more, apply it again first)"

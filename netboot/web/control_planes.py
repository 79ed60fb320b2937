"""Machines of control planes, for those who order something of them: which those are, and whether one may go now."""

from collections.abc import Collection

from netboot.lifecycle import control_planes
from netboot.lifecycle.budget import by_whom
from netboot.lifecycle.errors import CannotTellError, RolloutRefusedError
from netboot.lifecycle.published import View
from netboot.stores.control_planes import SaidControlPlanes
from netboot.web.dependencies import dependencies


def of_control_planes(view: View) -> set[str]:
    """Names of those that are."""
    return control_planes.names_of(view.snapshot, _said())


def hindrance(view: View, machine: str) -> str | None:
    """Why a machine of a control plane may not go out of service now; "": it may; None: it is of none."""
    return _hindrances(view, [machine]).get(machine)


def require_control_plane(view: View, named: Collection[str]) -> None:
    """Raises RolloutRefusedError: one of these may not go out of service now, or nobody can tell."""
    for name, why in sorted(_hindrances(view, named).items()):
        if why:
            raise RolloutRefusedError(f"{name} is of a control plane, and may not go now: {why}")


def _hindrances(view: View, names: Collection[str]) -> dict[str, str]:
    deps, machines = dependencies(), view.snapshot.inventory.machines
    try:
        by = by_whom(deps.drains.standing(), deps.intents.all(deps.clock.now_ms()))
        return control_planes.hindrances(names, machines, _said(), deps.conditions.judged, by)
    except CannotTellError as error:
        return dict.fromkeys(names, f"who is out of service cannot be told: {error}")


def _said() -> SaidControlPlanes:
    deps = dependencies()
    return SaidControlPlanes(deps.status, deps.clock.now_ms)

"""Windows in which a machine may enrol its TPM, or boot without one: none opens where nothing would come of it."""

import secrets
from typing import Annotated

from pydantic import Field

from netboot.machines.values import Machine
from netboot.web.dependencies import dependencies

WindowSeconds = Annotated[int, Field(ge=60, le=86_400)]
_FOR_NOTHING = "so nothing would come of it"


def new_window() -> str:
    """An id that nobody can guess."""
    return secrets.token_hex(16)


def until(seconds: int) -> int:
    """When a window ends that opens now, milliseconds since 1970."""
    return dependencies().clock.now_ms() + seconds * 1000


def nowhere(machine: Machine) -> str:
    """Why a machine has nothing to join, with what to do about it; "": it has."""
    deps = dependencies()
    if not deps.has_join:
        return f"{machine.name} proves itself to nobody, {_FOR_NOTHING}: netboot.yaml has no `join` (docs/join.md)"
    if not deps.joins(machine):
        which = "`join` and `clusters` of netboot.yaml say which there are (docs/kubernetes.md)"
        return f"{machine.name} joins no cluster of this service, {_FOR_NOTHING}: {which}"
    return ""


def useless(name: str) -> str:
    """Why a machine could not use a window in which its TPM may enrol, with what to do about it; "": it could."""
    machine = dependencies().live.view().index.named(name)
    if machine is None:
        return f"{name} is not in the inventory, {_FOR_NOTHING}: declare it there first"
    if machine.enabled:
        return nowhere(machine)
    return f"{name} is disabled in the inventory and boots nothing, {_FOR_NOTHING}: enable it there first"

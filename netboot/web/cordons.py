"""A machine whose Node goes, and with it somebody's cordon, is held: by this process, which may hold it itself."""

from contextlib import suppress

from netboot.lifecycle.cordons import Cordon, hold_of
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import Intent
from netboot.web.dependencies import dependencies
from netboot.web.intents import marks
from netboot.web.operators import audit


def hold(machine: str, cordon: Cordon) -> None:
    """Hold it, and write that down; what was asked for is yet to be done. Raises CannotTellError: it is not held."""
    deps, order = dependencies(), hold_of(cordon)
    now = deps.clock.now_ms()
    was = marks(deps.intents.of(machine, now))
    change = deps.intents.order(machine, order, cordon.who, now)
    standing: list[Intent] | None = None
    with suppress(CannotTellError):  # it is held all the same
        standing = deps.intents.of(machine, now)
    facts, after = {"cordoned_by": cordon.who}, marks(standing) if standing is not None else None
    did = bool(change.act)
    audit("hold", facts, machine=machine, reason=order.reason, before=was, after=after, changed=did, whole=False)

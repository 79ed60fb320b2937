"""Whether what was found of machines is how they are now: what acts by itself asks before it does (rule L11)."""

from netboot.status import FRESH_MS
from netboot.status.controllers import LifecycleStatus

MOST_WAITING = 100
"""Machines that wait to be judged; with more of them, what is known is too old to tell who is late."""


def unheard(said: LifecycleStatus | None, up_ms: int) -> str:
    """Why it may not be, by what the lifecycle's loop said last; empty: it is, wherever that can see."""
    if said is None or abs(up_ms - said.up_ms) > FRESH_MS:
        return "the lifecycle loop is silent"
    if said.problem:
        return f"the lifecycle loop says: {said.problem}"
    return f"more than {MOST_WAITING} machines wait to be judged" if said.waiting > MOST_WAITING else ""


def blind(said: LifecycleStatus | None) -> str:
    """Where it may not be so though the loop is heard; empty: it is everywhere."""
    places = [place.rstrip("/") for place in said.unseen] if said is not None else []
    return f"{', '.join(places)} cannot be looked at" if places else ""

"""What operators want of a machine, as far as joining goes."""

from netboot.join.errors import RefusedError
from netboot.lifecycle.intents import Intents, marks_of
from netboot.lifecycle.transitions import Mark


def held(intents: Intents, machine: str, now_ms: int) -> bool:
    """Whether it is held: then its node registers with the taint that says so.

    Raises:
        RefusedError: it is in quarantine; why, the machine is not told. CannotTellError: it cannot be told.
    """
    marks = marks_of(intents.of(machine, now_ms))
    if Mark.QUARANTINED in marks:
        raise RefusedError(f"{machine} is in quarantine: `netboot machine readmit {machine}` lets it join again")
    return Mark.HELD in marks

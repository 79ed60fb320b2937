"""Reads and writes of one Rollout, as `netboot.stores.shared_rollouts` needs them."""

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.errors import NoSuchRolloutError, RolloutRefusedError
from netboot.lifecycle.rollout_objects import RolloutObject, RolloutObjects, RolloutSaid, spec_of


def read(objects: RolloutObjects, number: int) -> tuple[RolloutObject, RolloutSaid]:
    """As it is there now."""
    there = objects.read(number)
    if there is None:
        raise NoSuchRolloutError(f"there is no rollout {number}")
    if there.said is None:
        raise ClusterUnavailableError(f"{there.fault}: correct it there; if it is deleted, the rollout has ended")
    return there, there.said


def written(objects: RolloutObjects, said: RolloutSaid, before: RolloutObject | None) -> RolloutObject | None:
    """The object that says so; None: it is another one by now. Whether a write was done that was not answered is
    asked, once. Raises RolloutRefusedError: it is too large for one."""
    number = said.rollout.number
    try:
        spec = spec_of(said)
    except ValueError as error:
        raise RolloutRefusedError(str(error)) from None
    try:
        return objects.write(number, spec, before)
    except ConflictError:
        return None
    except ClusterUnavailableError:
        there = objects.read(number)
        if there is None or there.said is None or spec_of(there.said) != spec:
            raise
        return there

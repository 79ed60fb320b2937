"""What may be declared by the API: no more removed at once than an edit may, and of strangers what they said."""

from netboot.lifecycle.errors import (
    BadClaimError,
    InventoryUnreadError,
    NoSuchMachineError,
    PreconditionFailedError,
    TooManyRemovedError,
)
from netboot.machines.another import became_others
from netboot.machines.difference import names, too_many_of
from netboot.machines.former import staying
from netboot.machines.identity import parse_mac
from netboot.machines.values import Inventory
from netboot.status.controllers import PublisherStatus
from netboot.web.dependencies import dependencies
from netboot.web.sightings import Sighting, sightings

LOOKED_AT = 10_000
"""Discovered machines, of which the latest with that MAC counts."""


def few_enough(then: Inventory) -> None:
    """Of what would be declared, refuse what the publisher would let nobody boot by before an operator accepts it.

    Raises:
        TooManyRemovedError: more would go than may at once, within an hour. InventoryUnreadError: nobody can tell.
    """
    deps = dependencies()
    in_force = deps.live.view().snapshot.inventory
    of, others = names(in_force), len(set(became_others(in_force, then)))
    after = staying(then, of)
    if not of - after and not others:
        return
    publisher = deps.status.read("publisher", PublisherStatus)
    if publisher is None:
        raise InventoryUnreadError("the publisher has not said yet how many machines went lately")
    lately, limits = publisher.inventory.lately, deps.inventory_limits
    gone = lately + len(of - after) + others
    percent, minimum = limits.removals_percent, limits.removals_minimum
    if too_many_of(gone, lately + len(of), percent, minimum, left=bool(after)):
        raise TooManyRemovedError(
            f"{gone} of {lately + len(of)} machines would be gone{' or be others' if others else ''} within an hour; "
            f"{percent} % of them may go, and {minimum} at least, and never all"
        )


def seen(mac: str, shown: str) -> Sighting:
    """What the machine with that MAC said last. `shown`: the digest of what somebody decided by; empty: of nothing.

    Raises:
        BadClaimError: it is no MAC. NoSuchMachineError: none with that MAC asked and may not boot.
        PreconditionFailedError: it says something else by now.
    """
    try:
        wanted = parse_mac(mac)
    except ValueError as error:
        raise BadClaimError(str(error), field="mac") from None
    found = [each for each in sightings(LOOKED_AT) if each.mac == wanted]
    if not found:
        raise NoSuchMachineError(f"no machine with the MAC {wanted} asked and may not boot")
    if shown and shown != found[0].seen:
        raise PreconditionFailedError(
            f"the machine with the MAC {wanted} says something else of itself by now ({found[0].seen}) than was shown "
            f"({shown}): look at it again, it may be another"
        )
    return found[0]

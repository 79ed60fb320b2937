"""What may be declared by the API: no more removed at once than an edit may, and of strangers what they said."""

from netboot.lifecycle.errors import (
    BadClaimError,
    InventoryUnreadError,
    NoSuchMachineError,
    PreconditionFailedError,
    StateUnavailableError,
    TooManyRemovedError,
)
from netboot.machines.identity import parse_mac
from netboot.machines.removals import Removals, counted
from netboot.machines.values import Inventory
from netboot.status.controllers import PublisherStatus
from netboot.web.dependencies import dependencies
from netboot.web.sightings import Sighting, sightings

LOOKED_AT = 10_000
"""Discovered machines, of which the latest with that MAC counts."""


def removals_lately() -> Removals:
    """Raises InventoryUnreadError."""
    try:
        return dependencies().removals.read()
    except StateUnavailableError as error:
        raise InventoryUnreadError(f"which machines went within the last hour cannot be told: {error}") from None


def few_enough(then: Inventory) -> None:
    """Of what would be declared, refuse what the publisher would let nobody boot by before an operator accepts it.

    Raises:
        TooManyRemovedError: more would go than may at once, within an hour. InventoryUnreadError: nobody can tell.
    """
    deps = dependencies()
    removals, limits = removals_lately(), deps.inventory_limits
    found = counted(deps.live.view().snapshot.inventory, then, removals)
    if not found.removed and not found.others:
        return
    if removals.known is None:
        raise InventoryUnreadError(
            "which machines went within the last hour cannot be told: for an hour nothing that removes machines, adds "
            "some or changes by what they are known is taken"
        )
    if deps.status.read("publisher", PublisherStatus) is None:
        raise InventoryUnreadError("the publisher has not said yet how many machines went lately")
    percent, minimum = limits.removals_percent, limits.removals_minimum
    if (many := found.too_many(percent, minimum)) is not None:
        there = " that were there before this hour" if many is found.older else ""
        raise TooManyRemovedError(
            f"{many.gone} of {many.of} machines{there} would be gone{' or be others' if found.others else ''} within "
            f"an hour; {percent} % of them may go, and {minimum} at least, and never all"
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

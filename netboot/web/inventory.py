"""`/v1/inventory/…`: what the files of the inventory would change, and accepting a large removal."""

from typing import Literal

from images.values.strict import FaultsError, Strict
from images.values.types import Sha256
from netboot.lifecycle.errors import InventoryChangedError, InventoryUnreadError
from netboot.machines.difference import Difference, differences, digest_of
from netboot.status.controllers import PendingInventory, PublisherStatus
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.enrolments import Reason
from netboot.web.errors import FaultyError
from netboot.web.operators import audit


class Accept(Strict):
    """The body of a POST. `digest`: of the inventory that was shown."""

    digest: Sha256
    reason: Reason = ""
    dry_run: bool = False


class Compared(Shown):
    """The files against what is in force. `state`: `in-force`, `waits` (to be accepted), or `new`: the publisher has
    yet to read them."""

    digest: Sha256
    state: Literal["in-force", "waits", "new"]
    machines_in_force: int
    machines_then: int
    machines: Difference
    profiles: Difference
    channels: Difference
    classes: Difference
    racks: Difference
    maintenance: Difference


class Accepted(Shown):
    """`removed`: how many machines of `of` are; `dry_run`: as it would be."""

    accepted: Sha256
    dry_run: bool
    removed: int
    of: int


def compared() -> Compared:
    """The files as they are now against what is in force."""
    deps, publisher = dependencies(), _publisher()
    in_force = deps.live.view().snapshot.inventory
    if publisher is not None and publisher.inventory.late:  # whoever reads them here would wait as long
        raise InventoryUnreadError(f"the inventory cannot be compared: {publisher.inventory.late}")
    try:
        now = deps.declared()
    except FaultsError as error:
        raise FaultyError(error.faults, "correct the files; the inventory in force stays so meanwhile") from None
    digest, pending = digest_of(now), _pending()
    state: Literal["in-force", "waits", "new"] = "in-force" if digest == digest_of(in_force) else "new"
    if pending is not None and pending.digest == digest:
        state = "waits"
    compared = differences(in_force, now)
    return Compared(
        digest=digest,
        state=state,
        machines_in_force=len(in_force.machines),
        machines_then=len(now.machines),
        **compared,
    )


def accepted(body: Accept) -> Accepted:
    """Let the inventory that waits come into force, if it is the one that was shown."""
    pending = _pending()
    if pending is None:
        raise InventoryChangedError("no inventory waits to be accepted")
    if pending.digest != body.digest:
        message = f"what waits is inventory {pending.digest[:12]}, not {body.digest[:12]}: its files changed since"
        raise InventoryChangedError(message)
    removed = pending.removed
    if body.dry_run:
        return Accepted(accepted=body.digest, removed=removed, of=pending.of, dry_run=True)
    deps = dependencies()
    in_force, was = digest_of(deps.live.view().snapshot.inventory), deps.acceptance.read()
    deps.acceptance.write(body.digest)
    facts = {"digest": body.digest, "removed": removed, "of": pending.of}
    before, after = ({"in_force": in_force, "accepted": digest} for digest in (was, body.digest))
    audit("accept-inventory", facts, reason=body.reason, before=before, after=after)
    return Accepted(accepted=body.digest, removed=removed, of=pending.of, dry_run=False)


def _publisher() -> PublisherStatus | None:
    """Raises CannotTellError."""
    return dependencies().status.read("publisher", PublisherStatus)


def _pending() -> PendingInventory | None:
    publisher = _publisher()
    return publisher.inventory.pending if publisher is not None else None

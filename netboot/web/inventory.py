"""`/v1/inventory/…`: what is declared and would change, and accepting what changes much; what is declared but machines
(`netboot.web.declared`), and declaring it (docs/http-management.md)."""

from typing import Literal, get_args

from pydantic import SkipValidation
from werkzeug.routing import BaseConverter

from images.values.strict import FaultsError, Strict
from images.values.types import Sha256
from netboot.lifecycle.errors import InventoryChangedError, InventoryUnreadError
from netboot.machines.another import became_others
from netboot.machines.classes import Class
from netboot.machines.declared import KINDS
from netboot.machines.difference import Difference, differences, digest_of
from netboot.machines.maintenance import Window
from netboot.machines.values import Channel, Profile, Rack
from netboot.status.controllers import PendingInventory, PublisherStatus
from netboot.web.binding import Shown
from netboot.web.declared_items import (
    DeclaredActed,
    DeclaredListed,
    DeclaredShown,
    Removing,
    declare_item,
    listed_of,
    named,
    shown_item,
)
from netboot.web.declaring import removals_lately
from netboot.web.dependencies import dependencies
from netboot.web.enrolments import Reason
from netboot.web.errors import FaultyError
from netboot.web.intents import MayBeWhy
from netboot.web.operators import audit
from netboot.web.pages import PageAsked, Paged, page

Kind = Literal["profiles", "channels", "classes", "racks", "maintenance"]


class KindInPath(BaseConverter):
    """One of the kinds: other words below `/v1/inventory` are other things, or none."""

    regex = "|".join(get_args(Kind))


"""As the inventory's files call them."""


class Accept(Strict):
    """The body of a POST. `digest`: of the inventory that was shown."""

    digest: Sha256
    reason: Reason = ""
    dry_run: bool = False


class Compared(Shown):
    """What is declared against what is in force. `state`: `in-force`, `waits` (to be accepted), or `new`: the publisher
    has yet to read it. `others`: machines that would be recognised by something else, or let in by another proof;
    `again`: those of them that went within the last hour; `untold`: which did cannot be told, and who is new may be one
    of them, so is among `others`."""

    digest: Sha256
    state: Literal["in-force", "waits", "new"]
    machines_in_force: int
    machines_then: int
    others: tuple[str, ...]
    again: tuple[str, ...]
    untold: bool
    machines: Difference
    profiles: Difference
    channels: Difference
    classes: Difference
    racks: Difference
    maintenance: Difference


class Accepted(Shown):
    """`removed`: how many machines of `of` are; `others`: how many are recognised by something else, or let in by
    another proof; `dry_run`: as it would be."""

    accepted: Sha256
    dry_run: bool
    removed: int
    others: int
    of: int


class DeclaredItems(Paged):
    """In the order of the files. `problems`: files that cannot be read, whose items are not in there."""

    items: tuple[DeclaredListed, ...]
    problems: tuple[str, ...]


class DeclaringItem(Strict):
    """The body of PUT: the item as a file of the inventory has it."""

    declared: SkipValidation[Profile | Channel | Class | Rack | Window]
    reason: MayBeWhy = ""
    dry_run: bool = False


def listed(kind: Kind, query: PageAsked) -> DeclaredItems:
    """What is declared of a kind, also where that is not in force."""
    items, problems = dependencies().inventory_files.items(KINDS[kind])
    once = list({item.name: item for item in items}.values())
    part, more = page(query, once, lambda item: item.name)
    return DeclaredItems(items=tuple(map(listed_of, part)), problems=problems, next_page=more)


def shown(kind: Kind, name: str) -> DeclaredShown:
    """One, as it is declared."""
    return shown_item(KINDS[kind], name)


def put(kind: Kind, name: str, body: DeclaringItem) -> DeclaredActed:
    """Declare one, or declare it otherwise."""
    value = named(body.declared, KINDS[kind], name)
    return declare_item(KINDS[kind], name, value, body.reason, dry_run=body.dry_run)


def removed(kind: Kind, name: str, query: Removing) -> DeclaredActed:
    """Declare one no more, where nothing refers to it."""
    return declare_item(KINDS[kind], name, None, query.reason, dry_run=query.dry_run == "true")


def compared() -> Compared:
    """What is declared now against what is in force."""
    deps, publisher = dependencies(), _publisher()
    in_force = deps.live.view().snapshot.inventory
    if publisher is not None and publisher.inventory.late:  # whoever reads them here would wait as long
        raise InventoryUnreadError(f"the inventory cannot be compared: {publisher.inventory.late}")
    try:
        now = deps.declared()
    except FaultsError as error:
        raise FaultyError(error.faults, "correct what is declared; the inventory in force stays so meanwhile") from None
    digest, pending = digest_of(now), _pending()
    state: Literal["in-force", "waits", "new"] = "in-force" if digest == digest_of(in_force) else "new"
    if pending is not None and pending.digest == digest:
        state = "waits"
    compared, removals = differences(in_force, now), removals_lately()
    others = sorted(became_others(in_force, now, removals.known, removals.left))
    return Compared(
        digest=digest,
        state=state,
        machines_in_force=len(in_force.machines),
        machines_then=len(now.machines),
        others=tuple(others),
        again=tuple(name for name in others if name in removals.went),
        untold=removals.known is None,
        **compared,
    )


def accepted(body: Accept) -> Accepted:
    """Let the inventory that waits come into force, if it is the one that was shown."""
    pending = _pending()
    if pending is None:
        raise InventoryChangedError("no inventory waits to be accepted")
    if pending.digest != body.digest:
        what = f"what waits is inventory {pending.digest[:12]}, not {body.digest[:12]}"
        message = f"{what}: what is declared changed since"
        raise InventoryChangedError(message)
    removed, others, deps = pending.removed, pending.others, dependencies()
    if not body.dry_run:
        in_force, was = digest_of(deps.live.view().snapshot.inventory), deps.acceptance.read()
        deps.acceptance.write(body.digest)
        facts = {"digest": body.digest, "removed": removed, "others": others, "of": pending.of}
        before, after = ({"in_force": in_force, "accepted": digest} for digest in (was, body.digest))
        audit("accept-inventory", facts, reason=body.reason, before=before, after=after)
    return Accepted(accepted=body.digest, removed=removed, others=others, of=pending.of, dry_run=body.dry_run)


def _publisher() -> PublisherStatus | None:
    """Raises CannotTellError."""
    return dependencies().status.read("publisher", PublisherStatus)


def _pending() -> PendingInventory | None:
    publisher = _publisher()
    return publisher.inventory.pending if publisher is not None else None

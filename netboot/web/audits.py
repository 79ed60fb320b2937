"""`GET /v1/audit?machine=&limit=&before=`: who did what, the newest first."""

from typing import Annotated, ClassVar

from images.values.strict import Strict
from netboot.stores.audit import Record
from netboot.web import render
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.inputs import Whole


class AuditAsked(Strict):
    """Of which machine, how many, and from where on: `before` is the `next` of an earlier answer."""

    machine: str | None = None
    limit: Annotated[int, Whole(1, 1_000)] = 50
    before: Annotated[int, Whole(1, 2**62)] | None = None


class RecordShown(Record):
    """`result`: `done`, `unchanged`, or the `code` of the refusal."""

    id: int


class Audit(Shown):
    """The newest first. `next`: where the older ones begin, for `before`, or null."""

    http_kept: ClassVar[bool] = False
    audit: tuple[RecordShown, ...]
    next: int | None


def listed(query: AuditAsked) -> Audit:
    """Acts, and what was refused."""
    found = dependencies().audit.records(query.machine, query.before, query.limit)
    records = tuple(render.grown(RecordShown, record, id=number) for number, record in found)
    return Audit(audit=records, next=found[-1][0] if len(found) == query.limit else None)

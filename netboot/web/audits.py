"""`GET /v1/audit?machine=&limit=&continue=`: who did what, the newest first."""

from typing import Annotated, ClassVar

from netboot.stores.audit import Record
from netboot.web import render
from netboot.web.dependencies import dependencies
from netboot.web.inputs import Whole
from netboot.web.pages import PageAsked, Paged, by_number, written


class AuditAsked(PageAsked):
    """Of which machine, and how many."""

    machine: str | None = None
    limit: Annotated[int, Whole(1, 1_000)] = 50


class RecordShown(Record):
    """`result`: `done`, `unchanged`, or the `code` of the refusal."""

    id: int


class Audit(Paged):
    """The newest first."""

    http_kept: ClassVar[bool] = False
    audit: tuple[RecordShown, ...]


def listed(query: AuditAsked) -> Audit:
    """Acts, and what was refused."""
    found = dependencies().audit.records(query.machine, by_number(query), query.limit + 1)
    there = found[: query.limit]
    records = tuple(numbered(number, record) for number, record in there)
    return Audit(audit=records, next_page=written(str(there[-1][0])) if len(found) > len(there) else None)


def numbered(number: int, record: Record) -> RecordShown:
    """A record as it is shown."""
    return render.grown(RecordShown, record, id=number)

"""A row of a journal as a record, and whether its journal's owner can know what it says."""

import re
from collections.abc import Mapping

from pydantic import TypeAdapter

from netboot.lifecycle.events import AnyRecord, CertificateRecord, EventRecord, Record, SharedRecord
from netboot.lifecycle.phases import REPORTED_PHASES, SERVED_PHASES, Phase

MOST_BODY = 1024**2
"""Bytes of a record; the largest that is written, a health report, has a fortieth of it."""
_HEALTH = re.compile(r'\{"kind":"health","at_ms":[0-9]{1,15},"boot":"([0-9a-f-]{36})",')
_RECORD: TypeAdapter[AnyRecord] = TypeAdapter(Record)


def boot_reporting(body: object) -> str | None:
    """The boot whose health report this is, as boot servers write them; None: another record, or one of other form."""
    match = _HEALTH.match(body) if isinstance(body, str) else None
    return match[1] if match is not None else None


def read_record(body: object) -> AnyRecord:
    """The record in a row's body.

    Raises:
        ValueError: no text, too long, or no record that this version knows.
    """
    if not isinstance(body, str | bytes):
        raise ValueError(f"it is no text but {type(body).__name__}")  # noqa: TRY004 - a row is data, not a programmer's mistake
    if len(body) > MOST_BODY:
        raise ValueError(f"it has {len(body)} characters")
    return _RECORD.validate_json(body)


KNOWS: Mapping[str, frozenset[Phase]] = {
    "boot": SERVED_PHASES | REPORTED_PHASES,
    "join": frozenset({Phase.ATTESTED, Phase.TOKEN_ISSUED}),
    "approver": frozenset({Phase.CSR_APPROVED}),
    "nodes": frozenset({Phase.NODE_REGISTERED, Phase.READY}),
}
"""Kind of process → the phases that it may journal. Scripts, sightings, waits and health reports are boot servers'
alone, the certificates of a boot the approver's, and what other replicas were told the shipper's: no process that
issues tokens can say which of them are its own."""


def require_known(journal: str, record: AnyRecord) -> None:
    """Let a record pass that the owner of `journal` (`boot-0.db`) can know. A process can write into no other journal
    than its own (`netboot.confine`), so this is what one that was broken into may say.

    Raises:
        ValueError: it cannot; or no process of this version has a journal of this name.
    """
    kind = journal.removesuffix(".db").partition("-")[0]
    phases = KNOWS.get(kind, frozenset())
    owner = "approver" if isinstance(record, CertificateRecord) else "boot"
    owner = "shipper" if isinstance(record, SharedRecord) else owner
    known = record.phase in phases if isinstance(record, EventRecord) else kind == owner
    if not known:
        what = record.phase if isinstance(record, EventRecord) else f"a {record.kind} record"
        raise ValueError(f"{what} is not for the owner of this journal to say: it cannot know it")

"""A row of a journal as a record."""

import re

from pydantic import TypeAdapter

from netboot.lifecycle.events import AnyRecord, Record

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

"""What a join server has read of Enrolments in a cluster, for processes that ask no API server (docs/decisions/289)."""

from collections.abc import Mapping

from pydantic import Field

from images.values.strict import Strict
from netboot.status import Timed

NAME = "enrolments"
"""Of the file."""
LARGEST = 16 << 20
"""Bytes: every machine of a large site retired, or with a window."""
AGAIN_MS = 60_000
"""So often it is written at least, while it can be told."""
FRESH_MS = 3 * AGAIN_MS


class BootWindowSaid(Strict):
    """One that is open, and was not used."""

    id: str
    until_ms: int


class EnrolmentsStatus(Timed):
    """`retired`: machine → since when; `windows`: open boot windows, by machine."""

    retired: Mapping[str, int] = Field(default_factory=dict)
    windows: Mapping[str, BootWindowSaid] = Field(default_factory=dict)

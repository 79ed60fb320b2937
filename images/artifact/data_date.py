"""As of when data about vulnerabilities is: what was published later is not in it, and an audit would be silent of it.

OSV records each say when they were changed (`modified`, RFC 3339; https://ossf.github.io/osv-schema/): a file is as
new as its newest. Debian's tracker has no date in it: the file's own is when it was fetched, if nobody touched it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

STALE = timedelta(days=7)
"""Older than this is warned of: distributions publish each day."""
UNKNOWN = "unknown"
_CLOCKS = timedelta(days=1)
"""How far a publisher's clock may be ahead of ours."""
By = Literal["newest record", "file", "unknown"]


@dataclass(slots=True)
class DataDate:
    """Of one file. `record` is told of each OSV record's `modified`; `tracker`, of the file's own date, of nothing."""

    now: datetime
    by: By = "unknown"
    as_of: datetime | None = None

    def record(self, modified: object) -> None:
        """One record's. What is no time, or has not come yet, makes nothing newer."""
        try:
            told = datetime.fromisoformat(modified if isinstance(modified, str) else "")
            said = told.astimezone(UTC) if told.tzinfo is not None else None
        except (ValueError, OverflowError):
            return
        if said is not None and said <= self.now + _CLOCKS and (self.as_of is None or said > self.as_of):
            self.as_of, self.by = said, "newest record"

    def tracker(self, path: Path) -> None:
        """The file is the tracker's."""
        self.as_of, self.by = datetime.fromtimestamp(path.stat().st_mtime, UTC), "file"

    @property
    def stale(self) -> bool:
        """Whether it is known to be older than `STALE`."""
        return self.as_of is not None and self.now - self.as_of > STALE

    def __str__(self) -> str:
        return UNKNOWN if self.as_of is None else f"{self.as_of:%Y-%m-%dT%H:%M:%SZ}"

"""Which remedies were taken lately, for events on Nodes."""

from dataclasses import dataclass

from netboot.lifecycle.remedies import Remedy, RemedyReader

MOST = 50


@dataclass(slots=True)
class TakenSince:
    """What was taken before it was asked first is nobody's news."""

    remedies: RemedyReader
    _last: int | None = None

    def news(self) -> list[Remedy]:
        """Those that were taken since the last call, MOST at most. Raises CannotTellError."""
        if self._last is None:
            latest = self.remedies.latest(None, 1)
            self._last = latest[0].id if latest else 0
        found = self.remedies.taken_after(self._last, MOST)
        self._last = found[-1].id if found else self._last
        return found

"""How far the projection is, and what it met."""

from collections import Counter
from dataclasses import dataclass, field

from netboot.status import ProjectionStatus


@dataclass(slots=True)
class Progress:
    """For `/readyz` and metrics: records taken since the start, rows set aside by origin, lag, trouble and times that
    it was replaced by an older copy of itself by journal."""

    taken: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    lag: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def status(self, now_ms: int) -> ProjectionStatus:
        """As it is the management server reads it."""
        return ProjectionStatus(
            at_ms=now_ms,
            taken=self.taken,
            set_aside=dict(self.set_aside),
            replaced=dict(self.replaced),
            lag_records=self.lag,
            problems=self.problems,
        )

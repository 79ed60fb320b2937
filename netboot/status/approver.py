"""What a cluster's approver says."""

from netboot.status import Condition, Timed
from netboot.status.leading import LeaderStatus


class ApproverStatus(Condition, Timed):
    """`decided`: outcome, reason or purpose, and how many since the process started; `unavailable`: how often the
    cluster could not be asked since then; `waiting`: requests to be seen to, the oldest for `oldest_seconds`."""

    decided: tuple[tuple[str, str, int], ...]
    unavailable: int
    waiting: int
    oldest_seconds: float
    followed: bool = True
    """Whether requests are seen and can be decided: an alert, or one that waits, alters nothing of that."""
    leader: LeaderStatus | None = None
    """None: there is one replica."""

"""What the processes say that follow the custom resources of the inventory, and that write the status of machines'."""

from collections.abc import Mapping

from images.values.strict import Strict
from netboot.status import Condition, Timed
from netboot.status.leading import LeaderStatus


class Followed(Strict):
    """`seen_ms`: when the API server last said what the objects are, or that they are still so; milliseconds since
    1970. `came_ms`: likewise of those that came, whether or not it is believed that others are gone."""

    seen_ms: int
    came_ms: int = 0


class ResourcesStatus(Condition, Timed):
    """`ok`: what is on the disk is what the API server has. `objects`: how many there are, by kind; `age_seconds`: for
    how long the API server has said nothing of them; None: it never has. `unavailable`: times that one of the kinds
    could not be followed, since the process started."""

    objects: Mapping[str, int]
    age_seconds: float | None
    unavailable: int


class ShipperStatus(Condition, Timed):
    """`ok`: objects say what is known, or will within a minute. `lag_seconds`: for how long the one has been behind
    that has been so for longest, None: that cannot be told; `behind`: objects that are to be written; `a_second`: how
    many are written in a second at most, as the API server takes them; `events_waiting`: Events that are to be written;
    `refused`: objects whose status the API server does not take, which do not count as behind; `overwritten`: those
    whose status somebody else writes, too; `followed`: what becomes of them is seen. The others: since the process
    started. `leader`: None: there is one replica."""

    objects: int
    behind: int
    lag_seconds: float | None
    a_second: float
    written: int
    events_waiting: int
    events_dropped: int
    failed: int
    refused: int
    overwritten: int
    followed: bool = True
    leader: LeaderStatus | None = None

"""What the process says that writes the status of machines' objects."""

from netboot.status import Condition, Timed


class ShipperStatus(Condition, Timed):
    """`ok`: objects say what is known, or will within a minute. `lag_seconds`: for how long the one has been behind
    that has been so for longest, None: that cannot be told; `behind`: objects that are to be written; `a_second`: how
    many are written in a second at most, as the API server takes them; `events_waiting`: Events that are to be written.
    The others: since the process started."""

    objects: int
    behind: int
    lag_seconds: float | None
    a_second: float
    written: int
    events_waiting: int
    events_dropped: int
    failed: int

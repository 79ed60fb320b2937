"""What the process says that exports traces of boots."""

from netboot.status import Condition, Timed


class TracesStatus(Condition, Timed):
    """`ok`: the collector takes what there is. `waiting`: boots that are to be exported; `open`: boots that are under
    way. The others: since the process started, in boots, but for `failed`: tries."""

    waiting: int
    open: int
    exported: int
    dropped: int
    failed: int

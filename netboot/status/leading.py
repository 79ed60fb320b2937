"""What a process says of the election of its leader."""

from images.values.strict import Strict


class LeaderStatus(Strict):
    """`leads`: this replica does, as far as it knows now. `leader`: who does, by the Lease; "": nobody, or it cannot be
    told. `epoch`: grows with each leader. `since_ms`: since when that is so as this replica has seen it, milliseconds
    since 1970. `vacant_seconds`: for how long nobody has led, as it sees it. `problem`: why it cannot be told; "": it
    can."""

    replica: str
    leads: bool
    leader: str
    epoch: int
    since_ms: int
    vacant_seconds: float
    problem: str = ""

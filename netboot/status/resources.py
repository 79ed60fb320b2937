"""What the process says that follows the custom resources of the inventory."""

from collections.abc import Mapping

from images.values.strict import Strict
from netboot.status import Condition, Timed


class Followed(Strict):
    """`seen_ms`: when the API server last said what the objects are, or that they are still so; milliseconds since
    1970."""

    seen_ms: int


class ResourcesStatus(Condition, Timed):
    """`ok`: what is on the disk is what the API server has. `objects`: how many there are, by kind; `age_seconds`: for
    how long the API server has said nothing of them; None: it never has. `unavailable`: times that one of the kinds
    could not be followed, since the process started."""

    objects: Mapping[str, int]
    age_seconds: float | None
    unavailable: int

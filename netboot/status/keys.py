"""What the process says that follows the Secret with the keys which replicas share."""

from netboot.status import Condition, Timed


class KeysStatus(Condition, Timed):
    """`ok`: what is on the disk is what the Secret has, and the API server was told so. `age_seconds`: for how long it
    has not said that these are the keys; None: it never has. `unavailable`: times that the Secret could not be
    followed, since the process started."""

    age_seconds: float | None
    unavailable: int

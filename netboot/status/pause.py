"""What the process says that asks outside whether anything may begin."""

from netboot.status import Condition, Timed


class PauseStatus(Condition, Timed):
    """`ok`: it can be told; `may`, `reason`: what was said, or why that cannot be told, in words that stay the same
    while it does. `age_seconds`: since the answer came that counts; None: none does. `asked`, `failed`: how often,
    and how often in vain, since the process started."""

    may: bool
    reason: str
    age_seconds: float | None
    asked: int
    failed: int

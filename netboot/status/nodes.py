"""What a cluster's node collector says."""

from pydantic import Field

from netboot.status import Condition, Timed
from netboot.status.leading import LeaderStatus


class NodesStatus(Condition, Timed):
    """The node collector: Nodes of machines of the inventory, and how many of them are Ready; `followed`: they are
    seen, and what becomes of them is written down. Their gates: how many are `open`, `shut`, `closed`; how many were
    moved since it started; how many more would be closed but for the budget; why they, or one of them, are not."""

    unavailable: int
    registered: int
    ready: int
    gates: dict[str, int] = Field(default_factory=dict)
    gates_moved: dict[str, int] = Field(default_factory=dict)
    gates_withheld: int = 0
    gate_problem: str = ""
    followed: bool = True
    leader: LeaderStatus | None = None
    """None: there is one replica."""

"""What a boot server says."""

from pydantic import Field

from netboot.status import Timed


class BootStatus(Timed):
    """A boot server. What it counted since the service began, those that it took the place of included: by outcome or
    result, or in all; and what is so now: `open_connections`, `journal_lag`."""

    scripts: dict[str, int]
    scripts_repeated: int = 0
    events: dict[str, int]
    health: dict[str, int]
    discovery: dict[str, int] = Field(default_factory=dict)
    transfers: dict[str, int]
    bytes_sent: int
    refused: int
    discoveries_dropped: int
    open_connections: int
    journal_lag: int

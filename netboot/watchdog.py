"""The section `watchdog` of the configuration (docs/decisions/030)."""

from typing import Annotated

from pydantic import Field

from images.values.strict import Strict


class Watchdog(Strict):
    """How long a process may be silent before it is killed and started again; half of that, and it is not ready."""

    server_seconds: Annotated[int, Field(ge=2, le=3600)] = 15
    """Of boot, join and management servers, whose loops only ever take short turns."""
    controller_seconds: Annotated[int, Field(ge=2, le=3600)] = 120
    """Of the others, whose turns may be long: 50,000 machines of YAML take 14 s of a free core."""
    start_seconds: Annotated[int, Field(ge=2, le=86_400)] = 600
    """Of each, until it is ready for the first time."""

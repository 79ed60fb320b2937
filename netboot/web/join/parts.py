"""What join's views work with. `netboot.processes` puts it together; tests put fakes in."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from flask import current_app

from netboot.join.parts import Parts
from netboot.web.join.limits import Buckets
from netboot.web.join.preflight import Fitness

EXTENSION = "netboot.join"


@dataclass(frozen=True, slots=True)
class Desk:
    """`problems()`: what is wrong with this process's own files and journal, in words; `stopping`: told to end."""

    parts: Parts
    fitness: Fitness
    hellos: Buckets
    attests: Buckets
    problems: Callable[[], list[str]]
    stopping: Callable[[], bool]


def desk() -> Desk:
    """That of the application that serves this request."""
    return cast("Desk", current_app.extensions[EXTENSION])

"""What is done by itself about a class's machines that are not well: `remedies:` of a class. docs/remedies.md."""

from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from images.values.strict import Strict
from netboot.machines.strategy import Seconds, Share, of_machines

Action = Literal["reboot", "quarantine"]
SHORTEST_WAIT = 600
"""Seconds: not before three machines that fail together would have been seen to (`remedy_policy.TOGETHER_MS`)."""
MOST_ACTIONS = 4


def _quarantine_last(actions: tuple[Action, ...]) -> tuple[Action, ...]:
    if "quarantine" in actions[:-1]:
        raise ValueError("quarantine is the last: a machine in quarantine is left alone")
    return actions


def _long_enough(wait: int) -> int:
    if wait < SHORTEST_WAIT:
        raise ValueError("10m at least: before that it cannot be told whether many fail together")
    return wait


class Remedies(Strict):
    """What is done about one that is not well: docs/remedies.md."""

    act: bool = False
    """False: what would be done is said, and nothing is."""
    wait: Annotated[Seconds, AfterValidator(_long_enough)] = 1800
    """Seconds (in files `30m`) from when a machine is not well until the first remedy, and between two."""
    actions: Annotated[tuple[Action, ...], Field(max_length=MOST_ACTIONS), AfterValidator(_quarantine_last)] = (
        "reboot",
        "quarantine",
    )
    """What is done, one after the other, and no more than that in a day."""
    per_rack: Annotated[int, Field(ge=1, strict=True)] = 1
    """How many machines of one rack may be out of service with it."""
    fleet: Share = "2%"
    """The same of all: a number, or a share of them."""

    def most(self, machines: int) -> int:
        """How many of so many machines may be out of service."""
        return of_machines(self.fleet, machines)


class Rules(NamedTuple):
    """What is in force for a machine. `said_by`: `class hgx-h100`; "": nobody's word, it is the default. `replicas`:
    there are several, none of which knows what another has done about it."""

    remedies: Remedies = Remedies()
    said_by: str = ""
    replicas: bool = False

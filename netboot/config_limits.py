"""Sections of `netboot.yaml` that are bounds: how long machines wait, and how many may go at once."""

from typing import Annotated

from pydantic import AfterValidator, Field

from images.values.strict import Strict


def _jitter(value: tuple[int, int]) -> tuple[int, int]:
    if value[0] > value[1]:
        raise ValueError("must be [least, most] with least not above most")
    return value


Second = Annotated[int, Field(ge=1, le=3600)]
Jitter = Annotated[tuple[Second, Second], AfterValidator(_jitter)]
"""[least, most] whole seconds; a wait is drawn evenly between them, so that a fleet does not come back at once."""


class Retry(Strict):
    """How long machines wait before they ask again."""

    unknown_seconds: Jitter = (20, 40)
    refused_seconds: Jitter = (45, 90)
    unavailable_seconds: Jitter = (5, 20)


class InventoryLimits(Strict):
    """A change of the inventory that removes more machines than both of these waits for `netboot config accept`."""

    removals_percent: Annotated[int, Field(ge=0, le=100)] = 10
    removals_minimum: Annotated[int, Field(ge=0, le=1_000_000)] = 5

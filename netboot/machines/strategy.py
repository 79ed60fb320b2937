"""How machines of a channel are brought to another image: its `strategy:`, and what an operator says over that."""

from operator import not_
from typing import Annotated

from pydantic import BeforeValidator, Field

from images.values.durations import duration
from images.values.strict import Strict

LONGEST = 7 * 86_400


def _share(value: object) -> object:
    if isinstance(value, str) and value.endswith("%"):
        number = value[:-1]
        if number.isascii() and number.isdigit() and 1 <= int(number) <= 100:
            return f"{int(number)}%"
    elif isinstance(value, int | str) and not isinstance(value, bool):
        number = str(value)
        if number.isascii() and number.isdigit() and len(number) < 7 and int(number) >= 1:
            return str(int(number))
    raise ValueError("must be a number of machines, like 3, or a share of them, like 5%")


def _seconds(value: object) -> object:
    if isinstance(value, str):
        return duration(value)
    return value


Share = Annotated[str, BeforeValidator(_share)]
"""`5%` or `3`: of machines, at least one."""
Seconds = Annotated[int, Field(ge=0, le=LONGEST, strict=True), BeforeValidator(_seconds)]


class Strategy(Strict):
    """`canary`: how many machines try the image first; `bake`: seconds for which all of them have to be in service with
    it; `max_unavailable`, `per_rack`: how many may be out of service at once, in all and of one rack (None: as many);
    `deadline`: seconds for which one may be drained, and from when it leaves service until it is back; `allow_bare`,
    `allow_local_data`: Pods without a controller, and those with an emptyDir, may be evicted, and are lost;
    `split_domains`: machines of one accelerator domain need not go together; `auto_undo`: where too many fail with the
    image, in two racks at least, everybody is brought back to what it had, and nobody is waited for (as Nomad's
    `auto_revert`: https://developer.hashicorp.com/nomad/docs/job-specification/update)."""

    canary: Annotated[int, Field(ge=2, le=1000, strict=True)] = 2
    """How many machines try the image first."""
    max_unavailable: Share = "5%"
    """How many may be out of service at once, in all: a number, or a share of them."""
    per_rack: Annotated[int, Field(ge=1, strict=True)] | None = None
    """The same of one rack. Left out: as many."""
    bake: Seconds = 1800
    """Seconds (in files `30m`) for which all canaries have to be in service with the image."""
    deadline: Annotated[Seconds, Field(ge=60)] = 1800
    """Seconds for which one may be drained, and from when it leaves service until it is back."""
    allow_bare: Annotated[bool, Field(strict=True)] = False
    """Pods without a controller may be evicted, and are lost."""
    allow_local_data: Annotated[bool, Field(strict=True)] = False
    """Pods with an emptyDir may be evicted, and what is in it is lost."""
    split_domains: Annotated[bool, Field(strict=True, exclude_if=not_)] = False
    """Machines of one accelerator domain need not go together."""
    auto_undo: Annotated[bool, Field(strict=True, exclude_if=not_)] = False
    """Where too many fail with the image, in two racks at least, everybody is brought back to what it had, and nobody
    is waited for."""

    def budget(self, machines: int) -> int:
        """How many of so many machines may be out of service at once."""
        return of_machines(self.max_unavailable, machines)


def of_machines(share: str, machines: int) -> int:
    """A `Share` of so many machines: rounded down, and at least one."""
    return max(1, machines * int(share[:-1]) // 100) if share.endswith("%") else int(share)

"""What may get into a script: validated, frozen values. Nothing else reaches a template.

iPXE splits a line at white space, takes `#`, `||`, `&&`, `;` as separators where they stand alone, expands `${…}` in
each word and joins a line that ends in a backslash with the next (ipxe src/core/exec.c, src/image/script.c). So every
type here allows the characters that it needs, and none of those.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Url = Annotated[
    str,
    StringConstraints(
        pattern=r"^(https?://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?)$", max_length=300
    ),
]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
BootId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Argument = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.,:/=@+-]{1,200}$")]
Seconds = Annotated[int, Field(ge=1, le=3600)]

_NOT_SHOWN = re.compile(r"[^A-Za-z0-9 .,:/()@_+='`<>-]")
LONGEST_LINE = 200


def shown(text: str) -> str:
    """Any text as a line that a console can show: other characters become `?`, long text is cut."""
    return " ".join(_NOT_SHOWN.sub("?", text[: LONGEST_LINE + 1])[:LONGEST_LINE].split())


Shown = Annotated[str, AfterValidator(shown)]


class Value(BaseModel):
    """Base of the values: frozen, nothing unknown."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Chain(Value):
    """The script that every machine begins with. `seconds`: the wait when the service does not answer."""

    url: Url
    seconds: Seconds


class Boot(Value):
    """The script of a machine that boots; the boot id comes in later (see `render.prepare`)."""

    url: Url
    machine: Name
    image: Digest
    kernel: Digest
    initrd: Digest
    origins: Annotated[tuple[Annotated[tuple[Url, ...], Field(min_length=1)], ...], Field(min_length=1)]
    """Groups, of which those of one are preferred alike."""
    kernel_from: Url
    """Where kernel and initrd come from: an origin, and then `url` where that fails; or `url` alone."""
    arguments: tuple[Argument, ...] = ()
    """The image's kernel arguments, then the profile's."""
    seconds: Seconds
    nonce: bool = False
    """Whether a second initrd file is fetched: the nonce of the machine's boot window."""


class Waiting(Value):
    """The script of a machine that cannot boot now: what happened, why, and when it asks again.

    `lines` are shown one below the other; what a machine said of itself may be among them.
    """

    url: Url
    headline: Shown
    lines: tuple[Shown, ...]
    seconds: Seconds

"""Values to scripts. Pure: the same values give the same bytes."""

from pathlib import Path

import jinja2

from ipxe.command_line import KERNEL_NAME, CommandLine
from ipxe.values import Boot, Chain, Waiting

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=jinja2.StrictUndefined,
    autoescape=False,  # noqa: S701 - not HTML; what may get in is decided by the types of ipxe.values
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    auto_reload=False,
)
_HOLE = "\0"
"""Stands for the boot id; it passes none of the types, so it cannot come from a value."""


class Prepared:
    """A machine's script with the boot id left open, for servers of tens of thousands a second."""

    __slots__ = ("_segments",)

    def __init__(self, segments: tuple[bytes, ...]) -> None:
        self._segments = segments

    def fill(self, boot_id: str) -> bytes:
        """The script for one boot. `boot_id` must be one that the service minted: it is not looked at again here."""
        return boot_id.encode("ascii").join(self._segments)


def chain_script(values: Chain) -> bytes:
    """`/boot.ipxe`: the same for every machine; gathers its identity, chains to `/v1/boot`, never gives up."""
    return _render("chain.ipxe", values.model_dump())


def prepare(values: Boot) -> Prepared:
    """The script that boots a machine, rendered but for the boot id.

    Raises:
        ValueError: the end of the kernel's command line would be cut off. A decision says so first, in more words.
    """
    line = CommandLine(values.url, values.machine, values.image, values.origins, values.arguments)
    if why := line.too_long({}):
        raise ValueError("; ".join(why))
    command_line = " ".join(line.words(_HOLE, nonce=values.nonce))
    more = {
        "boot_id": _HOLE,
        "command_line": command_line,
        "from_origin": values.kernel_from != values.url,
        "kernel_name": KERNEL_NAME,
    }
    text = _render("boot.ipxe", {**values.model_dump(), **more})
    return Prepared(tuple(text.split(_HOLE.encode())))


def waiting_script(values: Waiting) -> bytes:
    """The script of a machine that is unknown, refused or to be told later: explains on its console and asks again."""
    return _render("waiting.ipxe", values.model_dump())


def _render(template: str, values: dict[str, object]) -> bytes:
    return _TEMPLATES.get_template(template).render(values).encode("ascii")

"""What a recipe says of an initrd by dracut, for networks and disks that our own does not know (docs/dracut.md)."""

import re
from typing import Annotated

from pydantic import AfterValidator

from images.recipe import fields
from images.values.kernel_arguments import PREFIX, KernelArgument
from images.values.strict import Strict
from images.values.types import Matching

ALWAYS = ("rd.neednet=1", "rd.shell=0", "rd.emergency=reboot")
"""What each initrd by dracut is told: a network must come up whatever disks there are, and nobody gets a shell."""

_OF_THE_BOOT = ("BOOTIF", "console", "init", "rdinit", "root", "systemd.hostname")
_SECRET = re.compile(r"rd\.iscsi\.(in\.)?(username|password)=.*|(net)?root=iscsi:[^@]*@.*")


def _dracuts(argument: str) -> str:
    name = argument.partition("=")[0]
    if name in {always.partition("=")[0] for always in ALWAYS}:
        raise ValueError(f"{name!r} is said to every initrd by dracut ({' '.join(ALWAYS)}); leave it out")
    if name in _OF_THE_BOOT or name.startswith((PREFIX, "rd.break", "rd.cmdline")):
        raise ValueError(f"{name!r} is none that dracut may be told here; leave it out")
    if _SECRET.fullmatch(argument):
        raise ValueError(f"{name!r} would be a secret in a file that everybody on the boot network can read")
    return argument


DracutModule = Annotated[str, Matching(r"[a-z0-9][a-z0-9-]*", "{value} is not the name of a module of dracut's")]
DracutArgument = Annotated[KernelArgument, AfterValidator(_dracuts)]


class Dracut(Strict):
    """Packages are installed where dracut runs, and not in the image."""

    modules: tuple[DracutModule, ...] = ()
    """Modules of dracut's, besides those that every such initrd has."""
    packages: tuple[fields.Package, ...] = ()
    """Packages with the programs that these modules want."""
    arguments: tuple[DracutArgument, ...] = ()
    """Of dracut.cmdline(7), written into the initrd."""

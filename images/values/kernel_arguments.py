"""Arguments of the kernel: what one may be, and whose each reserved one is.

A boot's script gives the kernel what the service sets, then the image's arguments, then the profile's (`command_line`);
the initrd (`images/node/initrd/settings.sh`) and units of the root (`images/recipes/features`) read them. The last of
two counts, so nobody but its owner may set a reserved one. `tests/unit/test_kernel_arguments.py` holds scripts and
shell to this.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from images.values.types import Architecture, Matching

PREFIX = "netboot."
"""Every name that begins so is ours, those that nothing reads yet too."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """One name: what it is for, and whether a profile may set it. The service sets it for every boot if not."""

    purpose: str
    by_profile: bool = False


RESERVED = {
    "netboot.boot": Reserved("the boot's id"),
    "netboot.image": Reserved("the image's digest, which the initrd holds the manifest to"),
    "netboot.report": Reserved("where the machine reports to"),
    "netboot.origins": Reserved("where artifacts come from"),
    "BOOTIF": Reserved("the card that booted: the only one that the initrd brings up"),
    "systemd.hostname": Reserved("the machine's name in the inventory"),
    "initrd": Reserved("the files that a UEFI kernel loads, the nonce among them"),
    "netboot.active": Reserved("which tests load the machine before it takes work (docs/health.md)", by_profile=True),
    "netboot.debug": Reserved("`shell`: a shell when the initrd fails, if it was built with one", by_profile=True),
    "netboot.disks": Reserved("what becomes of local disks (docs/features.md)", by_profile=True),
    "netboot.netconsole": Reserved("where the kernel's messages go by UDP (docs/features.md)", by_profile=True),
    "netboot.sriov": Reserved("how many virtual functions a card has (docs/features.md)", by_profile=True),
    "netboot.ssh": Reserved("principals that may log in as root (docs/features.md)", by_profile=True),
    "netboot.store_mib": Reserved("MiB of memory for containerd's state (docs/recipes.md)", by_profile=True),
    "netboot.nic_driver": Reserved(
        "drivers of the cards that the initrd looks at (docs/boot-stage.md)", by_profile=True
    ),
    "ip": Reserved("the link that gets the address, and how (docs/boot-stage.md)", by_profile=True),
    "bond": Reserved("the bond that the initrd makes of cards", by_profile=True),
    "vlan": Reserved("the VLAN that the initrd makes", by_profile=True),
    "nameserver": Reserved("a name server in place of DHCP's", by_profile=True),
}
"""By name: what is before the first `=`."""

CONSOLES: Mapping[Architecture, tuple[str, ...]] = {
    "amd64": ("console=tty0", "console=ttyS0,115200n8"),
    "arm64": ("console=tty0", "console=ttyAMA0"),
}
"""Where neither image nor profile says. An 8250 that is given no speed is set to 9600 baud; a PL011 keeps the
firmware's (Linux drivers/tty/serial/8250/8250_port.c, amba-pl011.c). The last one is /dev/console."""


def name_of(argument: str) -> str:
    """What the kernel goes by: all before the first `=`, in which `-` and `_` are one (parameq, kernel/params.c)."""
    return argument.partition("=")[0].replace("-", "_")


def replaced(old: Iterable[str], new: Iterable[str]) -> tuple[str, ...]:
    """Both, but of the old only those whose name no new one has: who says a name says all of it, however often.

    So `console=ttyS1` leaves no other console: of two for one device the kernel keeps the first one's speed
    (`__add_preferred_console`, kernel/printk/printk.c), and nobody could correct it.
    """
    added = tuple(new)
    names = {name_of(argument) for argument in added}
    return (*(argument for argument in old if name_of(argument) not in names), *added)


def command_line(image: Iterable[str], profile: Iterable[str], architecture: Architecture) -> tuple[str, ...]:
    """The image's arguments under the profile's, and a console where neither names one."""
    return replaced(CONSOLES[architecture], replaced(image, profile))


def _free(argument: str, *, by_profile: bool) -> str:
    name = argument.partition("=")[0]
    reserved = RESERVED.get(name)
    if reserved is None and not name.startswith(PREFIX):
        return argument
    if reserved is None:
        known = ", ".join(
            name for name, reserved in RESERVED.items() if reserved.by_profile and name.startswith(PREFIX)
        )
        raise ValueError(f"{name!r} is read by nobody; of the names in {PREFIX}… a profile may set {known}")
    if not reserved.by_profile:
        raise ValueError(f"{name!r} is set by the service for every boot; leave it out")
    if not by_profile:
        raise ValueError(f"{name!r} is for a profile or a class of the inventory; a recipe cannot set it")
    return argument


def _of_recipe(argument: str) -> str:
    return _free(argument, by_profile=False)


def _of_profile(argument: str) -> str:
    return _free(argument, by_profile=True)


KernelArgument = Annotated[
    str, Matching(r"[A-Za-z0-9_.,:/=@+-]{1,200}", "must be 1 to 200 letters, digits and _.,:/=@+- (one argument each)")
]
"""One word of a kernel's command line that no shell and no script of iPXE takes apart."""
ArgumentName = Annotated[str, Matching(r"[A-Za-z0-9_.-]{1,100}", "must be an argument's name, without = and a value")]
RecipeArgument = Annotated[KernelArgument, AfterValidator(_of_recipe)]
"""What a recipe, and so an image's manifest, may set."""
ProfileArgument = Annotated[KernelArgument, AfterValidator(_of_profile)]
"""What a profile, or a class of machines, may set."""

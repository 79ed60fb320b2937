"""Whether this machine can run an architecture's programs: a build runs those of the packages that it installs.

The own architecture's run as they are, the other's through qemu-user, which the kernel starts by binfmt_misc
(kernel documentation, admin-guide/binfmt-misc). Set-up registers it, a build only looks: it never changes the host.
"""

import platform
from collections.abc import Iterator
from pathlib import Path

from images.errors import CommandError, ImageError, RecipeError
from images.run import run
from images.values.types import Architecture

_NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}
"""uname's machine → Debian's architecture."""
_QEMU: dict[Architecture, str] = {"amd64": "x86_64", "arm64": "aarch64"}
_BINFMT = "/proc/sys/fs/binfmt_misc"


def native() -> str:
    """This machine's architecture as Debian names it; as the kernel names it, where it is neither of ours."""
    machine = platform.machine()
    return _NATIVE.get(machine, machine)


def check(architecture: Architecture, kernel: str, folder: Path) -> None:
    """Whether `kernel` (a package) is of `architecture`, and whether that architecture's programs run here.

    Tried in a chroot in `folder`, which is as it was afterwards.

    Raises:
        RecipeError: the kernel is of another architecture, as of a base's that an heir inherited.
        ImageError: programs do not run, with all that is missing and what puts it right.
    """
    for other in _QEMU:
        if other != architecture and kernel.partition("=")[0].endswith(f"-{other}"):
            raise RecipeError(
                f"kernel.package: {kernel} is a kernel for {other}, and the image is for {architecture}; "
                f"name one for {architecture} in the recipe, like "
                f"{kernel.partition('=')[0].removesuffix(other)}{architecture}"
            )
    check_runs(architecture, folder)


def check_runs(architecture: Architecture, folder: Path) -> None:
    """Whether programs of `architecture` run here; tried in a chroot in `folder`, which is as it was afterwards.

    Raises:
        ImageError: they do not, with all that is missing and what puts it right.
    """
    if architecture == native():
        return
    try:
        run(["arch-test", "-c", folder, architecture], timeout=60)
    except CommandError as error:
        missing = [f"  {fault}" for fault in faults(architecture)] or [
            f"  all seems to be there, and yet: {error.output}"
        ]
        raise ImageError(
            f"this machine is {native()} and cannot run the programs of {architecture}, which a build of that "
            f"architecture has to. ./setup.sh puts it right; or by hand, as root, in this order "
            f"(or build on a machine that is {architecture}):\n" + "\n".join(missing)
        ) from None


def faults(architecture: Architecture, root: Path = Path("/")) -> Iterator[str]:
    """What keeps qemu-user from running `architecture`, each with its remedy; `root`: that machine's files."""
    name = f"qemu-{_QEMU[architecture]}"
    register = f"cat /usr/lib/binfmt.d/{name}.conf >{_BINFMT}/register"
    if not (root / "usr/bin/arch-test").exists():
        yield "arch-test is not installed: apt-get install arch-test"
    if not (root / f"usr/bin/{name}-static").exists():
        yield "qemu-user-static is not installed: apt-get install qemu-user-static"
    if not any(line.split() == ["nodev", "binfmt_misc"] for line in _lines(root / "proc/filesystems")):
        yield "the kernel has no binfmt_misc: modprobe binfmt_misc (in a container: on its host)"
    here = root / _BINFMT.lstrip("/")
    if not (here / "register").exists():
        yield f"binfmt_misc is not mounted: mount -t binfmt_misc binfmt_misc {_BINFMT}"
    elif "disabled" in _lines(here / "status"):
        yield f"binfmt_misc is switched off: echo 1 >{_BINFMT}/status"
    entry = _lines(here / name)
    if not entry:
        yield f"{name} is not registered: {register}"
    elif "disabled" in entry:
        yield f"{name} is switched off: echo 1 >{_BINFMT}/{name}"
    elif not any(line.startswith("flags:") and "F" in line for line in entry):
        # Without it the kernel looks for the interpreter where the program runs: in the chroot, which has none.
        yield f"{name} is registered without the flag F: echo -1 >{_BINFMT}/{name}; {register}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return []

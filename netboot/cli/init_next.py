"""What `netboot init` says at its end: what comes next, and of which image."""

import pwd
from pathlib import Path

from netboot.cli.paths import HOST

IMAGES = {
    "server": (
        "ubuntu-24.04-gpu",
        "for servers; without NVIDIA's GPUs ubuntu-24.04-cpu, of Debian debian-12-gpu, -cpu",
    ),
    "vm": ("debian-12-minimal", "for virtual machines alone, as on a laptop: small, without drivers of servers' cards"),
}
"""By what is to boot: the image that is named next, and what it is for."""


def next_steps(folder: Path, note: str, owner: pwd.struct_passwd | None, hardware: str | None, *, joins: bool) -> str:
    """The commands, with this site's values. `joins`: whether machines are to join a cluster."""
    images = [IMAGES[kind] for kind in IMAGES if hardware in (kind, None)]
    one = len(images) == 1
    image = images[0][0] if one else "IMAGE"
    of_host = owner is not None and folder.absolute() / "netboot.yaml" == HOST
    start = "systemctl start netboot" if of_host else "netboot serve"
    return (
        f"\n{note}next:\n"
        f"  cd {folder}\n"
        + (
            "  edit netboot.yaml: `clusters`                   which cluster machines join: docs/first-rack.md\n"
            * joins
        )
        + "  netboot config check                            every fault at once\n"
        f"  netboot image build {image:27} build and sign an image into the store\n"
        f"  {start:47} start the service\n"
        f"  netboot channel set stable {image:20} in another terminal: machines boot this image\n"
        + "".join(f"{'' if one else 'IMAGE: '}{name} is {what}\n" for name, what in images)
        + "docs/shipped-recipes.md has all images\n"
        "back up keys/, secrets/ and tls/; .gitignore keeps their private parts out of git"
    )

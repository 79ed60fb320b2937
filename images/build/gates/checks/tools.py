"""Gate *tools*: the kernel modules that the image's programs ask for are in its root.

A root that keeps only named modules may have a program without its module: it starts, and does not work. Which program
asks for which modules is a table, from the programs' own documentation.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

from images.build.gates.checks.required import missing
from images.build.gates.facts import Facts
from images.build.gates.gate import Gate
from images.values.finding import Finding

MODULES = {
    "cryptsetup": ("dm_crypt",),
    "fusermount3": ("fuse",),
    "ibv_devinfo": ("ib_uverbs",),
    "ibstat": ("ib_umad",),
    "ipset": ("ip_set",),
    "ipvsadm": ("ip_vs",),
    "iscsid": ("iscsi_tcp",),
    "lvm": ("dm_mod",),
    "mdadm": ("md_mod",),
    "mkfs.xfs": ("xfs",),
    "mount.ceph": ("ceph",),
    "mount.cifs": ("cifs",),
    "mount.nfs": ("nfs", "nfsv4"),
    "multipathd": ("dm_multipath",),
    "nbd-client": ("nbd",),
    "nvidia-smi": ("nvidia",),
    "ovs-vswitchd": ("openvswitch",),
    "rbd": ("rbd",),
    "rbd-nbd": ("nbd",),
    "wg": ("wireguard",),
}
"""By the program's name in a folder `bin` or `sbin`."""


def asked(facts: Facts) -> dict[str, tuple[str, ...]]:
    """Path of each program of the table that the root has → its modules."""
    return _of(facts.content.machines)


def _of(files: Iterable[str]) -> dict[str, tuple[str, ...]]:
    paths = map(PurePosixPath, sorted(files))
    return {
        str(path): MODULES[path.name] for path in paths if path.parent.name in {"bin", "sbin"} and path.name in MODULES
    }


def check(facts: Facts) -> list[Finding]:
    """Every module that a program asks for and root or initrd lacks, or that such a module itself asks for."""
    return [
        *(
            Finding(
                "tools",
                f"the root lacks the kernel module {name}, which {program} asks for",
                f"add {name} to modules.root, or the program to 'remove'",
            )
            for program, modules in asked(facts).items()
            for name, _, _ in missing(modules, facts.modules, facts.known)
        ),
        *(
            Finding(
                "tools",
                f"the initrd lacks the kernel module {name}, which its {program} asks for",
                f"add {name} to modules.initrd",
            )
            for program, modules in _of(facts.early_paths).items()
            for name, _, _ in missing(modules, facts.early, facts.known)
        ),
    ]


GATE = Gate("tools", check, lambda facts: f"{len(asked(facts))} programs that ask for kernel modules")

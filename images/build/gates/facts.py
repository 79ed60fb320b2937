"""What gates look at: a finished image's tree and initrd as values, and what its recipe wants of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from images.formats.modules import Tree
from images.recipe.recipe import AllowedSecret, Nvidia, Requires
from images.values.types import Architecture

Package = tuple[str, str, str]
"""Name, version and architecture of an installed package, as dpkg writes them."""


@dataclass(frozen=True, slots=True)
class RecipeFacts:
    """What a recipe says that gates go by; the keys are the recipe's (`images.recipe.recipe.Recipe`)."""

    architecture: Architecture
    requires: Requires
    nvidia: Nvidia
    initrd: tuple[str, ...]
    """Modules that the initrd must have, those that every initrd has among them."""
    root: tuple[str, ...] | None
    """Modules that the root keeps; None: all."""
    arguments: tuple[str, ...]
    secure_boot: bool
    kubernetes: str | None
    releases: tuple[str, ...]
    """SHA-256 of the InRelease file of each suite of each source, 64 hexadecimal characters."""
    secrets_allowlist: tuple[AllowedSecret, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """One kernel module's file: what it says of itself in `.modinfo`, its ELF machine, whether a signature follows it.

    `path` is the image's. `fault`: why it could not be read; all else is empty then.
    """

    path: str
    name: str
    vermagic: str = ""
    """The kernel's version that it was made for: the first word."""
    version: str = ""
    depends: tuple[str, ...] = ()
    softdeps: tuple[str, ...] = ()
    firmware: tuple[str, ...] = ()
    signed: bool = False
    machine: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """What the contents of the root's regular files are, by path in the image."""

    files: int
    size: int
    """Bytes that were looked at."""
    private_keys: Mapping[str, str]
    """Path → the kind of key."""
    password_hashes: tuple[str, ...]
    logins: Mapping[str, tuple[str, ...]]
    """Path → the rules that found a login, a token or a password in it (`images.build.gates.secret_rules`)."""
    host_names: tuple[str, ...]
    """Configuration with an NVMe host's own name in it."""
    machines: Mapping[str, int]
    """Programs and libraries → ELF machine (e_machine)."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file in which a key, a hash or a login was found."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What apt had when the packages were installed."""

    packages: frozenset[Package]
    """All that lists of the recipe's own, signed releases have, of the names that are installed."""
    strangers: tuple[str, ...]
    """Lists that no release of the recipe's sources vouches for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything about one image that gates judge."""

    recipe: RecipeFacts
    kernel: str
    """The kernel's version, like 6.1.0-9-amd64."""
    known: Tree
    """All modules that the kernel's packages brought, before any were left out."""
    modules: Mapping[str, Module]
    """Of the root, by name."""
    strange_kernels: tuple[str, ...]
    """Versions of other kernels that have modules in the root."""
    early: Mapping[str, Module]
    """Of the initrd, by name."""
    early_firmware: frozenset[str]
    early_keys: Mapping[str, str]
    """Files of the initrd with a private key → its kind."""
    early_logins: Mapping[str, tuple[str, ...]]
    """As `Content.logins`, of the initrd."""
    firmware: tuple[str, ...]
    """Paths below /usr/lib/firmware, without what compression adds to the name."""
    libraries: tuple[str, ...]
    """Paths of shared libraries with their whole version, like /usr/lib/x/libcuda.so.535.261.03."""
    modprobe: tuple[str, ...]
    """The lines of modprobe's configuration that are in force."""
    identity: tuple[str, ...]
    """Files that name one machine, or that apt keeps of its own."""
    accounts: tuple[str, ...]
    """Accounts and groups with a password, as `user root in /etc/shadow`."""
    content: Content
    packages: tuple[Package, ...]
    owners: Mapping[str, tuple[str, ...]]
    """Path of each file that several packages have → their names."""
    sources: Sources
    programs: Mapping[str, str]
    """Versions of kubelet and containerd by their own words, or by their packages'."""
    early_paths: tuple[str, ...] = ()
    """Of the initrd, all regular files that are not empty."""
    early_packages: tuple[Package, ...] = ()
    """Of which dracut made the initrd; ours is made of the root's."""

"""What each kind of process may touch: the one table (docs/operations.md has it in words; a test holds all to it)."""

import site
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from netboot.config import Config
from netboot.dhcp import binaries
from netboot.status import BOOT_ID

HANDED: Mapping[str, frozenset[str]] = {
    "boot_id_key": frozenset({"boot", "join", "management"}),
    "proof_key": frozenset({"controllers"}),
    "management.token_file": frozenset({"management"}),
    "management.tokens": frozenset({"management"}),
    "management.oidc.client_secret_file": frozenset({"management"}),
    "management.oidc.certificate_authority": frozenset({"management"}),
    "management.tls.certificate": frozenset({"management"}),
    "management.tls.key": frozenset({"management"}),
    "management.tls.authority": frozenset(),
    "join.certificate": frozenset({"join"}),
    "join.key": frozenset({"join"}),
    "join.authorities": frozenset({"controllers"}),
    "journal.authorities": frozenset({"controllers"}),
    "ssh.authorities": frozenset({"controllers"}),
    "join.sealing_keys": frozenset({"join"}),
    "join.nonce_keys": frozenset({"boot", "join"}),
    "keys_kubernetes.folder": frozenset(),
    "clusters.*.authority": frozenset({"join", "management"}),
    "upstream.credentials": frozenset({"fetcher"}),
    "upstream.authority": frozenset({"fetcher"}),
    "pause.token_file": frozenset({"pause"}),
    "pause.authority": frozenset({"pause"}),
    "traces.headers_file": frozenset({"traces"}),
    "traces.authority": frozenset({"traces"}),
}
"""Files by key of the configuration, opened for these kinds of process by the supervisor; for all others, never. Some
are no secret, but lie beside one."""
KUBECONFIGS: Mapping[str, frozenset[str]] = {
    "clusters.*.issuer": frozenset({"join", "management"}),
    "clusters.*.approver": frozenset({"approver"}),
    "clusters.*.nodes": frozenset({"nodes"}),
    "inventory_kubernetes.kubeconfig": frozenset({"resources"}),
    "inventory_kubernetes.shipper": frozenset({"shipper"}),
    "inventory_kubernetes.orders": frozenset({"controllers", "management"}),
    "enrolments_kubernetes.join": frozenset({"join"}),
    "enrolments_kubernetes.reader": frozenset({"approver", "management"}),
    "keys_kubernetes.kubeconfig": frozenset({"keys"}),
    "management.token_review.kubeconfig": frozenset({"management"}),
}
"""Likewise, with the files that they name, and the port of the server that they name to connect to."""
PUBLIC_KEYS = {"keys": frozenset({"controllers", "fetcher", "management"})}
"""Likewise, of a folder its `*.pub` alone: private keys may lie beside them."""
FOLDERS: Mapping[str, frozenset[str]] = {
    "provisioning.ipxe": frozenset({"boot"}),
    "inventory": frozenset({"controllers", "management"}),
    "join.tpm_roots": frozenset({"controllers", "join", "management"}),
    "store": frozenset({"boot", "controllers", "fetcher", "management"}),
    "data": frozenset(
        {"approver", "boot", "controllers", "fetcher", "join", "management", "nodes", "shipper", "traces"}
    ),
}
"""Read by the process itself. Nothing of `data` opens anything."""
_LINKED = ("inventory", "join.tpm_roots")
_SHARED = {
    "enrolment.db": frozenset({"join", "management"}),
    "intents.db": frozenset({"management"}),
    "rollouts.db": frozenset({"management"}),
    "audit.db": frozenset({"management"}),
}
"""Databases of `data` that are written by kinds of which none owns them. Who lets machines in takes no hold off."""
_JOURNALS = frozenset({"approver", "boot", "join", "nodes"})
_STORES = frozenset({"controllers", "fetcher", "management"})
_WRITES = {
    "status": frozenset(
        {"approver", "boot", "fetcher", "join", "keys", "nodes", "pause", "resources", "shipper", "traces"}
    ),
    "accepted": frozenset({"management"}),
    "pause": frozenset({"pause"}),
    "resources": frozenset({"resources"}),
    "traces": frozenset({"traces"}),
}
"""Folders of `data`. The controllers write all of it; the others further their own journal and `tmp/<process>`."""
_CONNECTS = frozenset({"approver", "join", "management", "nodes"})
_NAMES = 53
_USUAL_PORTS = frozenset({_NAMES, 443, 6443})
"""Name servers, and apiservers whose kubeconfig cannot be read yet."""
_ETC: tuple[str, ...] = (
    "gai.conf",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "localtime",
    "mime.types",
    "nsswitch.conf",
)
_ETC += ("passwd", "protocols", "resolv.conf", "services", "timezone", "ca-certificates", "pki/tls/certs", "ssl/certs")
_RESOLVERS = ("/run/NetworkManager", "/run/resolvconf", "/run/systemd/resolve")
_SYSTEM = ("/usr", "/lib", "/lib64", "/dev/urandom", *_RESOLVERS, *(f"/etc/{name}" for name in _ETC))
_OWN = ("netboot", "images", "ipxe", "tokens")
_LINKED_TO = ("deploy/kubernetes",)
"""Of a source tree, where `netboot/kube/manifests` is links; an installed package has the files themselves."""


@dataclass(frozen=True, slots=True)
class Access:
    """Of one process. `databases` are written too, with SQLite's files beside them; those must be there before.
    `connect` None: TCP to anywhere; empty: no network at all. `forks`: it has a process of its own below it."""

    name: str
    handed: frozenset[Path]
    kubeconfigs: frozenset[Path]
    public_keys: frozenset[Path]
    read: tuple[Path, ...]
    write: tuple[Path, ...]
    databases: tuple[Path, ...]
    connect: frozenset[int] | None
    forks: bool
    stores: tuple[Path, ...]
    """Written by renames between folders, and with links."""


def access_of(kind: str, name: str, cluster: str, config: Config) -> Access:
    """What the process `name` may touch. `cluster`: of an approver or a node collector."""
    data = config.data
    whole = [data] if kind == "controllers" else [data / folder for folder, kinds in _WRITES.items() if kind in kinds]
    if kind == "management" and config.inventory_writable:
        whole.append(config.inventory)
    if kind == "keys" and config.keys_kubernetes is not None:
        whole.append(config.keys_kubernetes.place(data))
    journals = kind in _JOURNALS or (kind == "shipper" and config.shares_facts)
    databases = [data / "journal" / f"{name}.db"] if journals else []
    named = [(path, key) for key in _of(kind, FOLDERS) for path in values(config, key)]
    folders = [folder for path, key in named for folder in _standing(path, config, key)]
    linked = binaries.standing(config.provisioning.ipxe) if kind == "boot" else ()  # /usr/lib/ipxe has links to /boot
    stores = [config.store] if kind in _STORES else []
    ports = {config.provisioning.listen.port} if kind == "management" else set()
    if kind in _CONNECTS and config.clusters:
        endpoints = [url for each in config.clusters.values() for url in each.endpoints]
        ports |= _USUAL_PORTS | {urlsplit(url).port or 443 for url in endpoints}
    if kind == "management" and config.management.oidc is not None:
        ports |= {_NAMES, config.management.oidc.port}
    asks = config.management.token_review is not None or config.enrolments_kubernetes is not None
    orders = any(values(config, "inventory_kubernetes.orders"))
    if (asks and kind == "management") or (orders and kind in ("controllers", "management")):
        ports |= _USUAL_PORTS
    if kind in ("keys", "resources", "shipper"):
        ports |= _USUAL_PORTS
    if kind == "pause" and config.pause is not None:
        ports |= {_NAMES, urlsplit(config.pause.where).port or 443}
    if kind == "traces" and config.traces is not None:
        ports |= {_NAMES, config.traces.port}
    return Access(
        name=name,
        handed=frozenset(path for key in _of(kind, HANDED) for path in values(config, key)),
        kubeconfigs=frozenset(path for key in _of(kind, KUBECONFIGS) for path in values(config, key, cluster)),
        public_keys=frozenset(path for key in _of(kind, PUBLIC_KEYS) for path in values(config, key)),
        read=(*system(config), *folders, *linked, *([BOOT_ID] if kind == "keys" else [])),
        write=(Path("/dev/null"), data / "tmp" / name, *whole, *stores),
        databases=(*databases, *(_database(config, name) for name, kinds in _SHARED.items() if kind in kinds)),
        connect=None if kind == "fetcher" else frozenset(ports),
        forks=kind in ("join", "management"),
        stores=tuple(stores),
    )


def _database(config: Config, name: str) -> Path:
    """Of rollouts the file in force alone, for one that is not there is made, and has nothing in it."""
    return config.rollouts if name == "rollouts.db" else config.data / name


def values(config: Config, key: str, cluster: str = "") -> Iterator[Path]:
    """The paths that a dotted key names; `*`: of `cluster`, or of all."""
    parts: list[Any] = [config]
    for name in key.split("."):
        if name == "*":
            parts = [each for part in parts for named, each in part.items() if cluster in ("", named)]
        else:
            parts = [getattr(part, name) for part in parts if part is not None]
    yield from (part for part in parts if part is not None)


def exposed(config: Config) -> list[str]:
    """Where this site's folders undo the walls: what must not be read by everybody, in a folder that is."""
    folders = {path.resolve(): str(path) for path in system(config)}
    folders |= {path.resolve(): key for key in FOLDERS for path in values(config, key)}
    return [
        f"{key} ({path}) lies in {named}, which other processes read: move it elsewhere"
        for key, path in _secrets(config)
        for folder, named in folders.items()
        if path.resolve().is_relative_to(folder)
    ]


def system(config: Config) -> tuple[Path, ...]:
    """Python, this program and the system's libraries. Of a source tree its packages alone, for a site may be in it;
    and of what else Python searches nothing that holds a secret of this site."""
    folders = [Path(folder) for folder in (*_SYSTEM, sys.base_prefix, sys.prefix, *site.getsitepackages())]
    for folder in filter(Path.is_absolute, map(Path, sys.path)):
        if not any(folder.is_relative_to(known) for known in folders):
            own = [folder / name for name in _OWN if (folder / name / "__init__.py").exists()]
            own += [folder / name for name in _LINKED_TO if own and (folder / name).is_dir()]
            folders += own or ([folder] if _alone(folder, config) else [])
    return tuple(folders)


def _of(kind: str, table: Mapping[str, frozenset[str]]) -> list[str]:
    return [key for key, kinds in table.items() if kind in kinds]


def _secrets(config: Config) -> list[tuple[str, Path]]:
    return [(key, path) for key in (*HANDED, *KUBECONFIGS, *PUBLIC_KEYS) for path in values(config, key)]


def strays(config: Config) -> list[str]:
    """What lies in folders that processes read, and is a link to where they may not."""
    links = []
    for folder, key in [(path, named) for named in _LINKED for path in values(config, named)]:
        reach = [path.resolve() for path in (*_standing(folder, config, key), *system(config))]
        with suppress(OSError):  # whoever reads it says so
            inside = [link for link in sorted(folder.iterdir()) if link.is_symlink()]
            links += [link for link in inside if not any(link.resolve().is_relative_to(path) for path in reach)]
    return [f"{link} leads to {link.resolve()}, which no process may read: put the file there itself" for link in links]


def _standing(path: Path, config: Config, key: str) -> tuple[Path, ...]:
    """It, or what it links to now. Of what operators keep elsewhere and link to, or mount later, the folder too that
    keeps meaning it, where the first link is, or where it will be; unless a secret is in there."""
    for part in (*reversed(path.parents), path) if key in _LINKED else ():
        if part.is_symlink() or not part.exists():
            folder = part.parent.resolve()
            return (path, folder) if _alone(folder, config) and folder != folder.parent else (path,)
    return (path,)


def _alone(folder: Path, config: Config) -> bool:
    """Whether no secret of this site lies in it."""
    return not any(path.resolve().is_relative_to(folder.resolve()) for _, path in _secrets(config))

"""The configuration of a site: `netboot.yaml`, frozen, with every fault at once.

Paths in the file are relative to the file. Every key, its unit, default and reason: `docs/configuration.md`.
"""

import itertools
import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from images.artifact.bundle import SiteBundle, TimeServer
from images.values import strict
from images.values.strict import Strict
from images.values.types import Name
from netboot.addresses import Address, Listen
from netboot.authorities import read_authorities
from netboot.config_dhcp import Dhcp
from netboot.config_limits import InventoryLimits, Retry
from netboot.config_management import Management, under
from netboot.config_nodes import Cluster, Discovery, Journal, Ssh, told
from netboot.config_outside import EnrolmentsInKubernetes, InKubernetes, KeysSecret, PauseSignal, Traces, UpstreamPlace
from netboot.config_replicas import LONGEST_NAMESPACE, Replicas, State, elections_of, with_state
from netboot.config_urls import ReachedTlsUrl, ReachedUrl
from netboot.logs import Log
from netboot.watchdog import Watchdog

Seconds = Annotated[float, Field(gt=0, le=3600)]


class Provisioning(Strict):
    """The listener of the machines: plain HTTP, nothing secret."""

    listen: Listen = Address("::", 8080)
    url: ReachedUrl
    """How machines reach this listener: it goes into scripts and onto kernel command lines."""
    workers: Annotated[int, Field(ge=1, le=64)] = Field(default_factory=lambda: len(os.sched_getaffinity(0)))
    max_connections: Annotated[int, Field(ge=16, le=1_000_000)] = 4096
    max_connections_per_address: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    ingest_kib_per_second: Annotated[int, Field(ge=256, le=10_000_000)] = 2048
    """What each boot server writes down of scripts, events and health reports on average, at most."""
    idle_seconds: Seconds = 15.0
    body_seconds: Seconds = 10.0
    send_stall_seconds: Seconds = 30.0
    ipxe: Path = Path("/usr/lib/ipxe")
    """Folder of iPXE's binaries, which are handed out below `/ipxe/`."""


class Join(Strict):
    """The listener of join, in TLS: machines prove here who they are. Left out: this service only boots machines."""

    listen: Listen = Address("::", 8443)
    url: ReachedTlsUrl
    """How machines reach this listener; it travels in the signed site bundle."""
    certificate: Path = Path("tls/join.crt")
    key: Path = Path("tls/join.key")
    authorities: Path = Path("tls/ca.crt")
    """PEM, one or several: what machines believe; it travels in the signed site bundle."""
    sealing_keys: Path = Path("secrets/sealing.keys")
    """The keyset that replicas share: one base64 key of 32 bytes a line, the first seals, all open."""
    nonce_keys: Path = Path("secrets/nonce.keys")
    """The keyset of the nonces of boot windows, likewise shared; boot servers seal with it, join opens."""
    tpm_roots: Path | None = None
    """Folder of PEM: authorities of TPM makers. With it, enrolling in a window wants an EK certificate of theirs."""
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    max_connections: Annotated[int, Field(ge=16, le=1_000_000)] = 1024
    hellos_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] = 60
    """From one address; beyond it 429 with Retry-After."""
    token_seconds: Annotated[int, Field(ge=60, le=900)] = 300
    boot_days: Annotated[int, Field(ge=1, le=3650)] = 90
    """How old a boot may be that proves itself; a machine that has run for longer and must do so again is rebooted."""
    addresses_attest: bool = False
    """Whether the assurance level `address` exists at all: for labs."""


class Config(Strict):
    """A site's configuration; paths are absolute once `load_config` has returned it."""

    site: Name
    data: Path = Path("data")
    store: Path = Path("store")
    state: State = None
    """Where it is; None: `embedded`, on this host's disk."""
    boot_id_key: Path | None = None
    inventory: Path = Path("inventory")
    inventory_writable: bool = False
    """Whether the API may write its files, where they are not kept in git."""
    inventory_limits: InventoryLimits = InventoryLimits()
    inventory_kubernetes: InKubernetes | None = None
    """With it custom resources are the inventory, and files are not read."""
    enrolments_kubernetes: EnrolmentsInKubernetes | None = None
    """With it custom resources say who has which TPM, and `data/enrolment.db` is not read."""
    keys: Path = Path("keys")
    keys_kubernetes: KeysSecret | None = None
    """With it the keys that replicas share are those of a Secret; the files that are named here are not read."""
    proof_key: Path = Path("secrets/proof.key")
    minimum_epoch: Annotated[int, Field(ge=0, le=2**31)] = 0
    provisioning: Provisioning
    management: Management = Management()
    dhcp: Dhcp = Dhcp()
    """For `netboot dhcp config` alone."""
    origins: tuple[ReachedUrl, ...] = ()
    kernel_from_origins: bool = False
    """Machines ask their first origin for kernel and initrd, which nothing verifies but Secure Boot and attestation."""
    time_servers: Annotated[tuple[TimeServer, ...], Field(max_length=8)] = ()
    """For the machines' clocks, in the signed site bundle; without any those of DHCP count."""
    journal: Journal | None = None
    ssh: Ssh | None = None
    discovery: Discovery | None = None
    retry: Retry = Retry()
    watchdog: Watchdog = Watchdog()
    log: Log = Log()
    upstream: UpstreamPlace | None = None
    pause: PauseSignal | None = None
    traces: Traces | None = None
    join: Join | None = None
    clusters: dict[Name, Cluster] = Field(default_factory=dict)
    """By the name that machines of the inventory give as their `cluster`."""
    replicas: Replicas | None = None
    """With it other services look after the same clusters."""

    @model_validator(mode="before")
    @classmethod
    def _where_state_is(cls, given: Any) -> Any:
        return with_state(given)

    @model_validator(mode="after")
    def _listeners_differ(self) -> Self:
        listeners = {"provisioning.listen": self.provisioning.listen, "management.listen": self.management.listen}
        if self.join is not None:
            listeners["join.listen"] = self.join.listen
        for (name, ours), (other, theirs) in itertools.combinations(listeners.items(), 2):
            if ours.port == theirs.port and (ours.host == theirs.host or ours.wildcard or theirs.wildcard):
                raise ValueError(f"{other} ({theirs}) and {name} ({ours}) meet; give one of them another port")
        return self

    @model_validator(mode="after")
    def _one_inventory(self) -> Self:
        if self.inventory_writable and self.inventory_kubernetes is not None:
            raise ValueError("inventory_writable is of files, and with inventory_kubernetes there are none")
        return self

    @model_validator(mode="after")
    def _replicas_know_the_same(self) -> Self:
        """Of machines, and of what holds them: else one lets go what another holds."""
        place = self.inventory_kubernetes
        if self.replicas is None and place is not None and place.orders is not None:
            raise ValueError("inventory_kubernetes.orders is for `replicas`: one service has orders on its own disk")
        if self.replicas is not None and (place is None or not place.holds):
            raise ValueError("replicas want one inventory and its Holds: `inventory_kubernetes` with `holds: true`")
        for name, namespace in ((name, each.namespace) for name, each in self.clusters.items()):
            if self.replicas is not None and len(elections_of(namespace)) > LONGEST_NAMESPACE:
                raise ValueError(f"clusters.{name}.namespace is too long for another beside it: {namespace}-leaders")
        return self

    @property
    def all_origins(self) -> tuple[str, ...]:
        """Origins in the order in which machines try them: the extra ones (caches) first, ours as the last resort."""
        return (*(origin for origin in self.origins if origin != self.provisioning.url), self.provisioning.url)

    @property
    def rollouts(self) -> Path:
        """The file of rollouts: of those that replicas share another one."""
        place = self.inventory_kubernetes
        shared = place is not None and place.orders is not None
        return self.data / ("shared-rollouts.db" if shared else "rollouts.db")

    @property
    def shares_facts(self) -> bool:
        """Whether replicas share what they are told of boots, through the status of Machines."""
        place = self.inventory_kubernetes
        return self.replicas is not None and place is not None and place.shipper is not None

    def resolved(self, folder: Path) -> "Config":
        """The same with every path absolute, relative ones taken from `folder`."""
        paths = ("certificate", "key", "authorities", "sealing_keys", "nonce_keys", "tpm_roots")
        join = self.join and under(folder, self.join, *paths)
        files = ("authority", "issuer", "approver", "nodes")
        clusters = {name: under(folder, cluster, *files) for name, cluster in self.clusters.items()}
        upstream = self.upstream and under(folder, self.upstream, "credentials", "authority")
        pause = self.pause and under(folder, self.pause, "token_file", "authority")
        traces = self.traces and under(folder, self.traces, "headers_file", "authority")
        shared = self.keys_kubernetes and under(folder, self.keys_kubernetes, "kubeconfig", "folder")
        declared = self.inventory_kubernetes and under(folder, self.inventory_kubernetes, *InKubernetes.FILES)
        enrolled = self.enrolments_kubernetes and under(folder, self.enrolments_kubernetes, "join", "reader")
        inner = {"management": self.management.resolved(folder), "join": join, "clusters": clusters}
        outer = under(folder, self, "data", "boot_id_key", "store", "inventory", "keys", "proof_key")
        journal = self.journal and under(folder, self.journal, "authorities")
        outside = {
            "provisioning": under(folder, self.provisioning, "ipxe"),
            "inventory_kubernetes": declared,
            "enrolments_kubernetes": enrolled,
            "keys_kubernetes": shared,
            "journal": journal,
            "ssh": self.ssh and under(folder, self.ssh, "authorities"),
            "upstream": upstream,
            "pause": pause,
            "traces": traces,
        }
        return outer.model_copy(update={**inner, **outside})

    def with_shared_keys(self) -> "Config":
        """The same, where a Secret has the keys that replicas share, with the files that are made of it."""
        if self.keys_kubernetes is None:
            return self
        boot_ids, of_join = self.keys_kubernetes.in_use(self.data)
        join = self.join and self.join.model_copy(update=of_join)
        return self.model_copy(update={"boot_id_key": boot_ids, "join": join})

    def site_bundle(self, issued: int, images_revoked: tuple[str, ...] = ()) -> SiteBundle:
        """What the machines of this site are told, to be signed; `issued` in seconds since 1970. What is revoked is no
        part of the configuration: `images.store.revocations`.

        Raises:
            images.values.strict.FaultsError: a file of authorities cannot be read.
        """
        return SiteBundle(
            site=self.site,
            issued=issued,
            images_revoked=images_revoked,
            minimum_epoch=self.minimum_epoch,
            origins=self.all_origins,
            report=self.provisioning.url,
            join_url=self.join.url if self.join is not None else None,
            join_authorities=read_authorities(self.join.authorities, "join.authorities") if self.join else (),
            time_servers=self.time_servers,
            **told(self.journal, self.ssh),
        )


def load_config(path: Path, *, shared: bool = True) -> Config:
    """Read, validate and resolve a configuration file. `shared`: with the keys that a Secret gives, where there is one,
    in the place of the site's own files.

    Raises:
        images.values.strict.FaultsError: with every fault, each with its line, dotted key, bound and the value given.
    """
    path = path.absolute()
    config = strict.load(path, Config, given=True).resolved(path.parent)
    if config.keys_kubernetes is not None:
        config.keys_kubernetes.apart(config, config.data, path)
    return config.with_shared_keys() if shared else config

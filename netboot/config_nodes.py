"""Sections of `netboot.yaml` about nodes: which clusters they join, where their journals go and who may log in, of
which machines are told in the site bundle, and by which keys their Nodes are labelled."""

import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from images.artifact.bundle import Principal
from images.values.kernel_arguments import ProfileArgument
from images.values.strict import Strict
from images.values.types import Name
from netboot.addresses import Url
from netboot.authorities import read_authorities, read_ssh_authorities
from netboot.config_urls import ReachedTlsUrl


def _some(value: tuple[str, ...]) -> tuple[str, ...]:
    if not value:
        raise ValueError("must name at least one: without any nobody could log in")
    return value


def label_key(value: str) -> str:
    """The key of a label, as Kubernetes has them: a name, and before a slash that of a domain.

    Raises:
        ValueError: it is none.
    """
    prefix, slash, name = value.rpartition("/")
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", name):
        raise ValueError("must be the key of a label, like topology.kubernetes.io/zone")
    if slash and not (len(prefix) <= 253 and re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", prefix)):
        raise ValueError("must be the key of a label: before the / stands the name of a domain")
    return value


def _label_key(value: str) -> str:
    if label_key(value).startswith("netboot.dev/"):
        raise ValueError("must not be under netboot.dev/: those are netboot's own")
    return value


def _tier_key(value: str) -> str:
    if value.count("{n}") != 1:
        raise ValueError("must have {n} once, where the number of the tier is to stand")
    _label_key(value.replace("{n}", "0"))
    return value


LabelKey = Annotated[str, AfterValidator(_label_key)]


class NodeLabels(Strict):
    """Keys of the labels that say where a machine stands; null: no label. The defaults are Kubernetes' well-known ones,
    and those of Topograph 1.0, whose tier 0 is the switch that is nearest to the machine."""

    zone: LabelKey | None = "topology.kubernetes.io/zone"
    region: LabelKey | None = "topology.kubernetes.io/region"
    tier: Annotated[str, AfterValidator(_tier_key)] | None = "fabric.topograph.run/tier-{n}"
    accelerator_domain: LabelKey | None = "accelerator.topograph.run/domain"

    @model_validator(mode="after")
    def _different(self) -> Self:
        keys = [self.zone, self.region, self.accelerator_domain]
        keys += [self.tier.replace("{n}", str(n)) for n in range(8)] if self.tier is not None else []
        given = [key for key in keys if key is not None]
        if len(set(given)) != len(given):
            raise ValueError("two of them have the same key")
        return self


class Journal(Strict):
    """A systemd-journal-remote that takes the journals of machines whose images have the feature `journal-upload`."""

    url: Url
    """`https://` over TLS, or `http://` for all to read on the way; its port is 19532 unless it says another."""
    authorities: Path | None = None
    """PEM, one or several: what machines believe it by; only, and always, with `https://`."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if urlsplit(self.url).path:
            raise ValueError("journal.url is a scheme, a host and if need be a port: the path is systemd's")
        if self.url.startswith("https:") != (self.authorities is not None):
            raise ValueError("an https:// url wants authorities, by which machines know it; an http:// one has none")
        return self


class Ssh(Strict):
    """Who may log in as root, where an image has the feature `ssh` and a profile names principals (`netboot.ssh=`)."""

    authorities: Path
    """Public keys as `ssh-keygen` writes them, one a line: whose certificates are believed."""
    principals: Annotated[tuple[Principal, ...], AfterValidator(_some), Field(max_length=16)]
    """Those among which profiles choose."""


class Discovery(Strict):
    """Unknown machines boot an image of this channel that says what they are made of: docs/discovery.md. Left out: they
    wait."""

    channel: Name
    """One that the inventory declares; its image is one that joins, for those have the program."""
    kernel_arguments: Annotated[tuple[ProfileArgument, ...], Field(max_length=16)] = ()
    """What cards of the network or a console want."""


def told(journal: Journal | None, ssh: Ssh | None) -> dict[str, Any]:
    """What of these is in a site bundle.

    Raises:
        images.values.strict.FaultsError: a file of authorities cannot be read.
    """
    fields: dict[str, Any] = {}
    if journal is not None:
        fields["journal_url"] = journal.url
        if journal.authorities is not None:
            fields["journal_authorities"] = read_authorities(journal.authorities, "journal.authorities")
    if ssh is not None:
        fields["ssh_authorities"] = read_ssh_authorities(ssh.authorities, "ssh.authorities")
        fields["ssh_principals"] = ssh.principals
    return fields


class Cluster(Strict):
    """A Kubernetes cluster that machines of this site join. Kubeconfig files, each with an account of its own."""

    endpoints: Annotated[tuple[ReachedTlsUrl, ...], Field(min_length=1)]
    """How nodes reach the API servers."""
    authority: Path
    """PEM, one or several: what nodes believe about those endpoints."""
    namespace: Name = "netboot"
    """Where our Leases are."""
    service_cidrs: tuple[IPv4Network | IPv6Network, ...] = (IPv4Network("10.96.0.0/12"),)
    """Its Services' addresses (`--service-cluster-ip-range`), which no node may have; the default is kubeadm's."""
    issuer: Path = Path("secrets/issuer.kubeconfig")
    approver: Path = Path("secrets/approver.kubeconfig")
    nodes: Path = Path("secrets/nodes.kubeconfig")
    labels: NodeLabels = NodeLabels()
    gate_condition: bool = False
    """Whether others are told of gates by a condition of Nodes, for the Node Readiness Controller."""

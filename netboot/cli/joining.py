"""Files of join: the listener's certificate, the sealing keys; made, and checked for every fault at once."""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization

from images.values import files
from images.values.strict import Fault, FaultsError
from netboot import credentials
from netboot.authorities import read_authorities
from netboot.cli import kubeconfigs
from netboot.cli.authority import new_certificate
from netboot.cli.ends import in_words
from netboot.config import Config, Join
from netboot.config_management import Management, Tls
from netboot.config_nodes import Cluster
from netboot.lifecycle.errors import LifecycleError
from netboot.machines.values import Inventory
from netboot.stores.inventory import declarations_of
from netboot.stores.sealing import NONCES, SEALING, read_keys

PRIVATE = 0o600
_KUBELETS_KEY = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII
)
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set."""
_RENEW = "`netboot config join-certificate` makes it anew"
_NEW = "add a new one, with its key beside it, then `netboot config join-certificate` and `netboot config bundle`"


def names_of(join: Join, extra: Iterable[str] = ()) -> list[str]:
    """For what the certificate must be: the host of `url`, the address that is listened on, and `extra`."""
    host = urlsplit(join.url).hostname or ""
    listened = [] if join.listen.wildcard else [join.listen.host]
    return list(dict.fromkeys([host, *listened, *extra]))


def write_certificate(join: Join, authority_key: Path, extra: Iterable[str] = ()) -> list[str]:
    """Make the listener's certificate and key; for what names.

    Raises:
        ValueError, OSError, StoreError: the authority cannot sign, or a file cannot be read or written.
    """
    names = names_of(join, extra)
    certificate, key = new_certificate(files.small(join.authorities), files.small(authority_key), names)
    for path, data, mode in ((join.key, key, PRIVATE), (join.certificate, certificate, 0o644)):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, data, mode=mode)
    return names


def write_management_certificate(management: Management, tls: Tls, key: Path, extra: Iterable[str] = ()) -> list[str]:
    """The same for the operators' listener: for the host of `url`, the address that is listened on, loopback, `extra`.

    Raises:
        ValueError, OSError, StoreError: as `write_certificate`.
    """
    host = urlsplit(management.url).hostname if management.url is not None else None
    listened = ["localhost", "127.0.0.1", "::1"] if management.listen.wildcard else [management.listen.host]
    names = list(dict.fromkeys([*([host] if host else []), *listened, *extra]))
    authority = tls.authority or key.with_suffix(".crt")
    certificate, new_key = new_certificate(files.small(authority), files.small(key), names)
    for path, data, mode in ((tls.key, new_key, PRIVATE), (tls.certificate, certificate, 0o644)):
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write(path, data, mode=mode)
    return names


def faults(config: Config, inventory: Inventory | None, now: datetime | None = None) -> Iterator[Fault]:
    """Everything that is wrong with the files that join and its clusters need, and with machines as nodes."""
    if config.join is not None:
        yield from _listener(config.join, now or datetime.now(UTC))
        own = ((config.join.sealing_keys, SEALING), (config.join.nonce_keys, NONCES))
        for path, kind in own if config.keys_kubernetes is None else ():  # else the process `keys` brings them
            try:
                read_keys(path, kind)
            except LifecycleError as error:
                yield Fault(str(path), 0, "", in_words(error))
    for name, cluster in config.clusters.items():
        yield from _cluster(name, cluster, joined=config.join is not None)
    if inventory is not None:
        yield from _machines(config, inventory)


def _machines(config: Config, inventory: Inventory) -> Iterator[Fault]:
    """What no cluster would take, also while none joins yet. Not said where the inventory is read: a service that runs
    with it goes on."""
    known = config.clusters or ("default",)  # a new site has none yet, and its machines say nothing of one
    for machine in {machine.cluster: machine for machine in inventory.machines}.values():
        if machine.cluster not in known:
            fault = f"machine {machine.name} is of cluster {machine.cluster}, which netboot.yaml does not have"
            yield Fault(
                declarations_of(config).where, 0, "", f"{fault}: add `clusters.{machine.cluster}`, or correct the name"
            )
    for machine in inventory.machines:
        for key in machine.node.labels:
            if not _KUBELETS_KEY.fullmatch(key):
                fault = f"machine {machine.name}: no kubelet takes the label {key}"
                remedy = "a key is a name of at most 63 characters, or a domain, one / and such a name"
                yield Fault(declarations_of(config).where, 0, "", f"{fault}: {remedy}")


def _listener(join: Join, now: datetime) -> Iterator[Fault]:
    try:
        pems = read_authorities(join.authorities, "join.authorities")
    except FaultsError as error:
        yield from error.faults
        pems = ()
    authorities = [x509.load_pem_x509_certificate(pem.encode()) for pem in pems]
    if authorities and all(authority.not_valid_after_utc <= now for authority in authorities):
        why = "every authority has expired, so no machine will believe this service"
        yield Fault(str(join.authorities), 0, "", f"{why}: {_NEW}")
    try:
        certificate = x509.load_pem_x509_certificate(files.small(join.certificate))
    except OSError as error:
        why = f"join.certificate cannot be read: {error.strerror}"
        yield Fault(str(join.certificate), 0, "", f"{why}; {credentials.remedy(error, _RENEW)}")
        return
    except ValueError:
        yield Fault(str(join.certificate), 0, "", f"join.certificate is not a certificate in PEM; {_RENEW}")
        return
    for fault in (*validity(certificate, now), *_names(certificate, join), *_signer(certificate, authorities)):
        yield Fault(str(join.certificate), 0, "", f"{fault}; {_RENEW}")
    yield from key_faults(join.key, "join", certificate, _RENEW)


def validity(certificate: x509.Certificate, now: datetime) -> Iterator[str]:
    """Why it is none now, in words."""
    if certificate.not_valid_after_utc <= now:
        yield f"it expired at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if certificate.not_valid_before_utc > now:
        yield f"it is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"


def _names(certificate: x509.Certificate, join: Join) -> Iterator[str]:
    host = urlsplit(join.url).hostname or ""
    try:
        sans = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        yield "it names no host at all (subjectAltName)"
        return
    try:
        named = ipaddress.ip_address(host) in sans.get_values_for_type(x509.IPAddress)
    except ValueError:
        names = [name.lower() for name in sans.get_values_for_type(x509.DNSName)]
        named = host in names or f"*.{host.partition('.')[2]}" in names
    if not named:
        yield f"it is not for {host}, the host of join.url"


def _signer(certificate: x509.Certificate, authorities: list[x509.Certificate]) -> Iterator[str]:
    """Of a chain only the first certificate is looked at, so one with intermediates says nothing here."""
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return
    if authorities:
        yield "none of join.authorities has signed it, so no machine will believe it"


def key_faults(path: Path, section: str, certificate: x509.Certificate, renew: str) -> Iterator[Fault]:
    """Of the key of a listener's certificate. `section`: of the configuration, with both; `renew`: the remedy."""
    try:
        key = serialization.load_pem_private_key(files.small(path), None)
    except OSError as error:
        why = f"{section}.key cannot be read: {error.strerror}"
        yield Fault(str(path), 0, "", f"{why}; {credentials.remedy(error, renew)}")
        return
    except (ValueError, TypeError):
        yield Fault(str(path), 0, "", f"{section}.key is not a private key in PEM without a passphrase; {renew}")
        return
    if key.public_key() != certificate.public_key():
        yield Fault(str(path), 0, "", f"{section}.key is not the key of {section}.certificate; {renew}")
    yield from kubeconfigs.private(path, f"{section}.key")


def _cluster(name: str, cluster: Cluster, *, joined: bool) -> Iterator[Fault]:
    try:
        read_authorities(cluster.authority, f"clusters.{name}.authority")
    except FaultsError as error:
        yield from error.faults
    accounts = {"issuer": cluster.issuer} if joined else {}
    for role, path in (accounts | {"approver": cluster.approver, "nodes": cluster.nodes}).items():
        key = f"clusters.{name}.{role}"
        yield from kubeconfigs.faults(path, key)

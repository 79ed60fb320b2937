"""A kubeconfig file, as far as a service may use one: nothing is run, nothing unknown is passed over.

Read here and not by the client library, whose reader leaves private keys in temporary files and runs programs.
Source: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
"""

import base64
import binascii
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from netboot import credentials
from netboot.kube.errors import KubeconfigError

_CLUSTER = {"server", "certificate-authority", "certificate-authority-data", "tls-server-name"}
_USER = {
    "token",
    "tokenFile",
    "client-certificate",
    "client-certificate-data",
    "client-key",
    "client-key-data",
}
_FILES = ("client-certificate", "client-key", "tokenFile")
_HARMLESS = {"extensions", "disable-compression"}


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The current context. `token_source`: the file to read again when it changes. PEM throughout."""

    path: Path
    server: str
    authority: str
    server_name: str | None
    token: str | None = field(repr=False)
    token_source: Path
    certificate: bytes | None = field(repr=False)
    key: bytes | None = field(repr=False)


def read_kubeconfig(path: Path) -> Kubeconfig:
    """The current context of a kubeconfig file.

    Raises:
        KubeconfigError: it cannot be read, or holds what this service does not do (programs, proxies, no TLS).
    """
    document = _load(path)
    contexts = _named(path, document, "contexts", "context", document.get("current-context"))
    cluster = _named(path, document, "clusters", "cluster", contexts.get("cluster"))
    user = _named(path, document, "users", "user", contexts.get("user"))
    for part, known in ((cluster, _CLUSTER), (user, _USER)):
        unknown = sorted(set(part) - known - _HARMLESS)
        if unknown:
            raise KubeconfigError(
                f"{path} uses {', '.join(unknown)}, which this service does not do: it takes a token, or a "
                "client certificate with its key; where a program logs you in, put a token of `kubectl create token` "
                "in its place"
            )
    server = str(cluster.get("server", ""))
    if urlsplit(server).scheme != "https" or not urlsplit(server).hostname:
        raise KubeconfigError(f"{path}: the server must be https://…, it is {server!r}")
    authority = _bytes(path, cluster, "certificate-authority")
    if authority is None:
        raise KubeconfigError(f"{path} names no certificate-authority: whom to believe must be said")
    token, source = _token(path, user)
    certificate, key = _bytes(path, user, "client-certificate"), _bytes(path, user, "client-key")
    if token is None and (certificate is None or key is None):
        raise KubeconfigError(f"{path} has neither a token nor a client certificate with its key")
    name = cluster.get("tls-server-name")
    return Kubeconfig(
        path=path,
        server=server.rstrip("/"),
        authority=authority.decode("ascii", "replace"),
        server_name=None if name is None else str(name),
        token=token,
        token_source=source,
        certificate=certificate,
        key=key,
    )


def named_files(path: Path) -> list[Path]:
    """The files that the current context of a kubeconfig names, as it is now.

    Raises:
        KubeconfigError: it cannot be read.
    """
    document = _load(path)
    context = _named(path, document, "contexts", "context", document.get("current-context"))
    cluster = _named(path, document, "clusters", "cluster", context.get("cluster"))
    user = _named(path, document, "users", "user", context.get("user"))
    named = (cluster.get("certificate-authority"), *(user.get(key) for key in _FILES))
    return [path.parent / str(name) for name in named if name is not None]


def _load(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(credentials.read(path))
    except OSError as error:
        cure = credentials.remedy(error, "make it with `netboot cluster kubeconfigs`")
        raise KubeconfigError(f"{path} cannot be read ({error.strerror}): {cure}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise KubeconfigError(f"{path} is not YAML") from None  # not what the parser says: it quotes the file
    if not isinstance(document, dict) or document.get("kind") != "Config":
        raise KubeconfigError(f"{path} is not a kubeconfig (kind: Config)")
    return document


def _named(path: Path, document: dict[str, Any], listed: str, inner: str, name: object) -> dict[str, Any]:
    entries = document.get(listed)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and name and entry.get("name") == name and isinstance(entry.get(inner), dict):
            return dict(entry[inner])
    raise KubeconfigError(f"{path} has no {inner} {name!r}, which its current-context needs")


def _bytes(path: Path, part: dict[str, Any], key: str) -> bytes | None:
    """The content of `<key>-data` (base64) or of the file that `<key>` names, relative to the kubeconfig."""
    if f"{key}-data" in part:
        try:
            return base64.b64decode(str(part[f"{key}-data"]), validate=True)
        except (binascii.Error, ValueError):
            raise KubeconfigError(f"{path}: {key}-data is not base64") from None
    if key in part:
        return _content(path, str(part[key]))
    return None


def _content(path: Path, named: str) -> bytes:
    try:
        return credentials.read(path.parent / named)
    except OSError as error:
        raise KubeconfigError(f"{path} names {named}, which cannot be read: {error.strerror}") from None


def _token(path: Path, user: dict[str, Any]) -> tuple[str | None, Path]:
    if "tokenFile" in user:
        named = str(user["tokenFile"])
        text, source = _content(path, named).decode("ascii", "replace").strip(), path.parent / named
    elif "token" in user:
        text, source = str(user["token"]), path
    else:
        return None, path
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise KubeconfigError(f"{source}: its token is not one")
    return text, source

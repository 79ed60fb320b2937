"""Kubeconfigs of netboot's accounts: whether they can be used, whether others can read them, and when they end."""

import base64
import json
import stat
from collections.abc import Container, Iterator
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Literal

from images.values.strict import Fault
from netboot import credentials
from netboot.cli.diagnosis import Diagnosis
from netboot.cli.times import moment
from netboot.config import Config
from netboot.join.errors import ClusterUnavailableError

if TYPE_CHECKING:
    from netboot.kube.connection import Connection
    from netboot.kube.errors import Manifests

EXPIRES_SOON_MS = 30 * 86_400_000
AGAIN = "`netboot cluster kubeconfigs`"
ROLES: "dict[tuple[Manifests, str], str]" = {
    ("inventory", "kubeconfig"): "inventory",
    ("inventory", "shipper"): "shipper",
    ("inventory", "orders"): "writer of orders",
    ("enrolments", "join"): "join servers",
    ("enrolments", "reader"): "readers",
    ("keys", "kubeconfig"): "keys",
}
"""Section, without `_kubernetes`, and key → whose account it is."""


def faults(path: Path, key: str, again: str = AGAIN) -> Iterator[Fault]:
    """What is wrong with the file that a key of the configuration names. `again`: what makes a new one."""
    from netboot.cli.ends import in_words
    from netboot.kube.errors import KubeconfigError
    from netboot.kube.kubeconfig import read_kubeconfig

    try:
        read_kubeconfig(path)
    except KubeconfigError as error:
        yield Fault(str(path), 0, "", f"{key}: {in_words(error).replace(AGAIN, again)}")
    else:
        yield from private(path, key)


def faults_of_objects(config: Config) -> Iterator[Fault]:
    """Of accounts that read and write custom resources, and the keys that replicas share."""
    for section, key, path in _accounts(config):
        yield from faults(path, f"{section}_kubernetes.{key}", _again(section))


def private(path: Path, key: str) -> Iterator[Fault]:
    """Whether others can read it."""
    if credentials.told_to_others(status := path.stat()):
        mode = stat.S_IMODE(status.st_mode)
        yield Fault(str(path), 0, "", f"others can read {key} (mode {mode:04o}): `chmod 600 {path}`")


def of_objects(config: Config, faulty: Container[str]) -> Iterator[Diagnosis]:
    """Likewise as diagnoses. `faulty`: files of which it was said already what is wrong."""
    for section, key, path in _accounts(config):
        if str(path) not in faulty:
            yield from _of_objects(section, ROLES[section, key], path)


def _accounts(config: Config) -> "Iterator[tuple[Manifests, str, Path]]":
    """Section, without `_kubernetes`, key and file of each account."""
    sections: dict[Manifests, object] = {
        "inventory": config.inventory_kubernetes,
        "enrolments": config.enrolments_kubernetes,
        "keys": config.keys_kubernetes,
    }
    for section, key in ROLES:
        if (path := getattr(sections[section], key, None)) is not None:
            yield section, key, path


def _again(section: "Manifests") -> str:
    return f"`netboot cluster kubeconfigs --{section}`"


def _of_objects(section: "Manifests", role: str, path: Path) -> Iterator[Diagnosis]:
    from netboot.kube.connection import connect

    again = _again(section)
    try:
        connection = connect(path, manifests=section)
    except ClusterUnavailableError as error:
        yield Diagnosis(section, f"kubeconfig of the {role}", "refuse", str(error), f"make it anew: {again}")
        return
    try:
        yield from diagnosis(section, role, path, connection, again)
    finally:
        connection.close()


def diagnosis(where: str, role: str, path: Path, connection: "Connection", again: str = AGAIN) -> Iterator[Diagnosis]:
    """Of one that can be read. `again`: what makes a new one."""
    name = f"kubeconfig of the {role}"
    if credentials.told_to_others(status := path.stat()):
        mode = stat.S_IMODE(status.st_mode)
        yield Diagnosis(where, name, "warn", f"others can read {path} (mode {mode:04o})", f"`chmod 600 {path}`")
    expires = token_expiry_ms(connection.token or "")
    left = None if expires is None else expires - round(time() * 1000)
    if left is None or left > (0 if connection.renewed else EXPIRES_SOON_MS):
        until = f", until {moment(expires)}" if expires else ""
        yield Diagnosis(where, name, "ok", f"{path}{until}")
    else:
        tense: Literal["warn", "refuse"] = "warn" if left > 0 else "refuse"
        word = "expires" if left > 0 else "expired"
        yield Diagnosis(where, name, tense, f"the token in {path} {word} at {moment(expires)}", f"renew it: {again}")


def token_expiry_ms(token: str) -> int | None:
    """When a ServiceAccount's token says that it expires (`exp` of RFC 7519); None: it does not say. Not verified."""
    segments = token.split(".")
    if len(segments) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(segments[1] + "=" * (-len(segments[1]) % 4)))
        return round(float(claims["exp"]) * 1000)
    except (ValueError, KeyError, TypeError, OverflowError):
        return None

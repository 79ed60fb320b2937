"""The Secret with the keys that replicas share, for commands: where it is, and what this site's files have for it."""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from images.values import files
from netboot.cli.outcomes import cannot

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.config_outside import KeysSecret
    from netboot.kube.shared_keys_admin import SharedKeysAdmin
    from netboot.lifecycle.shared_keys import Ids


def place_of(settings: "Config") -> "KeysSecret":
    """Raises click.ClickException: files are the keys."""
    if settings.keys_kubernetes is None:
        raise click.ClickException(
            "the configuration has no `keys_kubernetes`, so the site's files are its keys: see docs/ha.md"
        )
    return settings.keys_kubernetes


def where_of(place: "KeysSecret") -> str:
    """In words."""
    return f"the Secret {place.namespace}/{place.secret}"


def piped() -> bool:
    """Whether standard output is a pipe or a socket, so that what is printed there is kept by nobody on its way."""
    try:
        mode = os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


@contextmanager
def opened(place: "KeysSecret", kubeconfig: Path) -> Iterator["SharedKeysAdmin"]:
    """As the account of a kubeconfig sees it.

    Raises:
        ClusterUnavailableError: the kubeconfig cannot be used.
    """
    from netboot.kube.connection import connect
    from netboot.kube.shared_keys_admin import SharedKeysAdmin

    connection = connect(kubeconfig, manifests="keys")
    try:
        yield SharedKeysAdmin(connection, place.namespace, place.secret)
    finally:
        connection.close()


def own_files(settings: "Config") -> dict[str, bytes]:
    """What this site's own files have; a key of boot ids is made where no service has needed one yet.

    Raises:
        ApiError: one cannot be read. StateUnavailableError: that key cannot be made.
    """
    from netboot.stores import bootkey

    if settings.boot_id_key is None:
        bootkey.load_or_create(bootkey.file_of(settings))
    paths = {"boot-id.key": bootkey.file_of(settings)}
    if settings.join is not None:
        paths |= {"sealing.keys": settings.join.sealing_keys, "nonce.keys": settings.join.nonce_keys}
    contents = {}
    for name, path in paths.items():
        try:
            contents[name] = files.small(path)
        except OSError as error:
            raise cannot(f"cannot read {path}, of which the Secret's {name} is made", error) from None
    return contents


def ids_in(place: "KeysSecret", data: Mapping[str, str]) -> "Ids":
    """Of the keys that a Secret's `data` has.

    Raises:
        SharedKeysError: they cannot be used.
    """
    from netboot.stores.shared_keys import contents, ids_of

    return ids_of(contents(data, (), where_of(place)), where_of(place))

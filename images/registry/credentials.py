"""Who we are to a registry: from docker's `config.json`, or given. Never in an argument, a URL or a log."""

import base64
import binascii
import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from images.registry.errors import DeniedError, RegistryError
from images.values import files

_HUB = "https://index.docker.io/v1/"


@dataclass(frozen=True, slots=True)
class Login:
    """A name and a password; the latter shows nowhere."""

    username: str
    password: str = field(repr=False)


def default_file() -> Path:
    """Where `docker login` and `podman login` write: $REGISTRY_AUTH_FILE, $DOCKER_CONFIG, else `~/.docker`."""
    named = os.environ.get("REGISTRY_AUTH_FILE")
    if named:
        return Path(named)
    folder = os.environ.get("DOCKER_CONFIG")
    return (Path(folder) if folder else Path.home() / ".docker") / "config.json"


def read_login(
    path: Path, registry: str, *, required: bool = False, read: Callable[[Path], bytes] = files.small
) -> Login | None:
    """The login for a registry in a file of docker's form; None: there is none for it, or (not `required`) no file.

    Raises:
        RegistryError: the file cannot be read or understood; the message repeats nothing of it.
        DeniedError: the login is kept by a helper program, which we do not run.
    """
    try:
        value = json.loads(read(path))
    except FileNotFoundError:
        if required:
            raise RegistryError(f"there is no {path}: `docker login` and `podman login` write such a file") from None
        return None
    except OSError as error:
        raise RegistryError(f"cannot read {path}: {error.strerror}; use an account that may") from None
    except (ValueError, RecursionError):
        raise RegistryError(f"{path} is not docker's config.json: it is no JSON") from None
    if not isinstance(value, dict):
        raise RegistryError(f"{path} is not docker's config.json: it is no JSON object")
    names = (registry, f"https://{registry}", *((_HUB,) if registry == "docker.io" else ()))
    entry = next((login for name in names if (login := _entry(value, name)) is not None), None)
    if entry is not None and entry.get("auth"):
        return _decoded(str(entry["auth"]), path, registry)
    if _kept_by_helper(value, registry, entry):
        raise DeniedError(
            f"the login for {registry} is kept by a helper program of docker's, which netboot does not run: "
            "give --username and the password on stdin, or another file with --credentials"
        )
    return None


def _entry(value: dict[str, Any], name: str) -> dict[str, Any] | None:
    auths = value.get("auths")
    login = auths.get(name) if isinstance(auths, dict) else None
    return login if isinstance(login, dict) else None


def _kept_by_helper(value: dict[str, Any], registry: str, entry: dict[str, Any] | None) -> bool:
    """Docker leaves an empty entry in `auths` where its `credsStore` has the login."""
    helpers = value.get("credHelpers")
    return (isinstance(helpers, dict) and registry in helpers) or (entry is not None and bool(value.get("credsStore")))


def _decoded(auth: str, path: Path, registry: str) -> Login:
    try:
        name, colon, password = base64.b64decode(auth, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        colon = name = password = ""
    if not colon or not name:
        raise RegistryError(f"{path}: the login for {registry} is not base64 of name:password: log in again")
    return Login(name, password)

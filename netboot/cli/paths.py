"""Where local commands find the store and the keys: options first, then the configuration."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from images.errors import NotFoundError
from netboot.config import Config, load_config

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders that a local command works on."""

    store: Path
    keys: Path


def config_path(given: Path | None) -> Path:
    """The configuration file: the option, `$NETBOOT_CONFIG`, or `netboot.yaml` here."""
    return given or Path(os.environ.get("NETBOOT_CONFIG") or "netboot.yaml")


def find_config(given: Path | None) -> Config:
    """Load the configuration.

    Raises:
        NotFoundError: there is none, with the remedy. images.values.strict.FaultsError: it has faults.
    """
    path = config_path(given)
    if not path.exists():
        raise NotFoundError(
            f"no configuration at {path}: change into the folder of a site, give --config, set NETBOOT_CONFIG, "
            "or make a new site with `netboot init DIR`"
        )
    return load_config(path)


def find_paths(config: Path | None, store: Path | None, keys: Path | None) -> Paths:
    """Store and keys from the options; what is not given comes from the configuration.

    Raises:
        As `find_config`, where an option is not given.
    """
    if store is not None and keys is not None:
        return Paths(store, keys)
    found = find_config(config)
    return Paths(store or found.store, keys or found.keys)


def config_option(function: F) -> F:
    """`--config`."""
    text = "Configuration of the site.  [default: $NETBOOT_CONFIG, then ./netboot.yaml]"
    return click.option("--config", "config", type=click.Path(path_type=Path), help=text)(function)


def store_option(function: F) -> F:
    """`--store`."""
    text = "Artifact store, in place of the configuration's."
    return click.option("--store", "store", type=click.Path(path_type=Path), help=text)(function)


def keys_option(function: F) -> F:
    """`--keys`."""
    text = "Folder of keys, in place of the configuration's."
    return click.option("--keys", "keys", type=click.Path(path_type=Path), help=text)(function)

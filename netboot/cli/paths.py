"""Where local commands find the store and the keys: options first, then the configuration."""

import os
from collections.abc import Callable
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from images.errors import NotFoundError
from images.values import files
from netboot.cli.given_files import NamedFile, NamedFolder, not_empty

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.machines.values import Inventory

Command = Callable[..., None]


HOST = Path("/etc/netboot/netboot.yaml")
"""Of a site that a Debian package serves (docs/install.md)."""


def config_path(given: Path | None) -> Path:
    """The configuration file: the option, `$NETBOOT_CONFIG`, `netboot.yaml` here, or this host's, where it has one.

    Raises:
        images.errors.StoreError: nobody can tell whether it is there.
    """
    named = os.environ.get("NETBOOT_CONFIG")
    if given is not None or named:
        return given or Path(named or "")
    here = Path("netboot.yaml")
    return HOST if files.look(here) is None and files.look(HOST) is not None else here


def config_file(given: Path | None) -> Path:
    """The configuration file, which is there.

    Raises:
        NotFoundError: it is not. images.errors.StoreError: nobody can tell. Both with the remedy.
    """
    path = config_path(given)
    if files.look(path) is None:
        raise NotFoundError(
            f"no configuration at {path}: change into the folder of a site, give --config, set NETBOOT_CONFIG, "
            "or make a new site with `netboot init DIR`"
        )
    return path


def find_config(given: Path | None) -> "Config":
    """Load the configuration.

    Raises:
        NotFoundError: there is none, with the remedy. images.values.strict.FaultsError: it has faults.
    """
    from netboot.config import load_config  # brings pydantic and all that it checks

    return load_config(config_file(given))


class ConfigFile(NamedFile):
    """A configuration that is named: one that is not there is told as where none is."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path. Raises as `config_file`, then as `NamedFile`."""
        not_empty(value, param)
        return super().convert(config_file(Path(value)), param, ctx)


class Paths:
    """The folders that a local command works on. What its options leave out, the configuration says.

    Reading `store` or `keys` raises as `find_config` does, where the configuration is needed.
    """

    def __init__(self, config: Path | None, store: Path | None = None, keys: Path | None = None) -> None:
        self.config, self._store, self._keys = config, store, keys

    @cached_property
    def configured(self) -> "Config":
        """The configuration. Raises as `find_config`."""
        return find_config(self.config)

    def check(self) -> None:
        """See that both are known, before a person is asked for anything."""
        _ = self.store, self.keys

    def declared(self) -> "Inventory | None":
        """What the site's inventory declares, whatever is asked of machines that join; None: there is no configuration.

        Raises:
            images.values.strict.FaultsError: it has faults.
        """
        from netboot.stores.inventory import declarations_of  # brings the whole inventory

        if files.look(config_path(self.config)) is None:
            return None
        return declarations_of(self.configured).judged(None).inventory

    @property
    def store(self) -> Path:
        """The artifact store's folder."""
        return self._store or self.configured.store

    @property
    def keys(self) -> Path:
        """The folder of signing keys."""
        return self._keys or self.configured.keys


def paths_options(*, store: bool = True, keys: bool = True, made: bool = False) -> Callable[[Command], Command]:
    """Add `--config` and, as wanted, `--store` and `--keys`: the command gets them as one `paths`. `made`: it makes the
    store where that is not there; without a store, the folder of keys."""

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(
            *arguments: Any, config: Path | None, store: Path | None = None, keys: Path | None = None, **others: Any
        ) -> None:
            function(*arguments, paths=Paths(config, store, keys), **others)

        decorated: Command = keys_option(command, made=made and not store) if keys else command
        decorated = _store_option(decorated, made=made) if store else decorated
        return config_option(decorated)

    return decorate


_CONFIG = "Configuration of the site.  [default: $NETBOOT_CONFIG, ./netboot.yaml, /etc/netboot/netboot.yaml]"


def config_option(function: Command) -> Command:
    """Add `--config`, of a command that needs the configuration itself: for `find_config`."""
    return click.option("--config", "config", type=ConfigFile(), help=_CONFIG)(function)


def site_option(function: Command) -> Command:
    """Add `--config`, of a command that makes it."""
    return click.option("--config", "config", type=click.Path(path_type=Path), help=_CONFIG)(function)


def keys_option(function: Command, *, made: bool = False) -> Command:
    """Add `--keys`, which takes the place of the configuration's `keys`. `made`: as of `paths_options`."""
    text = "Folder of keys, in place of the configuration's."
    return click.option("--keys", "keys", type=NamedFolder(made=made), help=text)(function)


def _store_option(function: Command, *, made: bool) -> Command:
    text = "Artifact store, in place of the configuration's."
    return click.option("--store", "store", type=NamedFolder(made=made), help=text)(function)

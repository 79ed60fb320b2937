"""Every fault of a site, of all its files at once: what `netboot config check` says."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from images.artifact.keyring import KeyRing
from images.errors import ImageError, NotFoundError, StoreError
from images.store.store import Store
from images.values import files, strict
from images.values.faults import first_few
from images.values.strict import Fault, FaultsError
from netboot import credentials
from netboot.authorities import read_authorities
from netboot.cli import check_access, command_lines, fit, host_token, joining, kubeconfigs
from netboot.cli.bundles import faults_of_bundle
from netboot.cli.bundles import revoked as revoked_of
from netboot.cli.ends import SAYS_WHAT_TO_DO, in_words
from netboot.config import Config, load_config
from netboot.config_nodes import told
from netboot.config_outside import PauseSignal, Traces, UpstreamPlace
from netboot.lifecycle.errors import CannotTellError, StateUnavailableError
from netboot.machines.declarations import Declarations
from netboot.machines.declared import overlooked
from netboot.machines.values import Inventory
from netboot.stores.bootkey import key_of
from netboot.stores.inventory import Folder, declarations_of, joining_of, place_of
from netboot.stores.resources import KeptResources


@dataclass(slots=True)
class Findings:
    """What was found; `config` and `inventory` are None where they have faults."""

    config: Config | None = None
    inventory: Inventory | None = None
    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What images lack of drivers for classes of machines that are to boot them."""
    overlooked: list[str] = field(default_factory=list)
    """Files that look like the inventory's, and are not read; or that nothing of it was read yet."""
    tokens: list[str] = field(default_factory=list)
    """What opens more than it has to; the end of what commands of this host send, and of the operators' certificate."""


def check_site(path: Path) -> Findings:
    """Check the configuration, and everything that it names, as far as it can be read."""
    path, findings = path.absolute(), Findings()
    try:
        findings.config = load_config(path)
        place, joining_ = declarations_of(findings.config), joining_of(findings.config)
    except FaultsError as error:
        findings.faults += error.faults
        place, joining_ = Folder(_inventory_folder(path)), None
    try:
        findings.inventory, left_out, _ = place.judged(joining_)
        findings.faults += left_out
    except FaultsError as error:
        if isinstance(place, KeptResources) and not place.there():
            findings.overlooked.append("the objects of the inventory are not known before the service has read them")
        else:
            findings.faults += error.faults
    if findings.config is not None:
        findings.faults += [
            *_folders(findings.config),
            *_keys(findings.config),
            *_boot_id_key(findings.config),
            *check_access.faults(findings.config.management, path),
            *_pinned(findings.inventory, Store(findings.config.store), upstream=findings.config.upstream is not None),
            *_upstream(findings.config.upstream),
            *_pause(findings.config.pause),
            *_traces(findings.config.traces),
            *kubeconfigs.faults_of_objects(findings.config),
            *_told(findings.config),
            *_discovered(findings.config, findings.inventory),
            *joining.faults(findings.config, findings.inventory),
        ]
        management = findings.config.management
        findings.tokens += [*host_token.warnings(management), *check_access.ending(management)]
    if findings.inventory is not None:
        findings.overlooked += _overlooked(place, findings.config)
    if findings.config is not None and findings.inventory is not None:
        findings.faults += _revoked(findings.config, findings.inventory)
        findings.faults += command_lines.faults(findings.config, findings.inventory)
        _fit(findings, findings.config, findings.inventory)
    return findings


def _overlooked(place: Declarations, config: Config | None) -> Iterator[str]:
    if config is not None and config.inventory_kubernetes is not None:
        if files.look(config.inventory) is not None and (paths := sorted(config.inventory.glob("*.yaml"))):
            yield f"not read, for the inventory is custom resources (inventory_kubernetes): {first_few(paths)}"
    elif paths := overlooked(Path(place.where)):
        yield f"not read, for the inventory is {place.where}/*.yaml: {first_few(paths)}"


def _inventory_folder(path: Path) -> Path:
    """Where a configuration with faults most likely has its inventory, so that its faults come at the same time."""
    try:
        value = strict.read(path).value
    except FaultsError:
        value = {}
    given = value.get("inventory") if isinstance(value, dict) else None
    return path.parent / (given if isinstance(given, str) else "inventory")


def _folders(config: Config) -> Iterator[Fault]:
    for folder, check in ((config.store, _store), (config.data, _data)):
        try:
            yield from check(folder)
        except StoreError as error:
            words, remedy = str(error), ": see that this account may read and write it"
            yield Fault(str(folder), 0, "", words if SAYS_WHAT_TO_DO.search(words) else f"{words}{remedy}")


def _store(folder: Path) -> Iterator[Fault]:
    if not files.is_folder(folder):
        yield Fault(str(folder), 0, "", "is not a folder: `netboot image build` makes the store")


def _data(folder: Path) -> Iterator[Fault]:
    nearest = next(path for path in (folder, *folder.parents) if files.look(path) is not None)
    if not files.is_folder(nearest) or not os.access(nearest, os.W_OK | os.X_OK):
        why = f"{nearest} cannot be written by this user, and the service keeps its data here"
        yield Fault(str(folder), 1, "", f"{why}: run this as the service's account, or give that the folder")


def _keys(config: Config) -> Iterator[Fault]:
    try:
        trusted = KeyRing(config.keys).trusted()
    except ImageError as error:
        yield Fault(str(config.keys), 0, "", in_words(error))
        return
    if not trusted:
        message = "holds no public key (*.pub): run `netboot key create`, or copy it from where images are signed"
        yield Fault(str(config.keys), 0, "", message)
    elif os.access(config.store, os.X_OK):
        for with_remedy in faults_of_bundle(config):
            yield Fault(str(config.store / "site" / "bundle.json"), 1, "", with_remedy)


def _boot_id_key(config: Config) -> Iterator[Fault]:
    if config.boot_id_key is not None and config.keys_kubernetes is None:  # else the process `keys` brings it
        try:
            key_of(config)
        except StateUnavailableError as error:
            yield Fault(str(config.boot_id_key), 0, "boot_id_key", in_words(error))


def _pinned(inventory: Inventory | None, store: Store, *, upstream: bool) -> Iterator[Fault]:
    for channel in inventory.channels if inventory else ():
        if channel.image is None:
            continue
        try:
            store.manifest(channel.image)
        except ImageError as error:
            if upstream and isinstance(error, NotFoundError):  # it is fetched when the service runs
                continue
            why = f"channel {channel.name} is pinned to image {channel.image[:12]} in the inventory: {error}"
            yield Fault(str(store.root), 0, "", f"{why}: pull or build that one, or change the pin")


def _discovered(config: Config, inventory: Inventory | None) -> Iterator[Fault]:
    if config.discovery is None or inventory is None:
        return
    channel, names = config.discovery.channel, [each.name for each in inventory.channels]
    if channel not in names:
        message = f"no channel is named {channel!r}: name one of the inventory ({', '.join(names) or 'it has none'})"
        yield Fault(declarations_of(config).where, 0, "discovery.channel", message)


def _revoked(config: Config, inventory: Inventory) -> Iterator[Fault]:
    """Channels whose machines have nothing to boot, because their image is revoked."""
    store = Store(config.store)
    try:
        revoked = revoked_of(config)
        set_ = {name: state.image for name, state in store.channels().items()} if revoked else {}
    except ImageError:  # said elsewhere
        return
    for channel in inventory.channels:
        if (image := channel.image or set_.get(channel.name)) in revoked and image is not None:
            remedy = f"`netboot channel set {channel.name} IMAGE`"
            remedy = "edit the inventory, which pins it" if channel.image is not None else remedy
            message = f"channel {channel.name} is image {image[:12]}, which is revoked: {remedy}"
            yield Fault(str(config.store / "channels"), 0, "", message)


def _fit(findings: Findings, config: Config, inventory: Inventory) -> None:
    """Whether each class of machines can boot what its channel names."""
    for misfit in fit.of_channels(inventory, config):
        if misfit.outcome == "warn":
            findings.warnings.append(str(misfit))
            continue
        file, _, line = place_of(config, "channel", misfit.channel).rpartition(":")
        at = (file, int(line)) if line.isdigit() else (line, 0)
        findings.faults.append(Fault(*at, "", str(misfit)))


def _told(config: Config) -> Iterator[Fault]:
    try:
        told(config.journal, config.ssh)
    except FaultsError as error:
        yield from error.faults


def _upstream(place: UpstreamPlace | None) -> Iterator[Fault]:
    for key, path in (("credentials", place.credentials), ("authority", place.authority)) if place else ():
        if path is not None and not os.access(path, os.R_OK):
            why = f"upstream.{key} cannot be read, so images that are not here cannot be fetched"
            yield Fault(str(path), 0, "", f"{why}: {credentials.PUT_IT_THERE}")


def _pause(place: PauseSignal | None) -> Iterator[Fault]:
    token, authority = (place.token_file, place.authority) if place is not None else (None, None)
    if token is not None:
        from netboot.stores.pause_asker import read_token  # what asks over HTTP is large

        try:
            read_token(token)
        except CannotTellError as error:
            yield Fault(str(token), 0, "", f"{in_words(error)}; until then nothing that acts by itself begins")
    if authority is not None:
        try:
            read_authorities(authority, "pause.authority")
        except FaultsError as error:
            yield from error.faults


def _traces(place: Traces | None) -> Iterator[Fault]:
    headers, authority = (place.headers_file, place.authority) if place is not None else (None, None)
    if headers is not None:
        from netboot.stores.otlp import read_headers  # OpenTelemetry is large

        try:
            read_headers(headers)
        except CannotTellError as error:
            yield Fault(str(headers), 0, "", f"{in_words(error)}; until then no trace is exported")
    if authority is not None:
        try:
            read_authorities(authority, "traces.authority")
        except FaultsError as error:
            yield from error.faults

"""`netboot config`: check, show, and sign what machines are told of it.

All but `diff` and `accept` (`netboot.cli.pending`) work on local files.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import click

from images.artifact import signing
from images.artifact.bundle import read_bundle
from images.artifact.keyring import KeyRing
from images.errors import CorruptError, ImageError, NotFoundError
from images.store.check import check_bundle
from images.store.store import Store
from images.values import files
from images.values.strict import FaultsError
from netboot.cli import bundles, check_listeners, joining, loopback, pending, reload
from netboot.cli.check import check_site
from netboot.cli.given_files import NamedFile
from netboot.cli.in_force import in_force
from netboot.cli.outcomes import NOT_ALLOWED, ApiError, cannot
from netboot.cli.output import output_option, program, show
from netboot.cli.paths import Paths, config_file, config_option, find_config, keys_option
from netboot.config import Config
from netboot.machines.values import Inventory


@click.group()
def group() -> None:
    """Check, show and sign the configuration of a site; compare and accept its inventory."""


group.add_command(pending.diff)
group.add_command(pending.accept)
group.add_command(reload.reload)


@group.command()
@config_option
@output_option
def check(config: Path | None, output: str) -> None:
    """Report every fault of the configuration, the inventory, the keys and the site bundle at once.

    So is an image of the store that a channel names, and that a class of its machines cannot boot (`netboot channel
    set` says which). Warnings, on stderr, are URLs that lead machines to themselves, or to another port than that at
    which the service listens, drivers that an image lacks, tokens of nobody where people have their own, and that the
    service that runs on this host, with this `data`, goes by an older configuration; whether one does that runs
    elsewhere it does not ask. Exit status 1 when there is a fault.

    \b
      netboot config check
    """
    path = config_file(config)
    findings = check_site(path)
    urls = [*loopback.warnings(findings.config), *check_listeners.warnings(findings.config)] if findings.config else []
    for warning in (*urls, *findings.overlooked, *findings.tokens, *findings.warnings):
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    running = in_force(path, findings.config) if findings.config is not None else None
    if output == "json":
        value = {"faults": [dataclasses.asdict(fault) for fault in findings.faults]}
        program(output, value | {"in_force": running._asdict() if running is not None else None}, sort_keys=False)
        raise click.exceptions.Exit(1 if findings.faults else 0)
    if running is not None and running.state == "changed":
        click.secho(f"warning: {running}", fg="yellow", err=True)
    if findings.faults:
        raise FaultsError(findings.faults)
    click.echo(f"{path}: no faults; {_declared(findings.inventory)}")
    if running is not None and running.state == "unknown":
        click.echo(str(running))


def _declared(inventory: Inventory | None) -> str:
    if inventory is None:
        return "the inventory is not known yet"
    counts = [(kind, len(getattr(inventory, f"{kind}s"))) for kind in ("machine", "profile", "channel")]
    return ", ".join(f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts)


@group.command("show")
@config_option
@output_option
def show_(config: Path | None, output: str) -> None:
    """Show what the configuration says: what was given and what was not, with absolute paths. A service that runs goes
    by what it said when that was started, or reloaded: `in_force` says whether that is the same.

    \b
      netboot config show --output json
    """
    file = config_file(config)
    settings = find_config(file)
    value, running = settings.model_dump(mode="json"), in_force(file, settings)
    rows = [*_flat(value, ""), ("in_force", str(running))]
    show(output, value | {"in_force": running._asdict()}, ("key", "value"), rows)


def _flat(value: object, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _flat(below, f"{key}.{name}" if key else name)
    else:
        yield key, "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@group.command()
@config_option
@keys_option
@click.option("--sign", type=NamedFile(), help="Sign this bundle, written elsewhere, with the key here.")
@click.option("--signature", type=NamedFile(), help="Install this signature's bundle, signed elsewhere.")
def bundle(config: Path | None, keys: Path | None, sign: Path | None, signature: Path | None) -> None:
    """Sign the site bundle: origins, report address and minimum epoch, as every machine is told them.

    Where the private key is kept elsewhere, the bundle is written unsigned into this folder:

    \b
      netboot config bundle                             here: writes SITE-bundle.json
      netboot config bundle --sign SITE-bundle.json     where the key is: writes SITE-bundle.sig
      netboot config bundle --signature SITE-bundle.sig here: installs both
    """
    if sign is not None:
        signing_keys = KeyRing(Paths(config, keys=keys).keys).signing_keys()
        data = _read(sign)
        _require_bundle(sign, data)
        target = sign.with_suffix(".sig")
        files.write(target, signing.sign(data, signing_keys))
        signers = " and ".join(key.public.id for key in signing_keys)
        click.echo(f"signed with key {signers}: {target}; carry it back and install it with --signature")
        return
    settings = find_config(config)
    settings = settings.model_copy(update={"keys": keys.absolute()}) if keys is not None else settings
    if signature is not None:
        with bundles.installing(settings):
            _install_signed(settings, signature)
        click.echo(f"installed the site bundle of {settings.site}")
        return
    try:
        with bundles.installing(settings):
            written = bundles.install(settings)
    except NotFoundError as error:
        raise bundles.not_signed(settings, error) from None
    click.echo(f"{'signed and installed' if written else 'nothing to do:'} the site bundle of {settings.site}")


@group.command("join-certificate")
@config_option
@click.option("--authority-key", type=NamedFile(), help="Default: beside join.authorities, as *.key.")
@click.option("--name", "names", multiple=True, help="A further host name or address; may be repeated.")
def join_certificate(config: Path | None, authority_key: Path | None, names: tuple[str, ...]) -> None:
    """Make the certificate of join's listener anew, signed by the site's authority; the service takes it by itself.

    It is for the host of join.url and the address of join.listen. Where the authority's key is kept elsewhere, run this
    there on a copy of the site's folder, and carry tls/join.crt and tls/join.key back.

    \b
      netboot config join-certificate
    """
    settings = find_config(config)
    if settings.join is None:
        raise click.ClickException("netboot.yaml has no `join` section: add it first (docs/kubernetes.md)")
    key = authority_key or settings.join.authorities.with_suffix(".key")
    try:
        certified = joining.write_certificate(settings.join, key, names)
    except OSError as error:
        raise cannot(f"{error.filename} cannot be used", error) from None
    except ValueError as error:
        raise click.ClickException(
            f"{settings.join.authorities} and {key} cannot sign: {error}; name its key with --authority-key"
        ) from None
    click.echo(f"{settings.join.certificate}: for {', '.join(certified)}")


@group.command("management-certificate")
@config_option
@click.option("--authority-key", type=NamedFile(), help="Default: beside management.tls.authority, *.key.")
@click.option("--name", "names", multiple=True, help="A further host name or address; may be repeated.")
def management_certificate(config: Path | None, authority_key: Path | None, names: tuple[str, ...]) -> None:
    """Make the certificate of the operators' listener anew, signed by the site's authority, tls/ca.crt unless
    management.tls.authority names another; the service takes it by itself.

    It is for the host of management.url and the address of management.listen. A certificate of your own, by an
    authority of your own, does as well: put it where management.tls says.

    \b
      netboot config management-certificate --name netboot.example
    """
    file = config_file(config)
    management = find_config(file).management
    if management.tls is None:
        raise click.ClickException("netboot.yaml has no `management.tls`: add it, with `authority: tls/ca.crt`")
    key = authority_key or (management.tls.authority or file.absolute().parent / "tls" / "ca.crt").with_suffix(".key")
    try:
        certified = joining.write_management_certificate(management, management.tls, key, names)
    except OSError as error:
        raise cannot(f"{error.filename} cannot be used", error) from None
    except ValueError as error:
        raise click.ClickException(f"{key} cannot sign: {error}; name the authority's with --authority-key") from None
    click.echo(f"{management.tls.certificate}: for {', '.join(certified)}")


def _install_signed(config: Config, signature: Path) -> None:
    data, signed = _read(signature.with_suffix(".json")), _read(signature)
    _require_bundle(signature.with_suffix(".json"), data)
    trusted = KeyRing(config.keys).trusted()
    bundle = check_bundle(data, signed, trusted)
    differences = bundles.differences(bundle, config)
    if differences:
        said = "that bundle is not of this configuration: " + "; ".join(differences)
        raise ApiError(said, "write it anew: `netboot config bundle`", NOT_ALLOWED)
    store = Store(config.store)
    with contextlib.suppress(ImageError):  # none, or a damaged one: it is replaced
        before = read_bundle(store.bundle()[0]).issued
        if bundle.issued < before:  # it does not know what was revoked since
            raise click.ClickException(
                f"that bundle was written at {bundle.issued}, and the one in force at {before}: write it anew with "
                "`netboot config bundle`"
            )
    store.set_bundle(data, signed)


def _require_bundle(path: Path, data: bytes) -> None:
    try:
        read_bundle(data)
    except CorruptError as error:
        raise click.ClickException(f"{path} is {error}: write it anew with `netboot config bundle`") from None


def _read(path: Path) -> bytes:
    try:
        return files.bytes_of(path, files.LARGE)
    except OSError as error:
        raise cannot(f"{path} cannot be read", error) from None

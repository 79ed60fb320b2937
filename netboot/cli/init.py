"""`netboot init DIR`: a working site from nothing."""

import json
import pwd
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from images.artifact.keyring import KeyRing
from images.errors import StoreError
from images.values import files, strict
from images.values.strict import FaultsError
from netboot.addresses import port_of
from netboot.cli import bundles, host_token, init_check, init_options, init_record, loopback, ownership
from netboot.cli.authority import new_authority
from netboot.cli.init_next import IMAGES, next_steps
from netboot.cli.init_undo import all_or_nothing, unwritten
from netboot.cli.joining import write_certificate
from netboot.config import Config, Join, load_config
from netboot.stores import access_tokens, proofkey
from netboot.stores.sealing import NONCES, SEALING, new_key, write_keys
from tokens.sealed import Keyset

_TEMPLATES = Path(__file__).parent / "templates"
PRIVATE = 0o600


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--url",
    callback=init_options.url,
    help="How machines will reach the service, e.g. http://192.0.2.10:8080; at its port the service listens.",
)
@click.option(
    "--join-url", callback=init_options.url, help="Machines are to join a cluster, here: e.g. https://192.0.2.10:8443."
)
@click.option(
    "--hardware",
    type=click.Choice(list(IMAGES)),
    help="What is to boot: the image that is named next is for that. Without it one for each is named.",
)
@click.option("--site", callback=init_options.site, default="main", show_default=True, help="Name of the site.")
@click.option("--state", type=click.Path(file_okay=False, path_type=Path), help="Folder of data and store, if not DIR.")
@click.option(
    "--owner", callback=init_options.account, help="Account of the service: gets the state and what is secret, no keys."
)
@click.option("--force", is_flag=True, help="Into a folder that is not empty: what is there already stays as it is.")
def command(
    folder: Path,
    url: str | None,
    join_url: str | None,
    hardware: str | None,
    site: str,
    state: Path | None,
    owner: pwd.struct_passwd | None,
    force: bool,
) -> None:
    """Write a working site into DIR: configuration, sample inventory, keys, this host's token, the site bundle.

    \b
      netboot init site --hardware server                              for a rack: images with the drivers of servers
      netboot init site --hardware vm                                  for virtual machines on a laptop: a small image
      netboot init site --join-url https://192.0.2.1:8443              whose machines join a cluster
      netboot init site --force                                        add to a site what it lacks, and change nothing

    \b
    For the service of the Debian package, as root; its folder is there already, hence --force:
      netboot init /etc/netboot --force --state /var/lib/netboot --owner netboot
    """
    if files.is_folder(folder) and files.names(folder) and not force:
        raise click.ClickException(f"{folder} is not empty: choose another, or give --force to add what is missing")
    wanted = url or f"http://{_own_address()}:8080"
    place, kept = None if state is None else state.absolute(), files.look(folder / "netboot.yaml") is not None
    values = _values(site, wanted, join_url, place)
    sound = _require_sound(folder / "netboot.yaml", values)
    try:
        contents = [path for path, _, _ in _contents(folder, values)]
        if owner is not None or not kept:
            contents.append(sound.data / "lock")
        init_check.require(sound, contents, folder / "tls" / "ca.crt")
        with init_record.recorded_in(folder), all_or_nothing(sound, contents):
            config = _fill(folder, values, owner)
    except (OSError, StoreError) as error:
        raise unwritten(folder, error) from None
    for words in loopback.warnings(config):
        click.secho(f"warning: {words}", fg="yellow", err=True)
    told = _told(config, wanted, kept=kept, guessed=url is None) + (_kept(config, site, join_url) if kept else "")
    click.echo(next_steps(folder, told, owner, hardware, joins=config.join is not None))


def _require_sound(file: Path, values: dict[str, str]) -> Config:
    """The configuration that is there, or will be: before anything is written it is seen to have no faults.

    Raises:
        FaultsError: of the one that is there. click.UsageError: what was given makes none.
    """
    if files.look(file) is not None:
        return load_config(file, shared=False)
    try:
        document = strict.parse(_template("netboot.yaml", values).decode(), str(file))
        return strict.check(document, Config).resolved(file.absolute().parent)
    except FaultsError as error:
        said = "; ".join(fault.message for fault in error.faults)
        raise click.UsageError(f"nothing was written, for what was given makes no configuration: {said}") from None


def _told(config: Config, wanted: str, *, kept: bool, guessed: bool) -> str:
    """What machines are told, where nobody said it just now; "": it is as it was asked for."""
    now, other = config.provisioning.url, "" if guessed else f", not {wanted}"
    why = f", as the netboot.yaml says that was there{other}" if kept else ": change provisioning.url if that is not so"
    return f"machines are told to reach this service at {now}{why}\n" if guessed or now != wanted else ""


def _kept(config: Config, site: str, join_url: str | None) -> str:
    """What the configuration that was there says otherwise than what was typed; "": nothing."""
    joins, said = config.join.url if config.join is not None else "", list[str]()
    if join_url is not None and joins != join_url:
        said.append(f"machines join at {joins}, not {join_url}" if joins else "machines join no cluster")
    if init_options.was_given("site") and config.site != site:
        said.append(f"this is site {config.site}, not {site}")
    return "".join(f"{each}, as the netboot.yaml says that was there: edit it to change that\n" for each in said)


def _fill(folder: Path, values: dict[str, str], owner: pwd.struct_passwd | None) -> Config:
    for path, mode, content in _contents(folder, values):
        _write(path, mode, content)
    config = load_config(folder / "netboot.yaml", shared=False)
    if owner is not None:
        ownership.make_state(config, owner)
    if config.join is not None:
        _fill_join(config.join)
        _fill_proofs(config)
    ring = KeyRing(config.keys)
    if not ring.infos():  # a public key alone: images are signed elsewhere
        _say("wrote", config.keys / f"{ring.create().id}.key")
    if any(info.active and info.private for info in ring.infos()):
        bundles.install(config)
    if owner is not None:
        ownership.give(folder, config, owner)
        click.echo(f"{owner.pw_name} has {config.data}, {config.store} and what is secret; the rest it can read")
    return config


def _fill_join(join: Join) -> None:
    """The listener's certificate and the keys that seal, where they are not there yet."""
    authority_key = join.authorities.with_suffix(".key")
    if join.certificate.exists() or join.key.exists() or not authority_key.exists():
        _say("kept", join.certificate)
    else:
        write_certificate(join, authority_key)
        _say("wrote", join.certificate)
        _say("wrote", join.key)
    for path, kind in ((join.sealing_keys, SEALING), (join.nonce_keys, NONCES)):
        if path.exists():
            _say("kept", path)
        else:
            write_keys(path, Keyset((new_key(),)), kind)
            _say("wrote", path)


def _fill_proofs(config: Config) -> None:
    """The key that signs proofs of boots, where there is none."""
    if config.proof_key.exists():
        _say("kept", config.proof_key)
    else:
        proofkey.rotate(config.proof_key, proofkey.folder_of(config))
        _say("wrote", config.proof_key)


def _join_section(join_url: str | None) -> str:
    """The section as it is, or commented out where machines do not join."""
    text = _template("join.yaml", {}).decode()
    if join_url is not None:
        listen = f"{_any_address()}:{port_of(join_url)}"
        return text.replace("@JOIN_URL@", join_url).replace("@JOIN_LISTEN@", listen).rstrip("\n")
    text = text.replace("@JOIN_URL@", "https://192.0.2.10:8443").replace("@JOIN_LISTEN@", f"{_any_address()}:8443")
    return "\n".join(line if line.startswith("#") or not line else f"# {line}" for line in text.splitlines())


def _values(site: str, url: str, join_url: str | None, state: Path | None) -> dict[str, str]:
    """What stands in the holes of the templates. Paths with what YAML could take for something else are quoted."""
    listen = f"{_any_address()}:{port_of(url)}"
    values = {"@SITE@": site, "@URL@": url, "@LISTEN@": listen, "@JOIN@": _join_section(join_url)}
    for name in ("data", "store"):
        path = name if state is None else str(state / name)
        values[f"@{name.upper()}@"] = path if re.fullmatch(r"[\w./-]+", path) else json.dumps(path)
    return values


def _contents(folder: Path, values: dict[str, str]) -> Iterator[tuple[Path, int, Callable[[], bytes]]]:
    """Path, mode and content of every file, the content made only where the file is not there yet."""
    yield folder / "netboot.yaml", 0o644, lambda: _template("netboot.yaml", values)
    yield folder / "inventory" / "site.yaml", 0o644, lambda: _template("inventory.yaml", {})
    yield folder / ".gitignore", 0o644, lambda: _template("gitignore", {})
    text, hashes = folder / "secrets" / init_check.TOKEN, folder / "secrets" / "access.json"
    if not init_check.there(hashes):  # where people have tokens already it may have been removed
        yield text, PRIVATE, lambda: f"{access_tokens.new_token()}\n".encode()
    yield hashes, PRIVATE, lambda: host_token.first(text)
    if not any(init_check.there(folder / "tls" / name) for name in ("ca.key", "ca.crt")):
        certificate, key = new_authority(values["@SITE@"])
        yield folder / "tls" / "ca.key", PRIVATE, lambda: key
        yield folder / "tls" / "ca.crt", 0o644, lambda: certificate


def _write(path: Path, mode: int, content: Callable[[], bytes]) -> None:
    if path.exists():
        _say("kept", path)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.name == "secrets":
        path.parent.chmod(0o700)
    files.write(path, content(), mode=mode)
    _say("wrote", path)


def _say(what: str, path: Path) -> None:
    click.echo(f"{what:5} {path}")


def _template(name: str, values: dict[str, str]) -> bytes:
    text = (_TEMPLATES / name).read_text(encoding="utf-8")
    for hole, value in values.items():
        text = text.replace(hole, value)
    return text.encode()


def _any_address() -> str:
    return "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - machines are to reach it


def _own_address() -> str:
    """The address that this machine would talk from: connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # RFC 5737: an address that is nobody's
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])

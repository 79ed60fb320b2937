"""`netboot token`: bootstrap tokens by an operator's word. Asks the running service."""

import base64
from typing import Any

import click

from netboot.cli.client import Connection, api_command, segment
from netboot.cli.output import show
from netboot.cli.times import duration, moment, window_option


@click.group()
def group() -> None:
    """Tokens for machines that join by an operator's word in place of a TPM: for automation, and for old hardware.

    Each is for one machine and one key, for fifteen minutes at most. There is no token for anyone. Machines that have a
    TPM need none of this: they prove themselves and get their token alone.

    \b
    Example:
      netboot token issue --machine old-001 --spki-file key.pub
      netboot token list
      netboot token revoke a1b2c3
    """


def _lifetime(_context: click.Context, _option: click.Parameter, value: str) -> int:
    try:
        found = duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if not 60 <= found <= 900:
        raise click.BadParameter("from 1m to 15m")
    return found


@group.command()
@click.option("--machine", required=True, help="Name in the inventory; its `identity` there must be nonce or address.")
@click.option("--spki-file", type=click.File("rb"), help="The machine's public key, PEM or DER ('-': stdin).")
@click.option("--lifetime", default="5m", show_default=True, callback=_lifetime, help="Of the token, at most 15m.")
@window_option
@click.option("--reason", default="", help="Why, for the history.")
@api_command
def issue(
    machine: str,
    spki_file: Any,
    lifetime: int,
    window: int,
    reason: str,
    connection: Connection,
    output: str,
) -> None:
    """Issue a token with which the holder of that key, and nobody else, may become MACHINE's node.

    The token is shown once and kept nowhere. Without --spki-file a boot window opens (--window): the machine joins once
    by the nonce of its next boot script.

    \b
    Example:
      openssl pkey -in key.pem -pubout | netboot token issue --machine old-001 --spki-file -
    """
    body: dict[str, Any] = {"machine": machine, "reason": reason}
    if spki_file is None:
        body |= {"window_seconds": window}
    else:
        body |= {"spki": base64.b64encode(_spki(spki_file.read())).decode(), "lifetime_seconds": lifetime}
    found = connection.open().post("/v1/tokens", body)
    if spki_file is None:
        until = moment(found["window"]["until_ms"])
        show(output, found, (), (), f"{machine} may join once without a TPM until {until}: boot it")
        return
    if output == "table":
        until = moment(found["expires_ms"])
        click.echo(f"for {found['node_name']} in cluster {found['cluster']}, until {until}:", err=True)
    show(output, found, (), (), found["token"])


@group.command("list")
@api_command
def list_(connection: Connection, output: str) -> None:
    """List the tokens that are out, by whatever way they were issued; never their secrets.

    \b
      netboot token list
    """
    found = connection.open().get("/v1/tokens")
    for cluster, problem in found["problems"].items():
        click.echo(f"WARNING: cluster {cluster}: {problem}", err=True)
    rows = [
        (
            *(one["id"], one["machine"], one["node"], one["cluster"], one["assurance"], moment(one["issued_ms"])),
            f"{moment(one['expires_ms'])}{' (expired)' if one['expired'] else ''}",
        )
        for one in found["tokens"]
    ]
    columns = ("token", "machine", "node", "cluster", "proven by", "issued", "expires")
    show(output, found, columns, rows, "no token is out")


@group.command()
@click.argument("token")
@api_command
def revoke(token: str, connection: Connection, output: str) -> None:
    """Revoke TOKEN (the six characters before the dot).

    Kubernetes may go on believing it for ten seconds; only the holder of its key could use it even then.

    \b
      netboot token revoke ab12cd
    """
    found = connection.open().delete(f"/v1/tokens/{segment(token)}")
    show(output, found, (), (), f"token {token} of {found['machine']} is revoked")


def _spki(data: bytes) -> bytes:
    """DER from PEM or DER; the service judges the rest."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    if b"-----BEGIN" not in data:
        return data
    try:
        key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        raise click.BadParameter("not a public key in PEM", param_hint="--spki-file") from None
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

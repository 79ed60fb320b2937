"""`netboot token`: bootstrap tokens by an operator's word. Asks the running service."""

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from images.values import files
from netboot.cli import complete
from netboot.cli.client import Connection, api_command
from netboot.cli.given_files import GivenFile
from netboot.cli.outcomes import ApiError
from netboot.cli.output import show
from netboot.cli.times import duration_option, moment, window_option

if TYPE_CHECKING:
    from netboot.client.models import NewToken


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


@group.command()
@click.option(
    "--machine",
    shell_complete=complete.machines,
    required=True,
    help="Name in the inventory; its `identity` there must be nonce or address.",
)
@click.option("--spki-file", type=GivenFile(files.SMALL), help="The machine's public key, PEM or DER ('-': stdin).")
@duration_option("--lifetime", "5m", "1m", "15m", "Of the token, at most 15m.", field="lifetime_seconds")
@window_option
@click.option("--reason", default="", help="Why, for the history.")
@api_command
def issue(
    machine: str,
    spki_file: Any,
    lifetime_seconds: int,
    window_seconds: int,
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
    body: NewToken = {"machine": machine, "reason": reason}
    if spki_file is None:
        body["window_seconds"] = window_seconds
    else:
        body["spki"] = base64.b64encode(_spki(spki_file.read(), spki_file.name)).decode()
        body["lifetime_seconds"] = lifetime_seconds
    issued: Mapping[str, Any] = connection.open().join_tokens.create(body)
    if spki_file is None:
        until = moment(issued["window"]["until"])
        show(output, issued, (), (), f"{machine} may join once without a TPM until {until}: boot it")
        return
    if output == "table":
        until = moment(issued["expires_at"])
        click.echo(f"for {issued['node_name']} in cluster {issued['cluster']}, until {until}:", err=True)
    show(output, issued, (), (), issued["token"])


@group.command("list")
@api_command
def list_(connection: Connection, output: str) -> None:
    """List the tokens that are out, by whatever way they were issued; never their secrets.

    \b
      netboot token list
    """
    listed = connection.open().join_tokens.list()
    for cluster, problem in listed["problems"].items():
        click.echo(f"WARNING: cluster {cluster}: {problem}", err=True)
    rows = [
        (
            *(token[key] for key in ("id", "machine", "node", "cluster", "assurance")),
            moment(token["issued_at"]),
            f"{moment(token['expires_at'])}{' (expired)' if token['expired'] else ''}",
        )
        for token in listed["tokens"]
    ]
    columns = ("token", "machine", "node", "cluster", "proven by", "issued", "expires")
    show(output, listed, columns, rows, "no token is out", names=[token["id"] for token in listed["tokens"]])


@group.command()
@click.argument("token", shell_complete=complete.tokens)
@api_command
def revoke(token: str, connection: Connection, output: str) -> None:
    """Revoke TOKEN (the six characters before the dot).

    Kubernetes may go on believing it for ten seconds; only the holder of its key could use it even then.

    \b
      netboot token revoke ab12cd
    """
    revoked = connection.open().join_tokens.revoke(token)
    show(output, revoked, (), (), f"token {token} of {revoked['machine']} is revoked")


def _spki(data: bytes, name: str) -> bytes:
    """DER from PEM or DER; the service judges which keys it takes."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_der_public_key,
        load_pem_public_key,
    )

    try:
        key = load_pem_public_key(data) if b"-----BEGIN" in data else load_der_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        remedy = "`openssl pkey -in KEY -pubout` writes one"
        raise ApiError(f"{name} is no public key in PEM or DER", remedy, 1) from None
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

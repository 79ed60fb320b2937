"""`netboot boot proof`: the signed record of a boot that attested, from the service or a file, and whether it holds."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from images.values import files
from netboot.cli import complete
from netboot.cli.client import Connection, api_command
from netboot.cli.given_files import NamedFile, NamedFolder
from netboot.cli.output import show
from netboot.cli.paths import find_config
from netboot.cli.times import moment

if TYPE_CHECKING:  # what verifies is large: it is imported by who needs it
    from images.artifact.signing import PublicKey
    from netboot.lifecycle.proof import ProofOfBoot, SignedProof


@click.command("proof")
@click.argument("boot", required=False, shell_complete=complete.boots)
@click.option("--file", type=NamedFile(), help="From this file, in place of the service.")
@click.option("--verify", "wanted", is_flag=True, help="Exit status 1 unless a trusted key has signed it.")
@click.option("--keys", type=NamedFolder(), help="Folder of public keys.  [default: the site's]")
@api_command
def command(
    boot: str | None, file: Path | None, wanted: bool, keys: Path | None, connection: Connection, output: str
) -> None:
    """Show the proof of BOOT: how it attested, its image, checks, certificate and moments, in one signed record.

    It is made when the boot is first seen in service, or when a later boot of its machine has proven itself. With
    --file and --keys it is verified where there is no service: a file of --output json and a public key are enough.

    \b
      netboot boot proof 0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d --verify
      netboot boot proof 0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d --output json > proof.json
      netboot boot proof --file proof.json --verify --keys ./proof-keys
    """
    from netboot.lifecycle.proof import SignedProof, read, verified

    if file is not None:
        given = read(files.small(file), str(file))
    elif boot is not None:
        given = SignedProof.model_validate(connection.open().proofs.get(boot))
    else:
        raise click.UsageError("name a boot, or a file with --file")
    if wanted:
        proof, key = verified(given, _keys(keys, connection.config), boot)
        summary = f"it holds: signed by key {key.id}"
    else:
        proof = _unverified(given)
        summary = "not verified: --verify holds it against the site's public keys"
    show(output, given.model_dump(mode="json"), ("", ""), _rows(proof, summary))


def _keys(folder: Path | None, config: Path | None) -> "tuple[PublicKey, ...]":
    from netboot.stores import proofkey

    folder = folder or proofkey.folder_of(find_config(config))
    keys = proofkey.public_keys(folder)
    if not keys:
        raise click.ClickException(f"there is no public key (*.pub) in {folder}: name their folder with --keys")
    return keys


def _unverified(given: "SignedProof") -> "ProofOfBoot":
    from netboot.lifecycle.proof import BadProofError, ProofOfBoot

    try:
        return ProofOfBoot.model_validate_json(given.proof)
    except ValueError:
        raise BadProofError("it is no proof of a boot that this version knows") from None


def _rows(proof: "ProofOfBoot", summary: str) -> list[tuple[str, str]]:
    image, checks = proof.image, proof.checks
    return [
        ("proof", summary),
        ("site", proof.site),
        ("machine", proof.machine),
        ("boot", proof.boot),
        ("attested", proof.attested),
        ("quote", proof.quote_sha256 or "none: it has no TPM, or an older netboot kept no digest"),
        ("image", f"{image.sha256} ({image.known_by})" if image is not None else "not known"),
        ("certificate", proof.certificate_sha256 or "not known"),
        ("checks", f"{checks.status}, at {moment(checks.at_ms)}" if checks is not None else "none were reported"),
        *[(name, moment(at_ms)) for name, at_ms in proof.moments.items()],
        ("made", moment(proof.made_ms)),
    ]

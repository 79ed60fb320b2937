"""`netboot key proofs`: the key that signs proofs of boots, and those that verify them. Works on local files."""

from pathlib import Path

import click

from netboot.cli.file_acts import Stood, record, recorded
from netboot.cli.outcomes import cannot
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_config
from netboot.config import Config
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores import proofkey


@click.group()
def proofs() -> None:
    """List and rotate the key that signs proofs of boots (proof_key, mode 0600); `controllers` alone has it.

    The public halves are in keys/proofs and stay: what an older key signed is verified for ever. No image is trusted by
    them.

    \b
      netboot key proofs list
      netboot key proofs rotate
    """


@proofs.command("list")
@config_option
@output_option
def list_(config: Path | None, output: str) -> None:
    """List the public halves, and which one signs now.

    \b
      netboot key proofs list
    """
    settings = find_config(config)
    key = proofkey.read_key(settings.proof_key)
    known = proofkey.public_keys(proofkey.folder_of(settings))
    signs = key.public.id if key is not None else None
    value = [{"id": each.id, "signs": each.id == signs} for each in known]
    rows = [(each["id"], "signs" if each["signs"] else "verifies") for each in value]
    show(
        output,
        {"keys": value},
        ("key", "does"),
        rows,
        "no keys yet: `netboot key proofs rotate` makes one",
        names=[row[0] for row in rows],
    )


@proofs.command("rotate")
@config_option
@output_option
def rotate(config: Path | None, output: str) -> None:
    """Make a new key, which signs from now on; carry its public half to whoever verifies.

    \b
      netboot key proofs rotate
    """
    settings = find_config(config)

    def write(before: Stood, after: Stood, result: str) -> None:
        facts = {"key": (after or {}).get("key")}
        record(settings.data, "key-proofs-rotate", facts, before=before, after=after, result=result)

    with recorded(lambda: _signs(settings), write):
        try:
            key = proofkey.rotate(settings.proof_key, proofkey.folder_of(settings))
        except OSError as error:
            raise cannot(f"cannot write {error.filename}", error) from None
    show(output, {"id": key.id}, (), (), f"key {key.id} signs proofs of boots from now on")


def _signs(settings: Config) -> Stood:
    """The key that signs, by its id; None: there is none, or one that cannot be used."""
    try:
        key = proofkey.read_key(settings.proof_key)
    except StateUnavailableError:
        return None
    return None if key is None else {"key": key.public.id, "state": "signs"}

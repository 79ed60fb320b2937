"""What an older file of tokens would undo when it is restored: blocks stay, and tokens that come back are named."""

from pathlib import Path
from typing import NamedTuple

from images.values.strict import FaultsError
from netboot.config import load_config
from netboot.lifecycle.errors import NoTokensError
from netboot.stores import access_tokens
from netboot.stores.backup import Contents

NAME = "file/management.tokens"


class Access(NamedTuple):
    """`blocked`: who stays blocked though the backup does not say so; `revived`: names of tokens that open things
    again, for the site as it was did not have them; `there`: whether there is a file of tokens in the backup."""

    blocked: tuple[str, ...] = ()
    revived: tuple[str, ...] = ()
    there: bool = False


def keep_blocks(contents: Contents, folder: Path, file: Path) -> Access:
    """Add to the backup's file of tokens, which `read_backup` left in `folder`, whom the site whose configuration is
    `file` blocks. A file that cannot be used is restored, or replaced, as it is.

    Raises:
        OSError: it cannot be written.
    """
    number = next((number for number, entry in enumerate(contents.files) if entry.name == NAME), None)
    if number is None:
        return Access()
    copy = folder / str(number)
    try:
        restored, now = access_tokens.read(copy), access_tokens.read(load_config(file).management.tokens)
    except (FaultsError, NoTokensError):
        return Access(there=True)
    if now is access_tokens.ABSENT:
        return Access(there=True)
    kept = access_tokens.blocks_kept(restored, now)
    blocked = {each.name for each in kept.blocked} - {each.name for each in restored.blocked}
    known = {each.sha256 for each in now.tokens}
    revived = tuple(sorted(each.name for each in restored.tokens if each.sha256 not in known))
    copy.write_bytes(access_tokens.to_bytes(kept))
    return Access(tuple(sorted(blocked)), revived, there=True)

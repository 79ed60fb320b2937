"""What `netboot doctor` says of one thing that it looked at; and its look at the store."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from images.store import modes
from netboot.config import Config
from netboot.lifecycle.errors import CannotTellError
from netboot.stores import proofkey


class Diagnosis(NamedTuple):
    """One thing that was looked at. `where`: site, service, or a cluster by its name."""

    where: str
    name: str
    outcome: Literal["ok", "warn", "refuse", "advice"]
    words: str
    remedy: str = ""


def store(config: Config) -> Iterator[Diagnosis]:
    """Whether the account whose `data` is can write the store, and a file server's read it."""
    try:
        ours = config.data.stat()
        closed, unread = modes.unwritable(config.store, ours.st_uid, ours.st_gid), modes.unreadable(config.store)
    except FileNotFoundError:  # the first start makes them
        return
    except OSError as error:
        yield Diagnosis(
            "service", "store", "warn", f"cannot be told: {error.filename}: {error.strerror}", "ask as root"
        )
        return
    user = modes.name_of(ours.st_uid)
    if closed:
        remedy = f"`chown -R {user}: {config.store}`; what root puts there later is {user}'s by itself (docs/store.md)"
        yield Diagnosis("service", "store", "warn", f"{user} cannot write to {_some(closed)}", remedy)
    if unread:
        words = f"another account, a file server's for one, cannot look into {_some(unread)}"
        yield Diagnosis("service", "store", "warn", words, f"`chmod -R a+rX {config.store}`, if one shall")
    if not closed and not unread:
        yield Diagnosis("service", "store", "ok", f"{user} can write to it, and everybody read")


def proofs(config: Config) -> Iterator[Diagnosis]:
    """What keeps boots from being proven, where they are to be."""
    try:
        proofkey.signing_key(config.proof_key, lambda: any(proofkey.folder_of(config).glob("*.pub")))
    except CannotTellError as error:
        yield Diagnosis("join", "proof_key", "warn", str(error), "see docs/proof.md#keys; boots are proven later")


def _some(paths: tuple[Path, ...]) -> str:
    return f"{paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")

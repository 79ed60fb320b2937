"""Public keys of package archives, by gpg's word: whose they are, and until when what they sign is believed.

apt refuses what an expired key signed. A file of keys lasts as long as the last of them, so that a key's successor can
lie beside it; which of them signs an archive today apt finds out (`netboot image sources check` shows it).
"""

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from images.errors import CommandError, RecipeError
from images.recipe.recipe import Recipe, Source
from images.run import run

SOON_SECONDS = 60 * 86_400
_GPG_SECONDS = 60.0
_REMEDY = (
    "take the key that the archive has now, compare its fingerprint, and name it as `signed_by` of that source; "
    'see docs/recipes.md, "Keys of archives"'
)


@dataclass(frozen=True, slots=True)
class ArchiveKey:
    """One public key with its subkeys. `expires`: when the last that can sign ends, seconds since 1970; None: never."""

    fingerprint: str
    owner: str
    expires: int | None

    def __str__(self) -> str:
        return f"{self.fingerprint} ({self.owner})"


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Until when a source's file of keys lasts; `last` is the key of it that ends last, at `expires`."""

    source: Source
    last: ArchiveKey
    expires: int

    def said(self, now: float) -> str:
        """In a sentence, with what to do."""
        word = "expired" if self.expires <= now else "expires"
        name = f"source {self.source.name}, " if self.source.name else ""
        return (
            f"{name}{self.source.url}: the key {self.last} in {self.source.signed_by.name} {word} on "
            f"{datetime.fromtimestamp(self.expires, UTC):%Y-%m-%d}; {_REMEDY}"
        )


def read(keyring: Path) -> tuple[ArchiveKey, ...]:
    """The keys of a file, armoured or binary, but for those that are revoked or cannot sign.

    Raises:
        RecipeError: there is none, or the file cannot be read. CommandError: gpg is not installed.
    """
    try:
        keyring.read_bytes()
    except OSError as error:
        raise RecipeError(f"{keyring} cannot be read: {error.strerror}") from error
    with tempfile.TemporaryDirectory(prefix="netboot-gpg-") as home:
        argv = ["gpg", "--homedir", home, "--batch", "--quiet", "--show-keys", "--with-colons", str(keyring)]
        try:
            shown = run(argv, timeout=_GPG_SECONDS)
        except CommandError as error:
            if error.status == 127:
                raise
            shown = ""
    keys = parse(shown)
    if not keys:
        raise RecipeError(f"{keyring} holds no public key that can sign; is it an archive's key, in OpenPGP's form?")
    return keys


def parse(shown: str) -> tuple[ArchiveKey, ...]:
    """Keys in gpg's listing with colons (GnuPG's doc/DETAILS: a `pub` record and what follows it)."""
    blocks: list[list[list[str]]] = []
    for fields in (line.split(":") for line in shown.splitlines()):
        if fields[0] == "pub":
            blocks.append([])
        if blocks and fields[0] in ("pub", "sub", "fpr", "uid"):
            blocks[-1].append(fields)
    return tuple(key for block in blocks if (key := _key(block)) is not None)


def _key(block: list[list[str]]) -> ArchiveKey | None:
    primary = block[0]
    signing = [fields for fields in block if fields[0] in ("pub", "sub") and fields[1] != "r" and "s" in fields[11]]
    if primary[1] == "r" or not signing:
        return None
    of_primary = _seconds(primary)  # none of its subkeys outlives it
    ends = [_earliest(of_primary, _seconds(fields)) for fields in signing]
    return ArchiveKey(
        fingerprint=next((fields[9] for fields in block if fields[0] == "fpr"), primary[4]),
        owner=next((_plain(fields[9]) for fields in block if fields[0] == "uid"), "nobody named"),
        expires=None if None in ends else max(end for end in ends if end is not None),
    )


def _seconds(fields: list[str]) -> int | None:
    return int(fields[6]) if fields[6].isdecimal() else None


def _earliest(one: int | None, other: int | None) -> int | None:
    return min((end for end in (one, other) if end is not None), default=None)


def _plain(text: str) -> str:
    r"""Colons and what is not printable are written as `\x3a`."""
    plain = re.sub(r"\\x([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)
    return "".join(character if character.isprintable() else "?" for character in plain)


def lifetimes(sources: Iterable[Source]) -> tuple[Lifetime, ...]:
    """Of each source whose keys end one day; raises as `read`."""
    known: dict[Path, tuple[ArchiveKey, ...]] = {}
    found = []
    for source in sources:
        keys = known.setdefault(source.signed_by, known.get(source.signed_by) or read(source.signed_by))
        ends = [(key.expires, key) for key in keys if key.expires is not None]
        if len(ends) == len(keys):
            expires, last = max(ends, key=lambda end: end[0])
            found.append(Lifetime(source, last, expires))
    return tuple(found)


def check(recipe: Recipe, now: float) -> tuple[str, ...]:
    """What is to be said of keys that expire within 60 days of `now` (seconds since 1970).

    Raises:
        RecipeError: all keys of a source have expired, each such source named; and as `read`.
    """
    ending = [lifetime for lifetime in lifetimes(recipe.sources) if lifetime.expires <= now + SOON_SECONDS]
    expired = [lifetime.said(now) for lifetime in ending if lifetime.expires <= now]
    if expired:
        raise RecipeError("\n".join(expired))
    return tuple(lifetime.said(now) for lifetime in ending)

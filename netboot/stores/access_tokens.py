"""The file of named tokens of the management API, `management.tokens`: hashes, never tokens.

A token is 32 random bytes in base64 behind a prefix, so one SHA-256 of it is enough: nobody finds 256 bits by trying,
and a slow hash, which protects passwords that people think of, would only make each request slow (NIST SP 800-63B-4,
3.1.2.2: look-up secrets of at least 112 bits need no salted password hash).
"""

import hashlib
import json
import secrets
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from images.values import files, flock
from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import Sha256
from netboot import credentials
from netboot.lifecycle.errors import NoTokensError
from netboot.lifecycle.roles import Role

MODE = 0o600
PREFIX = "netboot_"
"""By which programs that look for secrets in texts can find one."""
SHORTEST = 16
"""Characters of a token of `management.token_file`; a shorter line is not taken for one."""
MOST = 1000
TokenName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9.@_-]{0,61}[a-z0-9])?$")]
"""Of a person or a program."""


class AccessToken(Strict):
    """What is kept of a token. `sha256`: of its text; `expires_ms`: from when on it is none any more."""

    name: TokenName
    role: Role
    sha256: Sha256
    created_ms: Annotated[int, Field(ge=0)]
    expires_ms: Annotated[int, Field(ge=0)]


class Blocked(Strict):
    """Somebody of an issuer or a cluster who may do nothing here all the same."""

    name: Annotated[str, StringConstraints(pattern=r"^(oidc|k8s):[^\x00-\x1f\x7f]{1,256}$")]
    at_ms: Annotated[int, Field(ge=0)]


class AccessTokens(Strict):
    """The file."""

    tokens: Annotated[tuple[AccessToken, ...], Field(max_length=MOST)] = ()
    blocked: Annotated[tuple[Blocked, ...], Field(max_length=MOST)] = ()

    def blocks(self, name: str) -> bool:
        """Whether somebody of that name is blocked, however it is encoded (Unicode, NFC), with or without spaces around
        it: some issuers let people change it. Other letters, capital ones too, are another name."""
        return _same(name) in {_same(each.name) for each in self.blocked}

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if len({each.name for each in self.tokens}) != len(self.tokens):
            raise ValueError("two tokens have the same name")
        return self


def _same(name: str) -> str:
    kind, _, rest = unicodedata.normalize("NFC", name).partition(":")
    return f"{kind}:{rest.strip()}"


ABSENT = AccessTokens()
"""What is read where there is no file: no token opens anything, and who is blocked nobody can tell."""


def new_token() -> str:
    """One that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(32)


def is_named(text: str) -> bool:
    """Whether this is the text of one with a name: alone, without its hash in the file, it opens nothing."""
    return text.startswith(PREFIX)


def lines(text: str) -> list[str]:
    """The tokens of a file of texts, one a line; `#` begins a comment."""
    return [line for line in map(str.strip, text.splitlines()) if line and not line.startswith("#")]


def hash_of(token: str) -> str:
    """SHA-256 of its text, in hexadecimal."""
    return hashlib.sha256(token.encode()).hexdigest()


def read(path: Path) -> AccessTokens:
    """What is in the file; `ABSENT` itself where there is no file.

    Raises:
        NoTokensError: it cannot be read, or is not what this program writes.
    """
    try:
        text = credentials.read(path)
    except FileNotFoundError:
        return ABSENT
    except OSError as error:
        raise NoTokensError(credentials.unread(f"the file of tokens {path}", error)) from None
    try:
        return AccessTokens.model_validate_json(text)
    except ValidationError as error:
        fault = first_fault(error)
        where = f"{fault.key}: " if fault.key else ""
        raise NoTokensError(
            f"the file of tokens {path} cannot be used: {where}{fault.message}; {_remedy(path)}"
        ) from None


def absent(path: Path) -> NoTokensError:
    """What people of an issuer or a cluster hear: without the file nobody can tell who is blocked."""
    return NoTokensError(f"the file of tokens {path}, which says who is blocked, is not there; {_remedy(path)}")


def _remedy(path: Path) -> str:
    return (
        "restore it from a backup; `(umask 077; echo '{}' > "
        f"{path})` begins it anew, which revokes its tokens and lets everybody in again who was blocked"
    )


def blocks_kept(restored: AccessTokens, there: AccessTokens) -> AccessTokens:
    """`restored`, and who was blocked in `there`, the file that it takes the place of."""
    blocked = {each.name: each for each in (*there.blocked, *restored.blocked)}
    return restored.model_copy(update={"blocked": tuple(blocked.values())[:MOST]})


def to_bytes(there: AccessTokens) -> bytes:
    """As the file has it."""
    unused = {"blocked"} if not there.blocked else None  # a netboot of before reads it then
    return json.dumps(there.model_dump(mode="json", exclude=unused), indent=2).encode() + b"\n"


def change(path: Path, edit: Callable[[AccessTokens], AccessTokens]) -> None:
    """Replace the file by what `edit` makes of it, one writer at a time; of mode 0600, and its folder's owner's.

    Raises:
        NoTokensError: as `read`. OSError, images.errors.StoreError: it cannot be written. What `edit` raises.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with flock.folder(path.parent):
        edited = edit(read(path))
        files.write(path, to_bytes(edited), mode=MODE)  # root's too is its folder's owner's, which is to read it

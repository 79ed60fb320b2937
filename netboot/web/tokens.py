"""The operators' tokens: one a line in `management.token_file`, read again when the file changes.

A comment just above a token is the name under which its acts are recorded.
"""

import hashlib
import hmac
import stat
from dataclasses import dataclass
from pathlib import Path

from netboot import credentials
from netboot.lifecycle.errors import NotAuthenticatedError, NoTokensError
from netboot.reread import Reread

SHORTEST = 16
"""Characters; a shorter line is not taken for a token."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Who asks. `fingerprint`: eight hexadecimal digits of the token's hash, for the log; it opens nothing.

    `name`: of the comment line just above the token, where there is one.
    """

    fingerprint: str
    name: str = ""

    @property
    def who(self) -> str:
        """How histories name the operator: by name, or by the fingerprint."""
        return self.name or f"token {self.fingerprint}"


_Hash = tuple[bytes, str]
"""SHA-256 of a token, and the name of its operator."""


class TokenFile:
    """Several lines are several tokens, so that one can be replaced without a gap; `#` begins a comment."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = Reread("operators' tokens", lambda: (path,), lambda: _read(path), NoTokensError)

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    def operator(self, authorization: str | None) -> Operator:
        """Who sent this `Authorization` header.

        Raises:
            NotAuthenticatedError: none, not a bearer token, or not one of ours.
            NoTokensError: the file cannot be read or holds none.
        """
        hashes = self._file.strict()  # who takes the file away takes the tokens back
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise NotAuthenticatedError("no bearer token was sent")
        hashed = hashlib.sha256(token.strip().encode()).digest()
        matches = [(hmac.compare_digest(hashed, known), name) for known, name in hashes]  # all, whatever the first says
        names = [name for same, name in matches if same]
        if not names:
            raise NotAuthenticatedError("the token is not one of this site's")
        return Operator(hashed.hex()[:8], names[0])

    def problem(self) -> str | None:
        """Why nobody can be let in, or what is careless about the file; None: all is well."""
        try:
            self._file.strict()
            mode = self._path.stat().st_mode
        except (NoTokensError, OSError) as error:
            return str(error)
        if stat.S_IMODE(mode) & 0o077:
            return f"{self._path} can be read by others than its owner; run `chmod 600 {self._path}`"
        return None


def _read(path: Path) -> tuple[_Hash, ...]:
    """The tokens of a file.

    Raises:
        NoTokensError: it cannot be read, or there is none in it.
    """
    try:
        lines = credentials.read(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not text"
        raise NoTokensError(
            f"the token file {path} cannot be used: {why}; put a token of {SHORTEST} characters in it"
        ) from None
    hashes: list[_Hash] = []
    name = ""
    for line in map(str.strip, lines):
        if line.startswith("#"):
            name = "".join(c for c in line.lstrip("#").strip() if c.isprintable())[:64]
            continue
        if len(line) >= SHORTEST:
            hashes.append((hashlib.sha256(line.encode()).digest(), name))
        name = ""
    if not hashes:
        raise NoTokensError(f"the token file {path} holds no token of {SHORTEST} characters or more")
    return tuple(hashes)

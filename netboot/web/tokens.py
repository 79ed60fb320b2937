"""The operators' tokens: one a line in `management.token_file`, read again when the file changes.

A comment just above a token is the name under which its acts are recorded.
"""

import hashlib
import hmac
import logging
import stat
import threading
from dataclasses import dataclass, field
from pathlib import Path

from netboot.lifecycle.errors import NotAuthenticatedError, NoTokensError

log = logging.getLogger(__name__)

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
        """For histories."""
        return self.name or f"token {self.fingerprint}"


@dataclass(slots=True)
class _Known:
    hashes: tuple[tuple[bytes, str], ...] = field(default=(), repr=False)
    seen: tuple[int, int, int] | None = None


class TokenFile:
    """Several lines are several tokens, so that one can be replaced without a gap; `#` begins a comment."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._known = _Known()

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"

    def operator(self, authorization: str | None) -> Operator:
        """Who sent this `Authorization` header.

        Raises:
            NotAuthenticatedError: none, not a bearer token, or not one of ours.
            NoTokensError: the file cannot be read or holds none.
        """
        hashes = self._hashes()
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            raise NotAuthenticatedError("no bearer token was sent")
        given = hashlib.sha256(token.strip().encode()).digest()
        matches = [(hmac.compare_digest(given, known), name) for known, name in hashes]  # all, whatever the first says
        names = [name for same, name in matches if same]
        if not names:
            raise NotAuthenticatedError("the token is not one of this site's")
        return Operator(given.hex()[:8], names[0])

    def problem(self) -> str | None:
        """Why nobody can be let in, or what is careless about the file; None: all is well."""
        try:
            self._hashes()
            mode = self._path.stat().st_mode
        except (NoTokensError, OSError) as error:
            return str(error)
        if stat.S_IMODE(mode) & 0o077:
            return f"{self._path} can be read by others than its owner; run `chmod 600 {self._path}`"
        return None

    def _hashes(self) -> tuple[tuple[bytes, str], ...]:
        try:
            status = self._path.stat()
            seen = (status.st_ino, status.st_mtime_ns, status.st_size)
            with self._lock:
                if seen != self._known.seen:
                    self._known = _Known(_read(self._path), seen)
                hashes = self._known.hashes
        except (OSError, UnicodeDecodeError) as error:
            words = getattr(error, "strerror", None) or "is not text"
            raise NoTokensError(
                f"the token file {self._path} cannot be used: {words}; put a token of {SHORTEST} characters in it"
            ) from None
        if not hashes:
            raise NoTokensError(f"the token file {self._path} holds no token of {SHORTEST} characters or more")
        return hashes


def _read(path: Path) -> tuple[tuple[bytes, str], ...]:
    found: list[tuple[bytes, str]] = []
    name = ""
    for line in map(str.strip, path.read_text(encoding="utf-8").splitlines()):
        if line.startswith("#"):
            name = "".join(c for c in line.lstrip("#").strip() if c.isprintable())[:64]
            continue
        if len(line) >= SHORTEST:
            found.append((hashlib.sha256(line.encode()).digest(), name))
        name = ""
    return tuple(found)

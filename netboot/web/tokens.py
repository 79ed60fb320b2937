"""The tokens of the management API, of two files, both read again when they change.

Those of `management.tokens` have a name, a role and an end. `management.token_file` has what commands of the host send:
the text of one of those; or, as sites of before have it, tokens of admins, one a line, and a comment just above one is
the name under which its acts are recorded.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from netboot import credentials
from netboot.lifecycle.errors import BlockedError, NotAuthenticatedError, NoTokensError, TokenExpiredError
from netboot.lifecycle.roles import Person, Role
from netboot.reread import Reread
from netboot.stores import access_tokens
from netboot.stores.access_tokens import AccessToken


@dataclass(frozen=True, slots=True)
class Operator:
    """Who asks. `fingerprint`: eight hexadecimal digits of the token's hash, for the log; it opens nothing.

    `name`: of the token, where it has one. `issuer`: who vouches for them, where it is not this site; `expires_ms`:
    until when the token is one, None: for ever, or nobody says.
    """

    fingerprint: str
    name: str = ""
    role: Role = Role.ADMIN
    issuer: str = ""
    expires_ms: int | None = None

    @property
    def who(self) -> str:
        """How histories name the operator: by name, or by the fingerprint."""
        return self.name or f"token {self.fingerprint}"

    @property
    def identity(self) -> str:
        """Whose a thing is: a token's, or a person's, who has another token every hour."""
        return f"{self.issuer} {self.name}" if self.issuer else f"{self.fingerprint} {self.name}"


_Hash = tuple[bytes, str]
"""SHA-256 of a token, and the name of its operator."""


class Vouching(Protocol):
    """Somebody else who knows people by their tokens."""

    def person(self, token: str) -> Person | None:
        """Whose it is; None: no token of theirs.

        Raises:
            NotAuthenticatedError, NotAllowedError, CannotTellError: with words for who sent it.
        """


class Tokens:
    """Both files. Who takes one away takes its tokens back: neither stays in force without its file. `others`: are
    asked, one after the other, about a token that is in none: this site's own open whatever becomes of them."""

    def __init__(
        self, token_file: Path, tokens: Path, now_ms: Callable[[], int], others: Sequence[Vouching] = ()
    ) -> None:
        self._paths, self._now_ms, self._others = (token_file, tokens), now_ms, others
        self._plain = Reread("operators' tokens", lambda: (token_file,), lambda: _read(token_file), NoTokensError)
        self._ended = set[bytes]()
        """Hashes of named ones that had ended when somebody came with them: so they stay, whatever the clock says."""
        self._named = Reread("named tokens", lambda: (tokens,), lambda: access_tokens.read(tokens), NoTokensError)

    def __repr__(self) -> str:
        return f"Tokens({str(self._paths[0])!r}, {str(self._paths[1])!r})"

    def operator(self, authorization: str | None) -> Operator:
        """Who sent this `Authorization` header.

        Raises:
            NotAuthenticatedError: none, not a bearer token, or not one of ours. TokenExpiredError: it was one.
            NoTokensError: a file that might have it cannot be read, or no token is known at all.
        """
        plain, named, problem = self._known()
        scheme, _, token = (authorization or "").strip().partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            if problem is not None and not named and not plain:
                raise problem
            raise NotAuthenticatedError("no bearer token was sent")
        hashed = hashlib.sha256(token.strip().encode()).digest()
        found = [name for known, name in plain if hmac.compare_digest(hashed, known)]
        ours = [each for each in named if hmac.compare_digest(hashed, bytes.fromhex(each.sha256))]
        if ours:
            return self._of(ours[0], hashed)
        if found:
            return Operator(hashed.hex()[:8], found[0])
        for others in self._others:
            if (person := others.person(token.strip())) is not None:
                return self._of_person(person, hashed)
        if problem is not None:
            raise problem
        raise NotAuthenticatedError("the token is not one of this site's")

    def _of(self, token: AccessToken, hashed: bytes) -> Operator:
        if token.expires_ms <= self._now_ms():
            self._ended.add(hashed)
        if hashed in self._ended:
            when = datetime.fromtimestamp(token.expires_ms / 1000, UTC).isoformat(timespec="seconds")
            raise TokenExpiredError(f"the token {token.name} expired at {when.replace('+00:00', 'Z')}")
        return Operator(hashed.hex()[:8], token.name, token.role, expires_ms=token.expires_ms)

    def _of_person(self, person: Person, hashed: bytes) -> Operator:
        """Raises BlockedError; NoTokensError: nobody can tell who is blocked."""
        there = self._named.strict()
        if there is access_tokens.ABSENT:
            raise access_tokens.absent(self._paths[1])
        if there.blocks(person.name):
            raise BlockedError(f"{person.name} is blocked here")
        return Operator(hashed.hex()[:8], person.name, person.role, person.issuer, person.expires_ms)

    def _known(self) -> tuple[tuple[_Hash, ...], tuple[AccessToken, ...], NoTokensError | None]:
        """Of both files, and why one that might have a token that is not among these cannot be read."""
        problem: NoTokensError | None = None
        plain, named = tuple[_Hash, ...](), tuple[AccessToken, ...]()
        try:
            named = self._named.strict().tokens
        except NoTokensError as error:
            problem = error
        try:
            plain = self._plain.strict()
        except NoTokensError as error:
            if not (named and not self._paths[0].exists()):  # where there are named ones, the other file may be gone
                problem = problem or error
        return plain, named, problem

    def problem(self) -> str | None:
        """Why somebody may not be let in, or what is careless about the files; None: all is well."""
        problem = self._known()[2]
        if problem is None and self._others and self._named.strict() is access_tokens.ABSENT:
            problem = access_tokens.absent(self._paths[1])
        if problem is not None:
            return str(problem)
        for path in self._paths:
            try:
                status = path.stat()
            except OSError:
                continue
            if credentials.told_to_others(status):
                return f"{path} can be read by others than its owner; run `chmod 600 {path}`"
        return None


def _read(path: Path) -> tuple[_Hash, ...]:
    """The tokens of a file that open things by themselves.

    Raises:
        NoTokensError: it cannot be read, or there is none in it, nor the text of one with a name.
    """
    try:
        lines = credentials.read(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "is not text"
        raise NoTokensError(
            f"the token file {path} cannot be used: {why}; `netboot access token host` makes it"
        ) from None
    hashes: list[_Hash] = []
    name, named = "", False
    for line in map(str.strip, lines):
        if line.startswith("#"):
            name = "".join(c for c in line.lstrip("#").strip() if c.isprintable())[:64]
            continue
        if access_tokens.is_named(line):
            named = True
        elif len(line) >= access_tokens.SHORTEST:
            hashes.append((hashlib.sha256(line.encode()).digest(), name))
        name = ""
    if not hashes and not named:
        raise NoTokensError(f"the token file {path} holds no token of {access_tokens.SHORTEST} characters or more")
    return tuple(hashes)

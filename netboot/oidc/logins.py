"""Logins at the page: the authorisation code flow with PKCE (OpenID Connect Core 1.0, 3.1; RFC 7636; RFC 9700, 2.1)."""

import base64
import hashlib
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from netboot import credentials
from netboot.config_access import LOOPBACK
from netboot.lifecycle.errors import IssuerUnavailableError, LoginRefusedError
from netboot.oidc.issuer import Client, Granted
from netboot.oidc.people import People
from netboot.turns import NoTurnError, Places, Turns

CALLBACK = "/page/login/oidc/callback"
AT_ONCE, IN_LINE, STRANGERS_IN_LINE, OF_ONE_ADDRESS = 4, 16, 8, 4
"""Questions to the issuer, and they with who waits: strangers, who may begin logins, keep no more threads than that,
and leave places of strangers to tokens that a cluster is asked about."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What a browser keeps between the two halves of its login."""

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class Logins:
    """At one issuer, for the page at `base_url`, which the configuration says and no request."""

    def __init__(self, people: People, base_url: str, places: Places | None = None) -> None:
        """`places`: of all lines of the listener together."""
        strangers, known = (places.strangers, places.known) if places is not None else ((), ())
        self.people, self.redirect_uri = people, base_url + CALLBACK
        self.by_tls = base_url.startswith("https:")
        self._logins = Turns(AT_ONCE, STRANGERS_IN_LINE, OF_ONE_ADDRESS, places=strangers)
        self._sessions = Turns(AT_ONCE, IN_LINE, places=known)
        """Of who has logged in: strangers have no part of these."""

    @property
    def where(self) -> str:
        """As people are told."""
        return self.people.oidc.issuer.partition("://")[2].rstrip("/")

    def begin(self) -> tuple[str, Begun]:
        """Where the browser goes, and what it keeps. Strangers may begin as many as they like: the issuer is asked by
        one of them at most.

        Raises:
            IssuerUnavailableError: it does not say where.
        """
        begun = Begun(*(secrets.token_urlsafe(32) for _ in range(3)))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self.people.oidc.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": " ".join(self.people.oidc.scopes),
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return self.people.issuer.authorization(query), begun

    def finish(self, begun: Begun, sent: Mapping[str, str], address: str = "") -> Granted:
        """What the login gave; `sent`: with which the issuer sent the browser back; `address`: the browser's. Through
        loopback a proxy asks, for many.

        Raises:
            LoginRefusedError: it is of another login, or the issuer refused. BadTokenError, LoginExpiredError,
            IssuerUnavailableError: as `People.person`.
        """
        if not secrets.compare_digest(sent.get("state", "").encode(), begun.state.encode()):
            raise LoginRefusedError("that login was begun elsewhere (state): begin again")
        if sent.get("iss", self.people.oidc.issuer) != self.people.oidc.issuer:  # RFC 9207
            raise LoginRefusedError("another issuer answered than the one that was asked (iss): begin again")
        if "code" not in sent:
            words = ": ".join(filter(None, (sent.get("error"), sent.get("error_description")))) or "it gave no code"
            raise LoginRefusedError(
                f"the issuer refused: {''.join(c if c.isprintable() else ' ' for c in words)[:200]}"
            )
        grant = {
            "grant_type": "authorization_code",
            "code": sent["code"],
            "redirect_uri": self.redirect_uri,
            "code_verifier": begun.verifier,
        }
        with _turn(self._logins, "" if address in LOOPBACK else address):
            granted = self.people.issuer.token(self._client(), grant)
            self.people.of_login(granted.id_token, begun.nonce)
        return granted

    def refreshed(self, refresh_token: str) -> Granted:
        """A new one for one whose time is over.

        Raises:
            LoginRefusedError: it has ended at the issuer. IssuerUnavailableError.
        """
        with _turn(self._sessions):
            grant = {"grant_type": "refresh_token", "refresh_token": refresh_token}
            return self.people.issuer.token(self._client(), grant)

    def end(self, refresh_token: str) -> None:
        """Take it back at the issuer, where that does such a thing. Raises IssuerUnavailableError."""
        with _turn(self._sessions):
            self.people.issuer.revoke(self._client(), refresh_token)

    def _client(self) -> Client:
        oidc = self.people.oidc
        file = oidc.client_secret_file
        return Client(oidc.client_id, read_secret(file) if file is not None else None)


@contextmanager
def _turn(turns: Turns, address: str = "") -> Iterator[None]:
    """Raises IssuerUnavailableError: there is none to be had."""
    try:
        with turns.turn(address):
            yield
    except NoTurnError:
        raise IssuerUnavailableError("too many log in at once") from None


def read_secret(path: Path) -> str:
    """The secret of a file.

    Raises:
        IssuerUnavailableError: it cannot be read, others can read it, or it is none. The message does not repeat it.
    """
    try:
        return credentials.secret(path, "management.oidc.client_secret_file", "secret")
    except credentials.UnusableSecretError as error:
        raise IssuerUnavailableError(str(error)) from None

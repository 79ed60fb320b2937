"""One issuer: where it answers (OpenID Connect Discovery 1.0), and what is asked of it (RFC 6749, 7009, 7636, 8628)."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from netboot.config_access import LOOPBACK, port_of
from netboot.lifecycle.errors import IssuerUnavailableError, LoginRefusedError
from netboot.oidc.http import Answered, Asker
from netboot.oidc.keys import Keys, read_keys

REFRESH_SECONDS = 3600.0
APART_SECONDS = 5.0
"""Between two questions where it answers, while it does not."""
DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
_REQUIRED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_OPTIONAL = ("device_authorization_endpoint", "revocation_endpoint")


@dataclass(frozen=True, slots=True)
class Client:
    """Who we are to the issuer; `secret` None: a public client."""

    client_id: str
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Granted:
    """What a login gave. `bearer`: the token to ask with; `id_token`: who it is; all of them secrets."""

    id_token: str = field(repr=False)
    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)

    def bearer(self, audience: str | None) -> str:
        """The token to ask the API with: an access token, where it is for an audience of its own.

        Raises:
            LoginRefusedError: the issuer gave none.
        """
        token = self.id_token if audience is None else self.access_token
        if not token:
            kind = "identity token: the scope openid is needed" if audience is None else "access token"
            raise LoginRefusedError(f"the issuer gave no {kind}")
        return token


class Issuer:
    """Asked when something is wanted of it; where it answers is remembered for an hour. Safe for threads."""

    def __init__(self, url: str, asker: Asker, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.url, self._asker, self._monotonic = url, asker, monotonic
        self._lock = threading.Lock()
        self._metadata: Mapping[str, str] = {}
        self._posts = False
        self._read = self._asked = float("-inf")
        self._problem = ""

    def keys(self) -> Keys:
        """Its keys, as they are now. Raises IssuerUnavailableError."""
        answer = self._asker.get(self.endpoint("jwks_uri"))
        if answer.status != 200:
            raise IssuerUnavailableError(f"it answers {answer.status} where its keys should be (jwks_uri)")
        return read_keys(answer.body)

    def endpoint(self, name: str) -> str:
        """Where it takes requests of that kind; empty: it does not.

        Raises:
            IssuerUnavailableError: it does not say, or what cannot be.
        """
        if self._monotonic() - self._read >= REFRESH_SECONDS:
            self._look()
        return self._metadata.get(name, "")

    def _look(self) -> None:
        """One asks, and who comes meanwhile does not wait; what was known before stays where it does not answer."""
        if self._monotonic() - self._asked >= APART_SECONDS and self._lock.acquire(blocking=False):
            try:
                self._problem, self._asked = "it is being asked where it answers", self._monotonic()
                answer = self._asker.get(f"{self.url.rstrip('/')}/.well-known/openid-configuration")
                self._metadata = read_metadata(self.url, answer)
                methods = answer.body.get("token_endpoint_auth_methods_supported")
                self._posts = isinstance(methods, list) and "client_secret_basic" not in methods
                self._read = self._monotonic()
            except IssuerUnavailableError as error:
                self._problem = str(error)
            finally:
                self._lock.release()
        if not self._metadata:
            raise IssuerUnavailableError(self._problem)

    def authorization(self, query: Mapping[str, str]) -> str:
        """The URL to which a browser is sent. Raises IssuerUnavailableError."""
        endpoint = self.endpoint("authorization_endpoint")
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(query)}"

    def device(self, client: Client, scopes: str) -> dict[str, Any]:
        """Begin a login on another machine (RFC 8628, 3.1). Raises IssuerUnavailableError, LoginRefusedError."""
        endpoint = self.endpoint("device_authorization_endpoint")
        if not endpoint:
            raise LoginRefusedError("the issuer has no device authorisation grant (device_authorization_endpoint)")
        answer = self._post(endpoint, client, {"scope": scopes})
        if answer.status != 200:
            raise LoginRefusedError(refusal(answer))
        return answer.body

    def token(self, client: Client, grant: Mapping[str, str]) -> Granted:
        """Tokens for a code, or a refresh token.

        Raises:
            LoginRefusedError: it gives none; `code`: why, as RFC 6749, 5.2 names it. IssuerUnavailableError.
        """
        answer = self._post(self.endpoint("token_endpoint"), client, grant)
        if answer.status != 200:
            raise LoginRefusedError(refusal(answer), code=str(answer.body.get("error", "")))
        said = (answer.body.get(name, "") for name in ("id_token", "access_token", "refresh_token"))
        return Granted(*(each if isinstance(each, str) else "" for each in said))

    def revoke(self, client: Client, refresh_token: str) -> bool:
        """Take a login back (RFC 7009); whether the issuer does such a thing. Raises IssuerUnavailableError."""
        endpoint = self.endpoint("revocation_endpoint")
        if not endpoint:
            return False
        answer = self._post(endpoint, client, {"token": refresh_token, "token_type_hint": "refresh_token"})
        return answer.status == 200

    def _post(self, endpoint: str, client: Client, form: Mapping[str, str]) -> Answered:
        own = {"client_id": client.client_id}
        if client.secret is None:
            answer = self._asker.post(endpoint, {**form, **own})
        elif self._posts:
            answer = self._asker.post(endpoint, {**form, **own, "client_secret": client.secret})
        else:  # RFC 6749, 2.3.1: both are encoded first
            basic = quote(client.client_id, safe=""), quote(client.secret, safe="")
            answer = self._asker.post(endpoint, form, basic)
        if answer.status >= 500 or answer.status == 429:
            raise IssuerUnavailableError(f"it answers {answer.status}")
        return answer


def read_metadata(issuer: str, answer: Answered) -> Mapping[str, str]:
    """Where an issuer answers. All of it is at the issuer's own port: this service connects nowhere else.

    Raises:
        IssuerUnavailableError: it does not say, or is another.
    """
    if answer.status != 200 or not answer.body:
        raise IssuerUnavailableError(
            f"it answers {answer.status} and no description at /.well-known/openid-configuration"
        )
    named = answer.body.get("issuer")
    if named != issuer:
        raise IssuerUnavailableError(f"it calls itself {str(named)[:200]!r}: management.oidc.issuer must be that")
    found = {}
    for name in (*_REQUIRED, *_OPTIONAL):
        url = answer.body.get(name)
        if url is None and name in _OPTIONAL:
            continue
        if not isinstance(url, str) or not _sound(url, issuer):
            raise IssuerUnavailableError(f"its {name} is no URL in TLS at port {port_of(issuer)}")
        found[name] = url
    return found


def _sound(url: str, issuer: str) -> bool:
    try:
        split = urlsplit(url)
        safe = split.scheme == "https" or (split.scheme == "http" and split.hostname in LOOPBACK)
        return safe and bool(split.hostname) and port_of(url) == port_of(issuer) and not split.fragment
    except ValueError:
        return False


def refusal(answer: Answered) -> str:
    """The issuer's words for a no, printable and short."""
    said = [str(answer.body.get(name) or "") for name in ("error", "error_description")]
    words = ": ".join(each for each in said if each) or f"it answers {answer.status}"
    return f"the issuer refused: {''.join(c if c.isprintable() else ' ' for c in words)[:200]}"

"""How one logs in here, and as whom one is known."""

from netboot.lifecycle.roles import Role
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.operators import operator


class OidcOffered(Shown):
    """By which issuer, and as which client, `netboot login` logs in: nothing of it is secret."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...]
    audience: str | None


class LoginOffered(Shown):
    """`oidc` null: no issuer is configured."""

    oidc: OidcOffered | None


class Whoami(Shown):
    """Who asks. `issuer`: who vouches for them, null for this site; `token`: eight digits of its hash; `expires_ms`:
    null where nobody says."""

    name: str
    role: Role
    issuer: str | None
    token: str
    expires_ms: int | None


def offered() -> LoginOffered:
    """How one logs in: what has to be known before anybody is."""
    logins = dependencies().logins
    if logins is None:
        return LoginOffered(oidc=None)
    oidc = logins.people.oidc
    said = OidcOffered(issuer=oidc.issuer, client_id=oidc.for_cli, scopes=oidc.scopes, audience=oidc.audience)
    return LoginOffered(oidc=said)


def whoami() -> Whoami:
    """Who asks, with which role, and until when."""
    who = operator()
    return Whoami(
        name=who.who, role=who.role, issuer=who.issuer or None, token=who.fingerprint, expires_ms=who.expires_ms
    )

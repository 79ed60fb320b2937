"""How one logs in here, and as whom one is known."""

from images.values.strict import Strict
from netboot.lifecycle.roles import Role
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.operators import operator


class OidcOffered(Strict):
    """An issuer of OpenID Connect, and how `netboot login` asks it."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...]
    audience: str | None


class LoginOffered(Shown):
    """`oidc`: null where no issuer is configured."""

    oidc: OidcOffered | None


class Known(Shown):
    """Who asks. `issuer`: who vouches for them, null for this site; `token`: eight digits of its hash; `expires_ms`:
    null where nobody says."""

    name: str
    role: Role
    issuer: str | None
    token: str
    expires_ms: int | None


def offered() -> LoginOffered:
    """What `netboot login` has to know before anybody is known: nothing of it is secret."""
    logins = dependencies().logins
    if logins is None:
        return LoginOffered(oidc=None)
    oidc = logins.people.oidc
    return LoginOffered(
        oidc=OidcOffered(issuer=oidc.issuer, client_id=oidc.for_cli, scopes=tuple(oidc.scopes), audience=oidc.audience)
    )


def whoami() -> Known:
    """Who asks, with which role, and until when."""
    who = operator()
    return Known(
        name=who.who, role=who.role, issuer=who.issuer or None, token=who.fingerprint, expires_ms=who.expires_ms
    )

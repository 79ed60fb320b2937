"""Whom a token of the issuer means, and what this site lets them do."""

from collections.abc import Callable, Mapping
from typing import Any

from netboot.config_access import Oidc
from netboot.lifecycle.errors import BadTokenError, IssuerUnavailableError, NoRoleError
from netboot.lifecycle.roles import Person, granted
from netboot.oidc.http import Asker
from netboot.oidc.issuer import Issuer
from netboot.oidc.keys import KnownKeys
from netboot.oidc.tokens import Expected, moment_of, peek, verified

LONGEST_NAME = 128


class People:
    """Those of one issuer. Safe for threads."""

    def __init__(self, oidc: Oidc, now_ms: Callable[[], int]) -> None:
        self.oidc, self._now_ms = oidc, now_ms
        self.issuer = Issuer(oidc.issuer, Asker(oidc.certificate_authority, "management.oidc.certificate_authority"))
        self._keys = KnownKeys(self.issuer.keys)

    def person(self, token: str) -> Person | None:
        """Whose token of this issuer it is; None: it does not say that it is one.

        Raises:
            BadTokenError, LoginExpiredError: it is none. NoRoleError: this site gives them no role.
            IssuerUnavailableError: the keys of the issuer are not known, and it does not answer.
        """
        oidc = self.oidc
        audiences = oidc.clients if oidc.audience is None else (oidc.audience,)
        claims = self._claims(token, Expected(oidc.issuer, audiences, oidc.clients))
        return person_of(claims, oidc) if claims is not None else None

    def of_login(self, id_token: str, nonce: str) -> None:
        """Whether that is the identity token of the page's own login.

        Raises:
            BadTokenError, LoginExpiredError, IssuerUnavailableError: as `person`.
        """
        oidc = self.oidc
        if self._claims(id_token, Expected(oidc.issuer, (oidc.client_id,), (oidc.client_id,), nonce)) is None:
            raise BadTokenError("the issuer gave an identity token of another issuer")

    def _claims(self, token: str, expected: Expected) -> Mapping[str, Any] | None:
        said = peek(token, expected.issuer)
        if said is None:
            return None
        try:
            key = self._keys.key(said)
        except IssuerUnavailableError as error:
            raise IssuerUnavailableError(f"the issuer {expected.issuer} cannot be asked: {error}") from None
        return verified(token, key, said.algorithm, expected, self._now_ms() / 1000)


def person_of(claims: Mapping[str, Any], oidc: Oidc) -> Person:
    """Who that is, by the claims of a token that was verified.

    Raises:
        BadTokenError: they name nobody. NoRoleError: this site gives them no role.
    """
    user = claims.get(oidc.username_claim)
    if not isinstance(user, str) or not user.strip() or not user.isprintable() or len(user) > LONGEST_NAME:
        raise BadTokenError(f"the token has no name in its claim {oidc.username_claim} (username_claim)")
    # Kubernetes does the same (apiserver, token/oidc/oidc.go, getUsername): a claim that is there is the boolean true.
    if oidc.username_claim == "email" and claims.get("email_verified", True) is not True:
        raise BadTokenError("its issuer has not verified this e-mail address (email_verified)")
    groups = claims.get(oidc.groups_claim, [])
    listed = [groups] if isinstance(groups, str) else groups
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise BadTokenError(f"the token's claim {oidc.groups_claim} is no list of groups (groups_claim)")
    role = granted(oidc.roles, user, listed)
    if role is None:
        raise NoRoleError(
            f"oidc:{user} of {oidc.issuer} has no role here: management.oidc.roles names nobody of theirs"
        )
    return Person(f"oidc:{user}", role, oidc.issuer, round(moment_of(claims, "exp") * 1000))

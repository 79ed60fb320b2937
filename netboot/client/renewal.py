"""The token of a login, renewed at its issuer when it has ended."""

import logging
from time import time

from netboot.client import contexts
from netboot.client.contexts import Contexts, Login, with_login
from netboot.client.errors import CannotTellError, NotAllowedError
from netboot.lifecycle.errors import IssuerUnavailableError, LoginRefusedError
from netboot.oidc.http import Asker
from netboot.oidc.issuer import Client, Granted, Issuer
from netboot.oidc.tokens import expires_of

EARLY_SECONDS = 30
"""Before its end: a token that is sent should still be one when it arrives."""
log = logging.getLogger(__name__)
AGAIN = "log in again: `netboot login`"


def issuer_of(login: Login) -> Issuer:
    """Who gave it."""
    return Issuer(login.issuer, Asker(login.certificate_authority, "--issuer-certificate-authority"))


def token(context: str, login: Login) -> str:
    """The token to send, a new one where it ends; what is renewed is kept in the context.

    Raises:
        NotAllowedError: the login has ended. CannotTellError: the issuer does not answer. contexts.ContextsError: what
        is renewed could not be kept: the issuer was not asked.
    """
    if _fresh(login):
        return login.token
    renewed = login

    def renew(there: Contexts) -> Contexts:
        nonlocal renewed
        kept = there.named(context)
        renewed = (kept.login if kept is not None else None) or login
        if _fresh(renewed):  # by another command, which was at it before us
            return there
        contexts.require_room()  # before the issuer takes the refresh token that we have
        renewed = _renewed(context, renewed)
        return with_login(there, context, renewed)

    try:
        contexts.change(renew)
    except contexts.ContextsError as error:
        if not _fresh(renewed):
            raise
        # this once it opens things
        log.warning("the login of context %s is renewed and not kept: %s", context, error.message)
    return renewed.token


def with_tokens(login: Login, granted: Granted) -> Login:
    """The login with what the issuer gave.

    Raises:
        LoginRefusedError: that has no token to ask with.
    """
    bearer = granted.bearer(login.audience)
    refresh = granted.refresh_token or login.refresh_token
    return login.model_copy(update={"token": bearer, "expires_ms": expires_of(bearer), "refresh_token": refresh})


def _renewed(context: str, login: Login) -> Login:
    ended = NotAllowedError(f"the login of context {context} has ended", AGAIN)
    if not login.refresh_token:
        raise ended
    try:
        grant = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
        return with_tokens(login, issuer_of(login).token(Client(login.client_id), grant))
    except LoginRefusedError:
        raise ended from None
    except IssuerUnavailableError as error:
        raise unavailable(login.issuer, error) from None


def unavailable(issuer: str, error: IssuerUnavailableError) -> CannotTellError:
    """That it cannot be told now."""
    return CannotTellError(f"the issuer {issuer} cannot be asked: {error}", "try again")


def _fresh(login: Login) -> bool:
    return login.expires_ms - EARLY_SECONDS * 1000 > time() * 1000

"""Logins at an issuer: a browser goes there and comes back, and its session is renewed before its token ends."""

import json
import logging
from collections.abc import Callable

from cryptography.fernet import Fernet, InvalidToken
from flask import g, redirect, render_template, request, url_for
from werkzeug.wrappers import Response as AnyResponse

from netboot.clock import moment_ms
from netboot.lifecycle.errors import CannotTellError, NotAuthenticatedError
from netboot.oidc.logins import Begun, Logins
from netboot.web.page.client import Api, ApiError
from netboot.web.page.sessions import LONGEST_SECONDS, Sessions

COOKIE, BEGUN = "netboot_session", "netboot_login"
WITHIN_SECONDS = 600
"""For a login at the issuer."""
log = logging.getLogger(__name__)


class Entrance:
    """What a browser keeps meanwhile is sealed, so that whoever begins logins fills no memory of ours. A restart of the
    process ends logins that are under way."""

    def __init__(
        self,
        api: Api,
        sessions: Sessions,
        logins: Logins,
        now_ms: Callable[[], int],
        form: Callable[[str, int], AnyResponse],
    ) -> None:
        self._api, self._sessions, self._logins, self._now_ms, self._form = api, sessions, logins, now_ms, form
        self._seal = Fernet(Fernet.generate_key())

    def begin(self) -> AnyResponse:
        """To the issuer."""
        try:
            url, begun = self._logins.begin()
        except CannotTellError as error:
            return self._cannot_tell(error)
        kept = json.dumps([begun.state, begun.nonce, begun.verifier, next_page()]).encode()
        answer = redirect(url, 303)
        # Lax: the issuer's page, which is another site, leads back here.
        self._set(answer, BEGUN, self._seal.encrypt(kept).decode(), WITHIN_SECONDS, url_for("oidc"), "Lax")
        return answer

    def back(self) -> AnyResponse:
        """From the issuer. The page goes on by itself: a browser sends a session's cookie, which is strict, with no
        request that another site's page led to."""
        try:
            kept = self._seal.decrypt(request.cookies.get(BEGUN, ""), WITHIN_SECONDS)
        except InvalidToken:
            return self._form("That login was not begun here, or too long ago. Begin again.", 401)
        *begun, following = json.loads(kept)
        try:
            granted = self._logins.finish(Begun(*begun), request.args, request.remote_addr or "")
            token = granted.bearer(self._logins.people.oidc.audience)
            whose, seconds = self._whose(token)
        except NotAuthenticatedError as error:
            return self._form(f"You are not logged in: {error}.", 401)
        except CannotTellError as error:
            return self._cannot_tell(error)
        except ApiError as error:
            return self._form(f"You are not logged in: {error.message}.", error.status)
        self._sessions.end(request.cookies.get(COOKIE, ""))
        answer = AnyResponse(render_template("going_on.html", next=following), mimetype="text/html")
        named = self._sessions.begin(token, whose, granted.refresh_token, seconds)
        self._set(answer, COOKIE, named, LONGEST_SECONDS, "/page", "Strict")
        answer.delete_cookie(BEGUN, path=url_for("oidc"), secure=self._logins.by_tls, httponly=True, samesite="Lax")
        return answer

    def renew(self, named: str) -> None:
        """Renew the token of that session where it ends soon; who comes meanwhile has the one before."""
        refresh = self._sessions.to_renew(named)
        if refresh is None:
            return
        try:
            granted = self._logins.refreshed(refresh)
            token = granted.bearer(self._logins.people.oidc.audience)
            whose, seconds = self._whose(token)
            if not self._sessions.renewed(named, token, whose, granted.refresh_token, seconds):
                log.warning("a session at the page has ended: its issuer renewed it with a token of %s", whose)
                self.ended(granted.refresh_token or refresh)
        except (NotAuthenticatedError, CannotTellError, ApiError) as error:
            log.info("a session at the page is not renewed: %s", error)

    def ended(self, refresh: str) -> None:
        """Tell the issuer that a session has ended; where it cannot be told, it ends there by itself."""
        try:
            self._logins.end(refresh)
        except CannotTellError as error:
            log.info("a login that ended here is not taken back at the issuer: %s", error)

    def _whose(self, token: str) -> tuple[str, float]:
        """Whose it is, and the seconds until it ends. Raises ApiError: nobody is let in with it."""
        g.token = token
        try:
            who = self._api.get("/v1/whoami")
            return str(who["name"]), (moment_ms(who["expires_at"]) - self._now_ms()) / 1000
        finally:
            del g.token

    def _cannot_tell(self, error: CannotTellError) -> AnyResponse:
        return self._form(f"{self._logins.where} cannot be asked right now: {error}. Try again, or use a token.", 503)

    def _set(self, answer: AnyResponse, name: str, value: str, seconds: int, path: str, same_site: str) -> None:
        secure = self._logins.by_tls
        answer.set_cookie(name, value, seconds, path=path, secure=secure, httponly=True, samesite=same_site)


def next_page() -> str:
    """Where to go on: a path of the page, whatever was sent."""
    asked = request.values.get("next", "")
    return asked if asked.startswith("/page/") and "\\" not in asked and asked.isprintable() else url_for("fleet")

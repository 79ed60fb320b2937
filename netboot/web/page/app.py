"""The page's application: who is let in, what every answer carries, and how failures are shown."""

import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from flask import Flask, Response, abort, g, redirect, render_template, request, url_for
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as AnyResponse

from netboot.oidc.logins import Logins
from netboot.web import refusals
from netboot.web.page import declaring, views, words
from netboot.web.page.client import Api, ApiError
from netboot.web.page.entrance import COOKIE, Entrance, next_page
from netboot.web.page.live import Live
from netboot.web.page.sessions import LONGEST_SECONDS, Sessions
from netboot.web.page.statics import Statics

THEME = "netboot_theme"
THEMES = ("auto", "light", "dark")
LARGEST_BODY = 16 * 1024
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN = ("static", "login", "entered", "theme", "oidc", "oidc_back")
"""What nobody has to be logged in for."""


def create_page(api: Api, now_ms: Callable[[], int], logins: Logins | None, counted: Callable[[Flask], None]) -> Flask:
    """The application under `/page`. `now_ms`: the time of day, to say how long ago something was; `logins`: at an
    issuer, where there is one; `counted`: counts what an application answers."""
    page = Flask("netboot.web.page", static_url_path="/page/static")
    page.config["MAX_CONTENT_LENGTH"] = LARGEST_BODY
    page.url_map.merge_slashes = False  # as of the API: it would send a browser to what `Host` says
    page.jinja_env.trim_blocks = page.jinja_env.lstrip_blocks = True
    page.jinja_env.filters.update(words.FILTERS)
    page.jinja_env.globals.update(now_ms=now_ms, **words.GLOBALS)
    sessions, statics = Sessions(time.monotonic), Statics(page)
    entrance = Entrance(api, sessions, logins, now_ms, _form) if logins is not None else None
    about = {"issuer": logins.where if logins is not None else "", "version": statics.version}
    page.extensions["netboot.page"] = api
    counted(page)
    page.before_request(lambda: _let_in(sessions, entrance) or statics.refreshed())
    page.after_request(_guarded)
    page.context_processor(lambda: _around(sessions) | about)
    page.register_error_handler(ApiError, _of_api)
    page.register_error_handler(HTTPException, _of_http)
    page.add_url_rule("/", "root", lambda: redirect(url_for("fleet"), 303))
    page.add_url_rule("/page", "bare", lambda: redirect(url_for("fleet"), 303))
    for path, name, view in views.ROUTES:
        page.add_url_rule(path, name, view)
    page.add_url_rule("/page/discovered/<mac>", "declare", declaring.shown)
    page.add_url_rule("/page/discovered/<mac>", "declared", declaring.declared, methods=["POST"])
    page.add_url_rule("/page/live", "live", Live(api))
    page.add_url_rule("/page/login", "login", lambda: _form())
    page.add_url_rule("/page/login", "entered", lambda: _entered(api, sessions), methods=["POST"])
    if entrance is not None:
        page.add_url_rule("/page/login/oidc", "oidc", entrance.begin)
        page.add_url_rule("/page/login/oidc/callback", "oidc_back", entrance.back)
    page.add_url_rule("/page/logout", "logout", lambda: _left(sessions, entrance), methods=["POST"])
    page.add_url_rule("/page/theme", "theme", _chosen, methods=["POST"])
    return page


def _let_in(sessions: Sessions, entrance: Entrance | None) -> AnyResponse | None:
    if request.method == "POST":
        _require_own_form(sessions)
    if request.endpoint in OPEN or request.endpoint is None:
        return None
    if entrance is not None:
        entrance.renew(request.cookies.get(COOKIE, ""))
    token = sessions.token(request.cookies.get(COOKIE, ""))
    if token is None:
        return _to_login()
    g.token = token
    return None


def _to_login() -> AnyResponse:
    if "HX-Request" in request.headers:  # a part of a page that is open, which lies at the same address: the whole goes
        return Response(status=204, headers={"HX-Redirect": url_for("login", next=_here())})
    return redirect(url_for("login", next=_here() if request.method == "GET" else None), 303)


def _here() -> str:
    """The page that was asked for, filters and all."""
    return request.full_path.rstrip("?")


def _require_own_form(sessions: Sessions) -> None:
    """A form of ours: browsers say where one comes from (Origin), and no other site knows what is in ours."""
    if not (origin := _origin()) or origin != request.host:
        abort(403, "this form does not come from this page: open the page again, at the address that it has here")
    named = request.cookies.get(COOKIE, "")
    if request.endpoint != "entered" and not sessions.fits(named, request.form.get("form", "")):
        abort(403, "this form is of an older session: load the page again")


def _origin() -> str:
    """The host of the page whose form this is; empty: none is said that makes sense."""
    try:
        return urlsplit(request.headers.get("Origin", "")).netloc
    except ValueError:
        return ""


def _guarded(response: Response) -> Response:
    response.headers.update(HEADERS)
    if request.endpoint != "static":
        response.headers["Cache-Control"] = "no-store"
        response.headers.add("Vary", "HX-Request, Cookie")
    return response


def _around(sessions: Sessions) -> dict[str, Any]:
    theme = request.cookies.get(THEME, "auto")
    return {
        "theme": theme if theme in THEMES else "auto",
        "themes": THEMES,
        "form_token": sessions.form_token(request.cookies.get(COOKIE, "")),
        "inside": "token" in g,
        "part": "HX-Request" in request.headers,
        "here": _here(),
    }


def _form(problem: str = "", status: int = 200) -> AnyResponse:
    return Response(render_template("login.html", problem=problem, next=next_page()), status)


def _entered(api: Api, sessions: Sessions) -> AnyResponse:
    token = request.form.get("token", "").strip()
    if not token or not token.isascii() or not token.isprintable() or not api.tried(token):
        remedy = "Whoever runs the service makes one: netboot access token create."
        return _form(f"That is no token of this site. {remedy}", 401)
    sessions.end(request.cookies.get(COOKIE, ""))
    answer = redirect(next_page(), 303)
    _set(answer, COOKIE, sessions.begin(token), LONGEST_SECONDS)
    return answer


def _left(sessions: Sessions, entrance: Entrance | None) -> AnyResponse:
    refresh = sessions.end(request.cookies.get(COOKIE, ""))
    if refresh and entrance is not None:
        entrance.ended(refresh)
    answer = redirect(url_for("login"), 303)
    answer.delete_cookie(COOKIE, path="/page", secure=_by_tls(), httponly=True, samesite="Strict")
    return answer


def _chosen() -> AnyResponse:
    theme = request.form.get("theme", "auto")
    answer = redirect(next_page(), 303)
    _set(answer, THEME, theme if theme in THEMES else "auto", 365 * 86_400)
    return answer


def _set(answer: AnyResponse, name: str, value: str, seconds: int) -> None:
    secure = _by_tls()
    answer.set_cookie(name, value, seconds, path="/page", secure=secure, httponly=True, samesite="Strict")


def _by_tls() -> bool:
    """Here, or at a proxy before us: then the browser's own word for where its form came from has it."""
    return request.is_secure or request.headers.get("Origin", "").startswith("https:")


def _of_api(error: ApiError) -> AnyResponse:
    if error.status == 401:  # the token was taken back
        g.pop("token", None)
        refusals.refused_as(401)
        return _to_login()
    refusals.refused_as(error.status)
    exchanged = "HX-Request" in request.headers
    if exchanged and error.status >= 500:  # what is there stays, and page.js says that it is old
        return Response(status=204, headers={"HX-Trigger": "untold"})
    body = render_template("error.html", status=error.status, message=error.message, remedy=error.remedy)
    return Response(body, 200 if exchanged else error.status)


def _of_http(error: HTTPException) -> AnyResponse:
    if isinstance(error.response, Response):
        return error.response
    remedy = "go on from the menu" if error.code == 404 else ""
    body = render_template("error.html", status=error.code, message=error.description, remedy=remedy)
    return Response(body, error.code)

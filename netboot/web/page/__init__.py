"""The page: what people leave open. An application of its own, before the API, of which it is a client like any other:
it asks with the operator's token, in this process, and shows what comes (docs/decisions/195)."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from flask import Flask

from netboot.oidc.logins import Logins
from netboot.web.page.app import create_page
from netboot.web.page.client import Api

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

ROOT = "/page"


def install(api: Flask, now_ms: Callable[[], int], logins: Logins | None, counted: Callable[[Flask], None]) -> None:
    """Answer `/` and what is under `/page` before `api` does. `counted`: counts what an application answers."""
    behind = api.wsgi_app
    page = create_page(Api(behind), now_ms, logins, counted)

    def either(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        ours = path in ("/", ROOT) or path.startswith(f"{ROOT}/")
        return page.wsgi_app(environ, start) if ours else behind(environ, start)

    api.wsgi_app = either  # type: ignore[assignment,method-assign] # flask.palletsprojects.com: how middleware is applied

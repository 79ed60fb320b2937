"""The page's requests to the API: whole ones in this process, so that nobody is let in or refused otherwise."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from flask import g, request
from werkzeug.test import EnvironBuilder, run_wsgi_app

from netboot.web import request_ids

Wsgi = Callable[..., Iterable[bytes]]
"""An application of PEP 3333."""
JSON = ("application/json", "application/problem+json")
"""What an answer is that is a whole."""


class ApiError(Exception):
    """The API says no: `status`, and its problem details: in words what is wrong and what to do."""

    def __init__(self, status: int, said: Mapping[str, Any]) -> None:
        self.status, self.code = status, str(said.get("code", ""))
        self.message, self.remedy = str(said.get("detail", "")), str(said.get("remedy", ""))
        self.faults: tuple[str, ...] = tuple(said.get("faults") or ())
        super().__init__(self.message)


class Api:
    """`app`: the API, without the page before it. The token is that of the session (`g.token`)."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def get(self, path: str, **query: object) -> dict[str, Any]:
        """What it answers; a value that is None or empty is not asked with.

        Raises:
            ApiError: it says no.
        """
        return self._asked(self._environ(path, query))

    def ready(self) -> dict[str, Any]:
        """What `/readyz` says, also where machines cannot boot."""
        return self._asked(self._environ("/readyz", {}), also=503)

    def post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """The same of an act; a value that is None or empty is not sent.

        Raises:
            ApiError: it says no, and nothing was done.
        """
        said = {name: value for name, value in body.items() if value not in (None, "")}
        return self._asked(self._environ(path, {}, method="POST", json=said))

    def _asked(self, environ: dict[str, Any], also: int = 200) -> dict[str, Any]:
        chunks, status, headers = run_wsgi_app(self._app, environ)
        try:
            if headers.get("Content-Type") not in JSON:  # a stream, which has no end to wait for
                raise ApiError(404, {"detail": "there is nothing of that name"})
            body = json.loads(b"".join(chunks))
        finally:
            end(chunks)
        if not status.startswith(("2", str(also))):
            raise ApiError(int(status[:3]), body)
        assert isinstance(body, dict)
        return body

    def document(self, path: str) -> tuple[bytes, str]:
        """What it answers byte by byte, and of which type that is.

        Raises:
            ApiError: it says no.
        """
        chunks, status, headers = run_wsgi_app(self._app, self._environ(path, {}))
        try:
            body = b"".join(chunks)
        finally:
            end(chunks)
        if not status.startswith("2"):
            raise ApiError(int(status[:3]), json.loads(body))
        return body, headers["Content-Type"]

    def lines(self, path: str) -> Iterable[bytes]:
        """What it tells line by line, for as long as it does; to be closed.

        Raises:
            ApiError: it says no.
        """
        chunks, status, _ = run_wsgi_app(self._app, self._environ(path, {}))
        if not status.startswith("2"):
            raise ApiError(int(status[:3]), json.loads(b"".join(chunks)))
        return chunks

    def tried(self, token: str) -> bool:
        """Whether the API lets this token in.

        Raises:
            ApiError: whoever has it may do nothing here, or it cannot be told right now.
        """
        g.token = token
        try:
            self.get("/v1/whoami")
        except ApiError as error:
            if error.status == 401:
                return False
            raise
        finally:
            del g.token
        return True

    def _environ(self, path: str, query: Mapping[str, object], **more: Any) -> dict[str, Any]:
        asked = {name: str(value) for name, value in query.items() if value not in (None, "")}
        headers = [("Authorization", f"Bearer {g.token}"), (request_ids.HEADER, g.request_id)]
        of_client = {"REMOTE_ADDR": request.environ.get("REMOTE_ADDR", ""), request_ids.INSIDE: True}
        return EnvironBuilder(path, query_string=asked, headers=headers, environ_base=of_client, **more).get_environ()


def end(chunks: Iterable[bytes]) -> None:
    """Whoever made them gives back what it holds."""
    if (close := getattr(chunks, "close", None)) is not None:
        close()

"""Short answers: words with a status, and the row of `netboot.failures` for an exception."""

import json

from aiohttp import web

from netboot.boot.prepared import SERVER
from netboot.failures import Answer, answer_to

_TEXT = "text/plain; charset=utf-8"


def text(status: int, words: str, **headers: str) -> web.Response:
    """One line for people. Never cached."""
    return web.Response(
        status=status,
        body=f"{words}\n".encode("ascii", "replace"),
        headers={"Content-Type": _TEXT, "Cache-Control": "no-store", "Server": SERVER, **headers},
    )


def document(status: int, value: object) -> web.Response:
    """A small JSON answer. Never cached."""
    return web.Response(
        status=status,
        body=json.dumps(value, sort_keys=True).encode() + b"\n",
        headers={"Content-Type": "application/json", "Cache-Control": "no-store", "Server": SERVER},
    )


def empty(status: int, **headers: str) -> web.Response:
    """A status and headers."""
    return web.Response(status=status, headers={"Server": SERVER, **headers})


def failure(error: BaseException) -> tuple[web.Response, Answer]:
    """What an exception becomes on the wire, and its row of the table of failures."""
    row = answer_to(error)
    words = row.text(error) + (f"; {row.remedy}" if row.remedy else "")
    again = {"Retry-After": str(row.retry_after)} if row.retry_after is not None else {}
    return text(row.status, words, **again), row


def not_found() -> web.Response:
    """A path that is not ours. The path is not repeated: it is a stranger's text."""
    return text(404, "there is nothing at this path; see docs/http-provisioning.md")


def wrong_method(*allowed: str) -> web.Response:
    """The path is ours and the method is not."""
    methods = ", ".join(allowed)
    return text(405, f"this path answers {methods} only", Allow=methods)

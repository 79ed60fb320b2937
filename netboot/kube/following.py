"""List and watch: what there is of a kind, then what becomes of it.

Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import json
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, NamedTuple

import urllib3

from images.values.backoff import Backoff
from netboot.join.errors import ClusterUnavailableError
from netboot.kube.connection import Connection
from netboot.kube.errors import StatusError, TooMuchError
from netboot.kube.transport import lines

SILENCE_SECONDS = 75.0
"""A watch that says nothing for so long is begun again where it was. A quiet cluster has nothing to say, not even
bookmarks (with etcd 3.4 its version stands still); and of a connection that is dead only a new one tells."""
_AGAIN_SECONDS = 0.2
BEGINS_SECONDS = 1.0
"""In which an apiserver that works begins to answer a watch."""
OPENED = "OPENED"
"""No event of an apiserver's: it has begun to answer a watch, be it to say that it forgot the place."""
RELIST = Backoff(first=0.4, longest=0.4)
"""Before all are listed again whose place in the watch was forgotten: of many who watch, not all at once."""


class Told(NamedTuple):
    """What came. `first`, `page`: of a list, which begins anew with `first`; `listed`: it is whole; `thing`: as it was
    ADDED or MODIFIED, or when it was DELETED, by `event`, which may be a BOOKMARK or OPENED, too, with no more than a
    version."""

    first: bool = False
    page: tuple[dict[str, Any], ...] = ()
    listed: bool = False
    event: str = ""
    thing: dict[str, Any] | None = None


def follow(
    connection: Connection, operation: Callable[..., Any], path: str, seconds: float
) -> Iterator[dict[str, Any]]:
    """All objects as they are, then each as it is added or modified, for about `seconds`; deletions are not told. As
    `watched` otherwise."""
    for told in watched(connection, operation, path, seconds):
        yield from told.page
        if told.thing is not None and told.event in ("ADDED", "MODIFIED"):
            yield told.thing


def watched(connection: Connection, operation: Callable[..., Any], path: str, seconds: float) -> Iterator[Told]:
    """All objects as they are, then all that becomes of them, for about `seconds`.

    `operation` lists them, `path` is where they are watched. Where the apiserver has forgotten the place (410), all are
    listed, and come, again.

    Raises:
        ClusterUnavailableError.
    """
    deadline, pause = monotonic() + seconds, threading.Event()
    while True:
        version = ""
        for page in connection.listed(operation):
            version = page.version
            yield Told(first=page.first, page=tuple(page.items))
        yield Told(listed=True)
        while monotonic() < deadline:
            try:
                for event, thing in _events(connection, path, version, deadline):
                    version = _version(thing)
                    yield Told(event=event, thing=thing)
            except StatusError as error:
                if error.status != 410:
                    raise connection.in_words(error) from None
                break
            pause.wait(min(_AGAIN_SECONDS, max(0.0, deadline - monotonic())))
        if monotonic() >= deadline:
            return
        pause.wait(RELIST.seconds(1))


def _version(thing: Any) -> str:
    """Raises ClusterUnavailableError: it is no object."""
    try:
        return str(thing["metadata"]["resourceVersion"])
    except (KeyError, TypeError):
        raise ClusterUnavailableError("the apiserver sent an event that is none") from None


def _events(connection: Connection, path: str, version: str, deadline: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of one watch request, OPENED first, until it ends or `deadline`."""
    connection.authorise()
    left = max(0.1, deadline - monotonic())
    query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={max(1, round(left))}"
    url, quiet = f"{connection.server}{path}{'&' if '?' in path else '?'}{query}", min(left, SILENCE_SECONDS)
    try:
        response = connection.transport.open("GET", url, connection.headers(), read=quiet)
    except TooMuchError:
        if left >= BEGINS_SECONDS:
            raise
        return  # too short for the beginning of an answer: the next round has more
    try:
        if response.status != 200:
            raise StatusError(response.status, response.data)
        yield OPENED, {"metadata": {"resourceVersion": version}}
        for line in lines(response):
            event = json.loads(line)
            if event["type"] == "ERROR":
                raise StatusError(int(event["object"].get("code", 500)), json.dumps(event["object"]).encode())
            yield str(event["type"]), event["object"]
            if monotonic() >= deadline:
                return
    except urllib3.exceptions.ReadTimeoutError:
        pass
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise ClusterUnavailableError(f"the apiserver ended a watch: {error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ClusterUnavailableError("the apiserver sent an event that is none") from None
    finally:
        response.close()

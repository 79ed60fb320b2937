"""A connection to one cluster under one account."""

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from time import monotonic
from typing import Any, Literal, NamedTuple

import urllib3
from kubernetes import client

from netboot.join.errors import ClusterUnavailableError
from netboot.kube.errors import KubeconfigError, StatusError, TooMuchError, in_words
from netboot.kube.kubeconfig import Kubeconfig, read_kubeconfig
from netboot.kube.transport import Reply, Transport, lines
from netboot.reread import Reread

PAGE = 500
FEW = 5
"""Objects that are asked for at once: so many, and where those are too much, so few, then twice as many each time, up
to half of what was too much. So few fit into LONGEST_ANSWER, whatever somebody has made of them."""
PatchKind = Literal["merge-patch", "strategic-merge-patch"]
SILENCE_SECONDS = 75.0
"""A watch that says nothing for so long is begun again where it was. A quiet cluster has nothing to say, not even
bookmarks (with etcd 3.4 its version stands still); and of a connection that is dead only a new one tells."""
_AGAIN_SECONDS = 0.2
BEGINS_SECONDS = 1.0
"""In which an apiserver that works begins to answer a watch."""


class _Page(NamedTuple):
    """A part of a list; `first`: those that came before it are not of it."""

    items: list[dict[str, Any]]
    version: str
    first: bool


class Connection:
    """One cluster, one account. Thread-safe; a token that is renewed in its file is picked up."""

    def __init__(self, kubeconfig: Kubeconfig) -> None:
        self.path = kubeconfig.path
        self.server = kubeconfig.server
        self._token: Reread[str] | None = None
        if kubeconfig.token is not None:
            self._token = Reread("token", lambda: (kubeconfig.token_source,), self._read_token, KubeconfigError)
            self._token.current()
        configuration = client.Configuration()
        configuration.host = kubeconfig.server
        configuration.proxy = None
        self.api = client.ApiClient(configuration)
        self.api.user_agent = "netboot"
        self.transport = Transport(kubeconfig)
        self.api.rest_client = self.transport

    def __repr__(self) -> str:
        return f"Connection({str(self.path)!r})"

    @property
    def token(self) -> str | None:
        """The bearer token in use, or a newer one where its file has changed since; None: a client certificate. A
        secret."""
        return self._token.current() if self._token is not None else None

    def close(self) -> None:
        """Close the connections to the apiserver; one that is used again is opened again."""
        self.transport.close()

    def call(self, operation: Callable[..., Any], *args: Any, expected: Collection[int] = (), **how: Any) -> Any:
        """One call of a generated API method; its answer as JSON.

        Raises:
            StatusError: for the statuses that the adapter says it expects, to give them their meaning.
            ClusterUnavailableError: everything else that is no success, in words.
        """
        self._authorise()
        try:
            return operation(*args, **how, _preload_content=False)
        except StatusError as error:
            if error.status in expected:
                raise
            raise in_words(error, str(self.path)) from None

    def get(self, path: str) -> Reply:
        """A plain GET with the answer's date.

        Raises:
            ClusterUnavailableError.
        """
        self._authorise()
        try:
            return self.transport.exchange("GET", self.server + path, self._headers())
        except StatusError as error:
            raise in_words(error, str(self.path)) from None

    def patch(
        self, path: str, body: Mapping[str, Any], expected: Collection[int] = (), *, kind: PatchKind = "merge-patch"
    ) -> Any:
        """A merge patch (RFC 7386), or one of Kubernetes' own, which merges lists by their keys; what is there then.

        Raises:
            StatusError: for the statuses that the adapter says it expects.
            ClusterUnavailableError: everything else that is no success, in words.
        """
        self._authorise()
        headers = {**self._headers(), "Content-Type": f"application/{kind}+json"}
        try:
            return self.transport.exchange("PATCH", self.server + path, headers, body).body
        except StatusError as error:
            if error.status in expected:
                raise
            raise in_words(error, str(self.path)) from None

    def pages(self, operation: Callable[..., Any], *args: Any, **how: Any) -> tuple[list[dict[str, Any]], str]:
        """All items of a list, page by page, and its resourceVersion.

        Raises:
            ClusterUnavailableError.
        """
        items: list[dict[str, Any]] = []
        version = ""
        for page in self._listed(operation, *args, **how):
            items = page.items if page.first else items + page.items
            version = page.version
        return items, version

    def _listed(self, operation: Callable[..., Any], *args: Any, **how: Any) -> Iterator[_Page]:
        """A list as it is read, LONGEST_ANSWER of it at most at once; begun again (`first`) where it grew too old."""
        following, limit, most = "", PAGE, PAGE
        while True:
            more = {"_continue": following} if following else {}
            try:
                page = self.call(operation, *args, **how, **more, limit=limit, expected=(410,) if following else ())
            except StatusError:  # the list grew too old while it was read
                following = ""
                continue
            except TooMuchError:
                if limit == FEW:
                    raise
                most = max(FEW, limit // 2)
                limit = FEW
                continue
            limit = min(2 * limit, most)
            first, following = not following, page["metadata"].get("continue", "")
            yield _Page(page["items"], str(page["metadata"]["resourceVersion"]), first)
            if not following:
                return

    def follow(self, operation: Callable[..., Any], path: str, seconds: float) -> Iterator[dict[str, Any]]:
        """All objects as they are, then each as it is added or modified, for about `seconds`.

        `operation` lists them, `path` is where they are watched. Where the apiserver has forgotten the place (410),
        all are listed, and come, again. Deletions are not told.

        Raises:
            ClusterUnavailableError.
        """
        deadline, pause = monotonic() + seconds, threading.Event()
        while True:
            version = ""
            for page in self._listed(operation):
                version = page.version
                yield from page.items
            while monotonic() < deadline:
                try:
                    for kind, thing in self._events(path, version, deadline):
                        version = str(thing["metadata"]["resourceVersion"])
                        if kind in ("ADDED", "MODIFIED"):
                            yield thing
                except StatusError as error:
                    if error.status != 410:
                        raise in_words(error, str(self.path)) from None
                    break
                pause.wait(min(_AGAIN_SECONDS, max(0.0, deadline - monotonic())))
            if monotonic() >= deadline:
                return
            pause.wait(_AGAIN_SECONDS)

    def _events(self, path: str, version: str, deadline: float) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events of one watch request, until it ends or `deadline`."""
        self._authorise()
        left = max(0.1, deadline - monotonic())
        query = f"watch=1&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={max(1, round(left))}"
        url, quiet = f"{self.server}{path}?{query}", min(left, SILENCE_SECONDS)
        try:
            response = self.transport.open("GET", url, self._headers(), read=quiet)
        except TooMuchError:
            if left >= BEGINS_SECONDS:
                raise
            return  # too short for the beginning of an answer: the next round has more
        try:
            if response.status != 200:
                raise StatusError(response.status, response.data)
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
        except (ValueError, KeyError, TypeError):
            raise ClusterUnavailableError("the apiserver sent an event that is none") from None
        finally:
            response.close()

    def _headers(self) -> dict[str, str]:
        headers = {"User-Agent": "netboot", "Accept": "application/json"}
        self.api.update_params_for_auth(headers, [], ["BearerToken"])
        return headers

    def _authorise(self) -> None:
        """Put the token in force into the generated client, which sends it with the next request."""
        if (token := self.token) is not None:
            self.api.configuration.api_key["authorization"] = f"Bearer {token}"

    def _read_token(self) -> str:
        if (token := read_kubeconfig(self.path).token) is None:
            raise KubeconfigError(f"the kubeconfig {self.path} has no token any more")
        return token


def connect(kubeconfig: Path) -> Connection:
    """A connection as the account of a kubeconfig file; nothing is sent yet.

    Raises:
        KubeconfigError: the file cannot be read or used.
    """
    return Connection(read_kubeconfig(kubeconfig))


def milliseconds(text: str) -> int:
    """A time as the apiserver writes it, in ms since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)

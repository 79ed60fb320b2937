"""A connection to one cluster under one account."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kubernetes import client

from netboot.kube.errors import KubeconfigError, Manifests, StatusError, TooMuchError, in_words
from netboot.kube.kubeconfig import Kubeconfig, read_kubeconfig
from netboot.kube.transport import READ_SECONDS, Reply, Transport
from netboot.reread import Reread

PAGE = 500
FEW = 5
"""Objects that are asked for at once: so many, and where those are too much, so few, then twice as many each time, up
to half of what was too much. So few fit into LONGEST_ANSWER, whatever somebody has made of them."""
Acting = Callable[[], AbstractContextManager[object]]
PatchKind = Literal["merge-patch", "strategic-merge-patch", "apply-patch"]


class Page(NamedTuple):
    """A part of a list; `first`: those that came before it are not of it."""

    items: list[dict[str, Any]]
    version: str
    first: bool


class Connection:
    """One cluster, one account. Thread-safe; a token that is renewed in its file is picked up."""

    def __init__(
        self,
        kubeconfig: Kubeconfig,
        *,
        manifests: Manifests = "",
        acting: Acting = nullcontext,
        read: float = READ_SECONDS,
    ) -> None:
        """`manifests`: which give the account its rights, as `in_words` has it. `acting`, `read`: as `Transport` has
        them."""
        self.path = kubeconfig.path
        self.in_words = partial(in_words, kubeconfig=str(kubeconfig.path), manifests=manifests)
        """What an unexpected status becomes."""
        self.server = kubeconfig.server
        self.renewed = kubeconfig.token_source != kubeconfig.path
        """Whether its token is in a file of its own, as a kubelet renews it."""
        self._token: Reread[str] | None = None
        if kubeconfig.token is not None:
            self._token = Reread("token", lambda: (kubeconfig.token_source,), self._read_token, KubeconfigError)
            self._token.current()
        configuration = client.Configuration()
        configuration.host = kubeconfig.server
        configuration.proxy = None
        self.api = client.ApiClient(configuration)
        self.api.user_agent = "netboot"
        self.transport = Transport(kubeconfig, acting, read)
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
        self.authorise()
        try:
            return operation(*args, **how, _preload_content=False)
        except StatusError as error:
            if error.status in expected:
                raise
            raise self.in_words(error) from None

    def get(self, path: str) -> Reply:
        """A plain GET with the answer's date.

        Raises:
            ClusterUnavailableError.
        """
        self.authorise()
        try:
            return self.transport.exchange("GET", self.server + path, self.headers())
        except StatusError as error:
            raise self.in_words(error) from None

    def patch(
        self, path: str, body: Mapping[str, Any], expected: Collection[int] = (), *, kind: PatchKind = "merge-patch"
    ) -> Any:
        """A merge patch (RFC 7386), or one of Kubernetes' own, which merges lists by their keys, or says what of an
        object is its sender's (server-side apply); what is there then.

        Raises:
            StatusError: for the statuses that the adapter says it expects.
            ClusterUnavailableError: everything else that is no success, in words.
        """
        self.authorise()
        form = "yaml" if kind == "apply-patch" else "json"  # any JSON is YAML
        headers = {**self.headers(), "Content-Type": f"application/{kind}+{form}"}
        try:
            return self.transport.exchange("PATCH", self.server + path, headers, body).body
        except StatusError as error:
            if error.status in expected:
                raise
            raise self.in_words(error) from None

    def pages(self, operation: Callable[..., Any], *args: Any, **how: Any) -> tuple[list[dict[str, Any]], str]:
        """All items of a list, page by page, and its resourceVersion.

        Raises:
            ClusterUnavailableError.
        """
        items: list[dict[str, Any]] = []
        version = ""
        for page in self.listed(operation, *args, **how):
            items = page.items if page.first else items + page.items
            version = page.version
        return items, version

    def listed(self, operation: Callable[..., Any], *args: Any, **how: Any) -> Iterator[Page]:
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
            yield Page(page["items"], str(page["metadata"]["resourceVersion"]), first)
            if not following:
                return

    def headers(self) -> dict[str, str]:
        """Of a request, with the account's word; after `authorise`."""
        headers = {"User-Agent": "netboot", "Accept": "application/json"}
        self.api.update_params_for_auth(headers, [], ["BearerToken"])
        return headers

    def authorise(self) -> None:
        """Put the token in force into the generated client, which sends it with the next request."""
        if (token := self.token) is not None:
            self.api.configuration.api_key["authorization"] = f"Bearer {token}"

    def _read_token(self) -> str:
        if (token := read_kubeconfig(self.path).token) is None:
            raise KubeconfigError(f"the kubeconfig {self.path} has no token any more")
        return token


def connect(
    kubeconfig: Path, *, manifests: Manifests = "", acting: Acting = nullcontext, read: float = READ_SECONDS
) -> Connection:
    """A connection as the account of a kubeconfig file; nothing is sent yet. `manifests`: which give it its rights;
    `acting`, `read`: as `Transport` has them.

    Raises:
        KubeconfigError: the file cannot be read or used.
    """
    return Connection(read_kubeconfig(kubeconfig), manifests=manifests, acting=acting, read=read)


def milliseconds(text: str) -> int:
    """A time as the apiserver writes it, in ms since 1970."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)

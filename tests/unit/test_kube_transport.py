"""The way to the apiserver: what becomes of failures, over a TLS server that answers as the test says."""

import json
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lab.kube.authority import Authority, kubeconfig
from netboot.join.errors import ClusterUnavailableError, ConflictError, InvalidError
from netboot.join.node_drains import DO_NOT_DISRUPT
from netboot.join.node_said import KURED, NVSENTINEL
from netboot.join.ports import NodeView
from netboot.kube import custom_resources, transport
from netboot.kube import following as watches
from netboot.kube.connection import Connection, connect
from netboot.kube.custom_resources import KubeResources, KubeTied
from netboot.kube.drains import KubeDrains
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.leases import KubeLeases
from netboot.kube.machine_objects import KubeMachineObjects
from netboot.kube.nodes import KubeNodes
from netboot.kube.secrets import KubeTokens
from netboot.lifecycle.object_events import ObjectEvent
from netboot.lifecycle.objects import MachineObject
from netboot.machines.declared import LARGEST_ITEM
from netboot.machines.resources import Changed, Listed, Resource, Same
from tests.handshakes import failing

Answer = tuple[int, Any]
AUTHORITY = Authority("unit")


class Server:
    """An apiserver that answers each request by `answer(method, path)` and remembers what it was asked."""

    def __init__(self, folder: Path, names: tuple[str, ...] = ("127.0.0.1",)) -> None:
        self.asked: list[str] = []
        self.answer: Callable[[str, str], Answer] = lambda _method, _path: (500, None)
        pair = AUTHORITY.issue("server", server=names)
        (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "pair.pem")
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"https://127.0.0.1:{self.http.server_port}"
        self.path = folder / "kubeconfig"
        self.path.write_bytes(kubeconfig(self.url, AUTHORITY.pair.certificate, AUTHORITY.issue("me")))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _any(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append(f"{self.command} {self.path}")
                status, body = outer.answer(self.command, self.path)
                if status == 0:
                    self.close_connection = True
                    return
                if isinstance(body, threading.Event):  # begins to answer, and then says nothing until it is set
                    self.send_response(status)
                    self.end_headers()
                    body.wait(180)
                    self.close_connection = True
                    return
                lines = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{outer.url}/elsewhere")
                self.send_header("Content-Length", str(len(lines)))
                self.end_headers()
                self.wfile.write(lines)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
        thread.join()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(Server(tmp_path)) as running:
        yield running


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    with closing(connect(server.path)) as opened:
        yield opened


def status(code: int, reason: str, message: str) -> Answer:
    return code, {"kind": "Status", "code": code, "reason": reason, "message": message}


def node(name: str, version: str) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
    return {"metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(500, "InternalError", "etcd"), ClusterUnavailableError, "overloaded or failing (500): etcd"),
        (status(503, "", ""), ClusterUnavailableError, "overloaded or failing (503): status 503"),
        (status(429, "TooManyRequests", "later"), ClusterUnavailableError, "overloaded or failing (429): later"),
        (status(401, "Unauthorized", "Unauthorized"), ClusterRefusedError, "make a new one with `netboot cluster"),
        (status(403, "Forbidden", "cannot get"), ClusterRefusedError, "lacks a right: cannot get; the rights are in"),
        (status(422, "Invalid", "no"), ClusterRefusedError, "refused a request of ours (422 Invalid): no"),
        ((302, {}), ClusterRefusedError, "refused a request of ours (302 ): status 302"),
        ((200, b"<html>"), ClusterUnavailableError, "does not answer as an apiserver does: no JSON"),
        ((502, b"<html>bad gateway"), ClusterUnavailableError, "overloaded or failing (502): status 502"),
        ((500, b"[]"), ClusterUnavailableError, "overloaded or failing (500): status 500"),
        ((0, None), ClusterUnavailableError, "cannot be reached: "),
    ],
    ids=["500", "503", "429", "401", "403", "422", "redirect", "a page", "a proxy's page", "a list", "hung up"],
)
def test_failures_in_words(
    server: Server, connection: Connection, answer: Answer, kind: type[Exception], words: str
) -> None:
    server.answer = lambda _method, _path: answer
    with pytest.raises(ClusterUnavailableError) as caught:
        KubeNodes(connection).node("n")
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert server.asked == ["GET /api/v1/nodes/n"], "nothing is sent twice, and no redirect is followed"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (401, "make a new one with `netboot cluster kubeconfigs --inventory`"),
        (403, "the rights are in deploy/inventory: `netboot cluster manifests --inventory | kubectl apply -f -`"),
    ],
)
def test_who_reads_the_inventory_is_told_of_its_own_rights(server: Server, code: int, words: str) -> None:
    """Those of the cluster's accounts would let it do what it need not."""
    server.answer = lambda _method, _path: status(code, "", "no")
    reads = KubeResources(connect(server.path, manifests="inventory"), "netboot").watch("machine", 1.0)
    with pytest.raises(ClusterRefusedError) as caught:
        next(reads)
    assert str(caught.value).endswith(words)


FORBIDDEN = 'machines.netboot.dev "gpu-001" is forbidden: '
NO_RIGHT = FORBIDDEN + 'User "x" cannot patch resource "machines/status" in API group "netboot.dev"'
DENIED = FORBIDDEN + "ValidatingAdmissionPolicy 'x' with binding 'x' denied request: User \"x\" cannot"


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(422, "Invalid", "no"), InvalidError, "422 Invalid: no"),
        (status(400, "BadRequest", "no"), InvalidError, "400 BadRequest: no"),
        (status(403, "Forbidden", DENIED), InvalidError, f"403 Forbidden: {DENIED}"),
        (status(401, "Unauthorized", DENIED), InvalidError, f"401 Unauthorized: {DENIED}"),
        (status(404, "NotFound", "not found"), ConflictError, "404 NotFound: not found"),
        (status(409, "Conflict", "another uid"), ConflictError, "409 Conflict: another uid"),
        (status(403, "Forbidden", NO_RIGHT), ClusterRefusedError, "lacks a right: machines.netboot.dev"),
        (status(401, "Unauthorized", "Unauthorized"), ClusterRefusedError, "make a new one with"),
        (status(429, "TooManyRequests", "later"), ClusterUnavailableError, "overloaded or failing (429): later"),
        (status(500, "InternalError", "a webhook"), ClusterUnavailableError, "overloaded or failing (500): a webhook"),
        ((403, b"<html>a proxy"), ClusterRefusedError, "lacks a right: status 403"),
        ((422, b"<html>a proxy"), ClusterRefusedError, "refused a request of ours (422 ): status 422"),
    ],
)
def test_what_is_refused_of_one_object_is_told_from_what_is_of_all(
    server: Server, answer: Answer, kind: type[Exception], words: str
) -> None:
    server.answer = lambda _method, _path: answer
    with closing(connect(server.path, manifests="inventory")) as connection:
        objects = KubeMachineObjects(connection, "netboot")
        with pytest.raises(kind) as caught:
            objects.write(MachineObject("gpu-001", "a-uid", 1, "7", {}, {}), {"phase": "Ready"})
        assert type(caught.value) is kind
        assert words in str(caught.value)
        if kind is not ConflictError:
            with pytest.raises(kind):
                objects.tell(ObjectEvent("gpu-001", "a-uid", "Ready", "a note", good=True, at_ms=0))


def test_a_lease_that_is_not_there_is_in_the_manifests(server: Server, connection: Connection) -> None:
    server.answer = lambda _method, _path: status(404, "NotFound", "not found")
    with pytest.raises(ClusterRefusedError) as caught:
        KubeMachineObjects(connection, "netboot").renew("host", 0)
    assert str(caught.value) == (
        "the namespace netboot has no Lease netboot-shipper: "
        "`netboot cluster manifests --inventory | kubectl apply -f -`"
    )


@pytest.mark.parametrize(
    ("more", "holder"),
    [
        ({}, ""),
        ({"spec": {"unschedulable": True}}, "somebody cordoned it (kubectl uncordon)"),
        ({"annotations": {KURED: "now"}}, f"kured reboots it (annotation {KURED})"),
        ({"labels": {NVSENTINEL[0]: "quarantined"}}, f"NVSentinel has it ({NVSENTINEL[0]})"),
        ({"annotations": {NVSENTINEL[1]: "True"}}, f"NVSentinel has it ({NVSENTINEL[1]})"),
    ],
)
def test_a_node_says_who_else_has_taken_it(
    server: Server, connection: Connection, more: dict[str, Any], holder: str
) -> None:
    metadata = {"name": "n-1", "uid": "1", "resourceVersion": "1", "creationTimestamp": "2026-11-22T10:00:00Z"}
    metadata |= {name: more[name] for name in ("labels", "annotations") if name in more}
    server.answer = lambda _method, _path: (200, {"metadata": metadata, "spec": more.get("spec", {})})
    node = KubeNodes(connection).node("n-1")
    assert node is not None
    assert node.holder == holder


@pytest.mark.parametrize(
    ("spec", "gated", "cordoned"),
    [
        ({}, False, False),
        ({"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}, False, False),
        ({"taints": [{"key": "another", "effect": "NoSchedule"}, {"key": "netboot.dev/unchecked"}]}, True, False),
        ({"unschedulable": True}, False, True),
        ({"unschedulable": False}, False, False),
    ],
)
def test_a_node_is_gated_where_it_has_our_taint_and_cordoned_where_it_says_so(
    server: Server, connection: Connection, spec: dict[str, object], gated: bool, cordoned: bool
) -> None:
    metadata = {"name": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1"}
    server.answer = lambda _method, _path: (200, {"metadata": metadata, "spec": spec})
    node = KubeNodes(connection).node("n")
    assert node is not None
    assert (node.gated, node.cordoned) == (gated, cordoned)


@pytest.mark.parametrize(
    ("unschedulable", "by"),
    [(True, "kubectl cordon, 2026-11-23T10:00:00Z" + " " * 114), (False, "")],
)
def test_who_cordoned_a_node_is_said_as_the_apiserver_noted_it(
    server: Server, connection: Connection, unschedulable: bool, by: str
) -> None:
    """What a program calls itself is its own choice: it is cut, and printed on a line."""
    managed = [
        {"manager": "kubelet", "time": "2026-11-22T10:00:00Z", "fieldsV1": {"f:spec": {"f:podCIDR": {}}}},
        {"manager": "bare", "time": "2026-11-22T10:00:00Z"},
        {
            "manager": "kubectl\ncordon",
            "time": "2026-11-23T10:00:00Z" + "\x1b" * 200,
            "fieldsV1": {"f:spec": {"f:unschedulable": {}}},
        },
    ]
    metadata = {"name": "n", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1"}
    node = {"metadata": metadata | {"managedFields": managed}, "spec": {"unschedulable": unschedulable}}
    server.answer = lambda _method, _path: (200, node)
    seen = KubeNodes(connection).node("n")
    assert seen is not None
    assert seen.cordoned_by == by


@pytest.mark.parametrize(
    ("annotations", "veto"),
    [
        (None, False),
        ({DO_NOT_DISRUPT: "true"}, True),
        ({DO_NOT_DISRUPT: "false"}, False),
        ({"karpenter.sh/do-not-disrupt": "true"}, False),
    ],
)
def test_a_pod_vetoes_by_its_annotation(
    server: Server, connection: Connection, annotations: dict[str, str] | None, veto: bool
) -> None:
    metadata = {"name": "job-0", "namespace": "training", "uid": "u", "annotations": annotations}
    server.answer = lambda _method, _path: (
        200,
        {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": metadata}]},
    )
    [pod] = KubeDrains(connection).pods("n")
    assert pod.veto is veto


def test_404_and_409_mean_what_they_mean_to_each(server: Server, connection: Connection) -> None:
    server.answer = lambda _method, _path: status(404, "NotFound", "not there")
    assert KubeNodes(connection).node("n") is None
    assert KubeLeases(connection, "netboot").read("c", "m") is None
    KubeTokens(connection).delete("abc123")
    KubeNodes(connection).delete("n", "u")
    with pytest.raises(ClusterRefusedError, match="404 NotFound"):
        KubeTokens(connection).create({"metadata": {"name": "x"}})
    server.answer = lambda _method, _path: status(409, "AlreadyExists", "there")
    with pytest.raises(ConflictError):
        KubeTokens(connection).create({"metadata": {"name": "x"}})
    KubeNodes(connection).delete("n", "u")


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and not listening
        path = tmp_path / "kubeconfig"
        url = f"https://127.0.0.1:{held.getsockname()[1]}"
        path.write_bytes(kubeconfig(url, AUTHORITY.pair.certificate, AUTHORITY.issue("me")))
        with closing(connect(path)) as connection, pytest.raises(ClusterUnavailableError) as caught:
            KubeNodes(connection).node("n")
        assert str(caught.value) == f"the apiserver {url[8:]} cannot be reached: Connection refused"


def test_an_apiserver_that_does_not_answer_in_time(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    server.answer = lambda _method, _path: (200 if answered.wait(180) else 500, {})
    exchange = connection.transport.exchange
    monkeypatch.setattr(
        connection.transport, "exchange", lambda method, url, headers, body: exchange(method, url, headers, body, 0.05)
    )
    try:
        with pytest.raises(ClusterUnavailableError, match="did not answer within 10 s"):
            KubeNodes(connection).node("n")
    finally:
        answered.set()


def test_every_request_has_timeouts(server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = connection.transport._pool.urlopen

    def urlopen(*args: Any, **how: Any) -> Any:
        seen.append((how["timeout"].connect_timeout, how["timeout"].read_timeout))
        return real(*args, **how)

    monkeypatch.setattr(connection.transport._pool, "urlopen", urlopen)
    server.answer = lambda _method, _path: (200, {"items": [], "metadata": {"resourceVersion": "1"}})
    KubeLeases(connection, "netboot").all()
    KubeTokens(connection).delete("abc123")
    assert seen == [(transport.CONNECT_SECONDS, transport.READ_SECONDS)] * 2
    assert (transport.CONNECT_SECONDS, transport.READ_SECONDS) == (3.0, 10.0)


@pytest.mark.parametrize("names", [("192.0.2.1",), ("localhost",)])
def test_a_certificate_for_another_name_is_not_believed(tmp_path: Path, names: tuple[str, ...]) -> None:
    with serving(Server(tmp_path, names)) as server, closing(connect(server.path)) as connection:
        with pytest.raises(ClusterUnavailableError, match="no certificate that the kubeconfig's authority has signed"):
            KubeNodes(connection).node("n")
        assert server.asked == []


def test_a_certificate_of_another_authority_is_not_believed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Authority("other")
    server.path.write_bytes(kubeconfig(server.url, other.pair.certificate, AUTHORITY.issue("me")))
    ours = server.path.parent / "ours.pem"
    ours.write_bytes(AUTHORITY.pair.certificate)
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.setenv(name, str(ours))
    with closing(connect(server.path)) as connection, pytest.raises(ClusterUnavailableError) as caught:
        KubeNodes(connection).node("n")
    assert str(caught.value) == (
        f"the apiserver {server.url[8:]} has no certificate that the kubeconfig's authority has signed: "
        "unable to get local issuer certificate"
    )
    assert server.asked == []


def test_a_handshake_that_fails_otherwise_says_nothing_of_a_certificate(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with failing() as place:
        path.write_bytes(kubeconfig(f"https://{place}", AUTHORITY.pair.certificate, AUTHORITY.issue("me")))
        with closing(connect(path)) as connection, pytest.raises(ClusterUnavailableError) as caught:
            KubeNodes(connection).node("n")
    words = f"TLS with the apiserver {place} failed, not for its certificate: tlsv1 alert decode error"
    assert (type(caught.value), str(caught.value)) == (ClusterUnavailableError, words)


def test_a_name_for_tls_is_heeded(tmp_path: Path) -> None:
    """In place of the address, which its certificate need not have."""
    with serving(Server(tmp_path, ("api.example",))) as server:
        document = json.loads(server.path.read_text())
        server.answer = lambda _method, _path: (200, node("n", "1"))

        def ask(name: str) -> NodeView | None:
            document["clusters"][0]["cluster"]["tls-server-name"] = name
            server.path.write_text(json.dumps(document))
            with closing(connect(server.path)) as connection:
                return KubeNodes(connection).node("n")

        assert ask("api.example") is not None
        for name in ("other.example", "127.0.0.1"):
            with pytest.raises(ClusterUnavailableError, match="no certificate that the kubeconfig's authority has sig"):
                ask(name)


# -- watching ---------------------------------------------------------------------------------------------------------


class Script:
    """Lists and watches in order; what comes after them fails with "over"."""

    def __init__(self, *steps: tuple[str, Any]) -> None:
        self.steps = list(steps)

    def __call__(self, _method: str, path: str) -> Answer:
        kind = "watch" if "watch=1" in path else "list"
        if not self.steps:
            return status(500, "", "over")
        expected, answer = self.steps.pop(0)
        assert kind == expected
        if kind == "list":
            names, version = answer
            return 200, {"items": [node(name, version) for name in names], "metadata": {"resourceVersion": version}}
        if isinstance(answer, int):
            return status(answer, "Expired", "too old resource version")
        return 200, b"".join(json.dumps(event).encode() + b"\n" for event in answer)


def event(kind: str, name: str, version: str) -> dict[str, Any]:
    return {"type": kind, "object": node(name, version)}


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}


def watched(server: Server, connection: Connection, *steps: tuple[str, Any]) -> list[str]:
    """The names that a watch gives until the script is over."""
    server.answer = Script(*steps)
    names = []
    with pytest.raises(ClusterUnavailableError, match="over"):
        for seen in KubeNodes(connection).watch(60):
            names.append(seen.name)  # noqa: PERF401 - it ends by raising
    return names


def test_a_watch_goes_on_where_the_last_one_ended(server: Server, connection: Connection) -> None:
    events = [event("ADDED", "b", "8"), event("DELETED", "b", "9"), {"type": "BOOKMARK", "object": node("x", "12")}]
    assert watched(server, connection, ("list", (["a"], "7")), ("watch", events)) == ["a", "b"]
    versions = [path.split("resourceVersion=")[1].split("&")[0] for path in server.asked if "watch=1" in path]
    assert versions == ["7", "12"]
    assert all("allowWatchBookmarks=true" in path for path in server.asked if "watch=1" in path)


@pytest.mark.parametrize("moment", ["0000-01-01T00:00:00Z", "10000-01-01T11:59:59Z", "x", None])
def test_a_time_that_a_node_wrote_and_nobody_can_read_is_none(
    server: Server, connection: Connection, moment: str | None
) -> None:
    """A node writes onto its own Node what it likes, and Go takes the years 0 and 10000."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
    server.answer = lambda _method, _path: (200, node("n", "1") | {"status": {"conditions": [ready]}})
    view = KubeNodes(connection).node("n")
    assert view is not None
    assert (view.ready, view.ready_since_ms) == (True, None)


def test_a_node_that_cannot_be_read_hinders_no_other(
    server: Server, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    odd = event("MODIFIED", "a", "8")
    odd["object"]["status"] = {"conditions": [{"status": "True"}]}
    events = [odd, event("ADDED", "b", "9"), odd, event("MODIFIED", "a", "10")]
    assert watched(server, connection, ("list", ([], "7")), ("watch", events)) == ["b", "a"]
    assert [record.getMessage() for record in caplog.records] == ["the Node a cannot be read, so it is left as it is"]


@pytest.mark.parametrize("gone", [410, [GONE], [event("ADDED", "b", "8"), GONE]], ids=["status", "event", "later"])
def test_a_watch_whose_place_is_forgotten_lists_again(server: Server, connection: Connection, gone: Any) -> None:
    names = watched(server, connection, ("list", (["a"], "7")), ("watch", gone), ("list", (["a", "c"], "30")))
    assert [name for name in names if name != "b"] == ["a", "a", "c"]


def test_what_becomes_of_custom_resources(server: Server, connection: Connection) -> None:
    """A list comes whole; then each that changed or went, and that nothing did."""
    stamp = {"type": "BOOKMARK", "object": node("x", "12")}
    events = [event("ADDED", "b", "8"), event("MODIFIED", "b", "9"), event("DELETED", "a", "10"), stamp]
    server.answer = Script(("list", (["a"], "7")), ("watch", [*events, GONE]), ("list", (["b"], "30")))
    seen = KubeResources(connection, "site").watch("class", 60)
    found = [next(seen) for _ in range(7)]
    a, b = (Resource(kind="class", name=name, shown=f"machineclass/{name}", spec=None) for name in "ab")
    assert found == [
        Listed((a,)),
        Same(),
        Changed(b, there=True),
        Changed(b, there=True),
        Changed(a, there=False),
        Same(),
        Listed((b,)),
    ]
    place = "/apis/netboot.dev/v1alpha1/namespaces/site/machineclasses?"
    assert all(place in path for path in server.asked)


def test_more_than_any_inventory_has_is_not_kept(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed it is refused; of what comes later nobody can tell before it is listed anew."""
    monkeypatch.setattr(custom_resources, "MOST_BYTES", 20)
    large = {"type": "ADDED", "object": node("b", "8") | {"spec": {"serial": "X" * 20}}}
    server.answer = Script(("list", (["a"], "7")), ("watch", [large, event("ADDED", "c", "9")]))
    seen = list(KubeResources(connection, "site").watch("machine", 60))
    assert [type(each) for each in seen] == [Listed, Same, Changed]
    everything = {"items": [large["object"]], "metadata": {"resourceVersion": "9"}}
    server.answer = lambda _method, _path: (200, everything)
    with pytest.raises(ClusterRefusedError, match=r"machines\.netboot\.dev have more than 0 MiB: no inventory has"):
        list(KubeResources(connection, "site").watch("machine", 60))


def test_objects_that_are_too_large_are_out_alone_however_many_there_are(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(custom_resources, "MOST_BYTES", 2 * LARGEST_ITEM)
    spec = {"serial": "X" * LARGEST_ITEM}
    large, fits = node("b", "8") | {"spec": spec}, node("c", "9") | {"spec": {"serial": "X" * (LARGEST_ITEM - 14)}}
    server.answer = lambda _method, _path: (200, {"items": [large] * 9 + [fits], "metadata": {"resourceVersion": "9"}})
    listed = next(KubeResources(connection, "site").watch("machine", 60))
    why = "has 65,550 bytes, and one object has at most 65,536: leave out what it need not say"
    out = Resource(kind="machine", name="b", shown="machine/b", spec=None, refused=why)
    assert listed == Listed((out,) * 9 + (Resource(kind="machine", name="c", shown="machine/c", spec=fits["spec"]),))


def test_what_no_api_server_that_prunes_sends_is_one_bad_object_or_said(server: Server, connection: Connection) -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = {"spec": [deep]}
    events = [{"type": "ADDED", "object": node("b", "8") | deep}, {"type": "MODIFIED", "object": {"spec": {}}}]
    server.answer = Script(("list", (["a"], "7")), ("watch", events))
    resources = KubeResources(connection, "site")
    watch = resources.watch("machine", 60)
    why = "is nested deeper than anything that is declared"
    bad = Resource(kind="machine", name="b", shown="machine/b", spec=None, refused=why)
    assert [next(watch) for _ in range(3)][1:] == [Same(), Changed(bad, there=True)]
    with pytest.raises(ClusterUnavailableError, match="sent an event that is none"):
        next(watch)
    nameless = {"items": [{"spec": {}}], "metadata": {"resourceVersion": "9"}}
    server.answer = lambda _method, _path: (200, nameless)
    with pytest.raises(ClusterRefusedError, match="sent a Machine without a name"):
        next(resources.watch("machine", 60))
    server.answer = lambda _method, _path: (200, b"[" * 100_000)
    with pytest.raises(ClusterUnavailableError, match="does not answer as an apiserver does: no JSON"):
        next(resources.watch("machine", 60))


CREATE, NO_CREATE = ["create", "delete", "list", "watch"], ["delete", "deletecollection", "list", "watch"]
PLACE = {"metadata": {"name": "site", "uid": "u-1"}}


@pytest.mark.parametrize(
    ("namespace", "discovery", "kinds"),
    [
        ((200, PLACE), (200, {"machines": CREATE, "racks": NO_CREATE}), {"machine"}),
        (status(403, "Forbidden", "cannot get"), (200, {"machines": CREATE}), {"machine"}),
        ((200, PLACE), status(404, "NotFound", "no group"), set()),
        (status(404, "NotFound", "no namespace"), (200, {"machines": CREATE}), set()),
        ((200, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), (200, {"machines": CREATE}), set()),
        ((200, []), (200, {"machines": None}), set()),
    ],
)
def test_kinds_that_are_being_removed_are_told(
    server: Server, connection: Connection, namespace: Answer, discovery: Answer, kinds: set[str]
) -> None:
    """As API servers tell it, with a definition or a namespace that is terminating."""
    code, listed = discovery
    if code == 200:
        listed = {"resources": [{"name": name, "verbs": verbs} for name, verbs in listed.items()]}
    server.answer = lambda _method, path: namespace if path == "/api/v1/namespaces/site" else (code, listed)
    resources = KubeResources(connection, "site")
    assert resources.kinds() == kinds
    assert server.asked[0] == "GET /api/v1/namespaces/site"
    assert set(server.asked[1:]) <= {"GET /apis/netboot.dev/v1alpha1"}
    assert resources.uid() == ("u-1" if namespace == (200, PLACE) else "")


@pytest.mark.parametrize(
    ("namespace", "words"),
    [
        (status(403, "Forbidden", "cannot get"), "the namespace site is not there, or may not be read"),
        (status(404, "NotFound", "no namespace"), "the namespace site is not there, or may not be read"),
    ],
)
def test_of_which_namespace_holds_are_is_never_nothing(
    server: Server, connection: Connection, namespace: Answer, words: str
) -> None:
    """What is not known would be equal to what is not known: who was held would be let go."""
    definition = {"metadata": {"uid": "d-1"}}
    server.answer = lambda _method, path: namespace if path == "/api/v1/namespaces/site" else (200, definition)
    with pytest.raises(ClusterRefusedError, match=words):
        KubeTied(connection, "site", "hold").uid()
    server.answer = lambda _method, path: (200, PLACE if path == "/api/v1/namespaces/site" else definition)
    assert KubeTied(connection, "site", "hold").uid() == "u-1/d-1"


def test_where_kinds_cannot_be_told_nobody_says_that_there_are_none(server: Server, connection: Connection) -> None:
    server.answer = lambda _method, path: (200, PLACE) if "namespaces" in path else status(503, "", "starting")
    with pytest.raises(ClusterUnavailableError, match="overloaded or failing"):
        KubeResources(connection, "site").kinds()


def test_a_kind_that_is_not_there_has_no_empty_list(server: Server, connection: Connection) -> None:
    server.answer = lambda _method, _path: status(404, "NotFound", "the server could not find the requested resource")
    with pytest.raises(ClusterRefusedError) as caught:
        next(KubeResources(connection, "site").watch("machine", 60))
    assert str(caught.value) == (
        "the apiserver has no machines.netboot.dev: `netboot cluster crds | kubectl apply -f -`; where they were "
        "removed, so were all objects"
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, b"{]\n"), "sent an event that is none"),
        ((200, b'{"type": "ADDED"}\n'), "sent an event that is none"),
        (status(503, "", "starting"), "overloaded or failing (503): starting"),
        (status(403, "Forbidden", "cannot watch"), "lacks a right: cannot watch"),
        ((0, None), "cannot be reached"),
    ],
)
def test_a_watch_that_fails_says_so(server: Server, connection: Connection, answer: Answer, words: str) -> None:
    listed = {"items": [], "metadata": {"resourceVersion": "1"}}
    server.answer = lambda _method, path: answer if "watch=1" in path else (200, listed)
    with pytest.raises(ClusterUnavailableError) as caught:
        list(KubeNodes(connection).watch(5))
    assert words in str(caught.value)


@pytest.mark.parametrize("alive", [True, False])
def test_a_watch_that_fell_silent_is_begun_again_where_it_was(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch, *, alive: bool
) -> None:
    """A quiet cluster is no failure; an apiserver that is gone is one, as soon as it is asked again."""
    monkeypatch.setattr(watches, "SILENCE_SECONDS", 2.0)  # an answer has to begin within it
    ended = threading.Event()
    listed = {"items": [], "metadata": {"resourceVersion": "7"}}
    following = (200, json.dumps(event("ADDED", "b", "8")).encode() + b"\n") if alive else (0, None)

    def answer(_method: str, path: str) -> Answer:
        if "watch=1" not in path:
            return 200, listed
        if len([one for one in server.asked if "watch=1" in one]) > 1:
            return following
        return 200, ended

    server.answer = answer
    watch: Iterator[NodeView] = KubeNodes(connection).watch(60)
    try:
        if alive:
            assert next(watch).name == "b"
        else:
            with pytest.raises(ClusterUnavailableError):
                next(watch)
    finally:
        ended.set()
        watch.close()  # type: ignore[attr-defined]
    versions = [path.split("resourceVersion=")[1].split("&")[0] for path in server.asked if "watch=1" in path]
    assert versions[:2] == ["7", "7"]


def test_a_watch_whose_time_is_up_before_its_answer_begins_is_no_failure(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one of a round may have a tenth of a second. One that has time is waited for, and then it is one."""
    ended, listed = threading.Event(), {"items": [node("a", "7")], "metadata": {"resourceVersion": "7"}}
    server.answer = lambda _method, path: (500, None) if "watch=1" in path and ended.wait(180) else (200, listed)
    try:
        assert [seen.name for seen in KubeNodes(connection).watch(0.3)] == ["a"]
        monkeypatch.setattr(watches, "BEGINS_SECONDS", 0.1)
        with pytest.raises(ClusterUnavailableError, match="did not answer within"):
            list(KubeNodes(connection).watch(2.0))
        monkeypatch.setattr(watches, "SILENCE_SECONDS", 0.3)
        with pytest.raises(ClusterUnavailableError, match="did not answer within"):
            list(KubeNodes(connection).watch(60))
    finally:
        ended.set()


def test_a_watch_that_nobody_reads_on_leaves_nothing_open(server: Server, connection: Connection) -> None:
    server.answer = Script(("list", (["a"], "7")), ("watch", [event("ADDED", "b", "8"), event("ADDED", "c", "9")]))
    watch: Iterator[NodeView] = KubeNodes(connection).watch(30)
    assert [next(watch).name, next(watch).name] == ["a", "b"]
    watch.close()  # type: ignore[attr-defined]


def test_a_damaged_lease_is_logged_once_and_again_when_it_is_damaged_otherwise(
    server: Server, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    annotations: dict[str, str] = {}
    metadata = {"name": "netboot-a", "namespace": "netboot", "resourceVersion": "1", "uid": "u"}
    listed = {"items": [{"metadata": metadata | {"annotations": annotations}}], "metadata": {"resourceVersion": "5"}}
    server.answer = lambda _method, _path: (200, listed)
    leases, said = KubeLeases(connection, "netboot"), []
    for looks in range(4):
        if looks == 2:
            annotations["netboot.dev/generation"] = "x"
        assert leases.all() == []
        said.append([record.getMessage() for record in caplog.records])
        caplog.clear()
    remedy = "look at it, then `kubectl -n netboot delete lease netboot-a`"
    unknown = "so it cannot be told who holds this machine's credential"
    assert said == [
        [f"the Lease netboot/netboot-a is damaged (netboot.dev/generation is missing), {unknown}: {remedy}"],
        [],
        [f"the Lease netboot/netboot-a is damaged (netboot.dev/generation is not a number), {unknown}: {remedy}"],
        [],
    ]


def test_lists_come_in_pages(server: Server, connection: Connection) -> None:
    def answer(_method: str, path: str) -> Answer:
        if "continue=" not in path:
            return 200, {"items": [node("a", "1")], "metadata": {"resourceVersion": "5", "continue": "more"}}
        return 200, {"items": [node("b", "1")], "metadata": {"resourceVersion": "5"}}

    server.answer = answer
    items, version = connection.pages(KubeNodes(connection)._api.list_node)
    assert ([one["metadata"]["name"] for one in items], version) == (["a", "b"], "5")
    assert server.asked == ["GET /api/v1/nodes?limit=500", "GET /api/v1/nodes?continue=more&limit=500"]


def test_a_list_that_changed_too_much_is_begun_again(server: Server, connection: Connection) -> None:
    forgotten = iter([True, False])

    def answer(_method: str, path: str) -> Answer:
        if "continue=" not in path:
            return 200, {"items": [node("a", "1")], "metadata": {"resourceVersion": "5", "continue": "more"}}
        if next(forgotten):
            return status(410, "Expired", "the provided continue parameter is too old")
        return 200, {"items": [node("b", "1")], "metadata": {"resourceVersion": "5"}}

    server.answer = answer
    items, _ = connection.pages(KubeNodes(connection)._api.list_node)
    assert [one["metadata"]["name"] for one in items] == ["a", "b"]


def paged(every: list[dict[str, Any]]) -> Callable[[str, str], Answer]:
    """An apiserver that gives as many at once as it is asked for."""

    def answer(_method: str, path: str) -> Answer:
        query = parse_qs(urlsplit(path).query)
        begin, limit = int(query.get("continue", ["0"])[0]), int(query["limit"][0])
        more = {"continue": str(begin + limit)} if begin + limit < len(every) else {}
        return 200, {"items": every[begin : begin + limit], "metadata": {"resourceVersion": "5"} | more}

    return answer


def test_a_list_of_large_objects_comes_in_smaller_pages(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may ask for a certificate can make thousands of requests of a megabyte: no page of them is held whole."""
    monkeypatch.setattr(transport, "LONGEST_ANSWER", 20_000)
    large = [node(f"n{number}", "1") | {"filler": "x" * 2_000} for number in range(40)]
    server.answer = paged(large)
    names = []
    for seen in KubeNodes(connection).watch(0.01):
        names.append(seen.name)
        if len(names) == 40:
            break
    assert names == [f"n{number}" for number in range(40)]
    assert limits_asked_for(server) == [500, 5, 10, 5, 5, 5, 5, 5, 5, 5], "ten are too much, and not asked for again"


def limits_asked_for(server: Server) -> list[int]:
    return [int(parse_qs(urlsplit(path.split()[1]).query)["limit"][0]) for path in server.asked]


def test_a_list_that_does_not_come_in_time_is_asked_for_in_smaller_pages_that_grow(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The apiserver has to gather a page before it answers."""
    exchange = connection.transport.exchange

    def impatient(method: str, url: str, headers: Any, body: Any) -> Any:  # of the page alone that does not come
        return exchange(method, url, headers, body, 0.5 if "limit=500" in url else 60.0)

    monkeypatch.setattr(connection.transport, "exchange", impatient)
    names = [f"n{number}" for number in range(1_000)]
    gathering, few = threading.Event(), paged([node(name, "1") for name in names])
    server.answer = lambda method, path: (200, gathering) if "limit=500" in path else few(method, path)
    try:
        items, _ = connection.pages(KubeNodes(connection)._api.list_node)
    finally:
        gathering.set()
    assert [one["metadata"]["name"] for one in items] == names
    assert limits_asked_for(server) == [500, 5, 10, 20, 40, 80, 160, 250, 250, 250]


def test_an_object_that_is_longer_than_any_can_be_is_said(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "LONGEST_ANSWER", 20_000)
    server.answer = paged([node("a", "1") | {"filler": "x" * 30_000}])
    with pytest.raises(ClusterUnavailableError) as caught:
        connection.pages(KubeNodes(connection)._api.list_node)
    assert str(caught.value) == f"{server.url} answers at greater length than any list or object should have"
    assert [path.split("limit=")[1] for path in server.asked] == ["500", "5"]


@pytest.mark.parametrize("ended", [False, True], ids=["no end", "with its end"])
def test_an_event_is_read_to_a_bound(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch, *, ended: bool
) -> None:
    monkeypatch.setattr(transport, "LONGEST_ANSWER", 200_000)
    listed = {"items": [], "metadata": {"resourceVersion": "1"}}
    line = b'{"type": "ADDED", "object": "' + b"x" * 2_000_000 + (b'"}\n' if ended else b"")
    server.answer = lambda _method, path: (200, line) if "watch=1" in path else (200, listed)
    with pytest.raises(ClusterUnavailableError) as caught:
        list(KubeNodes(connection).watch(5))
    assert str(caught.value) == "the apiserver sends an event of greater length than any object should have"


def test_nothing_of_the_key_is_shown(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        shown = repr(connection) + repr(vars(connection)) + repr(vars(connection.transport))
    assert "PRIVATE" not in shown + caplog.text

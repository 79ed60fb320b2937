"""What a machine says of its health on its own Node: what a report comes to, and when it is written."""

import hashlib
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from images.build.node_files import node_files
from images.node.agent import kubelet
from images.node.status import __main__ as status
from images.node.status import written
from images.node.status.said import LONGEST, Said, said
from lab.kube.authority import Authority

BOOT = "018bcfe5-6800-8fff-bfff-c8dd6b13e782"


def check(name: str, how: str, severity: str = "major", summary: str = "") -> dict[str, Any]:
    return {"name": name, "status": how, "severity": severity, "summary": summary or f"it is {how}", "ms": 1}


def report(*checks: dict[str, Any]) -> bytes:
    return json.dumps({"schema": 1, "boot": BOOT, "checks": checks}).encode()


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ([check("cpus", "pass"), check("nics", "absent")], ("True", "ChecksPassed", "all checks (2) are in order")),
        (
            [check("cpus", "pass"), check("clock", "fail", "minor"), check("disk", "warn")],
            ("True", "ChecksWarn", "to look at: clock: it is fail; disk: it is warn"),
        ),
        (
            [check("firmware", "unknown", "minor"), check("memory", "unknown"), check("disk", "warn")],
            ("Unknown", "ChecksUnknown", "cannot tell: memory: it is unknown"),
        ),
        (
            [
                check("memory", "unknown"),
                check("gpu-count", "fail", "critical", "8 GPUs expected, none on the PCI bus"),
            ],
            ("False", "ChecksFailed", "failed: gpu-count: 8 GPUs expected, none on the PCI bus"),
        ),
        ([], ("Unknown", "ChecksUnknown", "cannot tell: ")),
    ],
)
def test_what_a_report_comes_to(checks: list[dict[str, Any]], expected: tuple[str, str, str]) -> None:
    found = said(report(*checks))
    assert found is not None
    assert found[:3] == expected
    assert found.checks == ",".join(sorted(f"{one['name']}={one['status']}" for one in checks))
    assert found.report == f"sha256:{hashlib.sha256(report(*checks)).hexdigest()}"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"checks": 1}', b'{"checks": [{}]}', b"\xff", b"[" * 10_000])
def test_what_is_no_report_says_nothing(data: bytes) -> None:
    assert said(data) is None


@given(st.binary(max_size=200) | st.builds(lambda text: report(check(text, "fail", summary=text * 50)), st.text()))
def test_whatever_the_report_it_is_short_and_printable(data: bytes) -> None:
    found = said(data)
    if found is not None:
        assert len(found.message) <= LONGEST + len(" and more")
        assert all(" " <= c <= "~" for c in found.message)


SAID = Said("True", "ChecksPassed", "all checks (2) are in order", "cpus=pass", "sha256:1")


def test_it_is_written_again_when_it_is_new_or_old_and_the_status_keeps_its_moment(tmp_path: Path) -> None:
    first = written.after(None, SAID, "X509SHA256=1", 100.0, 1_767_225_600.0)
    written.keep(tmp_path, first)
    known = written.load(tmp_path)
    assert known == first
    assert known.still(SAID._replace(report="sha256:2"), "X509SHA256=1", 100.0 + written.RENEW_SECONDS - 1)
    assert not known.still(SAID, "X509SHA256=1", 100.0 + written.RENEW_SECONDS)
    assert not known.still(SAID, "X509SHA256=1", 99.0), "another boot"
    assert not known.still(SAID, "X509SHA256=2", 101.0), "the kubelet has a newer certificate"
    for change in ({"status": "False"}, {"reason": "x"}, {"message": "x"}, {"checks": "x"}):
        assert not known.still(SAID._replace(**change), "X509SHA256=1", 101.0)
    later = written.after(known, SAID, "X509SHA256=1", 700.0, 1_767_226_200.0)
    assert (later.at, later.since) == (700.0, "2026-01-01T00:00:00Z")
    failed = written.after(later, SAID._replace(status="False"), "X509SHA256=1", 701.0, 1_767_226_201.0)
    assert failed.since == "2026-01-01T00:10:01Z"
    (tmp_path / written.FILE).write_text('{"status": 1}')
    assert written.load(tmp_path) is None


class Apiserver(http.server.BaseHTTPRequestHandler):
    """Answers PATCH, and GET with `server.node`, as `server.answers` say, 200 once they are used up."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        self.do_PATCH(json.dumps(server.node).encode())

    def do_PATCH(self, node: bytes = b"") -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0"))) or b"null"
        der = self.connection.getpeercert(binary_form=True)
        server: Any = self.server
        who = hashlib.sha256(der).hexdigest()
        server.asked.append((self.path, self.headers["Content-Type"], who, json.loads(body)))
        code = server.answers.pop(0) if server.answers else 200
        answer = node if node and code == 200 else json.dumps({"message": f"it is {code}"}).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    """`asked`: what came; `answers`: statuses of what is answered next; `node`: what is there to be read."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Apiserver)
        self.asked: list[Any] = []
        self.answers: list[int] = []
        self.node: Any = {}


class Machine:
    """One that has joined: what the agent left below `root`, as systemd hands it over."""

    def __init__(self, root: Path) -> None:
        self.root, self.authority = root, Authority("cluster")
        self.handed, self.memory = root / "handed", root / "memory"
        for folder in (self.handed, self.memory, root / "run/netboot", root / "etc/kubernetes/pki"):
            folder.mkdir(parents=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        pair = self.authority.issue("apiserver", server=("127.0.0.1",))
        (root / "server.pem").write_bytes(pair.certificate + pair.key)
        (root / "ca.pem").write_bytes(self.authority.pair.certificate)
        context.load_cert_chain(root / "server.pem")
        context.load_verify_locations(root / "ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        self.server = Server()
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        (root / kubelet.CA[1:]).write_bytes(self.authority.pair.certificate)
        url = f"https://127.0.0.1:{self.server.server_address[1]}"
        # On a machine its root is /, so the authority is where the kubeconfig says.
        (self.handed / "kubeconfig").write_text(kubelet.kubeconfig(url))
        self.renew()

    def renew(self) -> str:
        """The kubelet has another certificate; its fingerprint."""
        pair = self.authority.issue("system:node:n1", ("system:nodes",))
        (self.handed / "pair").write_bytes(pair.certificate + pair.key)
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        return hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()

    def run(self, **environment: str) -> int:
        handed = {"CREDENTIALS_DIRECTORY": str(self.handed), "RUNTIME_DIRECTORY": str(self.memory), "NODE_NAME": "n1"}
        return status.run(self.root, handed | environment, lambda _: None)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_it_writes_under_the_kubelet_s_certificate_once_until_there_is_something_new(machine: Machine) -> None:
    assert machine.run() == 0
    assert machine.server.asked == [], "no report yet"
    sha256 = machine.renew()
    whole = report(check("cpus", "pass"), check("time-service", "fail", "minor", "nobody answers"))
    (machine.root / "run/netboot/health.json").write_bytes(whole)
    assert [machine.run(), machine.run()] == [0, 0]
    ((path, kind, who, body),) = machine.server.asked
    assert (path, kind, who) == ("/api/v1/nodes/n1/status", "application/strategic-merge-patch+json", sha256)
    (condition,) = body["status"]["conditions"]
    since = condition.pop("lastTransitionTime")
    assert condition.pop("lastHeartbeatTime") == since
    assert condition == {
        "type": "netboot.dev/Healthy",
        "status": "True",
        "reason": "ChecksWarn",
        "message": "to look at: time-service: nobody answers",
    }
    assert body["metadata"] == {
        "annotations": {
            "netboot.dev/health-credential": f"X509SHA256={sha256}",
            "netboot.dev/health-report": f"sha256:{hashlib.sha256(whole).hexdigest()}",
            "netboot.dev/health-checks": "cpus=pass,time-service=fail",
        }
    }
    renewed = machine.renew()
    assert machine.run() == 0
    _, _, who, body = machine.server.asked[1]
    assert who == renewed
    assert body["metadata"]["annotations"]["netboot.dev/health-credential"] == f"X509SHA256={renewed}"
    assert body["status"]["conditions"][0]["lastTransitionTime"] == since, "it is as it was"
    (machine.root / "run/netboot/health.json").write_bytes(report(check("cpus", "fail")))
    assert machine.run() == 0
    assert machine.server.asked[2][3]["status"]["conditions"][0]["status"] == "False"


def test_it_tries_again_until_the_kubelet_has_registered_the_node(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.root / "run/netboot/health.json").write_bytes(report(check("cpus", "pass")))
    machine.server.answers[:] = [404, 404, 500, 200]
    assert machine.run() == 0
    assert len(machine.server.asked) == 4
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "netboot-status: the kubelet has not registered this node yet; it is tried again"
    assert lines[1].endswith(" answered 500: it is 500; it is tried again")
    assert lines[2:] == ["netboot-status: n1: Healthy is True (ChecksPassed): all checks (1) are in order"]


def test_it_ends_in_time_for_newer_certificates(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """systemd starts it anew, and hands over the kubelet's as they are then."""
    (machine.root / "run/netboot/health.json").write_bytes(report(check("cpus", "pass")))
    machine.server.answers[:] = [401] * 100
    now = iter(range(0, 100_000, 60))
    monkeypatch.setattr(status, "uptime", lambda: float(next(now)))
    assert machine.run() == 1
    assert 1 < len(machine.server.asked) < 10
    (machine.handed / "pair").write_text("torn")
    assert machine.run() == 1


def test_the_unit_hands_over_what_the_agent_leaves_and_gives_no_more(node_unit: str) -> None:
    lines = node_unit.splitlines()
    assert f"ConditionPathExists={kubelet.KUBECONFIG}" in lines
    assert f"LoadCredential=kubeconfig:{kubelet.KUBECONFIG}" in lines
    assert f"LoadCredential=pair:{kubelet.PAIR}" in lines
    assert f"EnvironmentFile={kubelet.ENVIRONMENT}" in lines
    assert {"DynamicUser=yes", "CapabilityBoundingSet=", "NoNewPrivileges=yes"} <= set(lines)
    (limit,) = [int(line.partition("=")[2]) for line in lines if line.startswith("TimeoutStartSec=")]
    assert limit > status.TRY_SECONDS + 3 * 30


@pytest.fixture
def node_unit() -> str:
    return next(entry for entry in node_files() if entry.path.endswith("/netboot-status.service")).content.decode()

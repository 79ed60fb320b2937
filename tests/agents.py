"""A join service and an API server of one process, made of `tokens`: what the agent meets, with faults to choose."""

import base64
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from images.node.agent.loop import Agent
from images.node.agent.request import PATH
from lab.kube.authority import Authority, Pair
from tests.agent_tpm import BOOT
from tokens import bootstrap, wire
from tokens.credential import make_credential, spki_sha256
from tokens.csr import CLIENT_SIGNER, Request, check_client
from tokens.errors import TokenError
from tokens.quote import verify_quote
from tokens.sealed import Keyset, SealingKey
from tokens.wire import Selection

SHA256 = 0xB
SELECTION = (Selection(SHA256, (0, 7)),)
Fault = Callable[["Handler"], None]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unb64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


@dataclass
class Site:
    """Everything that answers a machine. `faults` are answered first, one a request, by path."""

    authority: Authority = field(default_factory=lambda: Authority("join"))
    cluster: Authority = field(default_factory=lambda: Authority("cluster"))
    node_name: str = "n1"
    keys: Keyset = field(default_factory=lambda: Keyset([SealingKey(bytes(32))]))
    taints: list[str] = field(default_factory=lambda: ["netboot.dev/unchecked:NoExecute"])
    apiservers: list[str] | None = None
    """None: this server."""
    authorities: str = ""
    """PEM of the API servers; "": this server's."""
    assurance: str = "tpm"
    now_ms: int = field(default_factory=lambda: int(time() * 1000))
    url: str = ""
    report_url: str = ""
    faults: dict[str, list[Fault]] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    """Method, path, JSON body."""
    spkis: list[bytes] = field(default_factory=list)
    eks: list[str] = field(default_factory=list)
    issued: list[bootstrap.BootstrapToken] = field(default_factory=list)
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    deny: str = ""
    watched: dict[str, Any] | None = None
    """The next event of a watch."""
    on_token: Callable[[bootstrap.BootstrapToken, bytes], None] = lambda _token, _spki: None
    changed: threading.Condition = field(default_factory=threading.Condition)

    def hello(self, body: dict[str, Any]) -> dict[str, Any]:
        spki = unb64(body["spki"])
        self.spkis.append(spki)
        inner: dict[str, Any] = {"spki": body["spki"], "ek": None}
        answer: dict[str, Any] = {"assurance": self.assurance, "now_ms": self.now_ms}
        if self.assurance == "tpm":
            ek, ak = (wire.read_public(unb64(body["tpm"][name])) for name in ("ek_public", "ak_public"))
            self.eks.append(spki_sha256(ek))
            secret = b"s" * 32
            challenge = make_credential(ek, ak.name, secret)
            answer["credential_blob"] = b64(challenge.credential_blob)
            answer["encrypted_secret"] = b64(challenge.encrypted_secret)
            answer["pcrs"] = {"sha256": [0, 7]}
            inner |= {"ek": body["tpm"]["ek_public"], "ak": body["tpm"]["ak_public"], "secret": b64(secret)}
        answer["state"] = b64(self.keys.seal(json.dumps(inner).encode(), b"hello", self.now_ms, 120_000))
        return answer

    def attest(self, body: dict[str, Any]) -> dict[str, Any]:
        state = unb64(body["state"])
        inner = json.loads(self.keys.open(state, b"hello", self.now_ms))
        spki = unb64(inner["spki"])
        public = serialization.load_der_public_key(spki)
        assert isinstance(public, ec.EllipticCurvePublicKey)
        public.verify(unb64(body["proof"]), b"netboot.dev/proof/v1" + state, ec.ECDSA(hashes.SHA256()))
        if inner["ek"]:
            secret = unb64(inner["secret"])
            assert unb64(body["tpm"]["secret"]) == secret
            ek, ak = (wire.read_public(unb64(inner[name])) for name in ("ek", "ak"))
            pcrs = {(SHA256, int(i)): bytes.fromhex(value) for i, value in body["tpm"]["pcrs"]["sha256"].items()}
            nonce = wire.quote_nonce(state, secret, spki)
            quote, signature = unb64(body["tpm"]["quote"]), unb64(body["tpm"]["signature"])
            verify_quote(quote, signature, ak, ek, nonce, SELECTION, pcrs)
        token = bootstrap.mint()
        self.issued.append(token)
        self.on_token(token, spki)
        return {
            "token": token.reveal(),
            "expires_ms": self.now_ms + 300_000,
            "node_name": self.node_name,
            "cluster": "default",
            "apiservers": [self.url] if self.apiservers is None else self.apiservers,
            "authorities": self.authorities or self.authority.pair.certificate.decode(),
            "labels": {"netboot.dev/rack": "a-1"},
            "taints": self.taints,
            "now_ms": self.now_ms,
        }

    def ask_certificate(self, body: dict[str, Any], token: bootstrap.BootstrapToken) -> dict[str, Any]:
        """Record a request, and approve and sign it at once, or deny it."""
        spec = body["spec"]
        groups = bootstrap.secret_manifest(token, self.node_name, self.spkis[-1], datetime.now(UTC))["stringData"]
        pem = unb64(spec["request"])
        request = Request(
            signer=spec["signerName"],
            username=f"system:bootstrap:{token.id}",
            groups=frozenset([*groups["auth-extra-groups"].split(","), "system:bootstrappers"]),
            usages=tuple(spec["usages"]),
            expiration_seconds=spec["expirationSeconds"],
            pem=pem,
        )
        assert request.signer == CLIENT_SIGNER
        assert check_client(request, allowed=True, because="") == self.node_name
        recorded = {**body, "metadata": {**body["metadata"], "resourceVersion": "5"}, "status": {}}
        with self.changed:
            self.requests[body["metadata"]["name"]] = recorded
            self.changed.notify_all()
        return recorded

    def decided(self, recorded: dict[str, Any]) -> dict[str, Any]:
        """The request as the approver and the signer leave it."""
        if self.deny:
            condition = {"type": "Denied", "status": "True", "reason": "NotThisNode", "message": self.deny}
            return {**recorded, "status": {"conditions": [condition]}}
        certificate = sign(self.cluster.pair, unb64(recorded["spec"]["request"]))
        return {**recorded, "status": {"conditions": [{"type": "Approved"}], "certificate": b64(certificate)}}


def sign(authority: Pair, pem: bytes) -> bytes:
    """A certificate for the request, valid for a day."""
    csr = x509.load_pem_x509_csr(pem)
    key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(csr.subject).public_key(csr.public_key())
    builder = builder.issuer_name(x509.load_pem_x509_certificate(authority.certificate).subject)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(minutes=5)).not_valid_after(now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    site: Site

    def answer(self, status: int, body: Any, **headers: str) -> None:
        """One answer: JSON, or bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        site, path = self.site, self.path
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        site.asked.append(("POST", path, body))
        if site.faults.get(path):
            site.faults[path].pop(0)(self)
            return
        try:
            if path == "/v1/join/hello":
                self.answer(200, site.hello(body))
            elif path == "/v1/join/attest":
                self.answer(200, site.attest(body))
            elif path == PATH and (token := self.token()):
                self.answer(201, site.ask_certificate(body, token))
            else:
                self.answer(204 if path.endswith("/events") else 404, b"")
        except TokenError as error:
            self.answer(403, {"error": {"code": "refused", "message": str(error), "remedy": "none"}})

    def do_GET(self) -> None:
        site = self.site
        site.asked.append(("GET", self.path, None))
        plain = self.path.split("?", maxsplit=1)[0]
        if site.faults.get(plain):
            site.faults[plain].pop(0)(self)
            return
        if "watch=true" in self.path:
            if site.watched is not None:
                self.answer(200, json.dumps(site.watched).encode() + b"\n")
                site.watched = None
                return
            name = self.path.split("metadata.name%3D")[1].split("&")[0]
            with site.changed:
                assert site.changed.wait_for(lambda: name in site.requests, 60)
            line = json.dumps({"type": "MODIFIED", "object": site.decided(site.requests[name])})
            self.answer(200, line.encode() + b"\n")
        else:
            self.answer(200, site.requests[plain.rsplit("/", 1)[1]])

    def do_HEAD(self) -> None:
        self.answer(404, b"")

    def hang_up(self) -> None:
        """End the connection without an answer."""
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def token(self) -> bootstrap.BootstrapToken | None:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return next((token for token in self.site.issued if token.reveal() == given), None)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's
        pass


@dataclass
class Told:
    """What an agent said, and how long it would have waited; one that goes on and on is stopped."""

    lines: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def pause(self, seconds: float) -> None:
        """Waits for nothing."""
        self.pauses.append(seconds)
        assert len(self.pauses) <= 12, self.lines

    def agent(self, root: Path, **parts: Any) -> Agent:
        """An agent that tells us, and does not touch this machine's clock."""
        return Agent(root, say=self.lines.append, pause=self.pause, **parts)


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    """Serve `site` in TLS (join and the API), and its report address without, on loopback."""
    pair = site.authority.issue("join-1", server=("127.0.0.1",))
    handler = type("Bound", (Handler,), {"site": site})
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pair.pem").write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(Path(folder) / "pair.pem")
    tls, plain = _Server(("127.0.0.1", 0), handler), _Server(("127.0.0.1", 0), handler)
    tls.socket = context.wrap_socket(tls.socket, server_side=True, do_handshake_on_connect=False)
    site.url = f"https://127.0.0.1:{tls.server_address[1]}"
    site.report_url = f"http://127.0.0.1:{plain.server_address[1]}"
    threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in (tls, plain)]
    for thread in threads:
        thread.start()
    try:
        yield site
    finally:
        for server, thread in zip((tls, plain), threads, strict=True):
            server.shutdown()
            thread.join()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is what these tests are about."""


def machine(root: Path, site: Site, **bundle: Any) -> Path:
    """What the initrd leaves below `root`, for a machine of this site."""
    run = root / "run/netboot"
    run.mkdir(parents=True)
    env = {"BOOT": BOOT, "IMAGE": "a" * 64, "REPORT": site.report_url, "MAC": "52:54:00:12:34:56", "NAME": "n1"}
    (run / "boot.env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
    facts = {"join_url": site.url, "join_authorities": [site.authority.pair.certificate.decode()], "issued": 7}
    (run / "site.json").write_text(json.dumps({**facts, **bundle}))
    return root

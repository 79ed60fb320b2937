"""A site with join for tests over real TLS: certificates, keys, inventory, and join processes on it."""

import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lab.kube.authority import Authority, kubeconfig, write_private
from netboot.cli.authority import new_authority, new_certificate
from netboot.config import Config, load_config
from netboot.lifecycle.bootid import mint
from netboot.machines.values import Machine
from netboot.stores.bootkey import load_or_create
from netboot.stores.intents import make as make_intents
from netboot.stores.journal_reader import read_after
from netboot.stores.sealing import NONCES, new_key, write_keys
from netboot.stores.snapshot import write_snapshot
from tests import soft_tpm
from tests.accounts import by_the_service
from tests.joining import IMAGE, pinned, snapshot_of
from tests.processes import environment, wait_for
from tests.sites import JOINING, free_ports, make_site
from tokens.sealed import Keyset

CLUSTERS = """\
clusters:
  default: {endpoints: ["https://192.0.2.1:6443"], authority: tls/ca.crt}
"""
"""Of a configuration."""


class Said(NamedTuple):
    """An answer."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def message(self) -> str:
        """Of a failure."""
        return str(self.body["error"]["message"])


@dataclass
class JoinSite:
    """`replicas`: processes by name. Every one has a port of its own."""

    folder: Path
    config: Config
    ports: dict[str, int] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def boot(self, machine: str = "gpu-001", number: int = 1) -> str:
        """A boot of a machine."""
        key = load_or_create(self.config.data / "boot-id.key")
        return mint(key, machine, IMAGE, time.time_ns() // 1_000_000 + number, number)

    def publish(self, *machines: Machine) -> None:
        """What the publisher would."""
        write_snapshot(self.config.data / "snapshot.json", snapshot_of(*machines))

    def say(self, name: str, words: str) -> None:
        """Steer the cluster, or a clock (see `tests.sockets.joined`)."""
        path = self.folder / name
        staged = path.with_suffix(".new")
        staged.write_text(words)
        staged.replace(path)

    def start(
        self, index: int = 0, address: str = "127.0.0.1", cluster: str = "memory", deadlines: float | None = None
    ) -> str:
        """Start process `join-<index>`, on a cluster in memory or on that of the configuration (`real`); its name.

        `deadlines`: seconds of every one that the server sets its clients, instead of its own.
        """
        name, family = f"join-{index}", socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, 0), family=family, backlog=512, dualstack_ipv6=address == "::")
        self.ports[name] = listener.getsockname()[1]
        reading, writing = os.pipe()
        orders: dict[str, Any] = {"folder": str(self.folder), "name": name, "index": index, "deadlines": deadlines}
        orders |= {"listener": listener.fileno(), "ready": writing, "supervisor": os.getpid()}
        orders |= {"clock": f"clock-{index}", "cluster": cluster}
        with (self.folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                by_the_service([sys.executable, "-m", "tests.sockets.joined"], self.folder, self.config),
                stdin=subprocess.PIPE,
                stderr=log,
                env=environment(),
                pass_fds=(listener.fileno(), writing),
            )
        self.processes[name] = process
        os.close(writing)
        listener.close()
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(json.dumps(orders).encode())
        with os.fdopen(reading, "rb") as ready:
            assert ready.read(1) == b"1", self.log(name)
        wait_for(lambda: self.ask(name, "GET", "/readyz").status in (200, 503))
        return name

    def log(self, name: str = "join-0") -> str:
        """What a process wrote."""
        return (self.folder / f"{name}.log").read_text()

    def ready(self, name: str = "join-0") -> bool:
        """Whether it says so."""
        return self.ask(name, "GET", "/readyz").status == 200

    def context(self) -> ssl.SSLContext:
        """As an agent has it: this site's authority alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        assert self.config.join is not None
        context.load_verify_locations(self.config.join.authorities)
        return context

    def ask(
        self,
        name: str,
        method: str,
        path: str,
        body: Any = None,
        *,
        source: str = "127.0.0.1",
        headers: dict[str, str] | None = None,
    ) -> Said:
        """One request on a connection of its own, from `source` (any of 127.0.0.0/8)."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.ports[name], timeout=60, context=self.context(), source_address=(source, 0)
        )
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, data, headers or {})
            return read(connection)
        finally:
            connection.close()

    def hello(self, machine: soft_tpm.Machine, name: str = "join-0", **how: Any) -> Said:
        """Post hello."""
        return self.ask(name, "POST", "/v1/join/hello", machine.hello(), **how)

    def attest(self, machine: soft_tpm.Machine, answer: Any, name: str = "join-0", **how: Any) -> Said:
        """Post attest."""
        return self.ask(name, "POST", "/v1/join/attest", machine.attest(answer), **how)

    def journalled(self, name: str = "join-0") -> list[Any]:
        """Records of a process."""
        rows = read_after(self.config.data / "journal" / f"{name}.db", 0, most=10**6)
        return [json.loads(row.body) for row in rows]

    def stop(self, name: str) -> int:
        """Ask it to end."""
        self.processes[name].send_signal(signal.SIGTERM)
        return self.processes.pop(name).wait(180)


def read(connection: http.client.HTTPSConnection) -> Said:
    """The answer to what was sent."""
    answer = connection.getresponse()
    data = answer.read()
    return Said(answer.status, json.loads(data) if data else None, dict(answer.headers))


def make_join_site(folder: Path, **join: Any) -> Config:
    """Files of a site with join and one cluster."""
    provisioning, management, port = free_ports(3)
    limits = "".join(f"  {key}: {value}\n" for key, value in join.items())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "netboot.yaml").write_text(
        f"""\
site: test
provisioning: {{listen: "127.0.0.1:{provisioning}", url: "http://127.0.0.1:{provisioning}", workers: 1}}
management: {{listen: "127.0.0.1:{management}"}}
join:
  listen: "127.0.0.1:{port}"
  url: https://127.0.0.1:{port}
{limits}clusters:
  default:
    endpoints: ["https://192.0.2.1:6443"]
    authority: tls/ca.crt
"""
    )
    fill_join(folder)
    config = load_config(folder / "netboot.yaml")
    make_intents(config.data / "intents.db").close()  # as the supervisor does
    return config


def make_whole_site(
    root: Path, apiserver: int, *, inventory: str = JOINING, workers: int = 2, join_workers: int = 1, more: str = ""
) -> Path:
    """Files of a site that has processes of every kind but the fetcher; its configuration. One cluster, whose
    kubeconfigs say that it is at that port of loopback. `more`: of the configuration."""
    make_site(root, workers=workers, inventory=inventory)
    [port] = free_ports(1)
    file = root / "netboot.yaml"
    file.write_text(
        f"""\
{file.read_text()}
join: {{listen: "127.0.0.1:{port}", url: "https://127.0.0.1:{port}", workers: {join_workers}}}
{CLUSTERS}{more}"""
    )
    fill_join(root)
    write_kubeconfigs(root / "secrets", apiserver)
    return file


def write_kubeconfigs(folder: Path, apiserver: int) -> None:
    """Of the accounts of a cluster that is at that port of loopback; its authority is forgotten."""
    authority = Authority("nobody")
    roles = ("issuer", "approver", "nodes", "inventory", "shipper", "enrolments-join", "enrolments-reader", "keys")
    for name in roles:
        data = kubeconfig(f"https://127.0.0.1:{apiserver}", authority.pair.certificate, authority.issue(name))
        write_private(folder / f"{name}.kubeconfig", data)


def fill_join(folder: Path) -> None:
    """The files that a `join` section names."""
    for name in ("tls", "secrets", "data"):
        (folder / name).mkdir(exist_ok=True)
    authority, key = new_authority("test")
    certificate, own = new_certificate(authority, key, ["127.0.0.1", "::1"])
    for name, data in (("ca.crt", authority), ("ca.key", key), ("join.crt", certificate), ("join.key", own)):
        (folder / "tls" / name).write_bytes(data)
        (folder / "tls" / name).chmod(0o600)
    write_keys(folder / "secrets" / "sealing.keys", Keyset((new_key(),)))
    write_keys(folder / "secrets" / "nonce.keys", Keyset((new_key(),)), NONCES)


@contextlib.contextmanager
def join_site(folder: Path, **join: Any) -> Iterator[JoinSite]:
    """A site whose processes end with the block."""
    site = JoinSite(folder, make_join_site(folder, **join))
    site.publish(pinned(soft_tpm.Machine("")))
    try:
        yield site
    finally:
        for process in site.processes.values():
            process.kill()
            process.wait()

"""Whoever breaks into one process of `netboot serve` has what that process needs, and nothing of the others.

The service runs as ever; `tests/intruder` puts code into its processes that tries things from the inside. Each attempt
is tried from every kind of process: either the table below allows it, or the kernel refuses it.
"""

import json
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import requests

from images.artifact.keyring import KeyRing
from images.store.store import Store
from lab.kube.authority import write_private
from netboot.cli.authority import new_certificate
from netboot.config import load_config
from netboot.process import Kind
from netboot.stores.sealing import NONCES, new_key, write_keys
from tests import intruder
from tests.intruder.sitecustomize import SIGNAL
from tests.processes import descendants, wait_for
from tests.sites import TOKEN, add_image, free_ports
from tests.sockets.join_site import make_whole_site
from tests.sockets.service import Service, serving
from tokens.sealed import Keyset

NAMES = {
    "boot": "boot-0",
    "management": "management",
    "controllers": "controllers",
    "join": "join-0",
    "approver": "approver-default",
    "nodes": "nodes-default",
    "fetcher": "fetcher",
}
ALLOWED: dict[str, set[str]] = {
    "boot": {"read nonce keys", "write own journal"},
    "management": {"read operators' tokens", "read issuer", "write enrolments", "connect apiserver"}
    | {"write channel", "replace channel", "create in store"},
    "controllers": {"write enrolments", "write snapshot", "replace snapshot", "write state", "write own journal"}
    | {"write other journal", "write boot-id key", "write channel", "replace channel", "create in store"},
    "join": {"read join key", "read sealing keys", "read nonce keys", "read issuer"}
    | {"write enrolments", "write own journal", "connect apiserver"},
    "approver": {"read approver", "write own journal", "connect apiserver"},
    "nodes": {"read nodes", "write own journal", "connect apiserver"},
    "fetcher": {"read registry's login", "write channel", "replace channel", "create in store"}
    | {"connect apiserver", "connect other"},
}
"""All that is possible, of what `attempts` tries; everything else must be refused. Why: docs/operations.md."""
ALL = {"large question"}
REFUSED = {"EACCES", "EPERM"}


@pytest.fixture(scope="module")
def apiserver() -> Iterator[socket.socket]:
    """Something that takes connections where the kubeconfigs say."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        yield listener


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, apiserver: socket.socket) -> Iterator[Service]:
    """A site with all that a configuration can have."""
    root, [nobody] = tmp_path_factory.mktemp("walls"), free_ports(1)
    upstream = f'upstream: {{place: "127.0.0.1:{nobody}/images", credentials: secrets/registry.json}}\n'
    file = make_whole_site(root, apiserver.getsockname()[1], workers=1, more=upstream)
    write_private(root / "secrets" / "registry.json", b"{}")
    config = load_config(file)
    Store(config.store).set_channel("stable", add_image(config))
    (root / "intruder").mkdir()
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(root / "notify"))
    os.environ["NETBOOT_TEST_INTRUDER"] = str(root / "intruder")
    try:
        with serving(config, file, path=str(Path(intruder.__path__[0]))) as made:
            yield made
    finally:
        del os.environ["NETBOOT_TEST_INTRUDER"]
        notify.close()


def attempts(service: Service, kind: str, apiserver: socket.socket, other: socket.socket) -> dict[str, tuple[str, Any]]:
    """What is tried from a process of this kind: label → act, and upon what."""
    config, name = service.config, NAMES[kind]
    root, data, store = service.file.parent, config.data, config.store
    neighbour = "join-0" if kind != "join" else "boot-0"
    assert service.process is not None
    pid = {"neighbour": service.processes()[neighbour]["pid"], "supervisor": service.process.pid}
    secrets = {
        "operators' tokens": "secrets/operator.token",
        "join key": "tls/join.key",
        "authority's key": "tls/ca.key",
        "sealing keys": "secrets/sealing.keys",
        "nonce keys": "secrets/nonce.keys",
        "issuer": "secrets/issuer.kubeconfig",
        "approver": "secrets/approver.kubeconfig",
        "nodes": "secrets/nodes.kubeconfig",
        "registry's login": "secrets/registry.json",
        "signing key": str(next((root / "keys").glob("*.key"))),
    }
    own = data / "journal" / f"{name}.db"
    files = {
        "inventory": root / "inventory" / "site.yaml",
        "configuration": service.file,
        "channel": store / "channels" / "stable.json",
        "snapshot": data / "snapshot.json",
        "state": data / "state.db",
        "enrolments": data / "enrolment.db",
        "boot-id key": data / "boot-id.key",
        "own journal": own if own.exists() else data / "journal" / "boot-0.db",
        "other journal": data / "journal" / f"{neighbour}.db",
    }
    ports = {"apiserver": apiserver.getsockname()[1], "other": other.getsockname()[1]}
    tried: dict[str, tuple[str, Any]] = {f"read {label}": ("read", str(root / path)) for label, path in secrets.items()}
    tried |= {f"write {label}": ("write", str(path)) for label, path in files.items()}
    tried |= {f"replace {label}": ("replace", str(files[label])) for label in ("inventory", "channel", "snapshot")}
    tried |= {"create in inventory": ("create", str(root / "inventory" / "more.yaml"))}
    tried |= {"create in store": ("create", str(store / "channels" / "more.json"))}
    tried |= {"create in secrets": ("create", str(root / "secrets" / "more"))}
    for act in ("signal", "limit", "starve", "trace", "memory", "environ"):
        tried |= {f"{act} {label}": (act, number) for label, number in pid.items()}
    tried |= {f"connect {label}": ("connect", port) for label, port in ports.items()}
    tried |= {f"{act} other": (act, ports["other"]) for act in ("multipath", "fast-open")}
    tried |= {act: (act, str(root / "notify")) for act in ("datagram", "datagram-pair")}
    tried |= {"large question": ("spill", 64)}
    return tried | {"abstract socket": ("abstract", "netboot-test-walls"), "run a program": ("run", "/usr/bin/true")}


def broken_into(service: Service, name: str, orders: dict[str, tuple[str, Any]]) -> dict[str, str]:
    """How each attempt ended, made by the process that serves requests or does the work."""
    folder = service.file.parent / "intruder"
    (folder / "orders").write_text(json.dumps(orders))
    answers = folder / name
    before = answers.stat().st_size
    pid = service.processes()[name]["pid"]
    os.kill(max(descendants(pid), default=pid), SIGNAL)
    wait_for(lambda: answers.stat().st_size > before and answers.read_bytes().endswith(b"\n"))
    ended: dict[str, str] = json.loads(answers.read_bytes()[before:])
    return ended


def test_the_table_has_every_kind_of_process() -> None:
    assert set(ALLOWED) == set(NAMES) == set(get_args(Kind))


@pytest.mark.parametrize("kind", NAMES)
def test_a_process_can_do_what_it_needs_and_nothing_else(service: Service, apiserver: socket.socket, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0netboot-test-walls")
        abstract.listen()
        orders = attempts(service, kind, apiserver, other)
        ended = broken_into(service, NAMES[kind], orders)
    assert {label for label, how in ended.items() if how == "done"} == ALLOWED[kind] | ALL
    assert {label: how for label, how in ended.items() if how not in REFUSED | {"done"}} == {}
    assert service.readyz()["ready"]


def test_what_is_replaced_is_taken_up_by_those_who_may(service: Service) -> None:
    """By a new file under the old name, as every careful writer does it."""
    root, join = service.file.parent, service.config.join
    assert join is not None
    url, token = f"{service.management}/v1/machines", "another-token-of-an-operator"
    write_private(root / "secrets" / "new", f"{TOKEN}\n{token}\n".encode())
    (root / "secrets" / "new").rename(root / "secrets" / "operator.token")
    wait_for(lambda: requests.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=60).ok)
    before = ssl.get_server_certificate(("127.0.0.1", join.listen.port))
    certificate, key = new_certificate(
        (root / "tls" / "ca.crt").read_bytes(), (root / "tls" / "ca.key").read_bytes(), ["127.0.0.1"]
    )
    for name, data in (("join.crt", certificate), ("join.key", key)):
        write_private(root / "tls" / "new", data)
        (root / "tls" / "new").rename(root / "tls" / name)
    wait_for(lambda: ssl.get_server_certificate(("127.0.0.1", join.listen.port)) != before)
    write_keys(root / "secrets" / "nonce.keys", Keyset((new_key(),)), NONCES)
    write_keys(root / "secrets" / "sealing.keys", Keyset((new_key(),)))
    ring = KeyRing(root / "keys")
    ring.rotate()
    Store(service.config.store).set_channel("stable", add_image(service.config, salt="new"))
    wait_for(lambda: service.outcome("52:54:00:00:00:01") == "boot")
    assert service.readyz()["details"]["images"]["ok"], service.log
    for name, path in (("boot-0", "nonce.keys"), ("join-0", "sealing.keys")):
        assert broken_into(service, name, {"own": ("read", str(root / "secrets" / path))}) == {"own": "done"}


def test_a_process_that_died_is_confined_again(service: Service, apiserver: socket.socket) -> None:
    before = service.processes()["boot-0"]["pid"]
    os.kill(before, 9)

    def again() -> bool:
        status = service.processes()["boot-0"]
        return bool(status["ready"]) and status["pid"] != before

    wait_for(again)
    orders = attempts(service, "boot", apiserver, apiserver)
    ended = broken_into(service, "boot-0", orders)
    assert {label for label, how in ended.items() if how == "done"} == ALLOWED["boot"] | ALL
    assert service.boot("52:54:00:00:00:01")

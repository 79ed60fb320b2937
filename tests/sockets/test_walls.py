"""Whoever breaks into one process of `netboot serve` has what that process needs, and nothing of the others.

The service runs as ever; `tests/intruder` puts code into its processes that tries things from the inside. Each attempt
is tried from every kind of process: either the table of `tests.walls` allows it, or the kernel refuses it.
"""

import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import requests

from images.artifact.keyring import KeyRing
from images.store.store import Store
from images.values import files
from netboot.cli.authority import new_certificate
from netboot.process import Kind
from netboot.stores.sealing import NONCES, new_key, write_keys
from tests import intruder
from tests.processes import wait_for
from tests.sites import TOKEN, WRITING_SECONDS, add_image
from tests.sockets.service import Service, serving
from tests.walls.attempts import (
    ABSTRACT,
    ALL,
    ALLOWED,
    IN_CLUSTER,
    NAMES,
    NOTIFY,
    SHARED,
    Orders,
    attempts,
    broken_into,
    done,
    odd,
)
from tests.walls.site import walled_site
from tokens.sealed import Keyset


@pytest.fixture(scope="module")
def apiserver() -> Iterator[socket.socket]:
    """Something that takes connections where the kubeconfigs say."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listener:
        yield listener


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, apiserver: socket.socket) -> Iterator[Service]:
    """A site with all that a configuration can have."""
    root = tmp_path_factory.mktemp("walls")
    config = walled_site(root, apiserver.getsockname()[1])
    (root / "intruder").mkdir()
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(str(root / NOTIFY))
    os.environ["NETBOOT_TEST_INTRUDER"] = str(root / "intruder")
    try:
        with serving(config, root / "netboot.yaml", path=str(Path(intruder.__path__[0]))) as made:
            for name in ("history.db", "pause/pause.json", "traces/position.json", "resources/objects.json"):
                wait_for((config.data / name).exists)  # or who tries to write it would find none
            yield made
    finally:
        del os.environ["NETBOOT_TEST_INTRUDER"]
        notify.close()


def tried(service: Service, kind: str, apiserver: socket.socket, other: socket.socket) -> dict[str, str]:
    """How each attempt from a process of this kind ended."""
    assert service.process is not None
    pids = {name: process["pid"] for name, process in service.processes().items()}
    pids |= {"supervisor": service.process.pid}
    ports, root = (apiserver.getsockname()[1], other.getsockname()[1]), service.file.parent
    return ordered(service, NAMES[kind], attempts(root, root, kind, pids, *ports))


def ordered(service: Service, name: str, orders: Orders) -> dict[str, str]:
    return broken_into(service.file.parent / "intruder", name, service.processes, orders)


def test_the_table_has_every_kind_of_process() -> None:
    assert set(ALLOWED) == set(NAMES) == set(get_args(Kind))


@pytest.mark.parametrize("kind", NAMES)
def test_a_process_can_do_what_it_needs_and_nothing_else(service: Service, apiserver: socket.socket, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{ABSTRACT}")
        abstract.listen()
        ended = tried(service, kind, apiserver, other)
    more = IN_CLUSTER.get(kind, set()) | SHARED.get(kind, set())
    assert done(ended) == ALLOWED[kind] | more | ALL
    assert odd(ended) == {}
    wait_for(lambda: service.readyz()["ready"])


def test_what_is_replaced_is_taken_up_by_those_who_may(service: Service) -> None:
    """By a new file under the old name, of the same account, as every careful writer does it."""
    root, join = service.file.parent, service.config.join
    assert join is not None
    url, token = f"{service.management}/v1/machines", "another-token-of-an-operator"
    files.write(root / "secrets" / "operator.token", f"{TOKEN}\n{token}\n".encode(), mode=0o600)
    wait_for(lambda: requests.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=60).ok)
    before = ssl.get_server_certificate(("127.0.0.1", join.listen.port))
    certificate, key = new_certificate(
        (root / "tls" / "ca.crt").read_bytes(), (root / "tls" / "ca.key").read_bytes(), ["127.0.0.1"]
    )
    for name, data in (("join.crt", certificate), ("join.key", key)):
        files.write(root / "tls" / name, data, mode=0o600)
    wait_for(lambda: ssl.get_server_certificate(("127.0.0.1", join.listen.port)) != before)
    write_keys(root / "shared-keys" / "nonce.keys", Keyset((new_key(),)), NONCES)
    write_keys(root / "shared-keys" / "sealing.keys", Keyset((new_key(),)))
    ring = KeyRing(root / "keys")
    ring.rotate()
    store = Store(service.config.store, wait=WRITING_SECONDS)
    image = add_image(service.config, salt="new")
    store.set_channel("stable", image)
    wait_for(lambda: service.api("/v1/channels/stable").get("in_force") == image)
    wait_for(lambda: service.outcome("52:54:00:00:00:01") == "boot")
    wait_for(lambda: service.readyz()["details"]["images"]["ok"])
    for name, path in (("boot-0", "nonce.keys"), ("join-0", "sealing.keys")):
        assert ordered(service, name, {"own": ("read", str(root / "shared-keys" / path))}) == {"own": "done"}


def test_a_process_that_died_is_confined_again(service: Service, apiserver: socket.socket) -> None:
    before = service.processes()["boot-0"]["pid"]
    os.kill(before, 9)

    def again() -> bool:
        status = service.processes()["boot-0"]
        return bool(status["ready"]) and status["pid"] != before

    wait_for(again)
    assert done(tried(service, "boot", apiserver, apiserver)) == ALLOWED["boot"] | SHARED["boot"] | ALL
    assert service.boot("52:54:00:00:00:01")

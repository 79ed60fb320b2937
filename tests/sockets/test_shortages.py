"""A whole service short of files, struck by SIGBUS, in a crash loop, stopped under load: nobody else pays for it."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from images.store.store import Store
from netboot.config import load_config
from tests.processes import environment, wait_for
from tests.sites import add_image, make_site
from tests.sockets import faults
from tests.sockets.service import Service, serving

MAC = "52:54:00:00:00:01"
ASK = f"GET /v1/boot?mac={MAC} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()


def site(root: Path, *prefix: str, workers: int = 2, more: str = "") -> "Iterator[Service]":
    config = make_site(root, workers=workers)
    Store(config.store).set_channel("stable", add_image(config))
    file = root / "netboot.yaml"
    file.write_text(file.read_text().replace("  workers:", f"{more}  workers:"))
    with serving(load_config(file), file, *prefix) as service:
        yield service


@pytest.fixture
def few_files(tmp_path: Path) -> Iterator[Service]:
    """At `ulimit -n 128`."""
    limit = ["sh", "-c", 'ulimit -n 128 && exec "$@"', "sh"]
    yield from site(tmp_path / "site", *limit, more="  idle_seconds: 4\n  max_connections_per_address: 1000\n")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Of two boot servers."""
    yield from site(tmp_path / "site", more="  max_connections_per_address: 4000\n")


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """Of one boot server, which dies at its start where `faults/boot-0.dies` is."""
    path = os.pathsep.join((faults.prepare(tmp_path / "faults"), environment()["PYTHONPATH"]))
    monkeypatch.setattr("tests.sockets.service.environment", lambda _: {**os.environ, "PYTHONPATH": path})
    yield from site(tmp_path / "site", workers=1)


def test_few_files_and_many_idle_connections_cost_a_line_of_the_log_and_no_process(few_files: Service) -> None:
    listen, management = few_files.config.provisioning.listen, few_files.config.management.listen
    with ExitStack() as held:
        for address in (listen, management):
            for _ in range(260):
                held.enter_context(socket.create_connection((address.host, address.port), timeout=60))
        wait_for(lambda: few_files.outcome(MAC) == "boot")  # the idle ones are ended, and this one has its turn
    wait_for(lambda: few_files.readyz()["ready"])
    assert {name: state["restarts"] for name, state in few_files.processes().items()} == {
        "boot-0": 0,
        "boot-1": 0,
        "controllers": 0,
        "management": 0,
    }
    lines = few_files.log.splitlines()
    assert [line for line in lines if "Traceback" in line] == []
    assert few_files.log.count("no new connection can be taken") <= 4
    wait_for(lambda: "netboot_connections_refused_total 0.0" not in few_files.text("/metrics"))
    assert len(lines) < 40
    words = "the limit of open files is 128: at most 16 connections at once, and not 2048 (ulimit -n, LimitNOFILE)"
    assert few_files.log.count(words) == 2


def test_a_process_that_dies_of_sigbus_is_replaced_and_its_counts_go_on(service: Service) -> None:
    for _ in range(4):
        service.boot(MAC)
    wait_for(lambda: 'netboot_scripts_total{outcome="boot"} 4.0' in service.text("/metrics"))
    for name in ("boot-0", "boot-1", "controllers"):
        os.kill(service.processes()[name]["pid"], signal.SIGBUS)
    service.machines.close()
    wait_for(lambda: service.outcome(MAC) == "boot")
    wait_for(lambda: 'netboot_scripts_total{outcome="boot"} 5.0' in service.text("/metrics"))
    wait_for(lambda: all(replaced(service, name) for name in ("boot-0", "boot-1", "controllers")))


def replaced(service: Service, name: str) -> bool:
    """Whether the process died of SIGBUS, and another is there in its place."""
    found = service.processes()[name]
    return bool(found["last_exit"] == "killed by SIGBUS" and found["ready"])


def test_a_boot_server_that_dies_at_each_start_ends_nobody_else_and_keeps_its_address(
    faulty: Service, tmp_path: Path
) -> None:
    dies = tmp_path / "faults" / "boot-0.dies"
    dies.touch()
    others = {name: state.pid for name, state in faulty.status().processes.items() if name != "boot-0"}
    os.kill(faulty.status().processes["boot-0"].pid or 0, signal.SIGKILL)
    wait_for(lambda: faulty.status().processes["boot-0"].restarts >= 5)
    address = (faulty.config.provisioning.listen.host, faulty.config.provisioning.listen.port)
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError, match="Address already in use"):
            thief.bind(address)
    dies.unlink()
    wait_for(lambda: faulty.outcome(MAC) == "boot")
    assert {name: state.pid for name, state in faulty.status().processes.items() if name != "boot-0"} == others
    assert faulty.processes()["boot-0"]["last_exit"] == "exit status 7"


def test_a_stop_answers_every_connection_that_was_made(service: Service) -> None:
    """Machines connect all the time, hundreds at once; who connected is answered, who came too late is refused."""
    address, answered, lost = service.config.provisioning.listen, [0], list[str]()
    assert service.process is not None
    stopping = service.process

    async def machine() -> None:
        while True:
            try:
                async with asyncio.timeout(60):
                    reader, writer = await asyncio.open_connection(address.host, address.port)
            except (OSError, TimeoutError):
                return  # no connection: a machine tries again
            try:
                writer.write(ASK)
                if b"Netboot-Outcome: boot" not in await reader.read(-1):
                    lost.append("no answer")
                answered[0] += 1
            except OSError as error:
                lost.append(str(error))
            writer.close()
            if answered[0] == 1_000:
                stopping.send_signal(signal.SIGTERM)

    async def fleet() -> None:
        await asyncio.gather(*(machine() for _ in range(300)))

    asyncio.run(fleet())
    assert stopping.wait(140) == 0
    assert answered[0] >= 1_000
    assert lost == []
    with pytest.raises(requests.exceptions.ConnectionError):
        requests.get(f"{service.provisioning}/healthz", timeout=60)

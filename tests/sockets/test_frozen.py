"""A process of a whole service hangs: it is noticed, said, and replaced, while others answer machines."""

import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from images.store.store import Store
from netboot.clock import monotonic_ms
from netboot.config import load_config
from netboot.status.supervisor import ProcessStatus
from tests.processes import descendants, runs, stopped, wait_for
from tests.sites import add_image, free_ports
from tests.sockets import faults
from tests.sockets.join_site import make_whole_site
from tests.sockets.service import Service, serving

MAC = "52:54:00:00:00:01"
NOTIFY = {"WATCHDOG_USEC": "4000000"}
KINDS = ("boot-0", "management", "controllers", "join-0", "approver-default", "nodes-default", "fetcher", "pause")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder."""
    return tmp_path_factory.mktemp("frozen") / "site"


@pytest.fixture(scope="module")
def manager(root: Path) -> Iterator[list[str]]:
    """What a service manager hears, in its order. Its socket is where the service's account gets to."""
    heard: list[str] = []
    root.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(root / "notify"))
        NOTIFY["NOTIFY_SOCKET"] = listening.getsockname()

        def hear() -> None:
            while data := listening.recv(65536):
                heard.extend(data.decode().splitlines())

        thread = threading.Thread(target=hear, daemon=True)
        thread.start()
        yield heard
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", NOTIFY["NOTIFY_SOCKET"])
        thread.join()


@pytest.fixture(scope="module")
def service(root: Path, manager: list[str]) -> Iterator[Service]:
    """A service that has every kind of process; a cluster and a registry that do not answer."""
    with pytest.MonkeyPatch.context() as patch:
        [nobody] = free_ports(1)
        more = f"""\
upstream: {{place: "http://127.0.0.1:{nobody}/v1"}}
pause: {{hook: "https://127.0.0.1:{nobody}"}}
watchdog: {{server_seconds: 20, controller_seconds: 40}}
"""
        file = make_whole_site(root, nobody, more=more)
        config = load_config(file)
        Store(config.store).set_channel("stable", add_image(config))
        patch.setattr("tests.sockets.service.environment", _with(faults.prepare(root.parent / "faults")))
        with serving(config, file) as made:
            yield made


def _with(folder: str) -> Callable[[Path], dict[str, str]]:
    return lambda packages: {**os.environ, **NOTIFY, "PYTHONPATH": os.pathsep.join((folder, str(packages)))}


def scripts_are_answered(service: Service) -> None:
    """By one boot server or the other: a connection may go to the one that hangs, and the next one does not."""

    def answered() -> bool:
        for _ in range(8):
            with suppress(OSError):
                answer = requests.get(f"{service.provisioning}/v1/boot", params={"mac": MAC}, timeout=1)
                return answer.headers["Netboot-Outcome"] == "boot"
        return False

    wait_for(answered)


def all_ready(service: Service) -> dict[str, ProcessStatus] | None:
    """The processes, where each of them is ready."""
    found = service.status().processes
    return found if all(each.ready for each in found.values()) else None


def replaced(service: Service, hang: dict[str, Callable[[int], None]]) -> None:
    """They hang: none is ready, machines are answered all along, then others are in their places."""
    before = wait_for(lambda: all_ready(service))
    pids = {name: before[name].pid or 0 for name in hang}
    for name, act in hang.items():
        act(pids[name])
    scripts_are_answered(service)
    assert "boot-0" not in hang or runs(pids["boot-0"]), "answered while it hangs, not once another is in its place"

    def now() -> dict[str, ProcessStatus]:
        after = service.status().processes
        return {name: after[name] for name in hang}

    problem = re.compile("nothing is heard of its (main loop|publisher|lifecycle|rollouts|arbiter)(: killed)?")
    silent: set[str] = set()

    def all_said() -> bool:
        silent.update(name for name, state in now().items() if problem.fullmatch(state.problem) and not state.ready)
        return silent == hang.keys()

    wait_for(all_said)
    wait_for(lambda: all(state.restarts == before[name].restarts + 1 for name, state in now().items()))
    scripts_are_answered(service)
    wait_for(lambda: all(state.ready for state in now().values()))
    assert not any(map(runs, pids.values()))
    assert [name for name in hang if not re.search(f"{name}: nothing is heard of its .*: killed", service.log)] == []
    wait_for(lambda: service.readyz()["ready"])
    others = {other: state.restarts for other, state in service.status().processes.items() if other not in hang}
    assert others == {other: state.restarts for other, state in before.items() if other not in hang}


def test_sigstop_of_one_of_each_kind_of_process_is_noticed_and_they_are_replaced(service: Service) -> None:
    replaced(service, dict.fromkeys(KINDS, lambda pid: os.kill(pid, signal.SIGSTOP)))


def test_those_whose_worker_alone_is_stopped_or_that_are_busy_for_ever_are_replaced_too(service: Service) -> None:
    def stop_worker(pid: int) -> None:
        [worker] = descendants(pid)
        os.kill(worker, signal.SIGSTOP)

    replaced(
        service,
        {
            "management": stop_worker,
            "join-0": lambda pid: os.kill(pid, signal.SIGUSR1),
            "boot-0": lambda pid: os.kill(pid, signal.SIGUSR1),  # a loop in Python
            "controllers": lambda pid: os.kill(pid, signal.SIGUSR2),  # in C, and the lock is never let go
        },
    )


def test_readyz_says_which_boot_server_hangs_and_is_not_ready(service: Service) -> None:
    pid = service.status().processes["boot-1"].pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)

    def said() -> tuple[int, Any] | None:
        answer = requests.get(f"{service.management}/readyz", timeout=60)
        return (answer.status_code, answer.json()) if "boot-1 (nothing is heard" in answer.text else None

    status, readiness = wait_for(said)
    assert "boot-1 (nothing is heard of its main loop" in readiness["details"]["processes"]["message"]
    assert (status, readiness["ready"], readiness["degraded"]) == (503, False, True)
    wait_for(lambda: service.readyz()["ready"])


def test_a_machine_that_was_suspended_finds_everybody_as_they_were(service: Service) -> None:
    """All of it stopped for longer than a server may be silent, then continued, the supervisor first."""
    before = service.status()
    pids = [before.pid, *service.pids()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: monotonic_ms() - service.status().uptime_ms > 22_000)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    scripts_are_answered(service)
    wait_for(lambda: service.status().uptime_ms > before.uptime_ms + 25_000)
    after = service.status().processes
    assert {name: state.restarts for name, state in after.items()} == {
        name: state.restarts for name, state in before.processes.items()
    }


def test_a_supervisor_that_hangs_is_said_and_nobody_is_killed_for_it(service: Service) -> None:
    before = service.status()
    with stopped(before.pid):
        message = wait_for(lambda: _silent(service))
        words = "the supervisor has said nothing for [1-9][0-9]{1,2} s: what dies now is not started again"
        assert re.fullmatch(words, message)
        scripts_are_answered(service)
    wait_for(lambda: not _silent(service))
    after = service.status().processes
    assert {name: state.pid for name, state in after.items()} == {
        name: state.pid for name, state in before.processes.items()
    }


def test_a_service_manager_hears_that_it_is_ready_and_goes_on_and_nobody_else_speaks_to_it(
    service: Service, manager: list[str]
) -> None:
    assert manager[0] == "READY=1"
    assert any(said == "STATUS=ready" for said in manager)
    assert any(said.startswith("STATUS=not ready: ") for said in manager)
    beats = manager.count("WATCHDOG=1")
    wait_for(lambda: manager.count("WATCHDOG=1") > beats + 1)
    for pid in service.pids():
        assert b"NOTIFY_SOCKET" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert {said.split("=")[0] for said in manager} == {"READY", "STATUS", "WATCHDOG"}
    assert service.stop() == 0
    wait_for(lambda: "STOPPING=1" in manager)


def _silent(service: Service) -> str:
    message = str(service.readyz()["details"]["processes"]["message"])
    return message if "supervisor" in message else ""

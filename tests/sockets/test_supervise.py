"""The supervisor with real processes: restarts, order of the stop, and nothing left behind however it ends."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from netboot.addresses import Address
from netboot.listeners import bind, take_no_more
from netboot.supervise import process
from netboot.supervise.process import Definition, Process
from netboot.supervise.supervisor import Supervisor
from tests.processes import environment, runs, wait_for

NAMES = ("first", "middle", "last")


class Service:
    """`tests.sockets.supervised` in a folder."""

    def __init__(self, folder: Path, how: str = "") -> None:
        self.folder = folder
        with (folder / "stderr").open("w") as stderr:
            arguments = [sys.executable, "-m", "tests.sockets.supervised", str(folder), how]
            self.process = subprocess.Popen(arguments, env=environment(), stderr=stderr)
        wait_for((folder / "ready").exists)

    def pid(self, name: str) -> int:
        return int((self.folder / f"{name}.pid").read_text())

    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def state(self) -> Any:
        return json.loads((self.folder / "state.json").read_text())

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path)
    yield made
    made.process.kill()
    made.process.wait()


def test_a_process_that_dies_is_started_again_and_the_log_says_why(service: Service) -> None:
    before, others = service.pid("first"), [service.pid("middle"), service.pid("last")]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: service.pid("first") != before)
    wait_for(lambda: service.state()["processes"]["first"] == [True, 1, "killed by SIGKILL"])
    assert [service.pid("middle"), service.pid("last")] == others
    said = r'msg="first ended: killed by SIGKILL; started again in 0\.[0-2] s \(restart 1\)"'
    assert re.search(said, service.stderr())


def test_one_that_dies_again_and_again_waits_longer_each_time_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "RESTARTS", replace(process.RESTARTS, draw=lambda: 1.0))
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: 1_000.0))
    dying = Process(Definition("dying", lambda _ready, _listener: b""), None)
    waits = []
    for _ in range(2_000):  # more than two raised to it is a number for
        dying.postpone("ended: exit status 1")
        assert dying.start_at is not None
        waits.append(round(dying.start_at - 1_000.0, 1))
    assert waits[:9] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0]
    assert waits[-1] == 20.0


def test_one_whose_address_is_taken_meanwhile_is_tried_again(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listen = partial(bind, Address("127.0.0.1", port), "provisioning.listen")
        supervisor = Supervisor(
            ["false"],
            [Definition("boot-0", lambda _ready, _listener: b"", listen=listen)],
            environment={},
            report=lambda state, _processes: os.kill(os.getpid(), signal.SIGTERM) if state == "running" else None,
        )
        supervisor.run()  # until the first thing that it reports, which is that it has not been started


def test_one_that_fails_half_begun_is_ended_before_it_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        begun.append(popen(*arguments, **options))
        return begun[-1]

    def spec(_ready: int, _listener: int | None) -> bytes:
        raise OSError("Cannot allocate memory")

    def report(_state: str, processes: Sequence[Process]) -> None:
        assert processes[0].popen is None
        if len(begun) == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", start)
    Supervisor(["sleep"], [Definition("600", spec)], environment={}, report=report).run()
    assert [process.poll() for process in begun] == [-signal.SIGKILL, -signal.SIGKILL]


def test_nothing_is_left_when_the_supervisor_is_killed(service: Service) -> None:
    pids = [service.pid(name) for name in NAMES]
    assert all(map(runs, pids))
    service.process.kill()
    service.process.wait()
    wait_for(lambda: not any(map(runs, pids)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_goes_through_the_stages_in_order(service: Service, number: signal.Signals) -> None:
    service.process.send_signal(number)
    assert service.process.wait(180) == 0
    assert service.log() == ["first ended", "middle ended", "last ended", "supervisor ended"]
    assert service.state()["state"] == "stopping"


def test_a_second_signal_hurries(tmp_path: Path) -> None:
    service = Service(tmp_path, "deaf")
    pids = [service.pid(name) for name in NAMES]
    service.process.send_signal(signal.SIGTERM)
    wait_for(lambda: service.state()["state"] == "stopping")

    def hurry() -> bool:
        service.process.send_signal(signal.SIGTERM)
        return "hurrying" in service.stderr()

    wait_for(hurry)
    assert service.process.wait(180) == 0  # without haste one stage alone is given an hour
    assert not any(map(runs, pids))
    assert 'msg="killed, for not ending in time: first"' in service.stderr()


def test_hangup_reaches_who_reloads(service: Service) -> None:
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: service.log() == ["last reloads"])
    assert service.process.poll() is None


def test_a_process_whose_supervisor_is_another_does_not_begin() -> None:
    program = "from netboot.process import end_with; end_with(1)"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "OrphanedError: the supervisor has ended" in ended.stderr


def test_nothing_is_left_when_a_definition_is_defective() -> None:
    def defective(_ready: int, _listener: int | None) -> bytes:
        raise ZeroDivisionError

    supervisor = Supervisor(
        ["sleep"], [Definition("60", lambda _r, _l: b""), Definition("61", defective)], environment={}
    )
    with pytest.raises(ZeroDivisionError):
        supervisor.run()
    assert supervisor._running() == []


def test_connections_begin_again_where_a_process_is_started_whose_like_let_none_begin_when_it_ended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        take_no_more(listener)  # as a boot server that is told to end; the socket is the supervisor's still
        started = Process(Definition("next", lambda _ready, _listener: b"", listener=listener), listener)
        started.start(["/bin/true"], {})
        socket.create_connection(listener.getsockname(), timeout=60).close()
        assert started.popen is not None
        started.popen.wait()
        assert started.pipe is not None
        started.pipe.close()

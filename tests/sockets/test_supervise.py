"""The supervisor with real processes: restarts, order of the stop, and nothing left behind however it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

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


def test_a_plane_that_dies_is_started_again_and_the_log_says_why(service: Service) -> None:
    before, others = service.pid("first"), [service.pid("middle"), service.pid("last")]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: service.pid("first") != before)
    wait_for(lambda: service.state()["children"]["first"] == [True, 1, "killed by SIGKILL"])
    assert [service.pid("middle"), service.pid("last")] == others
    assert 'msg="first ended: killed by SIGKILL; started again in 0.1 s (restart 1)"' in service.stderr()


def died(service: Service, times: int) -> bool:
    """Whether the first plane was started again so often."""
    return bool(service.state()["children"]["first"][1] == times)


def test_one_that_dies_again_and_again_waits_longer_each_time(service: Service) -> None:
    for count in range(1, 4):
        pid = wait_for(lambda: service.state()["children"]["first"][0] and service.pid("first"))
        os.kill(pid, signal.SIGKILL)
        wait_for(partial(died, service, count))
    waits = [
        float(line.split("again in ")[1].split()[0]) for line in service.stderr().splitlines() if "again in" in line
    ]
    assert len(waits) == 3
    assert 0.3 <= waits[2] <= 0.5


def test_nothing_is_left_when_the_supervisor_is_killed(service: Service) -> None:
    pids = [service.pid(name) for name in NAMES]
    assert all(map(runs, pids))
    service.process.kill()
    service.process.wait()
    wait_for(lambda: not any(map(runs, pids)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_goes_through_the_stages_in_order(service: Service, number: signal.Signals) -> None:
    service.process.send_signal(number)
    assert service.process.wait(60) == 0
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
    assert service.process.wait(20) == 0
    assert not any(map(runs, pids))
    assert 'msg="killed, for not ending in time: first"' in service.stderr()


def test_hangup_reaches_who_reloads(service: Service) -> None:
    service.process.send_signal(signal.SIGHUP)
    wait_for(lambda: service.log() == ["last reloads"])
    assert service.process.poll() is None


def test_a_plane_whose_supervisor_is_another_does_not_begin() -> None:
    program = "from netboot.process import end_with; end_with(1)"
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "OrphanedError: the supervisor has ended" in ended.stderr

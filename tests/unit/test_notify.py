"""What a service manager is told, and what is said of one that does not listen."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from netboot.config import load_config
from netboot.supervise.changed import RunningConfig
from netboot.supervise.notify import Manager
from netboot.supervise.told import Told


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(10)
        yield listening


@pytest.mark.parametrize(("state", "said"), [("running", "READY=1"), ("stopping", "STOPPING=1")])
def test_a_word_that_was_lost_is_said_again(
    listening: socket.socket, tmp_path: Path, state: Literal["running", "stopping"], said: str
) -> None:
    file = tmp_path / "netboot.yaml"
    file.write_text("site: lab\nprovisioning: {url: http://192.0.2.1:8080}\n")
    running = RunningConfig(file, load_config(file))
    told = Told(tmp_path / "status", Manager({"NOTIFY_SOCKET": str(tmp_path / "notify")}), running)
    for _ in range(3):
        told.report(state, [])
    told.close()
    assert [listening.recv(4096).decode() for _ in range(6)] == ["STATUS=ready", said] * 3


def test_a_unit_of_before_that_does_not_listen_is_said() -> None:
    ours = {"SYSTEMD_EXEC_PID": str(os.getpid())}
    assert Manager(ours).unheard() == (
        "systemd keeps this service by a unit of an earlier version (no Type=notify): a supervisor that hangs is "
        "not replaced; install deploy/netboot.service of this version"
    )
    for environment in ({}, {"SYSTEMD_EXEC_PID": "1"}, {**ours, "NOTIFY_SOCKET": "/run/notify"}):
        manager = Manager(environment)
        assert manager.unheard() == ""
        manager.close()

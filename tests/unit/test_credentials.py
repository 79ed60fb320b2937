"""Files that the supervisor opens for a process: what it gives, what it refuses, and who may ask again."""

import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from images.values import files
from netboot import credentials
from netboot.supervise.broker import Broker


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """This process as one that may have `mine` and `later` opened, and opens nothing itself."""
    broker = Broker()
    with broker.offer(lambda path: path.name in ("mine", "later", "pipe")) as connection:
        broker.start()

        opened = files.opened

        def refused(path: Path) -> BinaryIO:
            if path.is_relative_to(tmp_path):
                raise PermissionError(13, "confined", str(path))
            return opened(path)

        monkeypatch.setattr(files, "opened", refused)
        monkeypatch.setattr(credentials, "_broker", None)
        credentials.ask(connection)
        yield connection


def test_a_file_is_what_it_is_when_it_is_asked_for(tmp_path: Path, asking: socket.socket) -> None:
    descriptor = os.open(tmp_path / "mine", os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"first")
    os.close(descriptor)
    assert credentials.read(tmp_path / "mine") == b"first"
    descriptor = os.open(tmp_path / "new", os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"second")
    os.close(descriptor)
    (tmp_path / "new").rename(tmp_path / "mine")
    assert credentials.read(tmp_path / "mine") == b"second"
    with credentials.named(tmp_path / "mine") as name:
        assert os.read(os.open(name, os.O_RDONLY), 10) == b"second"


def test_what_is_not_its_own_is_refused_and_what_is_not_there_is_not_found(
    tmp_path: Path, asking: socket.socket
) -> None:
    (tmp_path / "theirs").touch()
    with pytest.raises(PermissionError) as refused:
        credentials.read(tmp_path / "theirs")
    assert refused.value.filename == str(tmp_path / "theirs")
    with pytest.raises(FileNotFoundError):
        credentials.read(tmp_path / "later")
    with pytest.raises(PermissionError):
        credentials.read(tmp_path / "mine" / ".." / "theirs")


def test_a_pipe_does_not_stop_the_supervisor(tmp_path: Path, asking: socket.socket) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe or a device"):
        credentials.read(tmp_path / "pipe")


def test_nonsense_and_an_answer_that_came_too_late_do_no_harm(tmp_path: Path, asking: socket.socket) -> None:
    (tmp_path / "mine").touch()
    for nonsense in (
        b"x",
        b"12345678",
        b"12345678\0",
        b"12345678" + b"/mine" * 1000,
        b"12345678" + bytes(tmp_path / "mine"),
    ):
        asking.send(nonsense)
    assert credentials.read(tmp_path / "mine") == b""


def test_threads_get_each_its_own(tmp_path: Path, asking: socket.socket) -> None:
    (tmp_path / "mine").touch()
    ended: list[bytes | Exception] = []

    def ask() -> None:
        ended.extend(credentials.read(tmp_path / "mine") for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ended == [b""] * 200


def test_without_a_supervisor_a_file_is_simply_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"some")
    assert credentials.read(tmp_path / "file") == b"some"


@pytest.mark.parametrize(
    ("mode", "told"), [(0o600, False), (0o440, False), (0o640, False), (0o660, True), (0o444, True), (0o450, True)]
)
def test_what_root_hands_to_a_group_of_this_account_is_nobody_else_s(mode: int, told: bool) -> None:
    """As a Secret is mounted for a container that is not root."""
    assert _told(mode, uid=0, gid=os.getegid(), euid=65532) == told
    assert _told(mode, uid=0, gid=4_000_000, euid=65532) == (mode != 0o600)
    assert _told(mode, uid=65533, gid=os.getegid(), euid=65532) == (mode != 0o600)
    assert _told(mode, uid=0, gid=os.getegid(), euid=0) == (mode != 0o600)


def _told(mode: int, *, uid: int, gid: int, euid: int) -> bool:
    status = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: euid)
        return credentials.told_to_others(status)

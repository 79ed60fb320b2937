"""One instance works on a data folder at a time."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from netboot.stores.lock import RESTORING, AlreadyRunningError, sole_instance
from tests.processes import environment


def test_who_has_it_is_named_and_it_is_free_when_that_process_has_ended(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from netboot.stores.lock import sole_instance\n"
        "with sole_instance(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(AlreadyRunningError) as error, sole_instance(lock):
            pass
        assert str(error.value) == (
            f"process {other.pid} already serves {tmp_path}; stop it first (`kill {other.pid}`), "
            "or give this instance another `data`"
        )
        other.kill()
    with sole_instance(lock):
        assert lock.read_text() == f"{os.getpid()}\n"


def test_a_full_disk_keeps_no_service_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    refused = pytest.raises(AlreadyRunningError, match="process unknown already serves")
    with sole_instance(tmp_path / "lock"), refused, sole_instance(tmp_path / "lock"):
        pass


def test_an_interrupted_restore_is_completed_before_anything_else(tmp_path: Path) -> None:
    (tmp_path / RESTORING).touch()
    with pytest.raises(AlreadyRunningError, match="run `netboot restore` again"), sole_instance(tmp_path / "lock"):
        pass
    with sole_instance(tmp_path / "lock", interrupted=True):
        pass

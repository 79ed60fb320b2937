"""`tests/in_memory.sh`, which gives a whole run a /tmp of its own."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import runs, wait_for

pytestmark = pytest.mark.tools
SCRIPT = Path(__file__).parents[1] / "in_memory.sh"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Starts the script with a shell's command, on a machine with so much memory and such a Linux."""

    def started(command: str, gib: int = 32, linux: str = "6.6.0") -> "subprocess.Popen[str]":
        for name, answer in (("awk", gib), ("uname", linux)):
            (tmp_path / name).write_text(f"#!/bin/sh\necho {answer}\n")
            (tmp_path / name).chmod(0o755)
        env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        argv = [str(SCRIPT), "sh", "-c", command]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path, env=env, text=True, start_new_session=True
        )

    return started


def test_a_command_has_a_tmp_of_its_own_in_memory_and_ends_as_it_ends(start: Start, tmp_path: Path) -> None:
    said, _ = start("stat -f -c %T /tmp; ls -A /tmp; touch /tmp/in-memory-of-a-test").communicate(timeout=60)
    assert said == "tmpfs\n"
    assert not Path("/tmp/in-memory-of-a-test").exists()
    assert not (tmp_path / ".work").exists()


def test_what_a_command_that_fails_leaves_is_kept(start: Start, tmp_path: Path) -> None:
    for left in ("first", "second"):
        running = start(f"echo {left} >/tmp/{left}; exit 3")
        _, said = running.communicate(timeout=60)
        assert (running.returncode, said) == (3, "what was left in /tmp is in .work/failed\n")
    assert [(path.name, path.read_text()) for path in (tmp_path / ".work/failed").iterdir()] == [("second", "second\n")]


@pytest.mark.parametrize(("gib", "linux"), [(15, "6.6.0"), (32, "6.5.13-1-amd64"), (32, "5.15.0")])
def test_with_little_memory_or_an_older_linux_tmp_is_what_it_was(
    start: Start, tmp_path: Path, gib: int, linux: str
) -> None:
    said, _ = start("stat -c %d:%i /tmp", gib, linux).communicate(timeout=60)
    here = Path("/tmp").stat()
    assert said == f"{here.st_dev}:{here.st_ino}\n"


def test_ctrl_c_is_the_command_s_to_answer_and_is_waited_for(start: Start) -> None:
    running = start("trap 'echo told; exit 5' INT; echo begun; read -r line")
    assert running.stdout and running.stdout.readline() == "begun\n"
    os.killpg(running.pid, signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    assert (running.returncode, said) == (5, "told\n")


def test_who_ends_the_script_ends_the_command(start: Start) -> None:
    running = start("echo $$; exec tail -f /dev/null")
    assert running.stdout
    command = int(running.stdout.readline())
    running.terminate()
    running.communicate(timeout=60)
    wait_for(lambda: not runs(command))

"""The one way to run a tool."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from images.errors import CommandError, TooMuchOutputError
from images.run import clean_environment, pasteable, run


def sh(script: str, **options: object) -> str:
    return run(["sh", "-c", script], **options)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in {"Z", "X"}


def wait_gone(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    import select

    try:
        assert select.select([descriptor], [], [], 60)[0], f"process {pid} is still there"
    finally:
        os.close(descriptor)


def test_stdout_is_the_result_and_stdin_is_closed() -> None:
    assert sh("cat; echo out; echo err >&2") == "out\n"


def test_the_environment_is_minimal_and_keeps_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "ftp_proxy", "no_proxy", "NO_PROXY", "https_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("SECRET", "x")
    assert sorted(
        line for line in sh("env", env={"MINE": "1"}).splitlines() if not line.startswith(("PWD=", "_="))
    ) == [
        "DEBIAN_FRONTEND=noninteractive",
        "HOME=/nonexistent",
        "LC_ALL=C.UTF-8",
        "MINE=1",
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "TZ=UTC",
        "http_proxy=http://proxy.example:3128",
    ]
    assert "SECRET" not in clean_environment()


def test_failure_is_a_command_to_paste_and_the_last_lines(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        sh("seq 30; echo 'it is broken' >&2; exit 3", env={"A": "b c"}, cwd=tmp_path)
    error = caught.value
    assert error.status == 3
    assert error.command == f"cd {tmp_path} && env 'A=b c' sh -c 'seq 30; echo '\"'\"'it is broken'\"'\"' >&2; exit 3'"
    assert len(error.output.splitlines()) == 20
    assert "it is broken" in error.output and "30" in error.output
    pasted = subprocess.run(error.command, shell=True, capture_output=True, text=True, check=False)
    assert (pasted.returncode, pasted.stderr) == (3, "it is broken\n")


def test_a_proxys_password_is_not_shown() -> None:
    env = {"http_proxy": "http://me:secret@proxy.example", "B": "1"}
    assert pasteable(["apt-get", "update"], env) == "env B=1 apt-get update"
    assert pasteable(["apt-get", "update"], {"http_proxy": "x"}) == "apt-get update"


def test_what_is_not_installed_says_so() -> None:
    with pytest.raises(CommandError) as caught:
        run(["no-such-tool", "--now"])
    assert str(caught.value) == (
        "exit status 127 from: no-such-tool --now\n"
        "no-such-tool is not installed here; ./setup.sh installs what builds need"
    )


def test_lines_come_as_they_are_said() -> None:
    lines: list[str] = []
    assert (
        sh("printf 'one\\ntwo\\nrest'; echo aside >&2; printf 'a\\rb\\n'", on_line=lines.append)
        == "one\ntwo\nresta\rb\n"
    )
    assert sorted(lines) == ["aside", "b", "one", "two"]


def test_much_output_on_both_pipes_blocks_nobody() -> None:
    assert len(sh("seq 100000; seq 100000 >&2")) == 588895


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert sh("printf '\\377\\n'") == "\ufffd\n"


def test_out_of_time_ends_the_tool_and_its_children(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as caught:
        sh(f"sleep 1000 & echo $! >{tmp_path}/pid; echo begun; wait", timeout=6)
    assert caught.value.status == 124
    assert caught.value.output == "begun\nended after 6 seconds"
    wait_gone(int((tmp_path / "pid").read_text()))


def test_a_daemon_that_holds_the_pipes_is_not_waited_for_and_not_left(tmp_path: Path) -> None:
    assert sh(f"sleep 1000 & echo $! >{tmp_path}/pid; echo done") == "done\n"
    wait_gone(int((tmp_path / "pid").read_text()))


def test_an_exception_in_the_listener_ends_the_tool(tmp_path: Path) -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt(line)

    with pytest.raises(KeyboardInterrupt, match="begun"):
        sh(f"echo $$ >{tmp_path}/pid; echo begun; sleep 1000", on_line=stop)
    wait_gone(int((tmp_path / "pid").read_text()))


def test_a_tool_that_ignores_being_told_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("images.run.GRACE_SECONDS", 0.1)
    with pytest.raises(CommandError):
        sh(f"trap '' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.05; done", timeout=6)
    wait_gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_tool_does_not_outlive_us(tmp_path: Path, number: signal.Signals) -> None:
    os.mkfifo(tmp_path / "ready")
    script = f"from images.run import run; run(['sh', '-c', 'echo $$ >{tmp_path}/ready; exec sleep 1000'])"
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as process:
        pid = int((tmp_path / "ready").read_text())
        assert alive(pid)
        process.send_signal(number)
        wait_gone(pid)
        assert process.wait(60) != 0


def test_it_works_off_the_main_thread() -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(sh("echo there")))
    thread.start()
    thread.join(60)
    assert found == ["there\n"]


@pytest.mark.parametrize("script", ["yes", "yes >&2", "cat /dev/zero", "yes & yes >&2"])
def test_who_writes_without_an_end_is_ended_with_a_clear_word(script: str, tmp_path: Path) -> None:
    """On either pipe, in lines or not."""
    with pytest.raises(TooMuchOutputError) as caught:
        sh(f"echo $$ >{tmp_path}/pid; {script}; wait", most_bytes=300_000, timeout=60)
    assert caught.value.output.endswith("\nended, for it wrote more than 292 KiB")
    assert len(caught.value.output) < 21 * 65_536 + 100
    wait_gone(int((tmp_path / "pid").read_text()))


def test_so_much_and_no_more() -> None:
    assert len(sh("head -c 300000 /dev/zero", most_bytes=300_000)) == 300_000
    with pytest.raises(TooMuchOutputError):
        sh("head -c 300001 /dev/zero", most_bytes=300_000)


def test_a_line_without_an_end_comes_in_pieces() -> None:
    """Each is looked at once: what has no end costs no square of its length."""
    pieces: list[str] = []
    assert len(sh("head -c 20000000 /dev/zero | tr '\\0' x", on_line=pieces.append)) == 20_000_000
    assert sum(map(len, pieces)) == 20_000_000
    assert max(map(len, pieces)) <= 2 * 65_536

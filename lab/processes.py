"""Processes that end with us, however we end: the kernel kills them when their parent dies (PR_SET_PDEATHSIG)."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypedDict, Unpack

from lab.errors import EndedError, LateError
from lab.output_log import OutputLog

GRACE_SECONDS = 10.0
LEFT_SECONDS = 180.0
"""For what a killed process had started to end by itself, on a machine that is busy with other things."""
ENVIRONMENT = os.environ | {"PATH": f"{os.environ.get('PATH', '/usr/bin:/bin')}:/usr/sbin:/sbin"}
"""`su` without `-` leaves root without the folders of dnsmasq, nginx and ip."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who a process runs as."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Child:
    """A running process; `output` is its standard output and error."""

    name: str
    process: subprocess.Popen[bytes]
    output: OutputLog

    @property
    def pid(self) -> int:
        """Its process id, which is also the id of its group."""
        return self.process.pid

    def check(self) -> None:
        """Raise EndedError if it has ended."""
        if self.process.poll() is not None:
            self.output.join()
            status = self.process.returncode
            raise EndedError(f"{self.name} ended with status {status}; {self.output.path} ends:\n{self.output.tail()}")

    def kill(self) -> None:
        """SIGKILL for the process itself, as a crash; EndedError if what it started does not end by itself."""
        self.process.kill()
        self.process.wait()
        self.output.join(LEFT_SECONDS)
        _close(self.process)
        if not self.output.ended:
            raise EndedError(f"{self.name} was killed, and something that it started goes on; see {self.output.path}")

    def stop(self, grace: float = GRACE_SECONDS) -> int:
        """SIGTERM, then after `grace` seconds SIGKILL for it and all that it started; the exit status."""
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        try:
            self.process.wait(grace)
        except subprocess.TimeoutExpired:
            pass
        finally:
            end_group(self.process)
        self.output.join()
        return self.process.returncode


def end_group(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for a process and whatever is left of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Placement(TypedDict, total=False):
    """Where and as whom a process runs; what is left out is ours."""

    namespace: int | None
    """Process whose network namespace it joins."""
    account: Account | None
    cwd: Path | None
    fds: Sequence[int]
    """File descriptors that it inherits."""


def start(name: str, argv: Sequence[str], log: Path, **placement: Unpack[Placement]) -> Child:
    """Start a process that ends with us, in a group of its own so that Ctrl-C is ours alone.

    The caller ends it: see `child`.
    """
    process = subprocess.Popen(
        wrapped(argv, namespace=placement.get("namespace"), account=placement.get("account")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=placement.get("cwd"),
        start_new_session=True,
        env=ENVIRONMENT,
        pass_fds=placement.get("fds", ()),
    )
    stream = process.stdout
    assert stream is not None
    return Child(name, process, OutputLog(name, log, lambda: os.read(stream.fileno(), 65536)))


@contextlib.contextmanager
def child(
    name: str,
    argv: Sequence[str],
    log: Path,
    *,
    grace: float = GRACE_SECONDS,
    **placement: Unpack[Placement],
) -> Iterator[Child]:
    """A process for the length of a block."""
    running = start(name, argv, log, **placement)
    try:
        yield running
    finally:
        finish(running, grace)


def finish(running: Child, grace: float = GRACE_SECONDS) -> None:
    """Stop it and close what we hold of it."""
    running.stop(grace)
    _close(running.process)


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdout is not None:
        process.stdout.close()


def wrapped(argv: Sequence[str], *, namespace: int | None = None, account: Account | None = None) -> list[str]:
    """The command with who it runs as and where. setpriv is last: a change of user clears the parent-death signal."""
    inside = [] if namespace is None else ["nsenter", f"--net=/proc/{namespace}/ns/net", "--"]
    become = (
        []
        if account is None
        else [f"--reuid={account.uid}", f"--regid={account.gid}", "--clear-groups", "--no-new-privs"]
    )
    return [*inside, "setpriv", *become, "--pdeathsig=KILL", "--", *argv]


def run(argv: Sequence[str], *, namespace: int | None = None, seconds: float = 180.0) -> str:
    """Run a short command to its end; its output.

    Raises:
        EndedError: it failed; the message is the command and what it said. LateError: it took too long.
    """
    begun = monotonic()
    try:
        done = subprocess.run(
            wrapped(argv, namespace=namespace),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env=ENVIRONMENT,
        )
    except subprocess.TimeoutExpired:
        raise LateError(f"did not end within {monotonic() - begun:.0f} s: {' '.join(argv)}") from None
    if done.returncode != 0:
        raise EndedError(f"exit status {done.returncode} from: {' '.join(argv)}\n{done.stderr or done.stdout}".rstrip())
    return done.stdout

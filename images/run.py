"""The one way in which this room runs a tool."""

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from images import cancel
from images.cancel import Interruptible
from images.errors import CommandError, TooMuchOutputError

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TAIL_LINES = 20
"""How many of a failed tool's last lines its error shows."""
MOST_BYTES = 256 << 20
"""What a tool may write, to both of its pipes together: a compiler's log has a few MiB."""
LONGEST_LINE = 65_536
"""Bytes; a longer one is taken for several."""
GRACE_SECONDS = 5.0
"""How long a process group that was told to end may take before it is killed."""

_PROXIES = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    on_line: Callable[[str], None] | None = None,
    timeout: float | None = None,
    most_bytes: int = MOST_BYTES,
) -> str:
    """Run a tool to its end and return what it wrote to stdout.

    Its stdin is closed, its environment is a minimal one (`clean_environment`) plus `env`. It has a process group of
    its own, none of which is left when this returns or raises; should we be killed, the kernel kills the tool.

    Args:
        on_line: called with each line of stdout and stderr, as they come.
        timeout: seconds until the tool is ended; None: never.
        most_bytes: what it may write to both pipes together before it is ended.

    Raises:
        CommandError: not installed, ran out of time, or failed; with the command to paste and the last lines.
        TooMuchOutputError: it wrote more than `most_bytes`.
        EndedError: this thread's work is to end (`images.cancel`); the tool has ended.
        KeyboardInterrupt: Ctrl-C, in a thread that has no such word to heed; the tool has ended.
    """
    command = [str(word) for word in argv]
    environment = clean_environment() | dict(env or {})
    shown = pasteable(command, env, cwd)
    tool = shutil.which(command[0], path=environment["PATH"])
    if tool is None:
        raise CommandError(shown, 127, f"{command[0]} is not installed here; ./setup.sh installs what builds need")
    ending = nullcontext() if cancel.current() else Interruptible()  # Ctrl-C must not come between fork and our knowing
    with ending, _process([tool, *command[1:]], environment, cwd) as process:
        output = _Output(process, on_line, most_bytes)
        in_time = output.read(None if timeout is None else time.monotonic() + timeout)
        status = process.wait() if in_time and not output.too_much else 124
    tail = "\n".join(output.tail)
    if output.too_much:
        raise TooMuchOutputError(shown, status, tail, most_bytes)
    if not in_time:
        raise CommandError(shown, 124, f"{tail}\nended after {timeout:g} seconds".lstrip())
    if status:
        raise CommandError(shown, status, tail)
    return output.stdout.decode(errors="replace")


def clean_environment() -> dict[str, str]:
    """PATH, HOME, locale and time zone are fixed, so that a tool does the same for everybody; proxies are kept."""
    kept = {name: os.environ[name] for low in _PROXIES for name in (low, low.upper()) if name in os.environ}
    return {
        "PATH": PATH,
        "HOME": "/nonexistent",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "DEBIAN_FRONTEND": "noninteractive",
    } | kept


def pasteable(argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> str:
    """The command as one line for a shell."""
    shown = {name: value for name, value in (env or {}).items() if not name.endswith("_proxy")}  # may hold a password
    prefix = ["env", *(f"{name}={value}" for name, value in sorted(shown.items()))] if shown else []
    place = f"cd {shlex.quote(str(cwd))} && " if cwd else ""
    return place + shlex.join([*prefix, *argv])


@contextmanager
def _process(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """A tool in a process group of its own. However the block ends, nothing of that group is left."""
    # The kernel ends a child with its parent only if the child asks for it; setpriv asks, then becomes the tool.
    guarded = ["setpriv", "--pdeathsig", "KILL", "--", *command]
    with subprocess.Popen(
        guarded,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=cwd,
        umask=0o022,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                _signal(process.pid, signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE_SECONDS)
            _signal(process.pid, signal.SIGKILL)
            process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # nobody of that group is left
        os.killpg(group, number)


class _Output:
    """What a process says on its two pipes, until it has ended: not until the pipes close, which a daemon may hold."""

    def __init__(self, process: subprocess.Popen[bytes], on_line: Callable[[str], None] | None, most: int) -> None:
        assert process.stdout and process.stderr
        self._process, self._on_line = process, on_line
        self._pending: dict[int, bytes] = {}
        self._stdout_fd = process.stdout.fileno()
        self._pipes = (process.stdout.fileno(), process.stderr.fileno())
        self._left = most
        self.stdout = bytearray()
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)

    @property
    def too_much(self) -> bool:
        """Whether it wrote more than it may; nothing is read any more then."""
        return self._left < 0

    def read(self, deadline: float | None) -> bool:
        """Read until the process has ended, or written too much; False when the deadline (monotonic seconds) came
        first."""
        ended, told = os.pidfd_open(self._process.pid), cancel.current()
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(ended, selectors.EVENT_READ)
                if told:
                    selector.register(told, selectors.EVENT_READ)
                for pipe in self._pipes:
                    os.set_blocking(pipe, False)
                    selector.register(pipe, selectors.EVENT_READ)
                in_time = self._pump(selector, ended, deadline)
        finally:
            os.close(ended)
        for pipe in self._pipes:
            while not self.too_much and self._take(pipe):
                pass
            self._emit(self._pending.pop(pipe, b""))
        return in_time

    def _pump(self, selector: selectors.BaseSelector, ended: int, deadline: float | None) -> bool:
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            ready = [key.fd for key, _ in selector.select(left)]
            if ended in ready:
                return True
            for pipe in self._pipes:
                if pipe in ready and self._take(pipe) is False:
                    selector.unregister(pipe)
                if self.too_much:
                    return True
            cancel.check()

    def _take(self, pipe: int) -> bool | None:
        """Read once: True for something, False at the end, None when nothing is there yet."""
        try:
            data = os.read(pipe, 65536)
        except BlockingIOError:
            return None
        if not data:
            return False
        self._left -= len(data)
        if pipe == self._stdout_fd:
            self.stdout += data
        *lines, self._pending[pipe] = (self._pending.get(pipe, b"") + data).split(b"\n")
        if len(self._pending[pipe]) > LONGEST_LINE:
            lines.append(self._pending.pop(pipe))
        for line in lines:
            self._emit(line)
        return True

    def _emit(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip("\r").rpartition("\r")[2]
        if text:
            self.tail.append(text)
            if self._on_line:
                self._on_line(text)

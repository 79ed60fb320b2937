"""The machine as checks see it: files below a root, and tools. The only door to other programs."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..agent.clock import disciplined
from ..agent.files import put, small
from .expected import Expected
from .kmsg import read_kmsg

LONGEST = 1024 * 1024
"""Bytes of what a tool says, or of a file."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
BESIDE_SECONDS = 10.0
"""How long a server may take until it listens."""
LOAD = Path(__file__).with_name("active") / "load.py"
CLOCK_IS_HELD = "@clock_is_held"
"""A recorded machine's file for what is no file: the answer of adjtimex(2)."""


class CannotTellError(Exception):
    """What a check needs does not answer: the result is `unknown`, with these words; or `fail`, where that it does not
    answer is the fault itself."""

    def __init__(self, summary: str, remedy: str = "", status: Literal["unknown", "fail"] = "unknown") -> None:
        super().__init__(summary)
        self.remedy = remedy
        self.status = status


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool said, stdout and stderr together, and its exit status (negative: a signal's number)."""

    status: int
    text: str

    @property
    def last_line(self) -> str:
        """Its last line that is not blank; without one, the exit status in words."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip()]
        return lines[-1] if lines else f"exit status {self.status}"


@dataclass(frozen=True, slots=True)
class Offset:
    """How far this machine's clock is ahead of the service's, and how much of that may be the network's, in ms."""

    ahead_ms: int
    within_ms: int


@dataclass(frozen=True, slots=True)
class Machine:
    """`root` stands for / in tests; `offset` None: the service could not be asked for its time."""

    root: Path
    expected: Expected = field(default_factory=Expected)
    offset: Offset | None = None

    def text(self, path: str) -> str | None:
        """A small file's text without blanks around it; None: it cannot be read. sysfs says some errors by reading."""
        data = small(self.root / path, LONGEST)
        return None if data is None else data.decode("utf-8", "replace").strip("\0 \n\t")

    def whole(self, path: str) -> int | None:
        """The whole number (decimal, or 0x…) in a file; None: it has none."""
        text = self.text(path) or ""
        try:
            return int(text, 16) if text.startswith("0x") else int(text)
        except ValueError:
            return None

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing where there is none."""
        try:
            return sorted(path.name for path in (self.root / folder).iterdir())
        except OSError:
            return []

    def keep(self, path: Path, data: bytes) -> None:
        """Keep something for the next run of this boot, below /run."""
        put(self.root / path, data, 0o644)

    def kernel_log(self) -> str:
        """What the kernel's ring still holds of this boot, a record a line.

        Raises:
            CannotTellError: it cannot be read.
        """
        try:
            return read_kmsg(self.root / "dev/kmsg", 16 * LONGEST)
        except OSError as error:
            raise CannotTellError(f"the kernel log cannot be read: {error.strerror}", "it needs CAP_SYSLOG") from None

    def clock_is_held(self, seconds: float = 0.0) -> bool:
        """Whether a time service holds the clock, by the kernel's own word, within so many seconds; by what was
        recorded, of another root."""
        if self.root != Path("/"):
            return self.text(CLOCK_IS_HELD) == "yes"
        late = time.monotonic() + seconds
        while not (held := disciplined()) and time.monotonic() < late:
            time.sleep(1)
        return held

    def uptime(self) -> float:
        """Seconds since the kernel started; 0: it cannot be told."""
        try:
            return float((self.text("proc/uptime") or "0").split()[0])
        except (ValueError, IndexError):
            return 0.0

    def has(self, tool: str) -> bool:
        """Whether a program of this name is in PATH."""
        return shutil.which(tool, path=os.environ.get("PATH", PATH)) is not None

    def run(self, *argv: str) -> Output:
        """Run a tool to its end; the runner ends it, with the check, when that takes too long.

        Raises:
            CannotTellError: the image has no such tool, or it cannot be started.
        """
        with self._started(argv) as process:
            assert process.stdout is not None
            data = process.stdout.read(LONGEST)
            if len(data) == LONGEST:
                process.kill()
        return Output(process.returncode, data.decode("utf-8", "replace"))

    def run_beside(self, server: Sequence[str], client: Sequence[str]) -> Output:
        """Run a client to its end while its server runs; again, while the server does not listen yet.

        Raises:
            CannotTellError: the image has no such tool, or it cannot be started.
        """
        late = time.monotonic() + BESIDE_SECONDS
        with self._started(server) as process:
            try:
                while True:
                    output = self.run(*client)
                    if output.status == 0 or time.monotonic() >= late or process.poll() is not None:
                        return output
                    time.sleep(0.2)
            finally:
                process.kill()

    def load(self, what: Literal["memory", "cpu"], seconds: float) -> Output:
        """Load all CPUs or their memory for some seconds: see active/load.py.

        Raises:
            CannotTellError: it cannot be started.
        """
        return self.run(sys.executable, "-Bs", str(LOAD), what, f"{seconds:g}")

    def _started(self, argv: Sequence[str]) -> "subprocess.Popen[bytes]":
        environment = {"PATH": os.environ.get("PATH", PATH), "LC_ALL": "C.UTF-8"}
        if not self.has(argv[0]):
            raise CannotTellError(f"this image has no {argv[0]}", "build an image with the feature that brings it")
        try:
            return subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
            )
        except OSError as error:
            raise CannotTellError(f"{argv[0]} cannot be started: {error.strerror}") from None

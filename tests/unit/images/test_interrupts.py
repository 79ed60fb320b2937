"""Ctrl-C, whenever it comes: it is raised as itself, once everything that was begun has ended."""

import re
import subprocess
import sys

import pytest

RETRY_POLICY = 300.0


@pytest.mark.parametrize("work", ["graph", "tool"])
def test_ctrl_c_at_each_line_of_the_main_thread(work: str) -> None:
    """Of one that starts steps and waits for them, and of one that runs a tool."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.images.instants", work],
        capture_output=True,
        text=True,
        timeout=RETRY_POLICY,
        check=False,
    )
    counted = re.fullmatch(r"(\d+) instants\n", done.stdout)
    assert counted, done.stdout[-3000:]
    assert int(counted[1]) > 200
    assert (done.returncode, done.stderr) == (0, "")


NO_PIPE = """
import resource, signal
from images.cancel import Interruptible
signal.signal(signal.SIGINT, signal.default_int_handler)
ending, (_, hard) = Interruptible(), resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (ending.fileno() + 1, hard))
try:
    with ending:
        print("entered")
except OSError as error:
    print(error.strerror, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


def test_a_block_that_cannot_begin_leaves_ctrl_c_as_it_was() -> None:
    done = subprocess.run([sys.executable, "-c", NO_PIPE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("Too many open files True\n", "")

"""Processes that are left to the first process of a container; real ones, below a process that adopts as it does."""

import subprocess
import sys

from tests.processes import environment

_ADOPTS = """\
import ctypes, os, subprocess, sys
from netboot.supervise import orphans
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
orphans.reap([])  # there is none at all
ends, end = os.pipe()
said, say = os.pipe()
if (parent := os.fork()) == 0:
    if (child := os.fork()) == 0:
        os.close(end)
        os._exit(len(os.read(ends, 1)))
    os.write(say, str(child).encode())
    os._exit(0)
os.waitpid(parent, 0)
orphan = int(os.read(said, 20))
ours = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
os.close(end)
for pid in (orphan, ours.pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not let go
orphans.reap([ours.pid])
status = ours.wait()
orphans.reap([])
print(status, os.path.exists(f"/proc/{orphan}"))
"""


def test_orphans_are_let_go_and_who_is_waited_for_is_not() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ADOPTS], env=environment(), capture_output=True, text=True, check=False, timeout=180
    )
    assert (done.stdout, done.stderr) == ("3 False\n", "")

"""Faults put into processes of a whole service: `sitecustomize` of a folder that is first on their path.

A signal makes a process hang in a way of its own, and a file named after it has it die at its start.
"""

from pathlib import Path

SPIN = """\
import os, signal, sys

FOLDER = {folder!r}
NAME = sys.orig_argv[-1]

def spin(_number, _frame):
    while True:
        pass

def hold_the_lock(_number, _frame):
    import re
    re.match(r"(a+)+$", "a" * 64 + "b")  # in C, for years, and no other thread runs

if sys.orig_argv[-2:-1] == ["process"]:
    signal.signal(signal.SIGUSR1, spin)
    signal.signal(signal.SIGUSR2, hold_the_lock)
    if os.path.exists(os.path.join(FOLDER, NAME + ".dies")):
        os._exit(7)
"""


def prepare(folder: Path) -> str:
    """Make the folder; what to put into PYTHONPATH."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SPIN.format(folder=str(folder)))
    return str(folder)

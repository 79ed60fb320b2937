"""What says that a file changed, by hand; and a commit to a SQLite file that is written and does not count yet."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_COMMIT = """
import ctypes, sqlite3, sys

LIBRARY, LIBC = ctypes.CDLL("libsqlite3.so.0"), ctypes.CDLL(None)
ARGUMENTS = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
WRITE, SET = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *ARGUMENTS), ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)
LIBC.pwrite64.argtypes, LIBC.pwrite64.restype = ARGUMENTS, ctypes.c_ssize_t


class Vfs(ctypes.Structure):  # https://sqlite.org/c3ref/vfs.html
    _fields_ = [("numbers", ctypes.c_int * 3), ("others", ctypes.c_void_p * 16), ("set_system_call", SET)]


@WRITE
def write(*arguments):
    count = LIBC.pwrite64(*arguments)
    print("written", flush=True)
    sys.stdin.readline()
    return count


path, statement = sys.argv[1:]
db = sqlite3.connect(path, isolation_level=None)
db.execute("PRAGMA synchronous=FULL")
db.execute("SELECT * FROM sqlite_schema").fetchall()
LIBRARY.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
vfs = LIBRARY.sqlite3_vfs_find(None)
for name in (b"pwrite", b"pwrite64"):
    assert vfs.contents.set_system_call(ctypes.addressof(vfs.contents), name, ctypes.cast(write, ctypes.c_void_p)) == 0
db.execute(statement)
print("committed", flush=True)
"""


class Told:
    """A file that changed when `touch` says so (`netboot.stores.commits.Changed`)."""

    def __init__(self) -> None:
        self._now, self._seen, self._taken = 1, 0, 0

    def touch(self) -> None:
        self._now += 1

    def changed(self) -> bool:
        self._seen = self._now
        return self._seen != self._taken

    def taken(self) -> None:
        self._taken = self._seen


@contextmanager
def commit(path: Path, statement: str) -> Iterator[Iterator[None]]:
    """Another process commits this to a file in WAL mode: one step for each write to the log, after which it waits
    until the next one is asked for; at the end it counts."""
    argv = [sys.executable, "-c", _COMMIT, str(path), statement]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None and writer.stdout is not None

        def steps() -> Iterator[None]:
            assert writer.stdin is not None and writer.stdout is not None
            while (said := writer.stdout.readline()) == "written\n":
                yield
                writer.stdin.write("\n")
                writer.stdin.flush()
            assert said == "committed\n"

        try:
            yield steps()
        finally:
            writer.kill()

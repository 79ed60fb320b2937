"""Other surroundings for the second of two builds: what differs between them must not be in an image.

As reprotest does (https://salsa.debian.org/reproducible-builds/reprotest), for the whole of a build: namespaces of its
own, which end with it, and disorderfs and libfaketime where they are installed.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from images.run import run

AHEAD_HOURS = 50
"""Another day by any time zone of here and there, and another hour; TLS certificates of mirrors are still valid."""
HOST = "netboot-check"
_ZONE = "CHK+09:57"
"""Nowhere is it so late (POSIX form: no tables are needed)."""
_LIBRARIES, _FUSE = Path("/usr/lib"), Path("/dev/fuse")
_NAMES = "hbfdagec"
"""Files of `seen`, as they are made: neither by name nor backwards, as some file systems list them."""
_SCRIPT = """\
set -eu
host=$1 order=$2 umask=$3 processors=$4 files=$5 place=$6
shift 6
echo "$host" >/proc/sys/kernel/hostname || :
[ "$order" = reversed ] &&
  disorderfs --quiet --multi-user=yes --sort-dirents=yes --reverse-dirents=yes -o suid,dev "$files" "$place" ||
  mount --bind "$files" "$place"
umask "$umask"
[ -z "$processors" ] || exec taskset --cpu-list "$processors" "$@"
exec "$@"
"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where the second build runs. It works in `place`; what it left there is in `files` afterwards."""

    place: Path
    files: Path
    varied: Mapping[str, str]
    """What is other than here, and how it is."""
    same: Mapping[str, str]
    """What could not be made other, and why."""
    argv: tuple[str, ...]
    environment: Mapping[str, str]

    def run(self, command: Sequence[str | Path], on_line: Callable[[str], None]) -> None:
        """Run a program there; `on_line` is told each line that it writes.

        Raises:
            CommandError: it failed, with its last lines.
        """
        run([*self.argv, *command], env=self.environment, cwd=self.place.parent, on_line=on_line)

    def judged(self, here: Mapping[str, str], there: Mapping[str, str]) -> "Surroundings":
        """These, with what both builds have `seen` alike among what is the same: it was tried in vain."""
        vain = {what: f"tried in vain: {here[what]} there too" for what in self.varied if here[what] == there[what]}
        varied = {what: how for what, how in self.varied.items() if what not in vain}
        return replace(self, varied=varied, same={**self.same, **vain})


def other(scratch: Path) -> Surroundings:
    """Surroundings as unlike these as can be made here; `scratch`: an empty folder of ours, on the cache's disk."""
    place, files = scratch / "another" / "place", scratch / "files"
    place.mkdir(parents=True)
    files.mkdir()
    mask, encoding, seed = _mask(), sys.getfilesystemencoding(), os.environ.get("PYTHONHASHSEED")
    varied = {
        "path": str(place),
        "host name": HOST,
        "umask": "0077" if mask != 0o077 else "0022",
        "time zone": _ZONE,
        "locale": "C, ASCII" if encoding != "ascii" else "C.UTF-8",
        "order of sets": f"PYTHONHASHSEED={2 if seed == '1' else 1}",
    }
    same: dict[str, str] = {}
    environment = {"TZ": _ZONE, "PYTHONHASHSEED": varied["order of sets"].partition("=")[2]} | _locale(encoding)
    processor = _one_processor(varied, same)
    environment |= _clock(varied, same)
    order = _order(varied, same)
    argv = (
        *("unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--"),
        *("sh", "-c", _SCRIPT, "surroundings", HOST, order, varied["umask"], processor, str(files), str(place)),
    )
    return Surroundings(place, files, varied, same, argv, environment)


def seen(place: Path) -> dict[str, str]:
    """What the process that asks has of each thing that `other` varies; it lists files in `place`, an existing folder.

    The kernel's times of files are the real ones, by which the clock is told.
    """
    with tempfile.TemporaryDirectory(dir=place) as folder:
        for name in _NAMES:
            Path(folder, name).touch()
        names = " ".join(os.listdir(folder))  # noqa: PTH208 - the order is what is asked for
        ahead = round((time.time() - Path(folder, _NAMES[-1]).stat().st_mtime) / 3600)
    return {
        "path": str(place),
        "host name": os.uname().nodename,
        "umask": f"{_mask():04o}",
        "time zone": time.strftime("%z"),
        "locale": sys.getfilesystemencoding(),
        "order of sets": str(hash(_NAMES)),
        "processors": str(len(os.sched_getaffinity(0))),
        "clock": f"{ahead} hours ahead",
        "file order": names,
    }


def _mask() -> int:
    """This process's umask; os.umask would have to change it to tell (proc_pid_status(5))."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))


def _locale(encoding: str) -> dict[str, str]:
    """Names of files in ASCII for Python, which else takes the locale C for UTF-8 (PEP 538, PEP 540)."""
    if encoding == "ascii":
        return {}  # `images.run` says C.UTF-8
    return {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def _one_processor(varied: dict[str, str], same: dict[str, str]) -> str:
    here = sorted(os.sched_getaffinity(0))
    if len(here) == 1:
        same["processors"] = "there is one alone"
        return ""
    varied["processors"] = f"1, not {len(here)}"
    return str(here[0])


def _clock(varied: dict[str, str], same: dict[str, str]) -> dict[str, str]:
    """Ahead for our own steps; tools have a clean environment, and the time that has passed since the first build."""
    library = next(iter(sorted(_LIBRARIES.glob("*/faketime/libfaketimeMT.so.1"))), None)
    if library is None:
        same["clock"] = "libfaketime is not installed"
        return {}
    varied["clock"] = f"{AHEAD_HOURS} hours ahead"
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"+{AHEAD_HOURS}h",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # what waits for a while waits for a while
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # else timed waits end at once, and Python's threads fight for its lock
        "NO_FAKE_STAT": "1",  # files have the times that they have
    }


def _order(varied: dict[str, str], same: dict[str, str]) -> str:
    if shutil.which("disorderfs") is None or not _FUSE.exists():
        same["file order"] = "disorderfs is not installed, or there is no /dev/fuse"
        return "same"
    varied["file order"] = "by name, backwards"
    return "reversed"

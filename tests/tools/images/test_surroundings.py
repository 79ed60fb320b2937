"""The other surroundings of `image build --check`: what depends on any of them is found, and what does not is not."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from images.build import surroundings
from images.build.compare import tree_differences
from images.build.surroundings import Surroundings
from images.errors import ImageError
from images.run import run
from lab.errors import DeadlineError
from netboot.cli.building import Building
from netboot.cli.rebuild import Request, rebuilt
from tests.processes import wait_for
from tests.tools.images.mounts import mounts

pytestmark = pytest.mark.tools

PLANTED = """\
import locale, os, pathlib, socket, sys, time
place = pathlib.Path(sys.argv[1])
root = place / "root"
root.mkdir()
for name in ("b", "a", "c"):
    (place / name).touch()
planted = {
    "clock": time.strftime("%Y-%m-%d"),
    "file order": " ".join(name for name in os.listdir(place) if len(name) == 1),
    "host name": socket.gethostname(),
    "locale": locale.getencoding(),
    "order of sets": " ".join({"mount", "proc", "sys", "dev", "run"}),
    "path": str(place),
    "processors": str(len(os.sched_getaffinity(0))),
    "time zone": time.strftime("%z"),
    "nothing": "the same",
}
for name, text in planted.items():
    (root / name).write_text(text)
    (root / name).chmod(0o644)
(root / "umask").write_text("")
"""
"""A step with a fault of each kind: what it writes depends on where it runs."""


@pytest.fixture
def there(tmp_path: Path) -> Surroundings:
    return surroundings.other(tmp_path / "second")


def test_all_that_reprotest_varies_is_varied_here(there: Surroundings) -> None:
    """./setup.sh installs what this needs; a machine with one processor cannot have another number of them."""
    alone = {"processors"} if len(os.sched_getaffinity(0)) == 1 else set()
    assert set(there.same) == alone
    assert set(there.varied) | alone == {
        *("clock", "file order", "host name", "locale", "order of sets", "path", "processors", "time zone", "umask"),
    }


def test_a_fault_of_each_kind_is_found_and_only_those(there: Surroundings, tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text(PLANTED)
    first = tmp_path / "first"
    first.mkdir()
    command = [sys.executable, str(tmp_path / "planted.py")]
    run([*command, first], env={"PYTHONHASHSEED": "0"})
    there.run([*command, there.place], lambda line: None)
    found = list(tree_differences(first / "root", there.files / "root", times=False))
    assert found == [f"/{name}: {'mode' if name == 'umask' else 'content'}" for name in sorted(there.varied)]


@pytest.mark.parametrize("zone", range(-12, 15))
def test_it_is_another_day_there_whatever_the_hour_and_the_zone_are_here(zone: int) -> None:
    """Else a step that writes the day down would be found in some hours and not in others."""
    hours, minutes = surroundings._ZONE.removeprefix("CHK+").split(":")
    later = timedelta(hours=surroundings.AHEAD_HOURS - zone - int(hours), minutes=-int(minutes))
    assert later >= timedelta(days=1)


def test_nothing_of_it_is_left_and_nothing_of_the_machine_is_changed(there: Surroundings) -> None:
    before = (os.uname().nodename, mounts())
    said: list[str] = []
    there.run(["sh", "-c", "touch $0/made; uname -n", str(there.place)], said.append)
    assert said == [surroundings.HOST]
    assert [path.name for path in there.files.iterdir()] == ["made"]
    assert list(there.place.iterdir()) == [], "its mount has gone with it"
    assert (os.uname().nodename, mounts()) == before


def test_owners_modes_links_devices_and_attributes_are_as_they_are_elsewhere(there: Surroundings) -> None:
    """The order of files is by FUSE, which must lose nothing of what an image is made of."""
    script = """\
cd "$0"; install -m 4755 -o 5 -g 7 /bin/true tool; ln tool hard; ln -s /nowhere link; mknod null c 1 3
python3 -c 'import os; os.setxattr("tool", "security.capability", bytes.fromhex("01000002002000000000" + "00" * 10))'
: >null
"""
    there.run(["sh", "-euc", script, str(there.place)], lambda line: None)
    status = (there.files / "tool").stat()
    assert (status.st_mode & 0o7777, status.st_uid, status.st_gid, status.st_nlink) == (0o4755, 5, 7, 2)
    assert os.getxattr(there.files / "tool", "security.capability").hex().startswith("01000002")
    assert os.readlink(there.files / "link") == "/nowhere"
    assert os.stat(there.files / "null").st_rdev == os.makedev(1, 3)


def test_what_is_missing_here_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("images.build.surroundings._FUSE", tmp_path / "none")
    monkeypatch.setattr("images.build.surroundings._LIBRARIES", tmp_path)
    monkeypatch.setattr("images.build.surroundings.os.sched_getaffinity", lambda pid: {3})
    there = surroundings.other(tmp_path / "second")
    assert there.same == {
        "processors": "there is one alone",
        "clock": "libfaketime is not installed",
        "file order": "disorderfs is not installed, or there is no /dev/fuse",
    }
    said: list[str] = []
    there.run(["sh", "-c", 'touch "$0/made"; umask', str(there.place)], said.append)
    assert said == [there.varied["umask"]]


SEEN = """\
import json, pathlib, sys
from images.build.surroundings import seen
print(json.dumps(seen(pathlib.Path(sys.argv[1]))))
"""


def judged(there: Surroundings) -> Surroundings:
    said: list[str] = []
    there.run([sys.executable, "-c", SEEN, str(there.place)], said.append)
    return there.judged(surroundings.seen(there.files), json.loads(next(line for line in said if line.startswith("{"))))


def test_what_has_been_varied_is_seen_inside(there: Surroundings) -> None:
    assert judged(there) == there


def test_what_was_tried_in_vain_is_not_said_to_be_varied(there: Surroundings) -> None:
    """ld.so goes on without a library that it cannot load; disorderfs may have no right to /dev/fuse."""
    environment = {**there.environment, "LD_PRELOAD": "/nonexistent"}
    argv = tuple(word.replace("disorderfs --quiet", "false") for word in there.argv)
    found = judged(replace(there, environment=environment, argv=argv))
    assert set(there.varied) - set(found.varied) == {"clock", "file order"} - set(there.same)
    assert found.same["clock"] == "tried in vain: 0 hours ahead there too"
    assert found.same["file order"].startswith("tried in vain: ")


def test_a_second_build_that_is_stopped_leaves_no_mount_and_no_process(there: Surroundings) -> None:
    def stop(line: str) -> None:
        raise KeyboardInterrupt

    before = mounts()
    with pytest.raises(KeyboardInterrupt):
        there.run(["sh", "-c", "touch $0/made; echo begun; exec sleep 600", str(there.place)], stop)

    def left() -> list[str]:
        commands = map(command_of, Path("/proc").glob("[0-9]*"))
        return [command for command in commands if str(there.place) in command]

    with suppress(DeadlineError):
        wait_for(lambda: not left())
    assert left() == []
    assert mounts() == before
    assert list(there.place.iterdir()) == []


@pytest.mark.parametrize(
    ("worker", "folder", "seen"),
    [
        (None, "mmdebstrap.x/proc", True),
        ("gw98", "popen-gw98/own", True),
        ("gw98", "popen-gw99/other", False),
        ("gw98", "mmdebstrap.x/proc", False),
    ],
)
def test_a_mount_that_is_left_is_seen_and_another_workers_is_none_of_ours(
    monkeypatch: pytest.MonkeyPatch, worker: str | None, folder: str, seen: bool
) -> None:
    """Neither is that of a tool, in a folder that the tool names."""
    if worker is None:
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    else:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    with tempfile.TemporaryDirectory(prefix="netboot-mounts-") as temporary:
        place = Path(temporary, folder)
        place.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
        try:
            found = [line for line in mounts() if f"{place} " in line]
        finally:
            subprocess.run(["umount", place], check=True)
    assert (found != []) is seen


def command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:  # it has ended
        return ""


def test_a_second_build_that_fails_says_where_and_with_which_words(there: Surroundings, tmp_path: Path) -> None:
    with pytest.raises(ImageError) as caught:
        rebuilt(Request(str(tmp_path / "none.yaml"), None, tmp_path, None, None), there, Building())
    first, *rest = str(caught.value).splitlines()
    assert first == f"the second build failed, and the first had not: another {', '.join(there.varied)}:"
    assert any(line.startswith(f"Error: there is no recipe {tmp_path}/none.yaml: shipped are ") for line in rest)


WAITS = """\
import threading, time
begun, busy = time.perf_counter(), time.process_time()
threading.Event().wait(0.5)
workers = [threading.Thread(target=lambda: sum(range(3_000_000))) for _ in range(2)]
for worker in workers: worker.start()
for worker in workers: worker.join()
print(time.perf_counter() - begun >= 0.5, time.process_time() - busy < 1.5)
"""


def test_a_clock_that_is_ahead_ends_no_wait_early_and_costs_threads_nothing(there: Surroundings) -> None:
    """libfaketime does both to Python unless it is told not to: a build took seven times the processor's time."""
    said: list[str] = []
    there.run([sys.executable, "-c", WAITS], said.append)
    assert said == ["True True"]

"""The bench runs, against the real service and the real nginx, and leaves nothing behind however it ends."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from lab.errors import DeadlineError
from tests.processes import wait_for

pytestmark = pytest.mark.tools
ROOT = Path(__file__).resolve().parents[2]
QUICK = (sys.executable, "-m", "bench", "--quick", "--only", "bytes", "--output", "json")


def left_over() -> list[str]:
    """Command lines of processes that are told of, or work in, a folder of a bench's."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words, works_in = (entry / "cmdline").read_bytes(), str((entry / "cwd").readlink())
            except OSError:
                continue
            if f"{ROOT}/.work/bench-".encode() in words or works_in.startswith(f"{ROOT}/.work/bench-"):
                found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def nothing_is_left() -> None:
    """Servers are killed with the bench, and the kernel ends them."""
    with suppress(DeadlineError):
        wait_for(lambda: left_over() == [])
    assert left_over() == []


def folders() -> set[Path]:
    return set((ROOT / ".work").glob("bench-*"))


def test_a_quick_bench_of_bytes_compares_both_servers_and_leaves_nothing() -> None:
    before = folders()
    done = subprocess.run(QUICK, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    assert set(whole["bytes"]["rounds"]) == {"whole files", "4 MiB ranges"}
    for servers in whole["bytes"]["rounds"].values():
        assert set(servers) == {"netboot", "nginx"}
        assert all(one["gb_per_second"] > 0 for rounds in servers.values() for one in rounds)
    assert [one["what"] for one in whole["verdicts"]] == [
        "bytes/s, whole files ÷ nginx",
        "CPU per GB, whole files ÷ nginx",
        "bytes/s, 4 MiB ranges ÷ nginx",
        "CPU per GB, 4 MiB ranges ÷ nginx",
    ]
    assert folders() == before
    nothing_is_left()


def test_a_bench_that_is_told_to_stop_stops_its_servers() -> None:
    before = folders()
    with subprocess.Popen(QUICK, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as bench:
        try:
            wait_for(lambda: any("serve --config" in words for words in left_over()) or bench.poll() is not None)
            bench.send_signal(signal.SIGTERM)
            _, said = bench.communicate(timeout=180)
        finally:
            bench.kill()
    assert bench.returncode == 130, said
    assert "interrupted; everything has been stopped" in said
    nothing_is_left()
    assert folders() == before


def test_quick_origins_bring_the_image_together_also_where_one_lies_or_dies() -> None:
    before, argv = folders(), [*QUICK[:-3], "origins", "--output", "json"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    rounds = {case: len(seconds) for case, seconds in whole["origins"].items() if case != "mib"}
    assert rounds == dict.fromkeys(("together", "rest", "lies", "dies", "alone", "stream"), 1)
    assert [(one["what"], one["target"], one["at_least"]) for one in whole["verdicts"]] == [
        ("origins together ÷ sum of their links", 0.85, True),
        ("one origin lies half-way ÷ the honest rest", 1.3, False),
        ("one origin dies half-way ÷ the honest rest", 1.3, False),
        ("one fast origin ÷ one stream, then hashed", 1.0, False),
    ]
    assert folders() == before
    nothing_is_left()


def test_a_quick_siege_of_join_has_honest_answers_of_both_families_and_leaves_nothing() -> None:
    before, argv = folders(), [*QUICK[:-3], "siege", "--output", "json"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    for rounds in whole["siege"]["rounds"].values():
        assert [set(times) for times in rounds] == [{"idle", "nothing", "half a head"}]
        assert all(rounds[0].values())
    assert [one["what"] for one in whole["verdicts"]] == [
        "join's p99, IPv4, 64 addresses: worst siege ÷ idle",
        "join's p99, IPv6, one /64: worst siege ÷ idle",
    ]
    assert folders() == before
    nothing_is_left()

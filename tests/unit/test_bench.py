"""The bench's plumbing: what it reads, what it asks for, how it judges. The measuring itself is `make bench`."""

import json
import os
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import download, flood, peers, procfs, report, scripts, serving, site, stats, wrk
from bench.abuse import Abused
from bench.transfers import Bytes, Transfer
from lab.site import free_port
from netboot.lifecycle.claims import parse_claim

WRK = """\
Running 2s test @ http://127.0.0.1:41407
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     2.20ms  560.31us   7.49ms   76.44%
  24248 requests in 2.00s, 17.83MB read
Requests/sec:  12123.61
RESULT {"requests": 24248, "duration_us": 2000064, "bytes": 18695208, "p50_us": 2328, "p99_us": 7489, \
"connect": 0, "read": 3, "write": 0, "status": 1, "timeout": 0}
"""


def test_wrk_result_is_read() -> None:
    assert wrk.parse(WRK) == wrk.Load(
        requests=24248, seconds=2.000064, size=771.0, p50_ms=2.328, p99_ms=7.489, errors=4
    )
    assert round(wrk.parse(WRK).per_second) == 12124


@pytest.mark.parametrize("output", ["", "unable to connect to 127.0.0.1:1 Connection refused\n"])
def test_wrk_without_a_result_is_an_error_with_its_words(output: str) -> None:
    with pytest.raises(serving.BenchError, match="wrk printed no result"):
        wrk.parse(output)


def test_no_answer_at_all_is_an_error() -> None:
    with pytest.raises(serving.BenchError, match="no answer at all"):
        wrk.parse(WRK.replace('"requests": 24248', '"requests": 0'))


@given(st.lists(st.floats(0.1, 1e9), min_size=1, max_size=9), st.randoms())
def test_the_median_does_not_depend_on_the_order_of_rounds(values: list[float], random: Random) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    assert stats.middle(shuffled) == stats.middle(values)
    assert min(values) <= stats.middle(values) <= max(values)


def test_one_bad_round_of_seven_does_not_move_the_median() -> None:
    assert stats.middle([10, 10, 10, 10, 10, 10, 9000]) == 10
    with pytest.raises(ValueError, match="no median of nothing"):
        stats.middle([])


def test_verdicts_know_their_direction() -> None:
    assert stats.Verdict("speed", 0.95, 0.95).reached
    assert not stats.Verdict("speed", 0.94, 0.95).reached
    assert stats.Verdict("cost", 2.0, 2.0, at_least=False).reached
    assert not stats.Verdict("cost", 2.1, 2.0, at_least=False).reached


def _load(per_second: float, p99_ms: float = 3.0) -> wrk.Load:
    return wrk.Load(int(per_second), 1.0, 700.0, 1.0, p99_ms, 0, cpu_us=50.0)


def test_script_verdicts_compare_what_the_issue_compares() -> None:
    ours = {case: [_load(12000)] for case in ("1", "500", "5000", "10000", "1 of 10000")}
    theirs = {"1": [_load(16000)], "500": [_load(200)], "5000": [_load(10)], "1 of 10000": [_load(10000)]}
    found = scripts.Scripts(ours={"keep-alive": ours, "close": ours}, theirs={"keep-alive": theirs, "close": theirs})
    judged = [(one.what, one.value, one.target, one.reached) for one in report.script_verdicts(found)]
    assert judged == [
        ("scripts/s, keep-alive, 500 ÷ matchbox(500)", 60.0, 80.0, False),
        ("scripts/s, keep-alive, 5000 ÷ matchbox(5000)", 1200.0, 800.0, True),
        ("scripts/s, keep-alive, 1 of 10000 ÷ matchbox(1)", 1.2, 1.0, True),
        ("scripts/s, a new connection per request, 1 ÷ matchbox(1)", 0.75, 1.0, False),
        ("scripts/s, a new connection per request, 500 ÷ matchbox(500)", 60.0, 80.0, False),
    ]


def test_a_ratio_is_of_figures_of_the_same_round() -> None:
    """A round in which the machine was slow made both slow; the medians of either side alone say 3.6."""
    rounds = ([_load(rate) for rate in (100, 10, 90)], [_load(rate) for rate in (25, 5, 45)])
    found = scripts.Scripts(ours={"close": {"1": rounds[0]}}, theirs={"close": {"1": rounds[1]}})
    assert found.ratio("close", "1") == 2.0
    with pytest.raises(ValueError, match="zip"):
        stats.paired([1.0, 2.0], [1.0])


def test_what_asks_for_one_of_many_is_measured_beside_its_peer_in_the_same_rounds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    servers = {name: scripts.Target(serving.Server(name, 1, 1), tmp_path, 1.0) for name in ("n1", "n1 of 9", "m1")}
    monkeypatch.setattr(scripts, "_ours", lambda *_: {"1": servers["n1"], "1 of 9": servers["n1 of 9"]})
    monkeypatch.setattr(scripts, "_theirs", lambda *_: {"1": servers["m1"]})
    monkeypatch.setattr(scripts, "build_matchbox", lambda _: tmp_path)
    monkeypatch.setattr(scripts, "load", lambda *_: _load(1))

    def once(target: scripts.Target, *, close: bool) -> wrk.Load:
        asked.append(target.server.name)
        return _load(1)

    monkeypatch.setattr(scripts, "_once", once)
    scripts.measure(tmp_path, tmp_path, 2, 1.0, (1,), 9)
    assert asked == ["n1", "m1", "n1 of 9", "m1", "m1", "n1", "m1", "n1 of 9"] * 2


def test_without_a_peer_nothing_is_judged() -> None:
    assert report.script_verdicts(scripts.Scripts(ours={"keep-alive": {"1": [_load(1)]}}, absent="no Go")) == []
    rounds = {shape: {"netboot": [Transfer(1.0, 0.2, 0.3)]} for shape in ("whole files", "4 MiB ranges")}
    assert report.byte_verdicts(Bytes(1, rounds, absent="no nginx")) == []


def test_byte_verdicts_divide_medians() -> None:
    rounds = {
        shape: {
            "netboot": [Transfer(speed, 0.3, 0.3) for speed in (1.0, 2.0, 3.0)],
            "nginx": [Transfer(speed, 0.2, 0.3) for speed in (1.0, 4.0, 6.0)],
        }
        for shape in ("whole files", "4 MiB ranges")
    }
    judged = [(one.what, round(one.value, 3), one.reached) for one in report.byte_verdicts(Bytes(1, rounds))]
    assert judged == [
        ("bytes/s, whole files ÷ nginx", 0.5, False),
        ("CPU per GB, whole files ÷ nginx", 1.5, True),
        ("bytes/s, 4 MiB ranges ÷ nginx", 0.5, False),
        ("CPU per GB, 4 MiB ranges ÷ nginx", 1.5, True),
    ]


def test_everything_measured_becomes_json() -> None:
    whole = report.as_json(scripts.Scripts(absent="no Go"), None, Abused([], 10), None, host={"cores": 2})
    assert json.loads(json.dumps(whole)) == {
        "host": {"cores": 2},
        "scripts": {"ours": {}, "theirs": {}, "held": 10000, "absent": "no Go"},
        "abuse": {"rounds": [], "machines": 10},
    }


def test_both_sides_are_asked_by_the_same_identities() -> None:
    one = site.identities(300)[299]
    assert one == site.Identity("52:54:00:00:01:2b", "4c4c4544-0039-3010-8047-00000000012c", "SN00000299")
    path, _, query = site.boot_path(one).partition("?")
    claim = parse_claim(query)
    assert path == "/v1/boot"
    assert (claim.mac, claim.uuid, claim.serial, claim.architecture) == (one.mac, one.uuid, one.serial, "amd64")
    assert claim.ignored == ()
    assert (
        scripts.matchbox_path(one)
        == "/ipxe?uuid=4c4c4544-0039-3010-8047-00000000012c&mac=52-54-00-00-01-2b&domain=&hostname="
        "&serial=SN00000299&arch=x86_64"
    )


def test_no_two_machines_of_the_bench_share_an_identity() -> None:
    known = site.identities(10_000)
    assert len({value for one in known for value in (one.mac, one.uuid, one.serial)}) == 30_000


@given(st.integers(1, 40 * 1024 * 1024))
def test_ranges_cover_the_file_once(size: int) -> None:
    for job in download.all_ranges(1, "/x", size, 1):
        spans = sorted(job.ranges)
        assert [first for first, _ in spans] == [0, *(end for _, end in spans[:-1])]
        assert spans[-1][1] == size


def _serve_once(answer: bytes) -> int:
    listener = socket.create_server((serving.HOST, 0))

    def serve() -> None:
        with listener, listener.accept()[0] as connection:
            while b"\r\n\r\n" not in connection.recv(4096):
                pass
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


def test_a_client_counts_bodies_only() -> None:
    port = _serve_once(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\nX: y\r\n\r\nhello")
    assert download.fetch(download.Job(port, "/x", 100, [(10, 15)])).received == 5


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
            "asked for 5 bytes, was answered: HTTP/1.1 200 OK",
        ),
        (b"HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\n\r\n", "asked for 5 bytes"),
        (b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhel", "the connection ended 2 bytes early"),
        (b"HTTP/1.1 206 Par", "the connection ended inside the headers"),
    ],
)
def test_a_wrong_answer_is_not_measured(answer: bytes, words: str) -> None:
    with pytest.raises(serving.BenchError, match=words):
        download.fetch(download.Job(_serve_once(answer), "/x", 100, [(10, 15)]))


def test_size_of_an_answer_includes_its_headers() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n#!ipxe"
    assert serving.answer_size(_serve_once(answer), "/x", close=True) == len(answer)


def test_own_tree_costs_something() -> None:
    assert os.getpid() in procfs.tree(os.getpid())
    assert procfs.rss_mib(os.getpid()) > 5
    assert procfs.cpu_seconds(os.getpid()) > 0


def test_the_pin_of_matchbox_is_exact_and_checked() -> None:
    version = peers.matchbox_version()
    sums = (Path(peers.__file__).parent / "matchbox" / "go.sum").read_text()
    assert version == "v0.11.0"
    assert f"github.com/poseidon/matchbox {version} h1:" in sums


def test_without_go_the_peer_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(serving.AbsentError, match=r"there is no Go 1\.24 or newer here, and .* install one by hand"):
        peers.build_matchbox(tmp_path)


def test_a_failing_build_says_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    said = "[ $1 = env ] && echo go1.24.0 && exit\necho 'verifying module: checksum mismatch' >&2\nexit 1\n"
    go.write_text(f"#!/bin/sh\n{said}")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(serving.AbsentError, match="checksum mismatch"):
        peers.build_matchbox(tmp_path / "cache")


def test_a_server_that_ends_at_once_shows_its_log(tmp_path: Path) -> None:
    argv = ["sh", "-c", "echo no such thing >&2; exit 3"]
    with (
        pytest.raises(serving.BenchError, match=r"peer ended with status 3:\nno such thing"),
        serving.serving("peer", argv, free_port(serving.HOST), tmp_path / "log", ready="/"),
    ):
        pass


def test_a_flood_has_begun_when_its_first_answers_have_come() -> None:
    answered = threading.Event()

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            answered.set()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            with suppress(OSError):
                while connection.recv(65536):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer, args=(listener,), daemon=True)
        server.start()
        with flood._flooding(listener.getsockname()[1], site.identities(2), 100.0) as pipe:
            assert answered.is_set()
            pipe.send("how much")
            assert pipe.poll(60)
            assert pipe.recv()[1] == {"200": 1}
    server.join(60)
    assert not server.is_alive()


class Telling:
    """What a service says of its journals, one answer after the other."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def metrics(self) -> str:
        return self.texts.pop(0)


def test_a_service_is_idle_when_nothing_waits_in_any_journal_twice_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    nothing = 'netboot_journal_lag_records 0.0\nnetboot_projection_lag_records{journal="boot-0.db"} 0.0\n'
    behind = 'netboot_journal_lag_records 0.0\nnetboot_projection_lag_records{journal="boot-0.db"} 7.0\n'
    telling = Telling("", nothing, behind, nothing, nothing, "not asked any more")
    flood._wait_until_idle(cast(site.Site, telling))
    assert telling.texts == ["not asked any more"]


def test_a_service_that_does_not_become_idle_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(flood, "_IDLE_WITHIN", -1.0)
    telling = Telling('netboot_projection_lag_records{journal="boot-0.db"} 7.0\n')
    with pytest.raises(serving.BenchError, match=r"^after -1 s 7 records still wait in a journal$"):
        flood._wait_until_idle(cast(site.Site, telling))


def test_a_flood_is_shown_beside_what_it_costs_a_server_that_nobody_floods() -> None:
    rounds = [flood.Round([2.0], [8.0], 0, 10.0, 5.0, {"200": 5}, 1.0, 1.0, idle, [3.0]) for idle in ([1.0], [1.5])]
    assert flood.Flood(5.0, 1.0, rounds).neighbour_ratio() == 2.5
    alone = flood.Flood(5.0, 1.0, [flood.Round([2.0], [8.0], 0, 10.0, 5.0, {"200": 5}, 1.0, 1.0)])
    assert (alone.p99_ratio(), alone.neighbour_ratio()) == (4.0, None)

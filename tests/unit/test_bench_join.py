"""The bench's part `join`: what it computes, and how it has machines take turns. That it runs: tests/cluster."""

import json
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import apart, control_plane, report_join, report_siege
from bench.control_plane import Fsyncs, signing_flags
from bench.fleet import Joined
from bench.join import FleetRound, Join
from bench.members import Door, Member, furnish, members
from bench.observed import Seen
from bench.serving import BenchError
from bench.siege import Siege
from images.node.agent.settings import read_settings
from lab.kube.authority import Authority
from lab.kube.cluster import Cluster

BOOT = "01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f"


def fleets(nodes: int, *seconds: float) -> Join:
    rounds = [
        FleetRound(Joined([Seen("127.0.0.1", {}, 10.0, 11.0), Seen("127.0.0.2", {}, 10.5, 10.0 + took)], 1.0), {}, at)
        for took, at in ((took, Fsyncs(1, 0.1)) for took in seconds)
    ]
    return Join(nodes, 2, [], rounds, [], [])


def test_a_fleet_takes_from_its_first_start_to_its_last_certificate() -> None:
    assert [round(one.joined.seconds, 3) for one in fleets(437, 30.0, 70.0).fleets] == [30.0, 70.0]


@pytest.mark.parametrize(("seconds", "reached"), [((59.0, 70.0, 30.0), True), ((61.0, 70.0, 30.0), False)])
def test_the_issues_fleet_is_judged_by_its_median(seconds: tuple[float, ...], reached: bool) -> None:
    [verdict] = report_join.join_verdicts(fleets(437, *seconds))
    assert verdict.what == "437 nodes < 60 s: seconds until all have a certificate"
    assert verdict.reached is reached


def test_a_smaller_fleet_is_not_judged() -> None:
    assert report_join.join_verdicts(fleets(8, 1.0)) == []


def test_the_99th_percentile_of_one_is_that_one() -> None:
    assert report_join.p99([3.0]) == 3.0
    assert report_join.p99([float(one) for one in range(101)]) == 99.0


def test_every_machine_has_an_address_and_a_tpm_of_its_own() -> None:
    fleet = members(300)
    assert len({one.address for one in fleet}) == 300
    assert len({one.tpm().machine.ek_sha256 for one in fleet}) == 300
    assert fleet[0].rebooted(2).tpm().machine.resets == fleet[0].resets + 2


def test_the_agent_reads_what_a_machine_is_furnished_with(tmp_path: Path) -> None:
    one = Member("node-1", "127.70.0.1", b"", b"", BOOT, "52:54:00:00:00:01", 1)
    authority = Authority("join").pair.certificate.decode()
    settings = read_settings(furnish(tmp_path, one, Door("http://127.0.0.1:1", "https://127.0.0.1:2", authority)))
    assert (settings.boot, settings.name, settings.mac) == (BOOT, "node-1", "52:54:00:00:00:01")
    assert (settings.report, settings.join_url) == ("http://127.0.0.1:1", "https://127.0.0.1:2")
    assert settings.authorities == authority


def test_machines_take_turns_until_the_time_is_over_each_time_after_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int]] = []
    moments = [0.0]
    both = threading.Barrier(2, lambda: moments.append(1.0))  # the time is over when both have come so far
    monkeypatch.setattr(apart, "time", SimpleNamespace(monotonic=lambda: moments[-1]))

    def act(one: Member) -> None:
        seen.append((one.name, one.resets))
        if one.resets == 3:
            both.wait(180)

    took = apart.in_turn([Member("a", "", b"", b""), Member("b", "", b"", b"")], 1.0, act)
    assert took >= 1.0
    for name in "ab":
        assert [count for machine, count in seen if machine == name] == [0, 1, 2, 3]


def test_what_fails_in_a_process_of_its_own_is_said() -> None:
    with pytest.raises(BenchError, match=r"loads: RuntimeError: JSONDecodeError: Expecting value"):
        apart.apart(json.loads, "nothing")


@pytest.fixture
def told() -> "dict[str, subprocess.Popen[bytes]]":
    """Processes that were told what a controller-manager is told."""
    argv = ["true", "--cluster-signing-duration=24h", "--root-ca-file=ca.crt", "--kube-api-qps=100"]
    process = subprocess.Popen(argv)
    process.wait()
    return {"kube-controller-manager": process}


def test_flags_that_bear_on_signing_are_told_with_the_defaults_of_the_rest(
    told: "dict[str, subprocess.Popen[bytes]]", tmp_path: Path
) -> None:
    assert signing_flags(Cluster(tmp_path, "", told)) == [
        "--cluster-signing-duration=24h",
        "--kube-api-qps=100",
        "--kube-api-burst=30 (default)",
        "--concurrent-csr-syncs=5 (default)",
    ]


def test_an_etcd_without_fsync_is_not_measured(tmp_path: Path) -> None:
    process = subprocess.Popen(["true", "--unsafe-no-fsync=true"])
    process.wait()
    with pytest.raises(BenchError, match="etcd runs without fsync: figures of it are worth nothing"):
        control_plane.fsyncs(Cluster(tmp_path, "", {"etcd": process}))


def test_a_siege_is_judged_by_the_worst_kind_beside_the_idle_server_of_the_same_round() -> None:
    times = [
        {"idle": [idle], "nothing": [idle], "a byte": [byte], "half a head": [idle / 2]}
        for idle, byte in ((1.0, 3.0), (2.0, 40.0), (1.0, 5.5))
    ]
    [verdict] = report_siege.siege_verdicts(Siege({"IPv4": times}))
    assert (verdict.value, verdict.reached) == (5.5, False)
    [verdict] = report_siege.siege_verdicts(Siege({"IPv4": times[:1]}))
    assert (verdict.value, verdict.reached) == (3.0, True)

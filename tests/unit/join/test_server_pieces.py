"""Pieces of the join server by themselves: the buckets of addresses, and the gate that the self-check keeps."""

import asyncio
import json
import threading
from pathlib import Path

import pytest
from aiohttp import web
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from images.node.agent import net
from netboot.join.errors import ClusterUnavailableError
from netboot.join.issued_tokens import sweep
from netboot.join.ports import ClusterAccess
from netboot.join.preconditions import Connected, Finding
from netboot.processes.join import status_of
from netboot.status.join import ClusterStatus
from netboot.web.join import server
from netboot.web.join.app import Dependencies, readiness
from netboot.web.join.limits import Buckets
from netboot.web.join.preflight import (
    CHECK_SECONDS,
    CLEAN_SECONDS,
    RECHECK_SECONDS,
    TRUSTED_SECONDS,
    CheckedClusters,
)
from netboot.web.refusals import Refusals
from netboot.web.tls import Certificate
from tests.joining import NOW, Stage, boot_id, pinned
from tests.processes import wait_for
from tests.sockets.join_site import make_join_site
from tests.soft_tpm import Machine


class Time:
    """Seconds, moved by tests."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_is_emptied_at_once_and_filled_in_time() -> None:
    time = Time()
    buckets = Buckets(60, monotonic=time)
    assert [buckets.wait("a") for _ in range(60)] == [0.0] * 60
    assert buckets.wait("a") == pytest.approx(1.0)
    assert buckets.wait("b") == 0.0
    time.now = 2.5
    assert [buckets.wait("a"), buckets.wait("a")] == [0.0, 0.0]
    assert buckets.wait("a") == pytest.approx(0.5)
    time.now = 10_000
    assert [buckets.wait("a") for _ in range(61)][-1] > 0.0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 30)), max_size=200))
def test_no_address_gets_more_than_its_rate_and_memory_is_bounded(asked: list[tuple[str, float]]) -> None:
    time = Time()
    buckets, given_ = Buckets(6, most=4, monotonic=time), 0
    for address, after in asked:
        time.now += after
        given_ += address == "a" and buckets.wait("a") == 0.0
        if address != "a":
            buckets.wait(address)
        assert len(buckets) <= 4
    busy = len([address for address, _ in asked if address == "a"])
    assert given_ <= busy
    if {address for address, _ in asked} <= set("abcd"):
        assert given_ <= 6 + time.now * 6 / 60 + 1


def test_a_machine_that_makes_up_addresses_has_the_rate_of_its_64_and_costs_others_nothing() -> None:
    buckets = Buckets(2, most=40, monotonic=Time())
    assert buckets.wait("2001:db8:0:1::1") == 0.0
    made_up = [buckets.wait(f"2001:db8:0:1::{number:x}") for number in range(16, 16 + 200)]
    assert made_up[:63] == [0.0] * 63 and all(seconds > 0.0 for seconds in made_up[63:])
    assert len(buckets) <= 40
    assert [buckets.wait("2001:db8:0:2::1"), buckets.wait("192.0.2.1")] == [0.0, 0.0]


def test_one_address_that_asks_and_asks_leaves_the_others_of_its_64_theirs() -> None:
    buckets = Buckets(2, monotonic=Time())
    assert [buckets.wait("2001:db8::1") == 0.0 for _ in range(1000)].count(True) == 2
    assert buckets.wait("2001:db8::2") == 0.0


def clean(access: ClusterAccess, now_ms: int) -> None:
    """What the process does, as far as these tests look at it."""
    sweep(access, now_ms)


class Asked:
    """A cluster that is reached and checked as the test says."""

    def __init__(self) -> None:
        self.stage = Stage((pinned(Machine(boot_id("gpu-001"))),))
        self.unreachable = self.down = ""
        self.findings: tuple[Finding, ...] = (Finding("renewals", "ok", "in order"),)
        self.checks = 0
        self.time = Time()
        self.clusters = CheckedClusters({"default": self.connect}, lambda: NOW, clean, monotonic=self.time)

    def connect(self) -> Connected:
        if self.unreachable:
            raise ClusterUnavailableError(self.unreachable)
        cluster = self.stage.cluster
        return ClusterAccess(
            "default", (), "", cluster.leases, cluster.tokens, cluster.nodes, lambda: None, lambda: 0, str
        ), self.check

    def check(self) -> tuple[Finding, ...]:
        self.checks += 1
        if self.down:
            raise ClusterUnavailableError(self.down)
        return self.findings

    def after(self, seconds: float) -> None:
        self.time.now += seconds
        self.step()

    def step(self) -> None:
        """Both of the cluster's loops, once."""
        self.clusters.check("default")
        self.clusters.clean("default")

    def refusal(self) -> str:
        with pytest.raises(ClusterUnavailableError) as caught:
            self.clusters["default"].preflight()
        return str(caught.value)


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_before_the_first_check_nothing_passes(asked: Asked) -> None:
    assert asked.refusal() == "cluster default cannot be used: it has not been asked yet"
    asked.step()
    asked.clusters["default"].preflight()
    assert asked.clusters.status() == {"default": ClusterStatus(ok=True, message="fit", findings=())}
    assert list(asked.clusters) == ["default"] and "other" not in asked.clusters


def test_files_that_cannot_be_used_are_tried_again(asked: Asked) -> None:
    asked.unreachable = "issuer.kubeconfig cannot be read"
    asked.step()
    assert asked.refusal() == "cluster default cannot be used: issuer.kubeconfig cannot be read"
    asked.unreachable = ""
    asked.after(RECHECK_SECONDS)
    asked.clusters["default"].preflight()


def test_what_the_check_refuses_is_refused_with_its_words_until_it_does_not(asked: Asked) -> None:
    asked.step()
    asked.findings = (
        Finding("renewals", "refuse", "ClusterRoleBinding x binds selfnodeclient", "delete it"),
        Finding("clock", "warn", "12 s ahead", "NTP"),
    )
    asked.after(CHECK_SECONDS)
    assert asked.refusal() == "cluster default is not fit: ClusterRoleBinding x binds selfnodeclient"
    status = asked.clusters.status()["default"]
    assert (status.ok, [finding.name for finding in status.findings]) == (False, ["renewals", "clock"])
    asked.findings = (asked.findings[1],)
    asked.after(RECHECK_SECONDS)
    asked.clusters["default"].preflight()


def test_what_was_found_stays_true_for_a_while_when_the_apiserver_does_not_answer(asked: Asked) -> None:
    asked.step()
    asked.down = "connection refused"
    asked.after(CHECK_SECONDS)
    asked.clusters["default"].preflight()
    assert asked.clusters.status()["default"].message == "connection refused"
    asked.after(TRUSTED_SECONDS)
    assert asked.refusal() == "cluster default cannot be used: connection refused"


def test_it_is_asked_no_more_often_than_it_must(asked: Asked) -> None:
    assert asked.clusters.clean("default") == RECHECK_SECONDS  # not reached yet
    assert asked.clusters.check("default") == CHECK_SECONDS
    assert asked.clusters.clean("default") == CLEAN_SECONDS
    asked.down = "connection refused"
    assert asked.clusters.check("default") == RECHECK_SECONDS


def test_a_cluster_that_does_not_answer_closes_neither_its_own_gate_nor_another_s() -> None:
    """One is asked and never answers, of the other the cleaning never ends: the other is checked all the same."""
    never = threading.Event()
    slow, quick = Asked(), Asked()

    def check() -> tuple[Finding, ...]:
        never.wait(180)
        raise ClusterUnavailableError("it did not answer")

    def cleans(_access: ClusterAccess, _now_ms: int) -> None:
        never.wait(180)

    reached = {"slow": lambda: (slow.connect()[0], check), "quick": quick.connect}
    clusters = CheckedClusters(reached, lambda: NOW, cleans)
    threads = [threading.Thread(target=loop, name=name) for name, loop in clusters.loops().items()]
    for thread in threads:
        thread.start()
    try:
        assert sorted(thread.name for thread in threads) == [
            "cleaning-quick", "cleaning-slow", "preflight-quick", "preflight-slow"
        ]  # fmt: skip
        wait_for(lambda: clusters.status()["quick"].ok)
        clusters["quick"].preflight()
        assert not clusters.status()["slow"].ok
    finally:
        clusters.end()
        never.set()
        for thread in threads:
            thread.join()


def test_a_defect_in_the_check_keeps_the_gate_shut(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> tuple[Finding, ...]:
        raise RuntimeError("defect")

    monkeypatch.setattr(asked, "check", broken)
    asked.step()
    assert asked.refusal() == "cluster default cannot be used: the self-check failed; see the log"


def test_expired_tokens_are_swept_by_the_way(asked: Asked) -> None:
    asked.stage.now_ms = NOW - 400_000
    asked.stage.join(Machine(boot_id("gpu-001")))
    assert asked.stage.cluster.secrets
    asked.step()
    assert asked.stage.cluster.secrets == {}
    asked.stage.cluster.down = "away"
    asked.after(60.0)  # said in the log, and tried again
    asked.clusters.end()
    for loop in asked.clusters.loops().values():
        loop()


def test_a_replica_that_knows_its_clock_is_wrong_sweeps_nothing(asked: Asked) -> None:
    asked.stage.now_ms = NOW - 400_000
    asked.stage.join(Machine(boot_id("gpu-001")))
    asked.findings = (Finding("clock", "refuse", "the apiserver's clock is 400 s behind ours", "NTP"),)
    asked.step()
    assert asked.stage.cluster.secrets
    asked.findings = ()
    asked.after(60.0)
    assert asked.stage.cluster.secrets == {}


def test_a_defect_in_the_sweep_ends_no_checks_and_is_said_until_the_sweep_goes_through(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("defect")

    def said() -> tuple[bool, str]:
        status = status_of(dependencies)
        return status.ok, status.message

    pieces = (asked.stage.exchange(), asked.clusters, Buckets(1), Buckets(1), list, lambda: False, Refusals())
    dependencies = Dependencies(*pieces)
    defect = "cluster default is not cleared of what nobody needs any more: a defect; see the log"
    with monkeypatch.context() as patch:
        patch.setattr(asked.stage.cluster.leases, "all", broken)
        asked.step()
        asked.after(CHECK_SECONDS)
    assert asked.checks == 2
    asked.clusters["default"].preflight()
    assert said() == (False, defect)
    assert readiness(dependencies).ready, "machines can join"
    asked.stage.cluster.down = "away"
    asked.after(CLEAN_SECONDS)
    assert said() == (False, defect), "it did not get so far"
    asked.stage.cluster.down = ""
    asked.after(CLEAN_SECONDS)
    assert said() == (True, "machines can join")


def test_no_agent_waits_longer_than_the_work_may_take() -> None:
    """Or it would be told to try again, while a token is issued, and counted, that nobody gets."""
    assert net.Server("https://join").seconds < server.WORK_SECONDS


def test_who_waits_for_a_thread_that_stands_still_is_told_and_the_thread_keeps_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "THREADS", 2)
    monkeypatch.setattr(server, "WORK_SECONDS", 0.3)
    monkeypatch.setattr(server, "TURN_SECONDS", 0.1)
    join, goes_on, asked = make_join_site(tmp_path).join, threading.Event(), 0
    assert join is not None
    application = Flask("standing")

    @application.get("/")
    def stand() -> str:
        nonlocal asked
        asked += 1
        goes_on.wait(180)
        return "through"

    def failure(answer: web.Response) -> tuple[int, str, str, str | None]:
        error = json.loads(answer.text or "")["error"]
        return answer.status, error["code"], error["message"], answer.headers.get("Retry-After")

    async def whole() -> None:
        standing = server.JoinServer(join, Certificate(join.certificate, join.key), lambda _: application)

        async def ask() -> web.Response:
            request = {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "SERVER_NAME": "join", "SERVER_PORT": "443"}
            return await standing._answered(request | {"wsgi.url_scheme": "https"}, "192.0.2.7")

        assert failure(await ask()) == (503, "unavailable", "cannot tell right now", "5")
        while not asked:  # its thread may begin later than that
            await asyncio.sleep(0.01)
        assert failure(await ask()) == (503, "overloaded", "too many requests at once", "5")
        assert asked == 1, "the network's only turn is taken"
        goes_on.set()
        while (answer := await ask()).status != 200:
            await asyncio.sleep(0.01)
        assert answer.body == b"through"

    try:
        asyncio.run(asyncio.wait_for(whole(), 180))
    finally:
        goes_on.set()

"""Join over real TLS: two processes of the service's own code, a TPM in software, a cluster in memory."""

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from netboot.cli.authority import new_certificate
from netboot.stores.sealing import added, new_key, promoted, read_keys, retired, write_keys
from tests.joining import pinned
from tests.processes import wait_for
from tests.sockets.hello_flood import HELLOS, SOURCE, Flood, memory_kib
from tests.sockets.join_site import JoinSite, Said, join_site
from tests.soft_tpm import Machine, other_tpm
from tests.soft_tpm import new_key as agent_key


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JoinSite]:
    with join_site(tmp_path_factory.mktemp("join"), hellos_per_minute=100_000) as made:
        for index in range(2):
            made.start(index)
        wait_for(lambda: made.ready("join-0") and made.ready("join-1"))
        yield made


@pytest.fixture(autouse=True)
def as_it_was(site: JoinSite) -> Iterator[None]:
    yield
    for name in ("down", "unfit", "clock-0", "clock-1"):
        (site.folder / name).unlink(missing_ok=True)
    site.publish(pinned(Machine("")))
    wait_for(lambda: site.ready("join-0") and site.ready("join-1"))


class Fleet:
    """Machines that each boot once more than the one before: one TPM, and its counter rises."""

    resets = 10

    @classmethod
    def machine(cls, site: JoinSite, **more: Any) -> Machine:
        cls.resets += 1
        return Machine(site.boot(number=cls.resets), resets=cls.resets, **more)


def failed(said: Said, status: int, code: str) -> str:
    assert (said.status, said.body["error"]["code"]) == (status, code), said
    assert said.body["error"]["remedy"]
    return said.message


def test_a_machine_joins_and_both_facts_are_durable(site: JoinSite) -> None:
    machine = Fleet.machine(site)
    said = site.attest(machine, site.hello(machine).body)
    assert (said.status, said.body["node_name"], said.body["cluster"]) == (200, "gpu-001", "default")
    assert said.headers["Cache-Control"] == "no-store"
    facts = [(one["phase"], one["boot"], one["peer"]) for one in site.journalled()][-2:]
    assert facts == [("Attested", machine.boot, "127.0.0.1"), ("TokenIssued", machine.boot, "127.0.0.1")]
    assert said.body["token"].partition(".")[2] not in site.log()


def test_hello_to_one_replica_and_attest_to_the_other(site: JoinSite) -> None:
    machine = Fleet.machine(site)
    assert site.attest(machine, site.hello(machine, "join-0").body, "join-1").status == 200


@pytest.mark.parametrize(("ahead", "status"), [(25_000, 200), (-25_000, 200), (600_000, 410), (-600_000, 410)])
def test_a_replica_whose_clock_is_off(site: JoinSite, ahead: int, status: int) -> None:
    site.say("clock-1", str(ahead))
    machine = Fleet.machine(site)
    said = site.attest(machine, site.hello(machine, "join-0").body, "join-1")
    assert said.status == status
    if ahead > 25_000:
        assert failed(said, 410, "stale").startswith("expired 4") and "start again with hello" in said.message
    elif ahead < -25_000:
        words = "s ahead of this one: check NTP on both replicas"
        assert failed(said, 410, "stale").startswith("sealed by a clock that is 600") or words in said.message


def test_keys_are_rotated_step_by_step_in_the_middle_of_exchanges(site: JoinSite) -> None:
    path = site.folder / "secrets" / "sealing.keys"
    first = read_keys(path)
    answers = []
    for step in (added(first, new_key()), None, None):
        machine = Fleet.machine(site)
        answers.append((machine, site.hello(machine).body))
        keys = step or (promoted(read_keys(path)) if len(answers) == 2 else retired(read_keys(path)))
        write_keys(path, keys)
        machine, answer = answers[-1]
        said = site.attest(machine, answer, "join-1")
        if len(answers) < 3:
            assert said.status == 200
    assert said.status == 200  # sealed by the promoted key
    machine = Fleet.machine(site)
    answer = site.hello(machine).body
    write_keys(path, first)  # a replica that was forgotten
    assert "sealed under a key that is not in use here" in failed(site.attest(machine, answer, "join-1"), 410, "stale")


def test_sealing_keys_that_others_can_read_are_not_read(site: JoinSite) -> None:
    path = site.folder / "secrets" / "sealing.keys"
    path.chmod(0o644)
    try:
        said = wait_for(lambda: None if site.ready() else site.ask("join-0", "GET", "/readyz"))
        assert said.body["problems"] == [
            f"others can read the sealing keys {path} (mode 0644): `chmod 600 {path}`; the one before stays in force"
        ]
        assert site.hello(Fleet.machine(site)).status == 200  # those before stay in force
    finally:
        path.chmod(0o600)


def test_an_apiserver_that_is_down_is_waited_for(site: JoinSite) -> None:
    machine = Fleet.machine(site)
    answer = site.hello(machine).body
    site.say("down", "the apiserver does not answer: connection refused")
    said = site.attest(machine, answer)
    assert failed(said, 503, "cluster-unavailable") == "the apiserver does not answer: connection refused"
    assert int(said.headers["Retry-After"]) > 0
    (site.folder / "down").unlink()
    assert site.attest(machine, answer).status == 200


def test_a_cluster_that_is_not_fit_gets_no_tokens_and_readiness_says_why(site: JoinSite) -> None:
    site.say("unfit", "a machine out of service could renew for ever: ClusterRoleBinding kubeadm:x")
    wait_for(lambda: not site.ready())
    said = site.hello(Fleet.machine(site))
    words = "cluster default is not fit: a machine out of service could renew for ever: ClusterRoleBinding kubeadm:x"
    assert failed(said, 503, "cluster-unavailable") == words
    assert said.headers["Retry-After"]
    ready = site.ask("join-0", "GET", "/readyz")
    finding = {"name": "renewals", "outcome": "refuse", "words": words.partition(": ")[2], "remedy": "delete it"}
    cluster = {"ok": False, "message": words, "findings": [finding]}
    assert ready.status == 503
    assert ready.body == {"ready": False, "problems": [words], "clusters": {"default": cluster}}
    assert site.ask("join-0", "GET", "/healthz").body == {"healthy": True}


def test_refusals_have_their_codes(site: JoinSite) -> None:
    stranger = Fleet.machine(site, ek=other_tpm(), macs=("52:54:00:00:00:99",))
    failed(site.hello(stranger), 404, "unknown-machine")
    failed(site.hello(Fleet.machine(site, ek=other_tpm())), 403, "refused")
    failed(site.hello(Fleet.machine(site, tpm=False)), 403, "refused")
    failed(site.ask("join-0", "POST", "/v1/join/hello", b"{"), 400, "bad-request")
    assert site.ask("join-0", "GET", "/v1/join/hello").status == 405
    assert site.ask("join-0", "GET", "/v1/machines").status == 404


def test_a_tpm_that_was_cleared_is_refused_until_it_is_released(site: JoinSite) -> None:
    machine = Fleet.machine(site)
    assert site.attest(machine, site.hello(machine).body).status == 200
    cleared = Machine(site.boot(number=5000), resets=0, restarts=0)
    words = failed(site.attest(cleared, site.hello(cleared).body), 409, "held")
    assert "counts fewer resets than it did" in words and "`netboot machine release gpu-001`" in words
    from netboot.join.enrolment import Act, Release
    from netboot.stores.enrolment import SqliteEnrolments

    store = SqliteEnrolments(site.config.data / "enrolment.db")
    stale = site.hello(cleared).body
    store.apply([("gpu-001", Release())], Act("test", ""), 1)
    failed(site.attest(cleared, stale), 410, "stale")
    assert site.attest(cleared, site.hello(cleared).body).status == 200
    Fleet.resets = 10


def test_another_key_in_the_same_boot_is_held_off(site: JoinSite) -> None:
    machine = Fleet.machine(site)
    assert site.attest(machine, site.hello(machine).body).status == 200
    thief = Machine(machine.boot, resets=machine.resets)
    words = failed(site.attest(thief, site.hello(thief).body), 409, "held")
    assert words.startswith("another key holds the credential of this boot of gpu-001")
    wait_for(lambda: "alert: another key holds" in site.log())
    heir = Machine(machine.boot, resets=machine.resets, key=agent_key(), previous=machine.key)
    assert site.attest(heir, site.hello(heir).body).status == 200


# -- whoever means ill ---------------------------------------------------------------------------------------------


def test_garbage_is_refused_unread(site: JoinSite) -> None:
    for path, size in (("hello", 1_000_000), ("hello", 16 * 1024 + 1), ("attest", 1_000_000)):
        said = site.ask("join-0", "POST", f"/v1/join/{path}", b"\0" * size)
        assert (said.status, said.body["error"]["code"]) == (413, "request-entity-too-large")
    for body in (b"", b"null", b"[]", b"\xff" * 100, b"[" * 9_000, json.dumps({"version": 1}).encode()):
        assert failed(site.ask("join-0", "POST", "/v1/join/hello", body), 400, "bad-request")


def test_a_forwarded_address_is_nobodys_word(site: JoinSite) -> None:
    machine = Fleet.machine(site)
    headers = {"X-Forwarded-For": "192.0.2.66", "Forwarded": "for=192.0.2.66", "X-Real-IP": "192.0.2.66"}
    assert site.attest(machine, site.hello(machine, headers=headers).body, headers=headers).status == 200
    assert site.journalled()[-1]["peer"] == "127.0.0.1"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_tls_is_not_spoken(site: JoinSite, version: ssl.TLSVersion) -> None:
    context = site.context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = context.maximum_version = version
    with (
        socket.create_connection(("127.0.0.1", site.ports["join-0"]), timeout=60) as raw,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(raw, server_hostname="127.0.0.1")


def test_who_holds_connections_and_sends_nothing_holds_up_nobody(site: JoinSite) -> None:
    held = []
    try:
        for number in range(100):
            one = socket.create_connection(("127.0.0.1", site.ports["join-0"]), source_address=("127.0.0.9", 0))
            held.append(one)
            if number % 2:
                one.sendall(b"\x16\x03\x01")  # begins a handshake and leaves it there
        machine = Fleet.machine(site)
        assert site.attest(machine, site.hello(machine).body).status == 200
    finally:
        for one in held:
            one.close()


def test_a_new_certificate_is_taken_without_a_restart(site: JoinSite) -> None:
    tls = site.folder / "tls"
    before = ssl.get_server_certificate(("127.0.0.1", site.ports["join-0"]))
    certificate, key = new_certificate((tls / "ca.crt").read_bytes(), (tls / "ca.key").read_bytes(), ["127.0.0.1"])
    (tls / "join.key").write_bytes(key)
    (tls / "join.crt").write_bytes(certificate)
    now = wait_for(lambda: ssl.get_server_certificate(("127.0.0.1", site.ports["join-0"])))
    assert now != before and now == certificate.decode()
    (tls / "join.crt").write_text("not a certificate")
    assert ssl.get_server_certificate(("127.0.0.1", site.ports["join-0"])) == now
    wait_for(lambda: "cannot be used" in site.log())
    (tls / "join.crt").write_bytes(certificate)


def test_ten_thousand_hellos_from_one_source_cost_no_memory_and_hold_up_nobody(tmp_path: Path) -> None:
    with join_site(tmp_path / "join", hellos_per_minute=60) as site:
        site.start()
        wait_for(site.ready)
        stranger = Machine(site.boot(), ek=other_tpm(), macs=("52:54:00:00:00:99",))
        flood, pid = Flood(site, "join-0", stranger.hello()), site.processes["join-0"].pid
        began = monotonic()
        flood.warm()
        before = memory_kib(pid)
        flood.start()
        machine = Machine(site.boot())
        assert site.attest(machine, site.hello(machine).body).status == 200
        flood.join()
        let_in = 60 + 1 + monotonic() - began  # as many as a minute has at once, and one more each second
        assert flood.statuses.total() == HELLOS
        assert set(flood.statuses) == {404, 429} and flood.statuses[404] <= let_in
        assert memory_kib(pid) - before < 16 * 1024
        for _ in range(60):  # one more each second is let in: such moments have come where this one is slow
            said = site.ask("join-0", "POST", "/v1/join/hello", flood.body, source=SOURCE)
            if said.status == 429:
                break
        assert failed(said, 429, "too-often") == "this address asks too often"
        assert 1 <= int(said.headers["Retry-After"]) <= 60


def test_a_stop_lets_a_request_in_flight_be_answered(tmp_path: Path) -> None:
    with join_site(tmp_path / "join") as site:
        site.start()
        wait_for(site.ready)
        machine, answers = Machine(site.boot()), list[Said]()
        hello = site.hello(machine).body
        site.say("held", "tokens.create")
        asking = threading.Thread(target=lambda: answers.append(site.attest(machine, hello)))
        asking.start()
        wait_for((site.folder / "reached").exists)
        process = site.processes["join-0"]
        process.terminate()
        wait_for((site.folder / "stopping").exists)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        assert answers == []
        (site.folder / "held").unlink()
        asking.join()
        assert process.wait(60) == 0
        (answer,) = answers
        assert answer.status == 200 and answer.body["node_name"] == "gpu-001"
        assert [record["phase"] for record in site.journalled()] == ["Attested", "TokenIssued"]


def test_a_stop_lets_a_body_that_is_being_read_come_to_its_end(tmp_path: Path) -> None:
    with join_site(tmp_path / "join") as site:
        site.start()
        wait_for(site.ready)
        body, process = json.dumps(Machine(site.boot()).hello()).encode(), site.processes["join-0"]
        raw = socket.create_connection(("127.0.0.1", site.ports["join-0"]), timeout=60)
        with site.context().wrap_socket(raw, server_hostname="127.0.0.1") as connection:
            head = f"POST /v1/join/hello HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            connection.sendall(head + body[:100])
            site.say("held", "check")  # so that it says that it stops
            process.terminate()
            wait_for((site.folder / "stopping").exists)
            (site.folder / "held").unlink()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(3)
            connection.sendall(body[100:])
            answer = connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 5\r\n" in answer, "told to come back, not cut"
        assert process.wait(60) == 0

"""The approver's loop and the certificates of a boot: what is recorded when, what a thief gets, what a signer shows."""

from collections.abc import Callable, Iterator

import pytest

from images.values.backoff import Backoff
from netboot.controllers import reflector
from netboot.controllers.approver import approver as module
from netboot.controllers.approver import signing as signing_module
from netboot.join.certificates import issued
from netboot.join.ports import Csr
from netboot.join.signing import SIGNING_REMEDY, Signing
from tests.kubelets import THIEF, client, pem, renewal, serving, signed
from tests.processes import wait_for
from tests.records import START, boot_id
from tests.unit.test_approver_loop import Stage

YEAR = 31_536_000


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for where in (reflector, module):
        monkeypatch.setattr(where, "AGAIN", Backoff(0.01, 0.05))
    monkeypatch.setattr(reflector, "SHORT_SECONDS", 0.05)
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(signing_module, "FRESH_SECONDS", 0.0)


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    for one in made.running:
        one.stop()


def reboot(stage: Stage) -> None:
    """The machine proves itself in its next boot, with another key."""
    held = stage.cluster.credentials["default", "gpu-001"]
    changes = {"boot": boot_id("gpu-001", 2), "holder": "e" * 64, "token_id": "def456"}
    stage.cluster.leases.write(held.model_copy(update=changes))


@pytest.mark.parametrize("ask", [renewal, serving])
def test_a_key_of_the_boot_before_gets_nothing(stage: Stage, ask: Callable[..., Csr]) -> None:
    stage.approver()
    first = stage.join()
    reboot(stage)
    stolen = stage.cluster.submit(ask(credential=first))
    kind, reason, words = stage.decision(stolen)
    assert (kind, reason) == ("Denied", "NetbootOtherBoot")
    assert words.startswith(f"asked for with a certificate ({first[:12]}...) that is not on record as one of boot ")


def test_a_certificate_is_on_record_before_its_token_goes(stage: Stage) -> None:
    stage.approver()
    stage.join()
    wait_for(lambda: not stage.cluster.secrets)
    calls = [call.split()[0] for call in stage.cluster.calls]
    assert calls.index("certificates.write") < calls.index("tokens.delete")


def test_killed_before_a_certificate_is_on_record(stage: Stage) -> None:
    """The next approver sees it with its first look at all requests; who asks meanwhile is not denied."""
    csr = stage.cluster.submit(client())
    stage.cluster.requests.approve(csr, "NetbootAttested", "by one that died")
    certificate = issued(stage.cluster.request(csr.name).certificate)
    assert certificate is not None
    renewed = stage.cluster.submit(serving(name="aaa", uid="aaa", credential=certificate.sha256))
    stage.cluster.before["certificates.write"] = lambda: setattr(stage.cluster, "fail_next", 1)
    stage.approver()
    assert stage.decision(renewed)[0] == "Approved"
    assert stage.on_record == (certificate.sha256,)


def test_who_asks_with_a_certificate_not_yet_on_record_is_looked_at_again(stage: Stage) -> None:
    approver = stage.approver()
    early = stage.cluster.submit(serving(credential="7" * 64))
    wait_for(lambda: stage.called("certificates.read") >= 2)
    stage.cluster.touch(early.name)
    wait_for(lambda: stage.cluster.decisions)
    assert stage.decision(early)[:2] == ("Denied", "NetbootOtherBoot")
    assert stage.called("certificates.read") > module.LOOKS
    assert approver.status().unavailable == 0


def test_somebody_else_writes_the_record_too(stage: Stage) -> None:
    def other() -> None:
        stage.cluster.certificates.records["default", "gpu-001"] = theirs

    stage.approver()
    stage.join()
    theirs = stage.cluster.certificates.records["default", "gpu-001"]
    theirs = theirs.model_copy(update={"sha256": (*theirs.sha256, "5" * 64), "version": "777"})
    stage.cluster.before["certificates.write"] = other
    stage.decision(stage.cluster.submit(serving(credential=theirs.sha256[0])))
    stage.decision(stage.cluster.submit(renewal(credential=theirs.sha256[0], pem=pem("gpu-001", THIEF))))
    wait_for(lambda: len(stage.on_record) == 3)
    assert stage.on_record[:2] == theirs.sha256


def test_what_a_machine_gets_after_it_rebooted_is_not_of_the_boot_before(stage: Stage) -> None:
    """Approved in one boot and signed in the next: it belongs to neither."""
    stage.approver()
    first = stage.join()
    stage.decision(stage.cluster.submit(serving(credential=first)))
    wait_for(lambda: stage.cluster.certificates.seen)
    stage.cluster.sign = False
    late = stage.cluster.submit(renewal(credential=first, pem=pem("gpu-001", THIEF)))
    assert stage.decision(late)[0] == "Approved"
    reboot(stage)
    stage.cluster.submit(stage.cluster.request(late.name)._replace(certificate=signed(late, 86_400)))
    approver = stage.running[0]
    wait_for(lambda: len(stage.cluster.request(late.name).certificate) and approver.status().waiting == 0)
    assert stage.on_record == (first,)


def test_nothing_is_approved_where_certificates_live_for_a_year(stage: Stage) -> None:
    """What the first serving certificate shows; and all is well again when an operator has seen to it."""
    approver = stage.approver()
    stage.cluster.signs_for_seconds = YEAR
    first = stage.join()
    assert approver.status().ok is True  # that one asked for a day, and has it
    served = stage.cluster.submit(serving(credential=first))
    assert stage.decision(served)[0] == "Approved"
    wait_for(lambda: stage.cluster.certificates.seen)
    asked = [
        stage.cluster.submit(
            renewal(credential=first, name=f"r-{seconds}", uid=f"r-{seconds}", expiration_seconds=seconds)
        )
        for seconds in (None, 3600)
    ]
    words = "a certificate whose request sets no limit lives 8760 h (request serving-gpu-001), and 24 h is the most: "
    wait_for(lambda: approver.status().message == f"{words}it cannot be revoked")
    wait_for(lambda: approver.status().unavailable >= 8)
    assert [stage.cluster.decisions.get(csr.name) for csr in asked] == [None, None]
    assert SIGNING_REMEDY.endswith("delete configmap netboot-signing`")
    stage.cluster.signs_for_seconds = 86_400
    stage.cluster.certificates.seen = None
    assert stage.decision(asked[1])[0] == "Approved"
    again = stage.cluster.submit(serving(credential=first, name="again", uid="again"))
    assert stage.decision(again)[0] == "Approved"
    assert stage.decision(asked[0])[0] == "Approved"
    wait_for(lambda: approver.status().ok)


def test_a_renewal_without_a_limit_waits_until_the_limit_of_the_cluster_is_known(stage: Stage) -> None:
    approver = stage.approver()
    first = stage.join()
    waits = stage.cluster.submit(renewal(credential=first))
    wait_for(lambda: approver.status().unavailable >= 3)
    assert waits.name not in stage.cluster.decisions
    stage.decision(stage.cluster.submit(serving(credential=first)))
    assert stage.decision(waits)[0] == "Approved"


def test_a_signer_that_gives_more_than_was_asked_for(stage: Stage) -> None:
    approver = stage.approver()
    stage.cluster.sign = False
    csr = stage.cluster.submit(client())
    stage.decision(csr)
    more = signed(csr._replace(expiration_seconds=None), YEAR)
    stage.cluster.submit(stage.cluster.request(csr.name)._replace(certificate=more))
    wait_for(lambda: not approver.status().ok and "8760 h" in approver.status().message)


def test_what_others_asked_for_longer_shows_nothing_of_the_signer(stage: Stage) -> None:
    stage.approver()
    other = client("elsewhere", name="other", uid="other", expiration_seconds=YEAR)
    stage.cluster.submit(other._replace(decided=True, certificate=signed(other, YEAR)))
    stage.join()
    assert stage.cluster.certificates.seen is None


def test_for_others_certificates_nobody_s_lease_is_looked_at(stage: Stage) -> None:
    stage.approver()
    other = renewal("control-1", name="other", uid="other")
    stage.cluster.submit(other._replace(decided=True, certificate=signed(other, 86_400)))
    stage.join()
    assert stage.called("leases.all") == 0
    assert stage.cluster.certificates.seen == Signing(seconds=86_400, since_ms=1_767_225_600_000, request="other")


def test_the_latest_that_was_signed_counts(stage: Stage) -> None:
    """An approver that starts sees the requests of an hour, also those of before an operator's correction."""
    stage.cluster.certificates.seen = Signing(seconds=86_400, since_ms=START * 2, request="later")
    old = serving(name="old", uid="old")
    stage.cluster.submit(old._replace(decided=True, certificate=signed(old, YEAR)))
    stage.approver()
    stage.join()
    assert stage.cluster.certificates.seen.request == "later"


def test_a_certificate_that_cannot_be_read(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.approver()
    broken = serving(name="broken", uid="broken")
    stage.cluster.submit(broken._replace(decided=True, certificate=b"junk"))
    wait_for(lambda: "the certificate of the request broken cannot be read" in caplog.text)

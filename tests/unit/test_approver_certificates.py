"""The approver's loop and the certificates of a boot: what is recorded when, what a thief gets, what a signer shows."""

from collections.abc import Callable, Iterator

import pytest

from netboot.controllers.approver import approver as module
from netboot.join.certificates import AT_WILL, MOST, BootCertificates, descends, issued
from netboot.join.errors import ClusterUnavailableError
from netboot.join.ports import Csr
from netboot.join.signing import NOT_SEEN, SIGNING_REMEDY, Signing
from tests.approvers import BOOT, Stage, staged
from tests.kubelets import THIEF, client, pem, renewal, serving, signed
from tests.processes import wait_for
from tests.records import START, boot_id

YEAR = 31_536_000


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with staged(monkeypatch) as made:
        yield made


def seen(stage: Stage) -> int:
    """How long the signer's certificates live, as far as it was seen; 0: not at all."""
    record = stage.cluster.certificates.seen
    return record.seconds if record is not None else 0


def reboot(stage: Stage) -> None:
    """The machine proves itself in its next boot, with another key."""
    held = stage.cluster.credentials["default", "gpu-001"]
    changes = {"boot": boot_id("gpu-001", 2), "holder": "e" * 64, "token_id": "def456"}
    stage.cluster.leases.write(held.model_copy(update=changes))


def test_one_that_is_not_on_record_is_of_no_boot(stage: Stage) -> None:
    stage.approver()
    mine = stage.join()
    record = stage.cluster.certificates.records["default", "gpu-001"]
    held = stage.cluster.credentials["default", "gpu-001"]
    later = held.model_copy(update={"generation": held.generation + 1})
    assert [descends(record, held, each) for each in (mine, "2" * 64)] == [True, False]
    assert [descends(None, held, mine), descends(record, later, mine)] == [False, False]


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


def test_a_record_that_is_under_way_is_waited_for_however_long_it_takes(stage: Stage) -> None:
    """The apiserver took the first certificate's request and forgot how to write: no denial, but the truth later."""
    approver = stage.approver()
    away = True
    write = stage.cluster.certificates.write

    def refuses(record: BootCertificates) -> None:
        if away:
            raise ClusterUnavailableError("etcd has no leader")
        write(record)

    stage.cluster.certificates.write = refuses  # type: ignore[method-assign] # etcd comes and goes
    csr = stage.cluster.submit(client())
    stage.decision(csr)
    certificate = issued(wait_for(lambda: stage.cluster.request(csr.name).certificate))
    assert certificate is not None
    early = stage.cluster.submit(serving(credential=certificate.sha256))
    wait_for(lambda: stage.called("certificates.read") >= 5 * module.LOOKS)
    assert early.name not in stage.cluster.decisions
    away = False
    assert stage.decision(early)[:2] == ("Approved", "NetbootOwnNames")
    wait_for(lambda: approver.status().ok)


def test_a_time_without_the_apiserver_counts_as_no_look(stage: Stage) -> None:
    """Tries that found nobody to ask are none that found a certificate not on record."""
    stage.approver()
    first = stage.join()
    record = stage.cluster.certificates.records.pop(("default", "gpu-001"))
    stage.cluster.before["certificates.read"] = lambda: setattr(stage.cluster, "down", "etcd has no leader")
    asked = stage.cluster.submit(serving(credential=first))
    wait_for(lambda: stage.called("leases.read") >= 4 * module.LOOKS)
    stage.cluster.before["certificates.read"] = lambda: None  # once without the record, which is here a moment later

    def there() -> None:
        stage.cluster.certificates.records["default", "gpu-001"] = record

    stage.cluster.before["certificates.read"] = lambda: stage.cluster.before.update({"certificates.read": there})
    stage.cluster.down = ""
    assert stage.decision(asked)[0] == "Approved"


# -- more certificates of a boot than a kubelet needs ------------------------------------------------------------------


def flood(stage: Stage, stolen: str) -> list[str]:
    """Whoever has a certificate of the boot asks until it is denied; what was issued."""
    got: list[str] = []
    while True:
        csr = renewal(credential=stolen, name=f"theft-{len(got)}", uid=f"theft-{len(got)}", pem=pem("gpu-001", THIEF))
        csr = stage.cluster.submit(csr._replace(expiration_seconds=86_400))
        if stage.decision(csr)[0] == "Denied":
            return got
        wait_for(lambda: len(stage.on_record) == len(got) + 2)
        got.append(stage.on_record[-1])


def test_whoever_asks_again_and_again_pushes_nobody_out_and_is_told_of(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    approver = stage.approver()
    owner = stage.join()
    got = flood(stage, owner)
    assert len(got) == AT_WILL - 1
    words = (
        f"4 certificates of node gpu-001 from boot {BOOT} are in force, where a kubelet has two at most: either it "
        "dies at each start (`journalctl -u kubelet`), or somebody else has its key; reboot machine gpu-001, then none "
        "of them renews"
    )
    assert stage.decision(stage.cluster.request(f"theft-{len(got)}")) == ("Denied", "NetbootTooMany", words)
    assert stage.on_record == (owner, *got)
    wait_for(lambda: approver.status().message == words)
    assert ("denied", "NetbootTooMany", 1) in approver.status().decided
    assert f"denied: {words}" in caplog.text
    served = stage.cluster.submit(serving(credential=owner))  # the owner's is of the boot still
    assert stage.decision(served)[0] == "Approved"


def test_what_has_ended_makes_room(stage: Stage) -> None:
    stage.approver()
    owner = stage.join()
    flood(stage, owner)
    stage.now_ms += 86_400_000
    later = stage.cluster.submit(renewal(credential=owner, name="later", uid="later", expiration_seconds=86_400))
    assert stage.decision(later)[0] == "Approved"


def test_approved_in_one_moment_they_are_not_recorded_beyond_the_bound(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is signed before all are approved: what comes then finds no room, and may not renew."""
    approver = stage.approver()
    owner = stage.join()
    stage.cluster.sign = False
    many = [renewal(credential=owner, name=f"r{at}", uid=f"r{at}", expiration_seconds=86_400) for at in range(10)]
    for csr in [stage.cluster.submit(one) for one in many]:
        assert stage.decision(csr)[0] == "Approved"
    for one in many:
        held = stage.cluster.request(one.name)
        stage.cluster.submit(held._replace(certificate=signed(held, 86_400)))
    wait_for(lambda: caplog.text.count("is not recorded: 8 certificates of node gpu-001") == 3)
    assert (len(stage.on_record), stage.on_record[0]) == (MOST, owner)
    wait_for(lambda: not approver.status().ok)  # each says so after its line in the log


def test_a_record_of_before_has_no_ends() -> None:
    """An older netboot wrote a list: the last two are taken to live for a day from when they are looked at."""
    old = {"cluster": "c", "machine": "m", "boot": "b", "holder": "h", "generation": 0}
    listed = [number * 64 for number in "0123456789abcdef"]
    assert BootCertificates.model_validate(old | {"sha256": listed}).sha256 == {"e" * 64: 0, "f" * 64: 0}


def test_somebody_else_writes_the_record_too(stage: Stage) -> None:
    def other() -> None:
        stage.cluster.certificates.records["default", "gpu-001"] = theirs

    stage.approver()
    mine = stage.join()
    theirs = stage.cluster.certificates.records["default", "gpu-001"]
    theirs = theirs.model_copy(update={"sha256": {**theirs.sha256, "5" * 64: 0}, "version": "777"})
    stage.cluster.before["certificates.write"] = other
    stage.decision(stage.cluster.submit(serving(credential=mine)))
    stage.decision(stage.cluster.submit(renewal(credential=mine, pem=pem("gpu-001", THIEF))))
    wait_for(lambda: len(stage.on_record) == 3)
    assert stage.on_record[:2] == (mine, "5" * 64)


def test_what_a_machine_gets_after_it_rebooted_is_not_of_the_boot_before(stage: Stage) -> None:
    """Approved in one boot and signed in the next: it belongs to neither."""
    stage.approver()
    first = stage.join()
    stage.decision(stage.cluster.submit(serving(credential=first)))
    wait_for(lambda: seen(stage))
    stage.cluster.sign = False
    late = stage.cluster.submit(renewal(credential=first, pem=pem("gpu-001", THIEF)))
    assert stage.decision(late)[0] == "Approved"
    reboot(stage)
    stage.cluster.submit(stage.cluster.request(late.name)._replace(certificate=signed(late, 86_400)))
    approver = stage.running[0]
    wait_for(lambda: len(stage.cluster.request(late.name).certificate) and approver.status().waiting == 0)
    assert stage.on_record == (first,)


def test_a_certificate_that_comes_to_be_recorded_after_a_new_proof_is_of_the_one_before(stage: Stage) -> None:
    """The machine was released and proved itself with the same key in the same boot, while the record was under way."""
    approver = stage.approver()
    stage.cluster.sign = False
    late = stage.cluster.submit(client())
    assert stage.decision(late)[0] == "Approved"
    stage.issue("def456")
    stage.cluster.submit(stage.cluster.request(late.name)._replace(certificate=signed(late, 86_400)))
    wait_for(lambda: "tokens.delete abc123" in stage.cluster.calls and approver.status().waiting == 0)
    assert stage.on_record == ()


def test_nothing_is_approved_where_certificates_live_for_a_year(stage: Stage) -> None:
    """What the first serving certificate shows; and all is well again when an operator has seen to it."""
    approver = stage.approver()
    stage.cluster.signs_for_seconds = YEAR
    first = stage.join()
    assert approver.status().ok is True  # that one asked for a day, and has it
    served = stage.cluster.submit(serving(credential=first))
    assert stage.decision(served)[0] == "Approved"
    wait_for(lambda: seen(stage))
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
    assert stage.cluster.certificates.seen == NOT_SEEN.model_copy(update={"kept_since_ms": stage.cluster.now_ms})


def test_for_others_certificates_nobody_s_lease_is_looked_at(stage: Stage) -> None:
    stage.approver()
    other = renewal("control-1", name="other", uid="other")
    stage.cluster.submit(other._replace(decided=True, certificate=signed(other, 86_400)))
    stage.join()
    at = stage.cluster.now_ms
    shown = Signing(seconds=86_400, since_ms=at, request="other", kept_since_ms=at)
    wait_for(lambda: stage.cluster.certificates.seen == shown)
    assert stage.called("leases.all") == 0


def test_the_latest_that_was_signed_counts(stage: Stage) -> None:
    """An approver that starts sees the requests of an hour, also those of before an operator's correction."""
    stage.cluster.certificates.seen = Signing(seconds=86_400, since_ms=START * 2, request="later")
    old = serving(name="old", uid="old")
    stage.cluster.submit(old._replace(decided=True, certificate=signed(old, YEAR)))
    stage.approver()
    stage.join()
    assert stage.cluster.certificates.seen.request == "later"


def test_what_was_approved_before_the_correction_makes_nothing_unfit_again(stage: Stage) -> None:
    """The operator has put the signer right and deleted the record; then the approver restarts within the hour, and
    sees the requests of before once more."""
    stage.approver()
    stage.cluster.signs_for_seconds = YEAR
    first = stage.join()
    stage.decision(stage.cluster.submit(serving(credential=first)))
    wait_for(lambda: seen(stage) == YEAR)
    stage.running[0].stop()
    stage.cluster.signs_for_seconds = 86_400
    stage.cluster.certificates.seen = None
    stage.cluster.now_ms += 60_000
    again = stage.approver()
    asked = stage.cluster.submit(serving(credential=first, name="again", uid="again"))
    assert stage.decision(asked)[0] == "Approved"
    wait_for(lambda: seen(stage) == 86_400)
    assert again.status().ok


def test_a_certificate_that_cannot_be_read(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.approver()
    broken = serving(name="broken", uid="broken")
    stage.cluster.submit(broken._replace(decided=True, certificate=b"junk"))
    wait_for(lambda: "the certificate of the request broken cannot be read" in caplog.text)

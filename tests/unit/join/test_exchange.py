"""A good exchange, and every way in which one is not: refused for the right reason."""

import base64
import hashlib
import re
from typing import Any

import pytest

from netboot.join.enrolment import Act, Approve, OpenWindow, Replace, Retire, parse_details
from netboot.join.errors import HeldError, PendingError, RefusedError, StaleError, UnknownMachineError
from netboot.join.ports import Credential
from netboot.join.state import unseal
from netboot.lifecycle.errors import BadClaimError, CannotTellError, JournalUnavailableError
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.phases import Phase
from tests.joining import AUTHORITIES, ENDPOINTS, IMAGE, NOW, PEER, Stage, boot_id, declared, pinned
from tests.soft_tpm import EVENT_LOG, PCRS, Machine, new_key, other_tpm, spki, text
from tests.unit.tokens.soft import spec_header
from tokens.binding import binding_group
from tokens.credential import spki_sha256
from tokens.sealed import SealingKey
from tokens.wire import read_public

BOOT = boot_id("gpu-001")


@pytest.fixture
def machine() -> Machine:
    return Machine(BOOT)


@pytest.fixture
def stage(machine: Machine) -> Stage:
    return Stage((pinned(machine),))


def held(stage: Stage) -> Credential:
    return stage.cluster.credentials["default", "gpu-001"]


def test_a_boot_of_a_revoked_image_does_not_join(
    stage: Stage, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """Said by what its script named: to the machine no more than what to do, to operators which boot and image."""
    image = "b" * 64
    stage.booted = {BOOT: image}
    stage.revoked = ("a" * 64,)
    answer = stage.hello(machine)
    stage.revoked = ("a" * 64, image)
    refused = "the image that gpu-001 booted is revoked: reboot it"
    with pytest.raises(RefusedError) as at_attest:
        stage.attest(machine, answer)
    with pytest.raises(RefusedError) as at_hello:
        stage.hello(machine)
    assert (str(at_attest.value), str(at_hello.value)) == (refused, refused)
    said = f"gpu-001 does not join: its boot {BOOT} has image {image} (on record), which is revoked"
    assert [record.getMessage() for record in caplog.records] == [said, said]
    assert stage.cluster.secrets == {}


def test_a_boot_that_is_not_on_record_is_of_the_image_that_its_id_names(
    stage: Stage, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    """Forgotten for others that were asked for in the machine's name, or served by another host of the site."""
    near = [IMAGE[:at] + "f" + IMAGE[at + 1 :] for at in range(5)]
    stage.revoked = tuple(near)
    answer = stage.hello(machine)
    stage.revoked = (*near, IMAGE)
    refused = "the image that gpu-001 booted is revoked: reboot it"
    with pytest.raises(RefusedError) as at_attest:
        stage.attest(machine, answer)
    with pytest.raises(RefusedError) as at_hello:
        stage.hello(machine)
    assert (str(at_attest.value), str(at_hello.value)) == (refused, refused)
    said = f"gpu-001 does not join: its boot {BOOT} has image {IMAGE} (by its id), which is revoked"
    assert [record.getMessage() for record in caplog.records] == [said, said]
    stage.booted = {BOOT: IMAGE[:5] + "0" * 59}  # another image of the same first digits
    assert stage.join(machine)["node_name"] == "gpu-001"


def test_a_boot_whose_image_cannot_be_told_waits_where_images_are_revoked(stage: Stage, machine: Machine) -> None:
    def unread(_boot: str) -> str:
        raise CannotTellError("state.db cannot be read")

    stage.image_of = unread
    assert stage.join(machine)["node_name"] == "gpu-001"
    stage.revoked = ("a" * 64,)
    with pytest.raises(CannotTellError):
        stage.hello(machine)


@pytest.mark.parametrize("ecc", [False, True])
def test_a_good_exchange_ends_with_a_token_for_this_key_alone(ecc: bool) -> None:
    machine = Machine(BOOT, ek=other_tpm()) if ecc else Machine(BOOT)
    stage = Stage((pinned(machine, node={"labels": {"rack": "r1"}, "taints": ["a=b:NoExecute"]}),))
    answer = stage.join(machine)
    (token_id, manifest) = next(iter(stage.cluster.secrets.items()))
    assert answer == {
        "token": f"{token_id}.{manifest['stringData']['token-secret']}",
        "expires_ms": NOW + 300_000,
        "node_name": "gpu-001",
        "cluster": "default",
        "apiservers": list(ENDPOINTS),
        "authorities": AUTHORITIES,
        "labels": {"rack": "r1", "netboot.dev/managed-by": "netboot"},
        "taints": ["a=b:NoExecute", "netboot.dev/unchecked:NoExecute"],
        "now_ms": NOW,
    }
    group = binding_group("gpu-001", spki(machine.key))
    assert manifest["stringData"]["auth-extra-groups"] == f"system:bootstrappers:netboot,{group}"
    lease = held(stage)
    assert (lease.assurance, lease.boot, lease.reset_count, lease.restart_count) == ("tpm", BOOT, 5, 6)
    assert (lease.issued, lease.token_id, lease.token_expires_ms) == (1, token_id, NOW + 300_000)
    quote = stage.records[0].sha256
    assert re.fullmatch("[0-9a-f]{64}", quote)
    assert stage.records == [
        EventRecord(
            at_ms=NOW,
            boot=BOOT,
            machine="gpu-001",
            phase=Phase.ATTESTED,
            detail="by tpm, PCR policy: none",
            peer=PEER,
            sha256=quote,
        ),
        EventRecord(
            at_ms=NOW,
            boot=BOOT,
            machine="gpu-001",
            phase=Phase.TOKEN_ISSUED,
            detail=f"token {token_id}, 300 s",
            peer=PEER,
        ),
    ]


def test_the_steps_come_in_their_order(stage: Stage, machine: Machine) -> None:
    node = stage.cluster.make_node("gpu-001", ready=True)
    stage.join(machine)
    calls = [call.partition(" ")[0] for call in stage.cluster.calls]
    assert calls == [
        "leases.read", "nodes.node", "leases.write", "nodes.node", "nodes.delete", "tokens.create", "leases.write"
    ]  # fmt: skip
    assert stage.cluster.nodes.node("gpu-001") is None
    assert node.uid


def test_hello_leaves_nothing_behind(stage: Stage, machine: Machine) -> None:
    stage.hello(machine)
    assert (stage.cluster.calls, stage.records) == ([], [])


# -- a hello that is not one ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "not a hello: version: Input should be 1"),
        ({"boot": "x"}, "not a hello: boot: String should match pattern"),
        ({"spki": "!"}, "not a hello: spki: is not base64 (standard alphabet, padded)"),
        ({"spki": "AAAA"}, "not a hello: spki is not a public key in DER"),
        ({"tpm": {"ek_public": "AAAA"}}, "not a hello: tpm.ak_public: Field required"),
        ({"surprise": 1}, "not a hello: surprise: Extra inputs are not permitted"),
        ({"hints": {"macs": ["x"] * 33}}, "not a hello: hints.macs: Tuple should have at most 32 items"),
    ],
)
def test_a_malformed_hello_is_told_its_field(stage: Stage, machine: Machine, changes: Any, words: str) -> None:
    with pytest.raises(BadClaimError) as caught:
        stage.hello(machine, **changes)
    assert str(caught.value).startswith(words)


def test_a_boot_of_another_machine_is_refused(stage: Stage, machine: Machine) -> None:
    machine.boot = boot_id("gpu-002")
    with pytest.raises(RefusedError, match=f"{machine.boot} is not a boot of gpu-001"):
        stage.hello(machine)


@pytest.mark.parametrize("step", ["hello", "attest"])
def test_a_boot_of_long_ago_proves_nothing(stage: Stage, machine: Machine, step: str) -> None:
    last = 90 * 86_400_000 + 999
    if step == "hello":
        stage.now_ms += last
        stage.hello(machine)
        stage.now_ms += 1
        with pytest.raises(RefusedError) as caught:
            stage.hello(machine)
    else:
        stage.now_ms += last - 1_000
        answer = stage.hello(machine)
        stage.now_ms += 1_001
        with pytest.raises(RefusedError) as caught:
            stage.attest(machine, answer)
    words = f"the boot {BOOT} of gpu-001 began 90 days ago, and 90 are the most (join.boot_days): reboot the machine"
    assert str(caught.value) == words


def test_the_lease_says_which_tpm_has_proven_the_machine(stage: Stage, machine: Machine) -> None:
    stage.join(machine)
    assert stage.cluster.credentials["default", "gpu-001"].ek_sha256 == machine.ek_sha256


def test_keys_that_are_not_of_a_tpm_s_kind_are_refused(stage: Stage, machine: Machine) -> None:
    keys = machine.hello()["tpm"]
    ak = spki_sha256(read_public(base64.b64decode(keys["ak_public"])))
    stage.machines = (declared(match={"macs": machine.macs, "ek_sha256": ak}),)
    for changed, words in (
        ({"ak_public": keys["ek_public"]}, "the attestation key lacks sign"),
        ({"ek_public": keys["ak_public"]}, "an endorsement key is a restricted storage key, this is not"),
    ):
        with pytest.raises(RefusedError, match=words):
            stage.hello(machine, tpm=keys | changed)


# -- identity ---------------------------------------------------------------------------------------------------------


def test_an_unknown_ek_is_unknown_whatever_it_claims(stage: Stage, machine: Machine) -> None:
    stranger = Machine(BOOT, macs=("52:54:00:00:00:99",), ek=other_tpm())
    with pytest.raises(
        UnknownMachineError, match=r"no machine has the TPM \w{12}..., which has no MAC, UUID or serial"
    ):
        stage.hello(stranger)
    assert stranger.ek_sha256 != machine.ek_sha256


def test_the_mac_of_another_machine_with_a_foreign_tpm_is_refused(stage: Stage) -> None:
    thief = Machine(BOOT, ek=other_tpm())
    with pytest.raises(RefusedError, match=r"claims to be gpu-001, whose TPM is another one than \w{12}..."):
        stage.hello(thief)


def test_a_machine_with_a_tpm_on_record_never_joins_without_it(stage: Stage, machine: Machine) -> None:
    for identity in ("tpm", "nonce", "address"):
        stage.machines = (pinned(machine, identity=identity),)
        machine.tpm = False
        with pytest.raises(RefusedError, match="gpu-001 has a TPM on record and never joins without it"):
            stage.hello(machine)


def test_a_machine_whose_policy_is_tpm_does_not_join_without_one(stage: Stage, machine: Machine) -> None:
    stage.machines = (declared(),)
    machine.tpm = False
    with pytest.raises(RefusedError, match="gpu-001 must prove itself by its TPM"):
        stage.hello(machine)


def test_a_disabled_machine_is_told_so(stage: Stage, machine: Machine) -> None:
    stage.machines = (pinned(machine, enabled=False),)
    with pytest.raises(RefusedError, match="gpu-001 is disabled: set `enabled: true`"):
        stage.hello(machine)


def test_a_machine_of_a_cluster_that_is_not_configured(stage: Stage, machine: Machine) -> None:
    stage.machines = (pinned(machine, cluster="other"),)
    with pytest.raises(RefusedError, match="gpu-001 is of cluster other, which this service does not know"):
        stage.hello(machine)


def test_hints_are_nothing_for_who_has_its_tpm(stage: Stage, machine: Machine) -> None:
    stage.machines = (*stage.machines, declared("gpu-002", match={"macs": ["52:54:00:00:00:02"]}))
    machine.macs = ("52:54:00:00:00:02", "not a mac")
    assert stage.join(machine)["node_name"] == "gpu-001"


def test_what_two_sources_say_of_one_tpm_must_agree(stage: Stage, machine: Machine) -> None:
    enrol(stage, "gpu-002", machine.ek_sha256)
    with pytest.raises(RefusedError, match="gpu-001's by the inventory and gpu-002's by enrolment"):
        stage.hello(machine)


# -- enrolment --------------------------------------------------------------------------------------------------------


def enrol(stage: Stage, name: str, ek: str, *, approve: bool = True) -> None:
    """An operator opens a window, the machine uses it, the operator approves."""
    apply: Any = stage.enrolments.apply  # type: ignore[attr-defined]
    if not stage.enrolments.of(name).ek_sha256:
        apply([(name, OpenWindow("enrol", "w1", stage.now_ms + 60_000))], Act(), stage.now_ms)
        stage.enrolments.propose(name, ek, "", stage.now_ms)
    if approve:
        apply([(name, Approve(ek))], Act(), stage.now_ms)


def opened(stage: Stage, window: str = "w1") -> None:
    """An operator opens a window for gpu-001."""
    apply: Any = stage.enrolments.apply  # type: ignore[attr-defined]
    apply([("gpu-001", OpenWindow("enrol", window, stage.now_ms + 60_000))], Act(), stage.now_ms)


def on_record(stage: Stage) -> Any:
    """All of it, and how it came there."""
    store: Any = stage.enrolments
    return store.records(), store.history(None, 100)


def test_trust_on_first_use_ends_pending_and_gives_nothing_before_approval(machine: Machine) -> None:
    stage = Stage((declared(),))
    with pytest.raises(UnknownMachineError, match="`netboot machine enroll gpu-001` lets it enrol"):
        stage.hello(machine)
    opened(stage)
    with pytest.raises(PendingError, match=r"waits for approval as gpu-001"):
        stage.join(machine)
    for _ in range(2):
        with pytest.raises(PendingError, match=r"waits for approval as gpu-001"):
            stage.hello(machine)
    store: Any = stage.enrolments
    record = store.record("gpu-001")
    assert (record.state, record.ek_sha256, record.window) == ("pending", machine.ek_sha256, None)
    details, keys = parse_details(record.details), machine.hello()["tpm"]
    assert (details.ek_public, details.macs, details.peer) == (keys["ek_public"], machine.macs, PEER)
    assert (stage.cluster.calls, stage.cluster.secrets, stage.records) == ([], {}, [])
    enrol(stage, "gpu-001", machine.ek_sha256)
    assert stage.join(machine)["node_name"] == "gpu-001"


def test_a_public_ek_and_a_copied_certificate_use_no_window_up(machine: Machine) -> None:
    """Both are public: whoever shows them gets a challenge, which only the TPM itself can answer."""
    stage = Stage((declared(),))
    opened(stage)
    before = on_record(stage)
    copied = machine.hello()["tpm"] | {"ek_certificate": text(b"certificate")}
    thief = Machine(BOOT)
    for _ in range(3):
        answer = stage.hello(thief, tpm=copied)
        assert answer["assurance"] == "tpm"
        with pytest.raises(RefusedError, match="the secret is not the one that only this TPM could open"):
            stage.attest(thief, answer, secret=text(b"?" * 32))
    assert on_record(stage) == before
    assert (stage.cluster.calls, stage.records) == ([], [])
    with pytest.raises(PendingError):
        stage.join(machine)
    assert stage.enrolments.of("gpu-001").ek_sha256 == machine.ek_sha256


def test_a_spoofed_mac_in_a_window_is_pending_and_the_owner_is_told(machine: Machine) -> None:
    stage = Stage((declared(),))
    opened(stage)
    owner_too = stage.hello(machine)
    with pytest.raises(PendingError):
        stage.join(Machine(BOOT, ek=other_tpm()))  # a TPM of its own, really there
    with pytest.raises(RefusedError, match="claims to be gpu-001, whose TPM is another one"):
        stage.attest(machine, owner_too)
    with pytest.raises(RefusedError, match="claims to be gpu-001, whose TPM is another one"):
        stage.hello(machine)
    assert stage.cluster.secrets == {}


def test_a_candidate_proves_itself_in_the_window_in_which_it_was_challenged(machine: Machine) -> None:
    stage = Stage((declared(),))
    opened(stage)
    answer = stage.hello(machine)
    opened(stage, "w2")
    before = on_record(stage)
    with pytest.raises(StaleError, match="the window of gpu-001 is another one than at hello: begin again"):
        stage.attest(machine, answer)
    answer = stage.hello(machine)
    stage.now_ms += 60_000
    with pytest.raises(StaleError, match=r"the TPM of gpu-001 is not enrolled \(any more\): begin again with hello"):
        stage.attest(machine, answer)
    assert on_record(stage) == before


def test_a_candidate_that_was_approved_meanwhile_joins_by_the_same_challenge(machine: Machine) -> None:
    stage = Stage((declared(),))
    opened(stage)
    answer = stage.hello(machine)
    with pytest.raises(PendingError):
        stage.attest(machine, answer)
    with pytest.raises(StaleError):
        stage.attest(machine, answer)
    enrol(stage, "gpu-001", machine.ek_sha256)
    assert stage.attest(machine, answer)["node_name"] == "gpu-001"


def test_what_a_candidate_cannot_carry_is_said(machine: Machine) -> None:
    stage = Stage((declared(),))
    opened(stage)
    for size, carried in ((4096, True), (8000, False)):
        keys = machine.hello()["tpm"] | {"ek_certificate": text(bytes(size))}
        if carried:
            assert len(base64.b64decode(stage.hello(machine, tpm=keys)["state"])) <= 8192
            continue
        with pytest.raises(RefusedError, match=r"longer than it can carry to attest .* `netboot machine enroll --csv`"):
            stage.hello(machine, tpm=keys)


def test_a_window_that_has_passed_lets_nobody_enrol(machine: Machine) -> None:
    stage = Stage((declared(),))
    apply: Any = stage.enrolments.apply  # type: ignore[attr-defined]
    apply([("gpu-001", OpenWindow("enrol", "w1", NOW + 60_000))], Act(), NOW)
    stage.now_ms += 60_000
    with pytest.raises(UnknownMachineError):
        stage.hello(machine)


def test_a_retired_machine_and_a_replaced_tpm_are_refused(machine: Machine) -> None:
    stage = Stage((declared(),))
    enrol(stage, "gpu-001", machine.ek_sha256)
    apply: Any = stage.enrolments.apply  # type: ignore[attr-defined]
    apply([("gpu-001", Replace("w2", NOW + 60_000))], Act(), NOW)
    with pytest.raises(RefusedError, match="was taken out of gpu-001 by an operator's word"):
        stage.hello(machine)
    stage = Stage((declared(),))
    enrol(stage, "gpu-001", machine.ek_sha256)
    answer = stage.hello(machine)
    stage.enrolments.apply([("gpu-001", Retire())], Act(), NOW)  # type: ignore[attr-defined]
    with pytest.raises(RefusedError, match="gpu-001 is retired"):
        stage.hello(machine)
    with pytest.raises(RefusedError, match="gpu-001 is retired"):
        stage.attest(machine, answer)


# -- an attest that is altered ----------------------------------------------------------------------------------------


def flipped(value: str, at: int = -1) -> str:
    data = bytearray(base64.b64decode(value))
    data[at] ^= 1
    return text(bytes(data))


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("state", "the state is not one of this service: the seal does not fit"),
        ("proof", "the proof is not a signature of this state by the key of hello"),
        ("secret", "the secret is not the one that only this TPM could open"),
        ("quote", "the quote was not signed by this attestation key"),
        ("signature", "the quote was not signed by this attestation key"),
    ],
)
def test_a_field_with_one_bit_changed_is_refused_for_the_right_reason(
    stage: Stage, machine: Machine, field: str, words: str
) -> None:
    answer = stage.hello(machine)
    body = machine.attest(answer)
    value = body[field] if field in body else body["tpm"][field]
    changes: Any = {field: flipped(value)}
    with pytest.raises(RefusedError, match=words):
        stage.attest(machine, answer, **changes)
    assert stage.cluster.calls == []


def test_pcr_values_other_than_those_quoted_are_refused(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    values = machine.attest(answer)["tpm"]["pcrs"]["sha256"]
    for changed, words in (
        (values | {"3": "00" * 32}, "the PCR values are not those that were quoted"),
        ({key: value for key, value in values.items() if key != "3"}, "are not those that were quoted"),
        (values | {"9": "00" * 32}, "are not those that were quoted"),
        (values | {"3": "00" * 20}, "PCR 3 of sha256 must have 32 bytes"),
    ):
        with pytest.raises(RefusedError, match=words):
            stage.attest(machine, answer, pcrs={"sha256": changed})


def test_a_bank_that_nothing_was_measured_into_proves_nothing(stage: Stage, machine: Machine) -> None:
    machine.pcrs = dict.fromkeys(range(24), bytes(32))
    with pytest.raises(RefusedError, match="nothing was ever measured into the sha256 bank"):
        stage.join(machine)


def test_a_statement_that_is_left_out(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    with pytest.raises(RefusedError, match="said that it has a TPM, and gave no statement of it"):
        stage.attest(machine, answer, tpm=None)


def test_the_statement_of_another_exchange_is_a_replay(stage: Stage, machine: Machine) -> None:
    first, second = stage.hello(machine), stage.hello(machine)
    old = machine.attest(first)["tpm"]
    new = machine.attest(second)["tpm"]
    with pytest.raises(RefusedError, match="the secret is not the one"):
        stage.attest(machine, second, tpm=old)
    with pytest.raises(RefusedError, match="the quote does not cover this exchange"):
        stage.attest(machine, second, quote=old["quote"], signature=old["signature"])
    assert stage.attest(machine, second, tpm=new)["token"]


def test_a_right_quote_for_another_key_is_refused(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    statement = machine.attest(answer)["tpm"]
    thief = Machine(BOOT)
    with pytest.raises(RefusedError, match="the proof is not a signature of this state by the key of hello"):
        stage.attest(thief, answer, tpm=statement)
    with pytest.raises(RefusedError, match="the quote does not cover this exchange"):
        stage.attest(machine, answer, tpm=thief.attest(answer)["tpm"])  # the TPM was asked with another SPKI


def test_a_second_attestation_key_under_another_hierarchy_is_refused(stage: Stage, machine: Machine) -> None:
    stage.join(machine)
    machine.hierarchy, machine.resets, machine.key = 0x40000001, 900, new_key()
    with pytest.raises(RefusedError, match="the attestation key is not under the endorsement hierarchy of this TPM"):
        stage.join(machine)


def test_pcrs_that_the_policy_does_not_allow_are_refused_and_named(stage: Stage, machine: Machine) -> None:
    stage.machines = (pinned(machine, pcrs={"7": [PCRS[7].hex()], "11": [PCRS[11].hex(), "aa" * 32]}),)
    assert stage.hello(machine)["pcrs"] == {"sha256": [0, 1, 2, 3, 4, 5, 6, 7, 11]}
    machine.eventlog = EVENT_LOG
    stage.join(machine)
    assert stage.records[0].detail == "by tpm, PCR policy: 7, 11"
    machine.pcrs[11] = b"\x55" * 32
    with pytest.raises(RefusedError, match=f"PCR 11 of sha256 is {'55' * 32}, which is not allowed"):
        stage.join(machine)


def test_with_a_pcr_policy_there_must_be_an_event_log(stage: Stage, machine: Machine) -> None:
    stage.machines = (pinned(machine, pcrs={"7": [PCRS[7].hex()]}),)
    with pytest.raises(RefusedError) as caught:
        stage.join(machine)
    assert str(caught.value) == (
        "gpu-001 has a PCR policy, and sent no event log that leads to its PCRs: does its kernel have "
        "/sys/kernel/security/tpm0/binary_bios_measurements, of 160 KiB at most?"
    )
    assert stage.cluster.secrets == {}


@pytest.mark.parametrize("index", [7, 11, 15])
def test_the_event_log_must_lead_to_each_pcr_of_the_policy(stage: Stage, machine: Machine, index: int) -> None:
    """The value is allowed and quoted; the log tells of another."""
    machine.pcrs[index], machine.eventlog = b"\x55" * 32, EVENT_LOG
    stage.machines = (pinned(machine, pcrs={str(index): ["55" * 32]}),)
    with pytest.raises(RefusedError, match=f"the event log does not lead to the quoted PCR {index}$"):
        stage.join(machine)


def test_a_pcr_that_the_kernel_started_anew_is_judged_by_the_policy_alone(stage: Stage, machine: Machine) -> None:
    machine.pcrs[17], machine.eventlog = b"\x55" * 32, EVENT_LOG
    stage.machines = (pinned(machine, pcrs={"17": ["55" * 32]}),)
    assert stage.join(machine)["node_name"] == "gpu-001"


def test_an_event_log_must_lead_to_the_quoted_pcrs(stage: Stage, machine: Machine) -> None:
    machine.eventlog = spec_header({0xB: 32})
    with pytest.raises(RefusedError, match="the event log does not lead to the quoted PCR 0"):
        stage.join(machine)
    machine.eventlog = b"\0" * 40
    with pytest.raises(BadClaimError, match="the TPM's statement cannot be read: not a crypto-agile event log"):
        stage.join(machine)


def test_a_cluster_that_became_unfit_since_hello_gets_nothing_made_in_it(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)

    def unfit() -> None:
        raise CannotTellError("the approver has not been heard of")

    stage.preflight = unfit
    with pytest.raises(CannotTellError, match="the approver has not been heard of"):
        stage.attest(machine, answer)
    assert (stage.cluster.calls, stage.cluster.secrets, stage.records) == ([], {}, [])


def test_a_boot_that_is_no_boot_of_the_machine_any_more_is_refused_at_attest(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    stage.boot_key = b"o" * 32  # as after a restore
    with pytest.raises(RefusedError, match=f"{BOOT} is not a boot of gpu-001"):
        stage.attest(machine, answer)
    assert (stage.cluster.calls, stage.records) == ([], [])


@pytest.mark.parametrize(
    "change",
    [{"name": "gpu-009"}, {"node": {"name": "other"}}, {"cluster": "other"}, {"pcrs": {"7": ["aa" * 32]}}],
)
def test_what_was_changed_between_the_two_calls_means_beginning_again(
    stage: Stage, machine: Machine, change: Any
) -> None:
    answer = stage.hello(machine)
    stage.machines = (pinned(machine, **change),)
    with pytest.raises(StaleError, match="what is declared of gpu-001 was changed since hello: begin again"):
        stage.attest(machine, answer)


def test_a_tpm_that_is_not_enrolled_any_more_begins_again(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    stage.machines = ()
    with pytest.raises(StaleError, match="the TPM of gpu-001 is not enrolled"):
        stage.attest(machine, answer)


# -- time and keys ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ahead", [-25_000, 25_000])
def test_a_replica_whose_clock_is_25_s_off_takes_the_second_step(stage: Stage, machine: Machine, ahead: int) -> None:
    assert stage.attest(machine, stage.hello(machine), ahead_ms=ahead)["token"]


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (-600_000, "sealed by a clock that is 600 s ahead of this one: check NTP on both replicas"),
        (600_000, "expired 480 s ago by this clock: start again with hello"),
    ],
)
def test_one_that_is_10_minutes_off_says_so(stage: Stage, machine: Machine, ahead: int, words: str) -> None:
    answer = stage.hello(machine)
    with pytest.raises(StaleError, match=words):
        stage.attest(machine, answer, ahead_ms=ahead)


def test_keys_are_rotated_in_the_middle(stage: Stage, machine: Machine) -> None:
    old, new = stage.keys[0], SealingKey(b"n" * 32)
    answer = stage.hello(machine)
    stage.keys[:] = [new, old]
    assert stage.attest(machine, answer)["token"]
    answer = stage.hello(machine)
    stage.keys[:] = [old, new]  # a replica that has not promoted it yet
    assert stage.attest(machine, answer)["token"]
    stage.keys[:] = [old]
    with pytest.raises(StaleError, match="sealed under a key that is not in use here"):
        stage.attest(machine, answer)


def test_a_state_of_another_site_is_not_ours(stage: Stage, machine: Machine) -> None:
    state = base64.b64decode(stage.hello(machine)["state"])
    for site, data in (("elsewhere", state), ("test", state.replace(b"default\0", b"other\0"))):
        with pytest.raises(RefusedError, match="the state is not one of this service"):
            unseal(stage.exchange().keyset(), site, data, NOW)


# -- the journal ------------------------------------------------------------------------------------------------------


def test_what_cannot_be_written_down_is_not_handed_out(stage: Stage, machine: Machine) -> None:
    def refuse(_record: EventRecord) -> None:
        raise JournalUnavailableError("disk full")

    stage.journal = refuse
    with pytest.raises(JournalUnavailableError):
        stage.join(machine)
    stage.journal = None
    assert stage.join(machine)["token"]
    assert len(stage.cluster.secrets) == 1


def test_a_thief_with_a_reading_of_the_answer_to_hello_gets_nowhere(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    stage.join(machine)
    thief = Machine(BOOT)
    with pytest.raises(HeldError, match="another key holds the credential of this boot of gpu-001"):
        stage.join(thief)  # root on the machine itself, with another key in the same boot
    assert stage.attest(machine, answer)["token"]


def test_the_digest_of_what_the_tpm_signed_is_written_down(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    statement = machine.attest(answer)["tpm"]
    stage.attest(machine, answer, tpm=statement)
    signed = hashlib.sha256(base64.b64decode(statement["quote"])).hexdigest()
    assert [record.sha256 for record in stage.records] == [signed, ""]

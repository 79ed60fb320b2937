"""Machines that are not who they say they are, or prove it with what is not theirs."""

import base64
import dataclasses
import gzip
import http.client
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from netboot.stores.enrolment import SqliteEnrolments
from tests import soft_tpm
from tests.cluster.bad.kit import Kit
from tests.cluster.bad.whole import Whole, failed
from tests.processes import wait_for

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def no_token(whole: Whole, request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever happens in these tests, no token is made beside those that were handed out."""
    before = whole.tokens()
    yield
    assert whole.tokens() - before <= {token[:6] for token in whole.secrets}


def test_trust_on_first_use_with_a_software_tpm_behind_a_spoofed_mac(whole: Whole) -> None:
    owner = whole.fresh("new")
    opened = whole.service.netboot("machine", "enroll", owner.name, "--reason", "new rack")
    assert opened.returncode == 0, opened.stderr
    boot = whole.service.boot(owner.mac)
    thief = soft_tpm.Machine(boot, macs=(owner.mac,), serial=owner.serial, ek=ec.generate_private_key(ec.SECP384R1()))
    for _ in range(2):
        words = failed(whole.hello(thief), 403, "pending")
        assert words == (
            f"the TPM {thief.ek_sha256[:12]}... waits for approval as {owner.name}: compare it on the machine, then "
            f"`netboot machine approve {owner.name}`"
        )
    rightful = whole.power_on(owner)
    words = failed(whole.hello(rightful), 403, "refused")
    assert words.startswith(f"this machine claims to be {owner.name}, whose TPM is another one than ")
    shown = whole.service.netboot("machine", "enrolments", "--state", "pending").stdout
    assert thief.ek_sha256[:12] in shown and owner.name in shown


def test_the_mac_of_another_machine_with_a_foreign_tpm(whole: Whole) -> None:
    kit = whole.fresh()
    thief = kit.as_it_is(whole.service.boot(kit.mac), ek=soft_tpm.other_tpm())
    assert failed(whole.hello(thief), 403, "refused") == (
        f"this machine claims to be {kit.name}, whose TPM is another one than {thief.ek_sha256[:12]}...: if it was "
        f"replaced, `netboot machine replace {kit.name} --part tpm`"
    )


def test_an_unknown_endorsement_key(whole: Whole) -> None:
    kit = whole.fresh("new")  # nobody opened a window for it
    assert failed(whole.hello(whole.power_on(kit)), 404, "unknown-machine").endswith(
        f"which claims to be {kit.name}: `netboot machine enroll {kit.name}` lets it enrol"
    )
    stranger = soft_tpm.Machine(whole.service.boot(kit.mac), macs=("52:54:00:00:99:99",), ek=soft_tpm.other_tpm())
    words = failed(whole.hello(stranger), 404, "unknown-machine")
    assert words.endswith("which has no MAC, UUID or serial of the inventory")


def test_a_machine_with_a_tpm_on_record_that_claims_to_have_none(whole: Whole) -> None:
    kit = whole.fresh()
    words = failed(whole.hello(whole.power_on(kit, tpm=False)), 403, "refused")
    assert words.startswith(f"{kit.name} has a TPM on record and never joins without it")
    bare = whole.fresh("bare")  # whose nonce a thief has got hold of
    assert whole.service.netboot("token", "issue", "--machine", bare.name).returncode == 0
    nonce = fetched_nonce(whole, bare, bare.address)
    said = whole.hello(whole.power_on(kit, tpm=False, nonce=nonce), source=kit.address)
    assert failed(said, 403, "refused") == words


def test_a_nonce_used_by_thief_and_owner(whole: Whole) -> None:
    """The nonce is in the clear on the wire to the machine; the first of two closes the window, and it is said."""
    kit = whole.fresh("bare")
    assert whole.service.netboot("token", "issue", "--machine", kit.name, "--reason", "no TPM").returncode == 0
    nonce = fetched_nonce(whole, kit, kit.address)
    elsewhere = fetched_nonce(whole, kit, "127.0.1.99")
    boot = whole.service.boot(kit.mac)
    far = kit.as_it_is(boot, tpm=False, nonce=elsewhere)
    assert failed(whole.hello(far, source="127.0.1.99"), 403, "refused").startswith("127.0.1.99 is not an address of")
    assert failed(whole.hello(far, source=kit.address), 403, "refused").startswith("the nonce was not made for")
    thief, owner = (kit.as_it_is(boot, tpm=False, nonce=nonce) for _ in range(2))
    hellos = [whole.hello(one, source=kit.address) for one in (thief, owner)]
    assert [(one.status, one.body["assurance"]) for one in hellos] == [(200, "nonce")] * 2
    attests = [
        whole.net.ask("serve", "POST", "/v1/join/attest", one.attest(hello.body), source=kit.address)
        for one, hello in zip((thief, owner), hellos, strict=True)
    ]
    assert attests[0].status == 200, attests[0]
    whole.secrets.add(attests[0].body["token"])
    assert "netboot.dev/unattested:NoSchedule" in attests[0].body["taints"]
    words = failed(attests[1], 409, "held")
    assert words == (
        f"the boot window of {kit.name} is closed, or another key was first to use it: look which machine that was, "
        "then open another"
    )
    assert window_of(whole, kit.name) == ""
    assert f'msg="alert: {words}" machine={kit.name}' in whole.service.log


def changed(name: str, bit: int = 9) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """One bit of a field of the TPM's statement."""

    def change(tpm: dict[str, Any]) -> dict[str, Any]:
        data = bytearray(base64.b64decode(tpm[name]))
        data[-1 - bit // 8] ^= 1 << bit % 8
        return {name: base64.b64encode(bytes(data)).decode()}

    return change


def test_a_forged_quote(whole: Whole) -> None:
    kit = whole.fresh()
    machine = whole.power_on(kit)
    hello = whole.hello(machine).body
    honest = machine.attest(hello)["tpm"]
    forger = dataclasses.replace(machine, pcrs={**machine.pcrs, 0: bytes(32)})
    told = [
        whole.attest(machine, hello, **changed("signature")(honest)),
        whole.attest(machine, hello, **changed("quote")(honest)),
        whole.attest(machine, hello, pcrs=forger.attest(hello)["tpm"]["pcrs"]),
        whole.attest(machine, hello, secret=base64.b64encode(bytes(32)).decode()),
    ]
    words = [failed(said, 403, "refused").removeprefix("the TPM's statement is not accepted: ") for said in told]
    assert words == [
        "the quote was not signed by this attestation key",
        "the quote was not signed by this attestation key",
        "the PCR values are not those that were quoted",
        "the secret is not the one that only this TPM could open",
    ]


def test_a_replayed_quote(whole: Whole) -> None:
    kit = whole.fresh()
    machine = whole.power_on(kit)
    first, second = whole.hello(machine).body, whole.hello(machine).body
    old = machine.attest(first)["tpm"]
    words = failed(whole.attest(machine, second, tpm=old), 403, "refused")
    assert words == "the secret is not the one that only this TPM could open"
    own = machine.attest(second)["tpm"]
    words = failed(whole.attest(machine, second, tpm={**old, "secret": own["secret"]}), 403, "refused")
    assert words == "the TPM's statement is not accepted: the quote does not cover this exchange"


def test_the_right_quote_for_another_key(whole: Whole) -> None:
    """A thief who sees everything between machine and service puts his own key in the place of the machine's."""
    kit = whole.fresh()
    machine = whole.power_on(kit)
    thief = dataclasses.replace(machine, key=soft_tpm.new_key())
    stolen = machine.attest(whole.hello(machine).body)["tpm"]
    hello = whole.hello(thief).body
    own = thief.attest(hello)["tpm"]
    words = failed(whole.attest(thief, hello, tpm={**stolen, "secret": own["secret"]}), 403, "refused")
    assert words == "the TPM's statement is not accepted: the quote does not cover this exchange"
    hello = whole.hello(machine).body
    words = failed(whole.attest(thief, hello), 403, "refused")
    assert words == "the proof is not a signature of this state by the key of hello"


def test_pcrs_that_the_policy_does_not_allow(whole: Whole) -> None:
    kit = whole.fresh("pcr")
    machine = whole.power_on(kit)
    machine.pcrs[7] = bytes(31) + b"\x01"
    words = failed(whole.attest(machine, whole.hello(machine).body), 403, "refused")
    assert words.startswith("the TPM's statement is not accepted: PCR 7 ")
    whole.prove(whole.power_on(kit))  # the same machine as it should be


def fetched_nonce(whole: Whole, kit: Kit, source: str) -> str:
    """What the boot script of a machine in a boot window brings, fetched from `source`."""
    boot, host = whole.service.boot(kit.mac), whole.service.config.provisioning.listen
    path = f"/v1/boots/{boot}/nonce?machine={kit.name}&mac={kit.mac.replace(':', '-')}"

    def fetch() -> bytes:
        connection = http.client.HTTPConnection(host.host, host.port, timeout=10, source_address=(source, 0))
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            data = answer.read()
            return data if answer.status == 200 else b""
        finally:
            connection.close()

    [found] = re.findall(rb"nonce\0+([A-Za-z0-9+/]+={0,2})\n", gzip.decompress(wait_for(fetch, 60)))
    return str(found.decode())


def window_of(whole: Whole, machine: str) -> str:
    return SqliteEnrolments(whole.service.config.data / "enrolment.db").of(machine).window_id

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
from tests.cluster.threats.chassis import Chassis
from tests.cluster.threats.live_site import LiveSite, failed
from tests.processes import wait_for

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def no_token(site: LiveSite, request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever happens in these tests, no token is made beside those that were handed out."""
    before = site.tokens()
    yield
    assert site.tokens() - before <= {token[:6] for token in site.secrets}


def test_trust_on_first_use_with_a_software_tpm_behind_a_spoofed_mac(site: LiveSite) -> None:
    owner = site.fresh("new")
    opened = site.service.netboot("machine", "enroll", owner.name, "--reason", "new rack")
    assert opened.returncode == 0, opened.stderr
    boot = site.service.boot(owner.mac)
    thief = soft_tpm.Machine(boot, macs=(owner.mac,), serial=owner.serial, ek=ec.generate_private_key(ec.SECP384R1()))
    for said in (site.attest(thief, site.hello(thief).body), site.hello(thief)):
        words = failed(said, 403, "pending")
        assert words == (
            f"the TPM {thief.ek_sha256[:12]}... waits for approval as {owner.name}: compare it on the machine, then "
            f"`netboot machine approve {owner.name}`"
        )
    rightful = site.power_on(owner)
    words = failed(site.hello(rightful), 403, "refused")
    assert words.startswith(f"this machine claims to be {owner.name}, whose TPM is another one than ")
    shown = site.service.netboot("machine", "enrolments", "--state", "pending").stdout
    assert thief.ek_sha256[:12] in shown and owner.name in shown


def test_the_mac_of_another_machine_with_a_foreign_tpm(site: LiveSite) -> None:
    chassis = site.fresh()
    thief = chassis.as_it_is(site.service.boot(chassis.mac), ek=soft_tpm.other_tpm())
    assert failed(site.hello(thief), 403, "refused") == (
        f"this machine claims to be {chassis.name}, whose TPM is another one than {thief.ek_sha256[:12]}...: if it was "
        f"replaced, `netboot machine replace {chassis.name} --part tpm`"
    )


def test_an_unknown_endorsement_key(site: LiveSite) -> None:
    chassis = site.fresh("new")  # nobody opened a window for it
    assert failed(site.hello(site.power_on(chassis)), 404, "unknown-machine").endswith(
        f"which claims to be {chassis.name}: `netboot machine enroll {chassis.name}` lets it enrol"
    )
    stranger = soft_tpm.Machine(site.service.boot(chassis.mac), macs=("52:54:00:00:99:99",), ek=soft_tpm.other_tpm())
    words = failed(site.hello(stranger), 404, "unknown-machine")
    assert words.endswith("which has no MAC, UUID or serial of the inventory")


def test_a_machine_with_a_tpm_on_record_that_claims_to_have_none(site: LiveSite) -> None:
    chassis = site.fresh()
    words = failed(site.hello(site.power_on(chassis, tpm=False)), 403, "refused")
    assert words.startswith(f"{chassis.name} has a TPM on record and never joins without it")
    bare = site.fresh("bare")  # whose nonce a thief has got hold of
    assert site.service.netboot("token", "issue", "--machine", bare.name).returncode == 0
    nonce = fetched_nonce(site, bare, bare.address)
    said = site.hello(site.power_on(chassis, tpm=False, nonce=nonce), source=chassis.address)
    assert failed(said, 403, "refused") == words


def test_a_nonce_used_by_thief_and_owner(site: LiveSite) -> None:
    """The nonce is in the clear on the wire to the machine; the first of two closes the window, and it is said."""
    chassis = site.fresh("bare")
    assert site.service.netboot("token", "issue", "--machine", chassis.name, "--reason", "no TPM").returncode == 0
    nonce = fetched_nonce(site, chassis, chassis.address)
    elsewhere = fetched_nonce(site, chassis, "127.0.1.99")
    boot = site.service.boot(chassis.mac)
    far = chassis.as_it_is(boot, tpm=False, nonce=elsewhere)
    assert failed(site.hello(far, source="127.0.1.99"), 403, "refused").startswith("127.0.1.99 is not an address of")
    assert failed(site.hello(far, source=chassis.address), 403, "refused").startswith("the nonce was not made for")
    thief, owner = (chassis.as_it_is(boot, tpm=False, nonce=nonce) for _ in range(2))
    hellos = [site.hello(one, source=chassis.address) for one in (thief, owner)]
    assert [(one.status, one.body["assurance"]) for one in hellos] == [(200, "nonce")] * 2
    attests = [
        site.net.ask("serve", "POST", "/v1/join/attest", one.attest(hello.body), source=chassis.address)
        for one, hello in zip((thief, owner), hellos, strict=True)
    ]
    assert attests[0].status == 200, attests[0]
    site.secrets.add(attests[0].body["token"])
    assert "netboot.dev/unattested:NoSchedule" in attests[0].body["taints"]
    words = failed(attests[1], 409, "held")
    assert words == (
        f"the boot window of {chassis.name} is closed, or another key was first to use it: "
        "look which machine that was, then open another"
    )
    assert window_of(site, chassis.name) == ""
    said = next(line for line in site.service.log.splitlines() if f'msg="alert: {words}"' in line)
    assert f" machine={chassis.name} " in said


def changed(name: str, bit: int = 9) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """One bit of a field of the TPM's statement."""

    def change(tpm: dict[str, Any]) -> dict[str, Any]:
        data = bytearray(base64.b64decode(tpm[name]))
        data[-1 - bit // 8] ^= 1 << bit % 8
        return {name: base64.b64encode(bytes(data)).decode()}

    return change


def test_a_forged_quote(site: LiveSite) -> None:
    chassis = site.fresh()
    machine = site.power_on(chassis)
    hello = site.hello(machine).body
    honest = machine.attest(hello)["tpm"]
    forger = dataclasses.replace(machine, pcrs={**machine.pcrs, 0: bytes(32)})
    told = [
        site.attest(machine, hello, **changed("signature")(honest)),
        site.attest(machine, hello, **changed("quote")(honest)),
        site.attest(machine, hello, pcrs=forger.attest(hello)["tpm"]["pcrs"]),
        site.attest(machine, hello, secret=base64.b64encode(bytes(32)).decode()),
    ]
    words = [failed(said, 403, "refused").removeprefix("the TPM's statement is not accepted: ") for said in told]
    assert words == [
        "the quote was not signed by this attestation key",
        "the quote was not signed by this attestation key",
        "the PCR values are not those that were quoted",
        "the secret is not the one that only this TPM could open",
    ]


def test_a_replayed_quote(site: LiveSite) -> None:
    chassis = site.fresh()
    machine = site.power_on(chassis)
    first, second = site.hello(machine).body, site.hello(machine).body
    old = machine.attest(first)["tpm"]
    words = failed(site.attest(machine, second, tpm=old), 403, "refused")
    assert words == "the secret is not the one that only this TPM could open"
    own = machine.attest(second)["tpm"]
    words = failed(site.attest(machine, second, tpm={**old, "secret": own["secret"]}), 403, "refused")
    assert words == "the TPM's statement is not accepted: the quote does not cover this exchange"


def test_the_right_quote_for_another_key(site: LiveSite) -> None:
    """A thief who sees everything between machine and service puts his own key in the place of the machine's."""
    chassis = site.fresh()
    machine = site.power_on(chassis)
    thief = dataclasses.replace(machine, key=soft_tpm.new_key())
    stolen = machine.attest(site.hello(machine).body)["tpm"]
    hello = site.hello(thief).body
    own = thief.attest(hello)["tpm"]
    words = failed(site.attest(thief, hello, tpm={**stolen, "secret": own["secret"]}), 403, "refused")
    assert words == "the TPM's statement is not accepted: the quote does not cover this exchange"
    hello = site.hello(machine).body
    words = failed(site.attest(thief, hello), 403, "refused")
    assert words == "the proof is not a signature of this state by the key of hello"


def test_pcrs_that_the_policy_does_not_allow(site: LiveSite) -> None:
    chassis = site.fresh("pcr")
    machine = site.power_on(chassis)
    machine.pcrs[7] = bytes(31) + b"\x01"
    words = failed(site.attest(machine, site.hello(machine).body), 403, "refused")
    assert words.startswith("the TPM's statement is not accepted: PCR 7 ")
    words = failed(site.attest(honest := site.power_on(chassis), site.hello(honest).body), 403, "refused")
    assert words.startswith(f"{chassis.name} has a PCR policy, and sent no event log that leads to its PCRs: ")
    site.prove(site.power_on(chassis, eventlog=soft_tpm.EVENT_LOG))  # the same machine as it should be


def fetched_nonce(site: LiveSite, chassis: Chassis, source: str) -> str:
    """What the boot script of a machine in a boot window brings, fetched from `source`."""
    boot, host = site.service.boot(chassis.mac), site.service.config.provisioning.listen
    path = f"/v1/boots/{boot}/nonce?machine={chassis.name}&mac={chassis.mac.replace(':', '-')}"

    def fetch() -> bytes:
        connection = http.client.HTTPConnection(host.host, host.port, timeout=60, source_address=(source, 0))
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            data = answer.read()
            return data if answer.status == 200 else b""
        finally:
            connection.close()

    [found] = re.findall(rb"nonce\0+([A-Za-z0-9+/]+={0,2})\n", gzip.decompress(wait_for(fetch, 180)))
    return str(found.decode())


def window_of(site: LiveSite, machine: str) -> str:
    return SqliteEnrolments(site.service.config.data / "enrolment.db").of(machine).window_id

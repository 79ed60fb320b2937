"""What the inventory pins, beside what is on record: who wins, and what is said."""

import base64
from collections.abc import Sequence

import pytest
from cryptography.x509 import Certificate

from netboot.join.enrolment import (
    Act,
    Approve,
    Details,
    Import,
    OpenWindow,
    OrdersRefusedError,
    Release,
    Replace,
    Retire,
)
from netboot.join.errors import RefusedError
from netboot.join.ports import Enrolment
from netboot.join.register import Register
from netboot.lifecycle.snapshot import BootWindow
from netboot.machines.values import Inventory
from tests.enrolments import MemoryEnrolments
from tests.unit.tokens.ek_certificates import AT, der, ek_certificate, maker
from tests.unit.tokens.soft import ECC_EK
from tokens.ekcert import read_ek_certificate

NOW = int(AT.timestamp() * 1000)
A, B, C = "a1" * 32, "b2" * 32, "c3" * 32
ACT = Act("alice")


def machine(name: str, **more: object) -> dict[str, object]:
    match = {"serial": name, "ek_sha256": more.pop("ek", None)}
    return {"name": name, "match": match, "profile": "compute", **more}


def inventory(*machines: dict[str, object]) -> Inventory:
    return Inventory.model_validate({"machines": machines})


class Site:
    """A register whose inventory can be edited."""

    def __init__(self, *machines: dict[str, object], roots: Sequence[Certificate] | None = None) -> None:
        self.inventory = inventory(*machines)
        self.store = MemoryEnrolments()
        asked = None if roots is None else lambda: roots
        self.register = Register(self.store, lambda: self.inventory, asked)

    def refusal(self, name: str, order: object) -> str:
        with pytest.raises(OrdersRefusedError) as caught:
            self.register.apply([(name, order)], ACT, NOW)  # type: ignore[list-item]
        return str(caught.value)


def test_an_ek_of_the_inventory_is_approved() -> None:
    site = Site(machine("gpu-001", ek=A), machine("gpu-002"))
    found = Enrolment(machine="gpu-001", ek_sha256=A, state="approved", source="inventory")
    assert site.register.by_ek(A) == site.register.of("gpu-001") == found
    assert site.register.propose("gpu-001", A, "", NOW) == found
    assert site.register.by_ek(B) is None
    assert site.register.of("gpu-002").state == "none"
    assert site.store.records() == []


def test_the_inventory_wins_and_the_conflict_is_said() -> None:
    site = Site(machine("gpu-001"), machine("gpu-002"))
    site.register.apply([("gpu-001", Import(A)), ("gpu-002", Import(B))], ACT, NOW)
    site.inventory = inventory(machine("gpu-001", ek=C), machine("gpu-002"))
    assert site.register.of("gpu-001").ek_sha256 == C
    old = site.register.by_ek(A)
    assert old is not None
    assert (old.machine, old.state) == ("gpu-001", "retired")
    assert [(one.machine, one.ek_sha256, one.conflict) for one in site.register.views(NOW)] == [
        (
            "gpu-001",
            C,
            "the inventory pins EK c3c3c3c3c3c3c3c3..., on record is EK a1a1a1a1a1a1a1a1...: the inventory's counts",
        ),
        ("gpu-002", B, ""),
    ]
    site.inventory = inventory(machine("gpu-001", ek=B), machine("gpu-002"))
    assert site.register.of("gpu-002").state == "pending"
    pinned = site.register.by_ek(B)
    assert pinned is not None
    assert (pinned.machine, pinned.state) == ("gpu-001", "approved")
    assert site.register.view("gpu-002", NOW).conflict == (
        "the inventory gives EK b2b2b2b2b2b2b2b2... to gpu-001: gpu-002 waits until that is settled"
    )
    site.inventory = inventory(machine("gpu-003", ek=A))
    assert site.register.view("gpu-003", NOW).conflict == (
        "the inventory pins EK a1a1a1a1a1a1a1a1..., which is on record as the TPM of gpu-001"
    )


def test_retired_is_the_one_thing_that_overrules_the_inventory() -> None:
    site = Site(machine("gpu-001", ek=A))
    site.register.apply([("gpu-001", Retire())], ACT, NOW)
    found = site.register.by_ek(A)
    assert found is not None
    assert (found.state, found.ek_sha256) == ("retired", A)
    words = "the enrolment of gpu-001 is not what was shown: its EK is a1a1a1a1a1a1a1a1... now; look again"
    assert site.refusal("gpu-001", Approve(B)) == words
    assert site.register.view("gpu-001", NOW).retired_from == "approved"
    site.register.apply([("gpu-001", Approve(A))], ACT, NOW)
    assert site.register.of("gpu-001") == Enrolment(
        machine="gpu-001", ek_sha256=A, state="approved", source="inventory", generation=1
    )


def stranger_beside_a_pin() -> Site:
    """A stranger came through the window as gpu-001; the operator then pinned the right EK."""
    site = Site(machine("gpu-001"))
    site.register.apply([("gpu-001", OpenWindow("enrol", "w", NOW + 9_000))], ACT, NOW)
    site.register.propose("gpu-001", B, "", NOW)
    site.inventory = inventory(machine("gpu-001", ek=A))
    return site


def test_a_pin_wins_over_a_stranger_that_came_before() -> None:
    site = stranger_beside_a_pin()
    assert site.register.of("gpu-001").approved_ek == A
    stranger = site.register.by_ek(B)
    assert stranger is not None
    assert stranger.approved_ek is None
    words = "the enrolment of gpu-001 is not what was shown: its EK is a1a1a1a1a1a1a1a1... now; look again"
    assert site.refusal("gpu-001", Approve(B)) == words
    site.inventory = inventory(machine("gpu-001"))
    assert site.register.of("gpu-001").state == "pending"


def test_who_brings_a_pinned_machine_back_approves_no_stranger() -> None:
    site = stranger_beside_a_pin()
    site.register.apply([("gpu-001", Retire())], ACT, NOW)
    assert "is not what was shown" in site.refusal("gpu-001", Approve(B))
    assert "is not what was shown" in site.refusal("gpu-001", Approve(A, revision=1))
    site.register.apply([("gpu-001", Approve(A))], ACT, NOW)
    assert site.register.of("gpu-001").approved_ek == A
    site.inventory = inventory(machine("gpu-001"))
    assert (site.register.of("gpu-001").state, site.register.of("gpu-001").ek_sha256) == ("pending", B)
    stranger = site.register.by_ek(B)
    assert stranger is not None
    assert stranger.approved_ek is None


def test_an_ek_that_the_inventory_gives_to_another_is_not_approved() -> None:
    site = Site(machine("gpu-001"), machine("gpu-002"))
    site.register.apply([("gpu-001", OpenWindow("enrol", "w", NOW + 9_000))], ACT, NOW)
    site.register.propose("gpu-001", B, "", NOW)
    site.inventory = inventory(machine("gpu-001"), machine("gpu-002", ek=B))
    assert site.refusal("gpu-001", Approve(B)) == (
        "EK b2b2b2b2b2b2b2b2... is the TPM of gpu-002 by the inventory, not of gpu-001"
    )


def test_what_the_inventory_pins_is_changed_there() -> None:
    site = Site(machine("gpu-001", ek=A), machine("gpu-002"))
    words = "the inventory pins the TPM of gpu-001 (EK a1a1a1a1a1a1a1a1...): change match.ek_sha256 there"
    assert site.refusal("gpu-001", OpenWindow("enrol", "w", NOW + 1_000)) == words
    assert site.refusal("gpu-001", Import(B)) == words
    assert site.refusal("gpu-001", Replace("w", NOW + 1_000)) == words
    assert (
        site.refusal("gpu-001", Approve(A)) == "gpu-001 is approved by the inventory already (EK a1a1a1a1a1a1a1a1...)"
    )
    assert site.refusal("gpu-002", Import(A)) == (
        "EK a1a1a1a1a1a1a1a1... is the TPM of gpu-001 by the inventory, not of gpu-002"
    )
    assert site.register.apply([("gpu-001", Import(A))], ACT, NOW) == []
    assert site.register.apply([("gpu-001", Release())], ACT, NOW)[0].record.generation == 1


def test_a_machine_of_the_inventory_shows_its_own_tpm_or_none() -> None:
    site = Site(machine("gpu-001", ek=A), machine("gpu-002"))
    site.register.apply([("gpu-002", OpenWindow("enrol", "w", NOW + 9_000))], ACT, NOW)
    with pytest.raises(RefusedError, match="gpu-002 shows the TPM that the inventory gives gpu-001"):
        site.register.propose("gpu-002", A, "", NOW)
    with pytest.raises(RefusedError, match=r"gpu-001 shows another TPM \(EK b2.*\) than the inventory pins \(EK a1"):
        site.register.propose("gpu-001", B, "", NOW)


def test_a_boot_window_is_for_machines_that_may_do_without_a_tpm() -> None:
    site = Site(machine("gpu-001"), machine("old-001", identity="nonce"))
    window = OpenWindow("boot", "w", NOW + 9_000)
    assert site.refusal("gpu-001", window) == (
        "gpu-001 proves itself by its TPM; to let it join without one, set `identity: nonce` in the inventory"
    )
    site.register.apply([("old-001", window)], ACT, NOW)
    assert site.register.of("old-001").window == "boot"
    assert site.register.view("old-001", NOW).window == "boot"
    assert site.register.view("old-001", NOW + 9_000).window is None
    assert site.register.use_window("old-001", "w", NOW) is True


def test_refusals_of_both_kinds_come_together_at_their_places() -> None:
    site = Site(machine("gpu-001", ek=A), machine("gpu-002"), machine("gpu-003"))
    site.register.apply([("gpu-003", Import(C))], ACT, NOW)
    with pytest.raises(OrdersRefusedError) as caught:
        site.register.apply([("gpu-001", Import(A)), ("gpu-002", Import(C))], ACT, NOW)
    assert [number for number, _ in caught.value.refusals] == [1]


CERTIFICATE = der(ek_certificate(maker()[1]))
EK = read_ek_certificate(CERTIFICATE).ek_sha256
ROOTS = [one.certificate for one in maker()]


def details(certificate: bytes | None) -> str:
    encoded = base64.b64encode(certificate).decode() if certificate is not None else None
    return Details(ek_certificate=encoded, serial="S1", peer="192.0.2.7").model_dump_json()


@pytest.mark.parametrize(
    ("certificate", "roots", "words"),
    [
        (None, ROOTS, "the machine sent no EK certificate"),
        (b"rubbish", ROOTS, "its EK certificate cannot be read: "),
        (der(ek_certificate(maker()[1], ECC_EK)), ROOTS, "the EK certificate is of another EK"),
        (CERTIFICATE, ROOTS[:1], "no authority is named 'CN=Maker Intermediate'"),
    ],
)
def test_where_the_site_has_roots_a_window_wants_a_chain(
    certificate: bytes | None, roots: list[Certificate], words: str
) -> None:
    site = Site(machine("gpu-001"), roots=roots)
    site.register.apply([("gpu-001", OpenWindow("enrol", "w", NOW + 9_000))], ACT, NOW)
    with pytest.raises(RefusedError) as caught:
        site.register.propose("gpu-001", EK, details(certificate), NOW)
    assert str(caught.value).startswith(f"the TPM of gpu-001 cannot enrol here: {words}")
    assert site.register.of("gpu-001").state == "none"
    site.register.apply([("gpu-001", Import(EK))], ACT, NOW)
    assert site.register.of("gpu-001").state == "approved"


def test_a_good_chain_enrols_and_is_shown() -> None:
    site = Site(machine("gpu-001"), roots=ROOTS)
    site.register.apply([("gpu-001", OpenWindow("enrol", "w", NOW + 9_000))], ACT, NOW)
    assert site.register.propose("gpu-001", EK, details(CERTIFICATE), NOW).state == "pending"
    view = site.register.view("gpu-001", NOW)
    assert view.certificate is not None
    assert (view.certificate.verdict, view.certificate.words) == ("good", "leads to CN=Maker Root")
    assert view.certificate.tpm == "manufacturer id:53574B20, model swtpm, version id:20240125"
    assert (view.details.serial, view.details.peer) == ("S1", "192.0.2.7")
    assert site.register.propose("gpu-001", EK, details(None), NOW).state == "pending"


def test_without_roots_the_chain_is_not_looked_at() -> None:
    site = Site(machine("gpu-001"))
    site.register.apply([("gpu-001", OpenWindow("enrol", "w", NOW + 9_000))], ACT, NOW)
    site.register.propose("gpu-001", EK, details(CERTIFICATE), NOW)
    view = site.register.view("gpu-001", NOW)
    assert view.certificate is not None
    assert (view.certificate.verdict, view.certificate.words) == ("unchecked", "not checked: no join.tpm_roots")


def test_boot_windows_are_only_of_machines_that_may_use_one() -> None:
    names = ("open", "over", "off", "pinned", "pending", "by-tpm", "gone", "enrols")
    site = Site(*(machine(name, identity="nonce") for name in names))
    orders = [(name, OpenWindow("boot", f"w-{name}", NOW + 60_000)) for name in names[:-1]]
    site.register.apply([*orders, ("enrols", OpenWindow("enrol", "w", NOW + 60_000))], ACT, NOW)
    site.register.apply([("over", OpenWindow("boot", "w-over", NOW + 1_000))], ACT, NOW)
    site.register.apply([("pending", Import(A))], ACT, NOW)
    site.inventory = inventory(
        *(machine(name, identity="nonce") for name in ("open", "over", "pending", "enrols")),
        machine("off", identity="nonce", enabled=False),
        machine("pinned", identity="nonce", ek=B),
        machine("by-tpm"),
    )
    found = site.register.boot_windows(NOW + 2_000)
    assert found == {"open": BootWindow(id="w-open", until_ms=NOW + 60_000)}
    assert site.register.boot_windows(NOW + 60_000) == {}

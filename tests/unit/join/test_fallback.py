"""The assurance levels below the TPM: a boot window's nonce and, in labs, the address."""

import os
from typing import Any

import pytest

from netboot.join.enrolment import Act, Alert, Entry, OpenWindow
from netboot.join.errors import HeldError, JoinError, RefusedError, StaleError
from netboot.join.state import Nonce, seal_nonce
from netboot.machines.values import Machine as Declared
from tests.joining import NOW, PEER, Stage, boot_id, declared, pinned
from tests.soft_tpm import MAC, Machine, text

BOOT = boot_id("gpu-001")


def weak(**more: Any) -> Declared:
    fields: dict[str, Any] = {
        "identity": "nonce",
        "match": {"macs": (MAC,), "serial": "S1"},
        "node": {"addresses": (PEER,)},
    }
    return declared(**(fields | more))


def opened(stage: Stage, window: str = "w1") -> None:
    apply: Any = stage.enrolments.apply  # type: ignore[attr-defined]
    apply([("gpu-001", OpenWindow("boot", window, stage.now_ms + 600_000))], Act(), stage.now_ms)


def history(stage: Stage) -> list[Entry]:
    found: list[Entry] = stage.enrolments.history("gpu-001", 10)  # type: ignore[attr-defined]
    return found


def alerts(stage: Stage) -> list[Alert]:
    found: list[Alert] = stage.enrolments.alerts("gpu-001")  # type: ignore[attr-defined]
    return found


def nonce(stage: Stage, window: str = "w1", **more: str) -> str:
    value = Nonce.model_validate({"mac": MAC, "address": PEER, "machine": "gpu-001", "window": window} | more)
    return text(seal_nonce(stage.exchange().nonce_keyset(), "test", value, stage.now_ms, os.urandom))


@pytest.fixture
def stage() -> Stage:
    made = Stage((weak(),))
    opened(made)
    return made


@pytest.fixture
def machine(stage: Stage) -> Machine:
    return Machine(BOOT, serial="S1", tpm=False, nonce=nonce(stage))


def test_a_boot_window_lets_its_machine_join_once_and_tainted(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    assert set(answer) == {"assurance", "state", "now_ms"} and answer["assurance"] == "nonce"
    said = stage.attest(machine, answer)
    assert said["taints"] == ["netboot.dev/unchecked:NoExecute", "netboot.dev/unattested:NoSchedule"]
    assert stage.records[0].detail == "by nonce, without a TPM"
    assert stage.enrolments.of("gpu-001").window is None


def test_of_thief_and_owner_one_wins_and_the_other_is_an_alert(
    stage: Stage, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    thief = Machine(BOOT, serial="S1", tpm=False, nonce=machine.nonce)
    mine, theirs = stage.hello(machine), stage.hello(thief)
    assert stage.attest(thief, theirs)["token"]
    with pytest.raises(HeldError):
        stage.attest(machine, mine)
    assert "alert: the boot window of gpu-001 is closed, or another key was first to use it" in caplog.text
    assert history(stage)[0].act == "window-used"
    (alert,) = alerts(stage)
    assert (alert.machine, alert.kind, alert.count) == ("gpu-001", "window-used", 1)
    assert alert.said.startswith("the boot window of gpu-001 is closed, or another key was first to use it: look which")
    assert f"boot {BOOT}, key " in alert.said
    with pytest.raises(HeldError):
        stage.attest(machine, mine)
    assert [one.count for one in alerts(stage)] == [2]
    assert [one.act for one in history(stage)] == ["window-used", "window-opened"]
    assert stage.attest(thief, stage.hello(thief))["token"]  # who has it may ask again
    assert len(stage.cluster.secrets) == 1


def test_a_race_for_the_window_has_one_winner(stage: Stage, machine: Machine) -> None:
    thief = Machine(BOOT, serial="S1", tpm=False, nonce=machine.nonce)
    stage.cluster.before["leases.write"] = lambda: (stage.join(thief), None)[1]
    with pytest.raises(HeldError):
        stage.join(machine)
    assert len(stage.cluster.secrets) == 1


def test_a_window_that_another_used_and_a_lease_that_was_deleted_since(stage: Stage, machine: Machine) -> None:
    def used() -> None:
        stage.enrolments.use_window("gpu-001", "w1", stage.now_ms)

    stage.cluster.before["leases.write"] = used
    with pytest.raises(HeldError, match="was used by another machine: open another"):
        stage.join(machine)
    assert alerts(stage)[0].said.startswith("the boot window of gpu-001 was used by another machine: open another (")
    assert stage.cluster.secrets == {}


def test_a_ready_node_is_not_taken_over(stage: Stage, machine: Machine) -> None:
    stage.cluster.make_node("gpu-001", ready=True)
    with pytest.raises(RefusedError, match="gpu-001 is a Ready node: only a TPM can show"):
        stage.join(machine)
    assert stage.enrolments.of("gpu-001").window == "boot"
    stage.cluster.make_node("gpu-001", ready=False)
    assert stage.join(machine)["token"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"serial": None}, "must show the serial number that the inventory gives it"),
        ({"serial": "S2"}, "must show the serial number that the inventory gives it"),
        ({"macs": ()}, "gpu-001 is not known by any MAC that this machine has"),
        ({"nonce": None}, "has neither a TPM nor the nonce of a boot window"),
        ({"nonce": text(b"x" * 80)}, "sealed under a key that is not in use here"),
    ],
)
def test_what_must_fit_for_a_window(stage: Stage, machine: Machine, change: Any, words: str) -> None:
    for name, value in change.items():
        setattr(machine, name, value)
    with pytest.raises(JoinError, match=words):
        stage.hello(machine)


@pytest.mark.parametrize(
    "change", [{"machine": "gpu-002"}, {"mac": "52:54:00:00:00:77"}, {"address": "192.0.2.99"}, {"address": "x"}]
)
def test_a_nonce_of_another_machine_place_or_card(stage: Stage, machine: Machine, change: Any) -> None:
    machine.nonce = nonce(stage, **change)
    with pytest.raises(RefusedError, match=f"the nonce was not made for gpu-001 at {PEER}"):
        stage.hello(machine)


def test_from_another_address_neither_step_is_taken(stage: Stage, machine: Machine) -> None:
    with pytest.raises(RefusedError, match=r"192\.0\.2\.66 is not an address of gpu-001"):
        stage.hello(machine, peer="192.0.2.66")
    answer = stage.hello(machine)
    with pytest.raises(RefusedError, match=r"192\.0\.2\.66 is not an address of gpu-001"):
        stage.attest(machine, answer, peer="192.0.2.66")


def test_a_nonce_expires_and_another_site_s_is_none(stage: Stage, machine: Machine) -> None:
    stage.now_ms += 631_000
    with pytest.raises(RefusedError, match="the nonce of this boot is over, after 10 minutes: reboot while the boot"):
        stage.hello(machine)
    value = Nonce(mac=MAC, address=PEER, machine="gpu-001", window="w1")
    machine.nonce = text(seal_nonce(stage.exchange().nonce_keyset(), "elsewhere", value, stage.now_ms, os.urandom))
    with pytest.raises(RefusedError, match="the nonce is not one of this service: boot again"):
        stage.hello(machine)


def test_a_closed_window_and_one_that_is_over(stage: Stage, machine: Machine) -> None:
    stage.enrolments.use_window("gpu-001", "w1", NOW)
    with pytest.raises(HeldError, match="the boot window of gpu-001 is closed"):
        stage.join(machine)


def test_a_tpm_that_was_enrolled_since_makes_the_nonce_worthless(stage: Stage, machine: Machine) -> None:
    answer = stage.hello(machine)
    stage.machines = (pinned(Machine(BOOT, serial="S1"), identity="nonce", node={"addresses": (PEER,)}),)
    with pytest.raises(RefusedError, match="has a TPM on record and never joins without it"):
        stage.attest(machine, answer)


def test_an_address_is_enough_only_where_it_was_said_twice(stage: Stage, machine: Machine) -> None:
    stage.machines = (weak(identity="address"),)
    machine.nonce = None
    with pytest.raises(RefusedError, match=r"an address proves nothing here: join\.addresses_attest is off"):
        stage.hello(machine)
    stage.addresses_attest = True
    answer = stage.hello(machine, peer=f"::ffff:{PEER}")
    assert answer["assurance"] == "address"
    assert "netboot.dev/unattested:NoSchedule" in stage.attest(machine, answer)["taints"]
    answer = stage.hello(machine)
    stage.addresses_attest = False
    with pytest.raises(StaleError, match="how gpu-001 proves itself was changed since hello"):
        stage.attest(machine, answer)

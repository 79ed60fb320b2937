"""One credential per boot: each rule by itself, and all of them against whatever a machine may do."""

import dataclasses
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from netboot.join.credential import MOST_REISSUES, Decision, Presented, decide_credential
from netboot.join.ports import Credential
from netboot.machines.values import AssuranceLevel, weaker
from tests.joining import NOW, boot_id

GOOD = Presented(
    Credential(
        machine="gpu-001",
        cluster="default",
        node="gpu-001",
        assurance="tpm",
        boot=boot_id("gpu-001"),
        holder="a" * 64,
        holder_spki="c3BraQ==",
        reset_count=5,
        restart_count=6,
        at_ms=0,
    )
)


def replace(presented: Presented, **changes: Any) -> Presented:
    """The same with other fields, of what is asked or of `presented` itself; `counters`: (resets, restarts) or None."""
    if "counters" in changes:
        resets, restarts = changes.pop("counters") or (None, None)
        changes |= {"reset_count": resets, "restart_count": restarts}
    own = {name: changes.pop(name) for name in ("continued", "window_open") if name in changes}
    return dataclasses.replace(presented, asked=presented.asked.model_copy(update=changes), **own)


OTHER = replace(GOOD, holder="b" * 64)


def lease(presented: Presented = GOOD, issued: int = 1) -> Credential:
    """The Lease after `presented` was let in."""
    credential = decide_credential(None, presented, NOW).credential
    assert credential is not None
    return credential.model_copy(update={"issued": issued, "version": "7", "token_id": "abcdef"})


def decided(existing: Credential | None, presented: Presented) -> Decision:
    decision = decide_credential(existing, presented, NOW + 1)
    assert (decision.credential is None) == (decision.kind == "refuse") == bool(decision.message)
    return decision


def test_another_tpm_counts_for_itself() -> None:
    """The inventory names another now: what the one before has counted says nothing of it."""
    before = lease(replace(GOOD, ek_sha256="1" * 64))
    for counters in ((0, 0), (5, 6), (99, 0)):
        decision = decided(before, replace(GOOD, ek_sha256="2" * 64, holder="b" * 64, counters=counters))
        assert decision.kind == "new"
        assert decision.credential is not None
        assert decision.credential.ek_sha256 == "2" * 64
    assert decided(before, replace(GOOD, ek_sha256="1" * 64, counters=(0, 0))).kind == "refuse"
    assert decided(lease(), replace(GOOD, ek_sha256="1" * 64, holder="b" * 64)).kind == "refuse"
    again = decided(lease(), replace(GOOD, ek_sha256="1" * 64)).credential
    assert again is not None
    assert again.ek_sha256 == "1" * 64


def test_the_first_of_all_is_new() -> None:
    assert decided(None, GOOD) == Decision(
        "new",
        credential=Credential(
            machine="gpu-001",
            cluster="default",
            node="gpu-001",
            assurance="tpm",
            boot=GOOD.asked.boot,
            holder="a" * 64,
            holder_spki="c3BraQ==",
            reset_count=5,
            restart_count=6,
            at_ms=NOW + 1,
        ),
    )


@pytest.mark.parametrize("counters", [(6, 0), (5, 7), (900, 0)])
def test_a_reboot_is_new_for_any_key_and_its_count_begins_anew(counters: tuple[int, int]) -> None:
    for presented in (GOOD, OTHER):
        decision = decided(lease(issued=4), replace(presented, counters=counters))
        assert decision.kind == "new" and decision.credential is not None
        assert (decision.credential.issued, decision.credential.version) == (0, "7")


@pytest.mark.parametrize("counters", [(4, 99), (5, 5), (0, 0)])
def test_counters_that_went_backwards_wait_for_a_release_whoever_asks(counters: tuple[int, int]) -> None:
    for presented in (GOOD, OTHER, replace(OTHER, continued=True)):
        decision = decided(lease(), replace(presented, counters=counters))
        assert decision.alert
        assert decision.message == (
            f"the TPM of gpu-001 counts fewer resets than it did ({counters[0]}.{counters[1]} after 5.6): was it "
            "cleared? If that was you, `netboot machine release gpu-001`"
        )
        assert decided(lease(), replace(presented, counters=counters, generation=1)).kind == "new"


def test_the_same_key_is_given_three_more() -> None:
    assert [decided(lease(issued=issued), GOOD).kind for issued in range(6)] == ["reissue"] * 4 + ["refuse"] * 2
    assert decided(lease(issued=4), GOOD).message == (
        "gpu-001 has had 4 tokens for this boot, and that is the limit: reboot it, or `netboot machine release gpu-001`"
    )


def test_another_key_in_the_same_boot_is_refused_unless_the_holder_signed_for_it() -> None:
    decision = decided(lease(), OTHER)
    assert decision.alert
    assert decision.message == (
        "another key holds the credential of this boot of gpu-001: reboot it; if that does not help, "
        "`netboot machine release gpu-001`"
    )
    heir = decided(lease(issued=2), replace(OTHER, continued=True))
    assert heir.kind == "reissue" and heir.credential is not None
    assert (heir.credential.holder, heir.credential.issued) == ("b" * 64, 2)


def test_assurance_rises_and_never_falls() -> None:
    below = replace(OTHER, assurance="nonce", counters=None, window="w1", window_open=True)
    bottom = replace(OTHER, assurance="address", counters=None, boot=boot_id("gpu-001", 9))
    for existing, presented in ((GOOD, below), (GOOD, bottom), (below, bottom)):
        decision = decided(lease(existing), presented)
        assert decision.alert == "weaker" and "is less: `netboot machine release gpu-001`" in decision.message
        assert decided(lease(presented), existing).kind == "new"


def test_a_window_is_of_the_first_who_uses_it() -> None:
    first = replace(GOOD, assurance="nonce", counters=None, window="w1", window_open=True)
    assert decided(None, first).kind == "new"
    taken = lease(first)
    for still_open in (True, False):
        thief = decided(taken, replace(first, holder="b" * 64, window_open=still_open))
        assert (thief.kind, thief.alert) == ("refuse", "other-key" if still_open else "window-used")
        assert decided(taken, replace(first, window_open=still_open)).kind == "reissue"
    assert decided(taken, replace(first, holder="b" * 64, window="w2")).kind == "new"
    assert decided(taken, replace(first, holder="b" * 64, window="w2", window_open=False)).kind == "refuse"
    assert decided(None, replace(first, window_open=False)).message.startswith("the boot window of gpu-001 is closed")


def test_an_address_is_another_boots_when_the_boot_is_newer() -> None:
    first = replace(GOOD, assurance="address", counters=None)
    taken = lease(first)
    assert decided(taken, replace(first, holder="b" * 64)).kind == "refuse"
    assert decided(taken, replace(first, holder="b" * 64, boot=boot_id("gpu-001", 2))).kind == "new"


def test_an_enrolment_restored_from_an_old_backup_releases_nobody() -> None:
    existing = lease(replace(GOOD, generation=2))
    decision = decided(existing, replace(OTHER, generation=1))
    assert decision.message.endswith(
        "(as often as it takes: the Lease is of generation 2, enrolment says 1; was it restored from a backup?)"
    )
    rebooted = decided(existing, replace(OTHER, generation=1, counters=(6, 0)))
    assert rebooted.credential is not None and rebooted.credential.generation == 2


def test_a_node_that_was_renamed_is_itself_after_its_next_boot() -> None:
    renamed = replace(GOOD, node="gpu-renamed")
    assert (
        decided(lease(), renamed).message == "gpu-001 joined as gpu-001 in this boot, it is gpu-renamed now: reboot it"
    )
    assert decided(lease(), replace(renamed, counters=(6, 0))).kind == "new"


class Life(RuleBasedStateMachine):
    """A machine that boots, its TPM that is cleared, agents old and new, thieves, an operator. Every Lease that is
    written was allowed, and handing out is counted as `issue` does it."""

    def __init__(self) -> None:
        super().__init__()
        self.lease: Credential | None = None
        self.resets = self.restarts = self.boots = self.generation = self.keys = 0
        self.handed: dict[tuple[int, int], int] = {}
        """(generation, boot by the TPM's count) → tokens."""
        self.holders: dict[tuple[int, int], set[str]] = {}
        self.heirs: set[str] = set()
        self.key = "0" * 64

    @property
    def now(self) -> tuple[int, int]:
        return self.generation, self.boots

    def present(self, holder: str, continued: bool = False) -> Decision:
        presented = replace(
            GOOD,
            holder=holder,
            continued=continued,
            generation=self.generation,
            counters=(self.resets, self.restarts),
            boot=boot_id("gpu-001", self.boots),
        )
        before = self.lease
        decision = decide_credential(before, presented, NOW)
        if decision.credential is not None:
            if before is not None and before.holder != holder and decision.kind == "reissue":
                assert continued
            self.lease = decision.credential.model_copy(update={"issued": decision.credential.issued + 1})
            self.handed[self.now] = self.handed.get(self.now, 0) + 1
            if continued:
                self.heirs.add(holder)
            if holder not in self.heirs:
                self.holders.setdefault(self.now, set()).add(holder)
        return decision

    @rule(restart=st.booleans())
    def reboots(self, restart: bool) -> None:
        self.boots += 1
        if restart:
            self.restarts += 1
        else:
            self.resets, self.restarts = self.resets + 1, 0
        self.keys += 1
        self.key = f"{self.keys:064x}"

    @rule()
    def asks(self) -> None:
        self.present(self.key)

    @rule(thief=st.integers(1, 3))
    def somebody_else_asks(self, thief: int) -> None:
        held = self.lease
        decision = self.present(f"{thief:x}" * 64)
        if held is not None and held.holder != f"{thief:x}" * 64 and decision.kind == "refuse":
            assert self.lease == held

    @precondition(lambda self: self.lease is not None and self.lease.holder == self.key)
    @rule()
    def the_agent_lost_its_key_and_has_the_holder_sign(self) -> None:
        self.keys += 1
        new = f"{self.keys:064x}"
        if self.present(new, continued=True).kind != "refuse":
            self.key = new

    @rule()
    def its_tpm_is_cleared(self) -> None:
        self.resets = self.restarts = 0

    @rule()
    def an_operator_releases_it(self) -> None:
        self.generation += 1

    @invariant()
    def a_boot_has_a_bounded_number_of_tokens(self) -> None:
        assert all(count <= 2 * (1 + MOST_REISSUES) for count in self.handed.values())

    @invariant()
    def the_lease_never_goes_back(self) -> None:
        assert self.lease is None or self.lease.generation <= self.generation


class HonestCounters(Life):
    """The same with a TPM that nobody clears: then one boot is one credential, of one key (and its heirs)."""

    def its_tpm_is_cleared(self) -> None:
        """Never."""

    @invariant()
    def one_boot_is_one_key(self) -> None:
        assert all(len(holders) <= 1 for holders in self.holders.values())
        assert all(count <= 1 + MOST_REISSUES for count in self.handed.values())


TestLife = Life.TestCase
TestLife.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestHonestCounters = HonestCounters.TestCase
TestHonestCounters.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)


def test_assurance_levels_have_one_order() -> None:
    weakest_first: tuple[AssuranceLevel, ...] = ("address", "nonce", "tpm")
    for place, level in enumerate(weakest_first):
        assert [weaker(level, other) for other in weakest_first] == [place < than for than in range(3)]

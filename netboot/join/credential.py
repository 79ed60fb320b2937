"""One credential per boot: whether a machine that has proven itself may have one now. Pure.

A machine's Lease says who holds the credential of its boot. The TPM's counters tell a reboot from a thief on the same
machine: they cannot be set back but by TPM2_Clear, which makes them start anew and so shows.
"""

from dataclasses import dataclass
from typing import Literal

from netboot.join.ports import AlertKind, Credential
from netboot.lifecycle.bootid import minted_ms
from netboot.machines.values import weaker

MOST_REISSUES = 3
"""Of one boot, after the first: an agent that lost an answer asks again; one that does so for ever is no agent."""


@dataclass(frozen=True, slots=True)
class Presented:
    """What was proven just now. `asked`: the credential as the Lease would say it, were none there before; the TPM's
    counters are None below the assurance level `tpm`.

    `continued`: the Lease's holder has signed for the new key. `window_open`: whether the boot window of `asked`, on
    the assurance level `nonce`, is open still.
    """

    asked: Credential
    continued: bool = False
    window_open: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """`new`: the first credential of a boot. `reissue`: another token for a boot that has one.

    `refuse`: `message` says why and what to do; `alert`: it may be an attack, and an operator should know.
    """

    kind: Literal["new", "reissue", "refuse"]
    message: str = ""
    alert: AlertKind | None = None
    credential: Credential | None = None
    """What the Lease is to say, before a token is handed out; None where refused."""


def decide_credential(existing: Credential | None, presented: Presented, now_ms: int) -> Decision:
    """Whether `presented` gets a credential, given what the machine's Lease says. `now_ms`: since 1970."""
    asked = presented.asked
    if asked.assurance == "nonce" and not presented.window_open and not _repeats(existing, asked):
        return _used_up(asked)
    if existing is None or existing.generation < asked.generation:
        return _new(existing, asked, now_ms)
    if existing.assurance != asked.assurance:
        return _other_level(existing, asked, now_ms)
    if existing.ek_sha256 and asked.ek_sha256 != existing.ek_sha256:
        return _new(existing, asked, now_ms)  # the one on record now is another TPM, and counts for itself
    if _backwards(existing, asked):
        message = (
            f"the TPM of {asked.machine} counts fewer resets than it did ({_dotted(_counters(asked))} after "
            f"{_dotted(_counters(existing))}): was it cleared? If that was you, `netboot machine release "
            f"{asked.machine}`{_restored(existing, asked)}"
        )
        return Decision("refuse", message, alert="counters")
    if _rebooted(existing, asked):
        return _new(existing, asked, now_ms)
    if existing.node != asked.node:
        message = f"{asked.machine} joined as {existing.node} in this boot, it is {asked.node} now: reboot it"
        return Decision("refuse", message)
    if existing.holder == asked.holder or presented.continued:
        return _reissue(existing, asked, now_ms)
    return _held(existing, asked)


def _repeats(existing: Credential | None, asked: Credential) -> bool:
    """Whether it was this very key that used the window up: it may ask again."""
    if existing is None or existing.generation != asked.generation:
        return False
    return (existing.assurance, existing.window, existing.holder) == ("nonce", asked.window, asked.holder)


def _used_up(asked: Credential) -> Decision:
    message = (
        f"the boot window of {asked.machine} is closed, or another key was first to use it: look which machine "
        "that was, then open another"
    )
    return Decision("refuse", message, alert="window-used")


def _new(existing: Credential | None, asked: Credential, now_ms: int) -> Decision:
    changes: dict[str, object] = {"at_ms": now_ms}
    if existing is not None:
        changes |= {"generation": max(asked.generation, existing.generation), "version": existing.version}
    return Decision("new", credential=asked.model_copy(update=changes))


def _reissue(existing: Credential, asked: Credential, now_ms: int) -> Decision:
    if existing.issued > MOST_REISSUES:
        message = (
            f"{asked.machine} has had {existing.issued} tokens for this boot, and that is the limit: reboot it, or "
            f"`netboot machine release {asked.machine}`"
        )
        return Decision("refuse", message, alert="reissues")
    changes = {
        "holder": asked.holder,
        "holder_spki": asked.holder_spki,
        "boot": asked.boot,
        "ek_sha256": asked.ek_sha256,
        "token_id": None,
        "token_expires_ms": None,
        "at_ms": now_ms,
    }
    return Decision("reissue", credential=existing.model_copy(update=changes))


def _held(existing: Credential, asked: Credential) -> Decision:
    message = (
        f"another key holds the credential of this boot of {asked.machine}: reboot it; if that does not help, "
        f"`netboot machine release {asked.machine}`{_restored(existing, asked)}"
    )
    return Decision("refuse", message, alert="other-key")


def _other_level(existing: Credential, asked: Credential, now_ms: int) -> Decision:
    """Up is progress: its TPM was enrolled since. Down is what a thief would try."""
    if weaker(existing.assurance, asked.assurance):
        return _new(existing, asked, now_ms)
    message = (
        f"{asked.machine} has proven itself by {existing.assurance} before, and {asked.assurance} is less: "
        f"`netboot machine release {asked.machine}` if that is meant"
    )
    return Decision("refuse", message, alert="weaker")


def _rebooted(existing: Credential, asked: Credential) -> bool:
    """Whether this is another boot than the Lease's, by what the assurance level can know of it."""
    if asked.assurance == "tpm":
        before, now = _counters(existing), _counters(asked)
        return now is not None and before is not None and now > before
    if asked.assurance == "nonce":
        return asked.window != existing.window
    return minted_ms(asked.boot) > minted_ms(existing.boot)


def _backwards(existing: Credential, asked: Credential) -> bool:
    before, now = _counters(existing), _counters(asked)
    return asked.assurance == "tpm" and (now is None or (before is not None and now < before))


def _counters(credential: Credential) -> tuple[int, int] | None:
    if credential.reset_count is None or credential.restart_count is None:
        return None
    return credential.reset_count, credential.restart_count


def _dotted(counters: tuple[int, int] | None) -> str:
    return "unknown" if counters is None else f"{counters[0]}.{counters[1]}"


def _restored(existing: Credential, asked: Credential) -> str:
    """An enrolment that was restored from an old backup counts fewer releases than the Lease has seen."""
    if existing.generation <= asked.generation:
        return ""
    return (
        f" (as often as it takes: the Lease is of generation {existing.generation}, enrolment says "
        f"{asked.generation}; was it restored from a backup?)"
    )

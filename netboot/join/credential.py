"""One credential per boot: whether a machine that has proven itself may have one now. Pure.

A machine's Lease says who holds the credential of its boot. The TPM's counters tell a reboot from a thief on the same
machine: they cannot be set back but by TPM2_Clear, which makes them start anew and so shows.
"""

from dataclasses import dataclass
from typing import Literal

from netboot.join.ports import Credential
from netboot.lifecycle.bootid import minted_ms
from netboot.machines.values import AssuranceLevel, weaker

MOST_REISSUES = 3
"""Of one boot, after the first: an agent that lost an answer asks again; one that does so for ever is no agent."""


@dataclass(frozen=True, slots=True)
class Presented:
    """What was proven just now. `counters`: the TPM's (resets, restarts); None below the assurance level `tpm`.

    `continued`: the Lease's holder has signed for the new key. `window`: the boot window, on the assurance level
    `nonce`, and whether it is open still.
    """

    machine: str
    cluster: str
    node: str
    assurance: AssuranceLevel
    boot: str
    holder: str
    holder_spki: str
    generation: int
    counters: tuple[int, int] | None = None
    continued: bool = False
    window: str = ""
    window_open: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """`new`: the first credential of a boot. `reissue`: another token for a boot that has one.

    `refuse`: `words` say why and what to do; `alert`: it may be an attack, and an operator should know.
    """

    kind: Literal["new", "reissue", "refuse"]
    words: str = ""
    alert: bool = False
    credential: Credential | None = None
    """What the Lease is to say, before a token is handed out; None where refused."""


def decide_credential(existing: Credential | None, presented: Presented, now_ms: int) -> Decision:
    """Whether `presented` gets a credential, given what the machine's Lease says. `now_ms`: since 1970."""
    if presented.assurance == "nonce" and not presented.window_open and not _repeats(existing, presented):
        return _used_up(presented)
    if existing is None or existing.generation < presented.generation:
        return _new(existing, presented, now_ms)
    if existing.assurance != presented.assurance:
        return _other_level(existing, presented, now_ms)
    if _backwards(existing, presented):
        words = (
            f"the TPM of {presented.machine} counts fewer resets than it did ({_words(presented.counters)} after "
            f"{_words(_counters(existing))}): was it cleared? If that was you, `netboot machine release "
            f"{presented.machine}`{_restored(existing, presented)}"
        )
        return Decision("refuse", words, alert=True)
    if _rebooted(existing, presented):
        return _new(existing, presented, now_ms)
    if existing.node != presented.node:
        words = f"{presented.machine} joined as {existing.node} in this boot, it is {presented.node} now: reboot it"
        return Decision("refuse", words)
    if existing.holder == presented.holder or presented.continued:
        return _reissue(existing, presented, now_ms)
    return _held(existing, presented)


def _repeats(existing: Credential | None, presented: Presented) -> bool:
    """Whether it was this very key that used the window up: it may ask again."""
    if existing is None or existing.generation != presented.generation:
        return False
    return (existing.assurance, existing.window, existing.holder) == ("nonce", presented.window, presented.holder)


def _used_up(presented: Presented) -> Decision:
    words = (
        f"the boot window of {presented.machine} is closed, or another key was first to use it: look which machine "
        "that was, then open another"
    )
    return Decision("refuse", words, alert=True)


def _new(existing: Credential | None, presented: Presented, now_ms: int) -> Decision:
    resets, restarts = presented.counters or (None, None)
    claimed = Credential(
        machine=presented.machine,
        cluster=presented.cluster,
        node=presented.node,
        assurance=presented.assurance,
        boot=presented.boot,
        holder=presented.holder,
        holder_spki=presented.holder_spki,
        reset_count=resets,
        restart_count=restarts,
        generation=presented.generation if existing is None else max(presented.generation, existing.generation),
        window=presented.window,
        at_ms=now_ms,
        version="" if existing is None else existing.version,
    )
    return Decision("new", credential=claimed)


def _reissue(existing: Credential, presented: Presented, now_ms: int) -> Decision:
    if existing.issued > MOST_REISSUES:
        words = (
            f"{presented.machine} has had {existing.issued} tokens for this boot, and that is the limit: reboot it, or "
            f"`netboot machine release {presented.machine}`"
        )
        return Decision("refuse", words, alert=True)
    changes = {
        "holder": presented.holder,
        "holder_spki": presented.holder_spki,
        "boot": presented.boot,
        "token_id": None,
        "token_expires_ms": None,
        "at_ms": now_ms,
    }
    return Decision("reissue", credential=existing.model_copy(update=changes))


def _held(existing: Credential, presented: Presented) -> Decision:
    words = (
        f"another key holds the credential of this boot of {presented.machine}: reboot it; if that does not help, "
        f"`netboot machine release {presented.machine}`{_restored(existing, presented)}"
    )
    return Decision("refuse", words, alert=True)


def _other_level(existing: Credential, presented: Presented, now_ms: int) -> Decision:
    """Up is progress: its TPM was enrolled since. Down is what a thief would try."""
    if weaker(existing.assurance, presented.assurance):
        return _new(existing, presented, now_ms)
    words = (
        f"{presented.machine} has proven itself by {existing.assurance} before, and {presented.assurance} is less: "
        f"`netboot machine release {presented.machine}` if that is meant"
    )
    return Decision("refuse", words, alert=True)


def _rebooted(existing: Credential, presented: Presented) -> bool:
    """Whether this is another boot than the Lease's, by what the assurance level can know of it."""
    if presented.assurance == "tpm":
        before = _counters(existing)
        return presented.counters is not None and before is not None and presented.counters > before
    if presented.assurance == "nonce":
        return presented.window != existing.window
    return minted_ms(presented.boot) > minted_ms(existing.boot)


def _backwards(existing: Credential, presented: Presented) -> bool:
    before = _counters(existing)
    return presented.assurance == "tpm" and (
        presented.counters is None or (before is not None and presented.counters < before)
    )


def _counters(credential: Credential) -> tuple[int, int] | None:
    if credential.reset_count is None or credential.restart_count is None:
        return None
    return credential.reset_count, credential.restart_count


def _words(counters: tuple[int, int] | None) -> str:
    return "unknown" if counters is None else f"{counters[0]}.{counters[1]}"


def _restored(existing: Credential, presented: Presented) -> str:
    """An enrolment that was restored from an old backup counts fewer releases than the Lease has seen."""
    if existing.generation <= presented.generation:
        return ""
    return (
        f" (as often as it takes: the Lease is of generation {existing.generation}, enrolment says "
        f"{presented.generation}; was it restored from a backup?)"
    )

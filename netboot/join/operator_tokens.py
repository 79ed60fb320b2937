"""Tokens by an operator's word, for automation: bound to one machine and one key like every other, never for anyone.

The word is a boot window that is used up at once, so the ladder's rules hold: a machine that must prove itself by its
TPM, or has one on record, gets nothing this way.
"""

import base64
import dataclasses
import hashlib
from collections.abc import Callable
from typing import NamedTuple

from netboot.join.credential import Presented
from netboot.join.enrolment import Act, OpenWindow
from netboot.join.errors import ConflictError, RefusedError
from netboot.join.hello import public_key
from netboot.join.issue import issue
from netboot.join.messages import AttestAnswer
from netboot.join.parts import Parts, Target
from netboot.join.ports import Credential
from netboot.join.register import Register
from netboot.lifecycle.errors import BadClaimError, CannotTellError
from netboot.machines.values import Machine

WINDOW_MS = 60_000
"""For the token to be made; it is used up by that."""


class Vouched(NamedTuple):
    """A machine, the key (DER SubjectPublicKeyInfo) of its token, and the boot that the token is counted to."""

    machine: Machine
    spki: bytes
    boot: str
    lifetime_seconds: int


def open_boot_window(
    register: Register, machine: Machine, window_id: str, until_ms: int, act: Act, now_ms: int
) -> None:
    """Let a machine join once without a TPM, by the nonce of its next boot script.

    Raises:
        RefusedError: disabled, retired, pending, or one that must prove itself by its TPM.
    """
    if not machine.enabled:
        raise RefusedError(f"{machine.name} is disabled: set `enabled: true` in the inventory to let it join")
    register.apply([(machine.name, OpenWindow("boot", window_id, until_ms))], act, now_ms)


def vouch(parts: Parts, register: Register, wanted: Vouched, window_id: str, act: Act, peer: str) -> AttestAnswer:
    """A token by the word of `act.operator`.

    Raises:
        BadClaimError: not a key. RefusedError, HeldError: with the rule. CannotTellError: try again.
    """
    machine, now = wanted.machine, parts.now_ms()
    try:
        public_key(wanted.spki)
    except BadClaimError as error:
        raise BadClaimError(str(error).removeprefix("not a hello: ")) from None
    parts.target(machine.cluster, machine.name).fit()
    open_boot_window(register, machine, window_id, now + WINDOW_MS, act, now)
    presented = Presented(
        machine=machine.name,
        cluster=machine.cluster,
        node=machine.node_name,
        assurance="nonce",
        boot=wanted.boot,
        holder=hashlib.sha256(wanted.spki).hexdigest(),
        holder_spki=base64.b64encode(wanted.spki).decode(),
        generation=register.of(machine.name).generation,
        window=window_id,
        window_open=True,
    )
    given = dataclasses.replace(parts, token_seconds=wanted.lifetime_seconds)
    try:
        return issue(given, machine, lambda _existing: presented, peer)
    except (RefusedError, CannotTellError):
        register.use_window(machine.name, window_id, parts.now_ms())  # nothing stays open that nobody asked for
        raise


def issued(target: Target) -> list[Credential]:
    """What a cluster's Leases say of tokens that are, or were until they expired, in a Secret.

    Raises:
        CannotTellError.
    """
    return [one for one in target.leases.all() if one.token_id is not None]


def revoke(target: Target, token_id: str) -> Credential | None:
    """Delete the Secret of a token; what its Lease said, or None where no Lease names it.

    Kubernetes goes on believing a token for 10 seconds after it has believed it once; its key is still wanted for it.

    Raises:
        CannotTellError.
    """
    found = next((one for one in issued(target) if one.token_id == token_id), None)
    if found is None:
        return None
    target.tokens.delete(token_id)
    _forget(target.leases.write, found)
    return found


def _forget(write: Callable[[Credential], Credential], credential: Credential) -> None:
    try:
        write(credential.model_copy(update={"token_id": None, "token_expires_ms": None}))
    except ConflictError:
        return  # another token since: the Secret of this one is gone all the same

"""Operator-issued tokens, for automation: bound to one machine and one key like every other, never for anyone.

The operator's word is a boot window that is used up at once, so the rules of assurance levels hold: a machine that must
prove itself by its TPM, or has one on record, gets nothing this way.
"""

import base64
import hashlib
from typing import NamedTuple

from netboot.join.credential import Presented
from netboot.join.enrolment import Act, OpenWindow
from netboot.join.errors import RefusedError
from netboot.join.exchange import public_key
from netboot.join.issue import Issuer, issue
from netboot.join.messages import AttestAnswer
from netboot.join.register import Register
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.values import Machine

WINDOW_MS = 60_000
"""For the token to be made; it is used up by that."""


class TokenRequest(NamedTuple):
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


def issue_for_operator(
    issuer: Issuer, register: Register, request: TokenRequest, window_id: str, act: Act, peer: str
) -> AttestAnswer:
    """A token by the word of `act.operator`.

    Raises:
        BadClaimError: not a key. RefusedError, HeldError: with the rule. CannotTellError: try again.
    """
    machine, now = request.machine, issuer.now_ms()
    public_key(request.spki)
    issuer.cluster_of(machine).preflight()
    open_boot_window(register, machine, window_id, now + WINDOW_MS, act, now)
    presented = Presented(
        machine=machine.name,
        cluster=machine.cluster,
        node=machine.node_name,
        assurance="nonce",
        boot=request.boot,
        holder=hashlib.sha256(request.spki).hexdigest(),
        holder_spki=base64.b64encode(request.spki).decode(),
        generation=register.of(machine.name).generation,
        window=window_id,
        window_open=True,
    )
    try:
        return issue(issuer, machine, lambda _existing: presented, request.lifetime_seconds, peer)
    except (RefusedError, CannotTellError):
        register.use_window(machine.name, window_id, issuer.now_ms())  # nothing stays open that nobody asked for
        raise

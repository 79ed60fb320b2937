"""What hello hands to attest through the machine: sealed, so that any replica can take the second step.

On the wire: `cluster ‖ 0 ‖ sealed` (see `tokens.sealed`); the seal is for this message type, site and cluster.
"""

import hashlib
from collections.abc import Callable

from pydantic import ValidationError

from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.join.enrolment import Details
from netboot.join.errors import RefusedError, StaleError
from netboot.lifecycle.events import BootId
from netboot.machines.values import AssuranceLevel, Machine, NodeName
from tokens.errors import ExpiredStateError, ForgedStateError, StateError
from tokens.sealed import Keyset

LIFETIME_MS = 120_000
NONCE_LIFETIME_MS = 600_000
Random = Callable[[int], bytes]
"""So many bytes that nobody can foresee."""


class State(Strict):
    """Everything that the exchange has settled so far. Bytes in base64."""

    assurance: AssuranceLevel
    machine: Name
    cluster: Name
    node: NodeName
    boot: BootId
    generation: int
    spki: str
    policy_sha256: Sha256
    """Of the PCR policy that was in force: another one since means beginning again."""
    ek_sha256: str = ""
    ek_public: str = ""
    ak_public: str = ""
    ak_name: str = ""
    """Hex."""
    secret_sha256: str = ""
    pcrs: tuple[int, ...] = ()
    window: str = ""
    """Assurance level `nonce`: the boot window."""
    enrols: str = ""
    """Id of the enrolment window in which this TPM may become pending: its machine is a claim so far."""
    details: Details | None = None
    """Of a TPM that enrols: what the operator is to see, but for `ek_public`."""


class Nonce(Strict):
    """What a boot script's second initrd file holds on the assurance level `nonce`."""

    mac: str
    address: str
    machine: Name
    window: str
    """Id of the boot window, which the first success closes."""


def seal(keyset: Keyset, site: str, state: State, now_ms: int, random: Random) -> bytes:
    """The state as the machine carries it."""
    body = state.model_dump_json(exclude_defaults=True).encode()
    sealed = keyset.seal(body, _purpose("hello", site, state.cluster), now_ms, LIFETIME_MS, random)
    return state.cluster.encode() + b"\0" + sealed


def unseal(keyset: Keyset, site: str, data: bytes, now_ms: int) -> State:
    """The state that some replica sealed.

    Raises:
        StaleError: expired, of a key that is not in use, or of a clock that differs. RefusedError: not sealed by us.
    """
    cluster, _, sealed = data.partition(b"\0")
    try:
        body = keyset.open(sealed, _purpose("hello", site, cluster.decode("ascii", "replace")), now_ms)
        return State.model_validate_json(body)
    except ForgedStateError as error:
        raise RefusedError(f"the state is not one of this service: {error}") from None
    except StateError as error:
        raise StaleError(str(error)) from None
    except ValidationError:
        raise StaleError("the state is of another version of this service: begin again with hello") from None


def seal_nonce(keyset: Keyset, site: str, nonce: Nonce, now_ms: int, random: Random) -> bytes:
    """The nonce of a boot window, for the boot script's second initrd file."""
    body = nonce.model_dump_json().encode()
    return keyset.seal(body, _purpose("nonce", site, ""), now_ms, NONCE_LIFETIME_MS, random)


def unseal_nonce(keyset: Keyset, site: str, data: bytes, now_ms: int) -> Nonce:
    """The nonce that the boot server sealed.

    Raises:
        RefusedError: it is not, or over. Never stale: only another boot brings another nonce.
    """
    try:
        return Nonce.model_validate_json(keyset.open(data, _purpose("nonce", site, ""), now_ms))
    except (ForgedStateError, ValidationError):
        raise RefusedError("the nonce is not one of this service: boot again") from None
    except ExpiredStateError:
        minutes = NONCE_LIFETIME_MS // 60_000
        raise RefusedError(
            f"the nonce of this boot is over, after {minutes} minutes: reboot while the boot window is open"
        ) from None
    except StateError as error:
        raise RefusedError(f"the nonce of this boot cannot be used: {error}; boot again") from None


def policy_sha256(machine: Machine) -> str:
    """What tells one PCR policy from another."""
    lines = [f"{index}={','.join(sorted(values))}" for index, values in sorted(machine.pcrs.items())]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _purpose(kind: str, site: str, cluster: str) -> bytes:
    return b"\0".join((b"netboot.dev/join/v1", kind.encode(), site.encode(), cluster.encode()))

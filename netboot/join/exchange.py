"""What both steps of an exchange, hello and attest, stand on: what they are given, and what must hold for each."""

import logging
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from netboot.join.errors import RefusedError
from netboot.join.identify import Identified
from netboot.join.issue import Issuer
from netboot.lifecycle.bootid import is_of, minted_ms
from netboot.lifecycle.errors import BadClaimError
from netboot.lifecycle.published import View
from netboot.logs import learn
from tokens.errors import MalformedError, TpmError
from tokens.sealed import Keyset

log = logging.getLogger(__name__)

DAY_MS = 86_400_000
FIRMWARE_PCRS = tuple(range(8))
"""What firmware measures: asked for of everybody, whatever the policy."""
STATIC_PCRS = range(16)
"""Of the static root of trust: what is measured into them up to the kernel's start is in the firmware's event log."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An issuer, and what proving oneself to it needs: keys, clock and chance are all given from outside.

    `view()` raises NotReadyError, `keyset()` and `nonce_keyset()` another CannotTellError. `belongs(boot, machine)`:
    whether that boot is one of that machine. `random(n)`: so many bytes that nobody can foresee. `token_seconds`: how
    long a token lives. `addresses_attest`: whether an address alone may prove a machine, for labs. `boot_days`: a boot
    that began longer ago proves nothing.
    """

    issuer: Issuer
    site: str
    view: Callable[[], View]
    keyset: Callable[[], Keyset]
    nonce_keyset: Callable[[], Keyset]
    """Of the nonces of boot windows, which the boot server seals too: nothing else is ever opened with it."""
    belongs: Callable[[str, str], bool]
    random: Callable[[int], bytes]
    token_seconds: int
    image_of: Callable[[str], str | None]
    """The image that the script of a boot named; None: not on record here. Raises CannotTellError."""
    addresses_attest: bool = False
    boot_days: int = 90


def settle(exchange: Exchange, known: Identified, boot: str) -> None:
    """What must hold for every assurance level.

    Raises:
        RefusedError: not a boot of this machine, too old a one, of a revoked image, or a cluster that is not known.
            CannotTellError: not fit to be used.
    """
    name = known.machine.name
    learn(machine=name)
    if any(exchange.belongs(boot, former) for former in known.machine.former_names):
        raise RefusedError(f"{boot} is a boot of {name} from before it was renamed: reboot the machine")
    if not exchange.belongs(boot, name):
        raise RefusedError(f"{boot} is not a boot of {name}: it booted by another machine's script, or elsewhere")
    learn(boot=boot)
    days = (exchange.issuer.now_ms() - minted_ms(boot)) // DAY_MS
    if days >= exchange.boot_days:
        most = f"{exchange.boot_days} are the most (join.boot_days)"
        raise RefusedError(f"the boot {boot} of {name} began {days} days ago, and {most}: reboot the machine")
    _not_revoked(exchange, name, boot)
    exchange.issuer.cluster_of(known.machine).preflight()


def _not_revoked(exchange: Exchange, machine: str, boot: str) -> None:
    """By what the boot's script named, on record here or not."""
    revoked = exchange.view().snapshot.revocations.images
    if not revoked:
        return
    known = exchange.image_of(boot)
    if image := next((each for each in revoked if is_of(boot, each, known)), None):
        by = "by its id" if known is None else "on record"
        fields = {"machine": machine, "boot": boot, "image": image}
        words = "%s does not join: its boot %s has image %s (%s), which is revoked"
        log.warning(words, machine, boot, image, by, extra={"fields": fields})
        raise RefusedError(f"the image that {machine} booted is revoked: reboot it")


def public_key(spki: bytes) -> ec.EllipticCurvePublicKey:
    """The machine's key: ECDSA on P-256 or P-384, in the one form that DER allows, for its hash is an identity.

    Raises:
        BadClaimError: another key, or none.
    """
    try:
        key = load_der_public_key(spki)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadClaimError("spki is not a public key in DER") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
        raise BadClaimError("spki must be a key on P-256 or P-384")
    if key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != spki:
        raise BadClaimError("spki is not in its usual form")
    return key


@contextmanager
def tpm_errors() -> Iterator[None]:
    """What `tokens` raises, as join's own errors with the same words."""
    try:
        yield
    except MalformedError as error:
        raise BadClaimError(f"the TPM's statement cannot be read: {error}") from None
    except TpmError as error:
        raise RefusedError(f"the TPM's statement is not accepted: {error}") from None
    except (struct.error, OverflowError):  # a structure that no reader foresaw is still not a TPM's
        raise BadClaimError("the TPM's statement cannot be read") from None

"""Proof of boot: what was known of a boot that proved itself, in one signed record. Pure.

The record is a text, and the signature is over its very bytes, so that whoever has both and a public key can verify it
without this program (`signify -V`). It says what this service saw, served and was told, each under its own name.
"""

import json
from collections.abc import Iterable
from typing import Literal

from pydantic import ValidationError

from images.artifact.signing import PublicKey, SigningKey, verify
from images.errors import BadSignatureError, UnknownSignerError
from images.values.digests import canonical
from images.values.strict import Strict
from images.values.types import Name, Sha256
from netboot.lifecycle.errors import LifecycleError
from netboot.lifecycle.events import BootId, HealthRecord, SafeText
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.spans import IN_SERVICE
from netboot.lifecycle.trace import Trace

KIND = "netboot.dev/proof-of-boot/v1"
CODING = "surrogatepass"
"""For the half of a character, which JSON can say: no key has signed that."""


class BadProofError(LifecycleError):
    """It is no proof, or none that a given key has signed; the words say which."""


class Image(Strict):
    """`known_by`: `reported`: the machine was served it, and what runs is its own word; nothing measured it."""

    sha256: Sha256
    known_by: Literal["measured", "reported"]
    decision: SafeText
    script: SafeText
    """Digests, as the script's record has them."""


class Checks(Strict):
    """The machine's own word on its health, the latest before the record was made: check → status."""

    at_ms: int
    status: SafeText
    checks: dict[SafeText, SafeText]


class ProofOfBoot(Strict):
    """`attested`: how it proved itself, in words; `quote_sha256`: of what its TPM signed, "" where it has none;
    `certificate_sha256`: of its node's first client certificate, "" where none is known; `moments`: step → milliseconds
    since 1970, by this service's clock. Texts are safe on a terminal, whoever made the file."""

    kind: Literal["netboot.dev/proof-of-boot/v1"]
    site: Name
    boot: BootId
    machine: Name
    attested: SafeText
    quote_sha256: Sha256 | Literal[""]
    image: Image | None
    checks: Checks | None
    certificate_sha256: Sha256 | Literal[""]
    moments: dict[SafeText, int]
    made_ms: int


class SignedProof(Strict):
    """`proof`: the record, in the one form in which documents are signed; `signature`: signify's, over these bytes."""

    proof: str
    signature: str


def proof_of(
    trace: Trace, health: HealthRecord | None, in_service_ms: int | None, site: str, now_ms: int
) -> ProofOfBoot | None:
    """What is known of that boot; None: it has not attested, or that is known from another replica alone: of what came
    along with it, that replica has the whole, and whoever may write the object of a machine could have made it up."""
    attested = trace.phase(Phase.ATTESTED)
    if attested is None or not attested.detail:
        return None
    moments = {str(reached.phase): reached.at_ms for reached in trace.reached}
    if in_service_ms is not None:
        moments[IN_SERVICE] = in_service_ms
    return ProofOfBoot(
        kind=KIND,
        site=site,
        boot=trace.boot,
        machine=trace.machine,
        attested=attested.detail,
        quote_sha256=attested.sha256,
        image=_image(trace),
        checks=_checks(health),
        certificate_sha256=min(trace.certificates, key=lambda each: each.at_ms).sha256 if trace.certificates else "",
        moments=moments,
        made_ms=now_ms,
    )


def signed(proof: ProofOfBoot, key: SigningKey) -> SignedProof:
    """The record as it is kept and handed out."""
    text = canonical(proof.model_dump(mode="json"))
    return SignedProof(proof=text.decode("ascii"), signature=key.sign(text).decode("ascii"))


def verified(given: SignedProof, keys: Iterable[PublicKey], boot: str | None = None) -> tuple[ProofOfBoot, PublicKey]:
    """The record, and the key by which it holds. `boot`: of which boot it has to be; None: any.

    Raises:
        BadProofError: it is altered, by another key, of another boot, or no proof of a boot.
    """
    try:
        key = verify(given.proof.encode(errors=CODING), given.signature.encode(errors=CODING), keys)
    except UnknownSignerError:
        raise BadProofError(
            "it is signed by a key that is not among those given: is it a proof of this site?"
        ) from None
    except BadSignatureError as error:
        raise BadProofError(f"it does not hold: {error}") from None
    try:
        proof = ProofOfBoot.model_validate_json(given.proof)
    except ValidationError:
        raise BadProofError("what is signed is no proof of a boot that this version knows") from None
    if boot is not None and proof.boot != boot:
        raise BadProofError(f"it is a proof of boot {proof.boot}")
    return proof, key


def read(data: bytes, name: str) -> SignedProof:
    """From the file of that name, as `netboot boot proof --output json` writes it.

    Raises:
        BadProofError: it is none.
    """
    try:
        return SignedProof.model_validate(json.loads(data))
    except (ValueError, RecursionError):
        raise BadProofError(f"{name} is not what `netboot boot proof --output json` writes") from None


def _image(trace: Trace) -> Image | None:
    script = trace.script
    if script is None:
        return None
    return Image(sha256=script.image, known_by="reported", decision=script.decision, script=script.script)


def _checks(health: HealthRecord | None) -> Checks | None:
    if health is None:
        return None
    found = {check.name: str(check.status) for check in health.report.checks}
    return Checks(at_ms=health.at_ms, status=str(health.report.status), checks=found)

"""What an EK certificate says of the machine that showed it: for operators, and for windows that want one."""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from cryptography.x509 import Certificate

from images.values.strict import Strict
from netboot.join.enrolment import Details
from tokens.ekcert import read_ek_certificate
from tokens.ekchain import verify_chain
from tokens.errors import TokenError


class Certified(Strict):
    """What is known of an EK's certificate. `verdict`: `absent` where the machine sent none, `unchecked` where the site
    names no roots."""

    verdict: Literal["good", "bad", "absent", "unchecked"]
    words: str
    subject: str = ""
    issuer: str = ""
    tpm: str = ""


def certified(details: Details, ek_sha256: str, roots: Sequence[Certificate] | None, now_ms: int) -> Certified:
    """What the EK certificate in `details` says of this EK; `roots` None: the chain is not looked at."""
    if details.ek_certificate is None:
        return Certified(verdict="absent", words="the machine sent no EK certificate")
    try:
        certificate = read_ek_certificate(base64.b64decode(details.ek_certificate, validate=True))
    except (TokenError, binascii.Error, ValueError) as error:
        return Certified(verdict="bad", words=f"its EK certificate cannot be read: {error}")
    names = {"subject": certificate.subject, "issuer": certificate.issuer, "tpm": certificate.tpm}
    if certificate.ek_sha256 != ek_sha256:
        return Certified(verdict="bad", words="the EK certificate is of another EK", **names)
    if roots is None:
        return Certified(verdict="unchecked", words="not checked: no join.tpm_roots", **names)
    try:
        chain = verify_chain(certificate, roots, datetime.fromtimestamp(now_ms / 1000, UTC))
    except TokenError as error:
        return Certified(verdict="bad", words=str(error), **names)
    return Certified(verdict="good", words=f"leads to {chain[-1]}", **names)

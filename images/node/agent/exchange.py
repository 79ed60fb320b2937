"""hello and attest: from the TPM's keys to the answer with the token. Knows no sockets: `post` is an argument."""

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from tokens.wire import PROOF_TAG, quote_nonce

from . import answers
from .errors import AnswerError
from .key import sign, spki
from .tpm import Tpm

Post = Callable[[str, Mapping[str, Any]], Any]
"""Posts a JSON body to a path of the join service and returns the JSON that it answered; raises AgentError."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the machine says of itself and cannot prove."""

    boot: str
    hints: Mapping[str, Any]
    nonce: str | None = None
    """Sealed, of an operator's boot window (base64)."""
    event_log: bytes | None = None


def prove(post: Post, tpm: Tpm | None, key: ec.EllipticCurvePrivateKey, facts: Facts) -> answers.Admission:
    """One exchange, from hello to the answer of attest.

    Raises:
        AgentError: what `post` raises; AnswerError: an answer that is none; TpmError, MalformedError: the TPM's.
    """
    public = spki(key)
    hello = {"version": 1, "boot": facts.boot, "spki": text(public), "hints": facts.hints}
    identity = None if tpm is None else tpm.identity()
    keys = None
    if identity is not None:
        certificate = identity.ek_certificate
        keys = {
            "ek_public": text(identity.ek_public),
            "ek_certificate": None if certificate is None else text(certificate),
            "ak_public": text(identity.ak_public),
        }
    nonce = facts.nonce if tpm is None else None  # a machine with a TPM has no use for it
    challenge = answers.read_challenge(post("/v1/join/hello", {**hello, "tpm": keys, "nonce": nonce}))
    attest = {"version": 1, "state": text(challenge.state), "previous_proof": None}
    attest["proof"] = text(sign(key, PROOF_TAG + challenge.state))
    attest["tpm"] = _statement(tpm, challenge, public, facts.event_log) if challenge.assurance == "tpm" else None
    return answers.read_admission(post("/v1/join/attest", attest))


def _statement(tpm: Tpm | None, challenge: answers.Challenge, public: bytes, event_log: bytes | None) -> dict[str, Any]:
    if tpm is None:
        raise AnswerError("join asks for a TPM, and this machine has none")
    secret = tpm.activate(challenge.credential_blob, challenge.encrypted_secret)
    quoted = tpm.quote(quote_nonce(challenge.state, secret, public), challenge.banks)
    return {
        "secret": text(secret),
        "quote": text(quoted.attest),
        "signature": text(quoted.signature),
        "pcrs": {bank: {str(i): value.hex() for i, value in values.items()} for bank, values in quoted.pcrs.items()},
        "eventlog": None if event_log is None else text(event_log),
    }


def text(data: bytes) -> str:
    """Bytes as JSON carries them between agent and service: base64."""
    return base64.b64encode(data).decode()

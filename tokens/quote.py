"""Whether a quote proves that this TPM, in this state, took part in this exchange."""

import hashlib
import hmac
import struct
from collections.abc import Mapping, Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from tokens import credential, wire
from tokens.errors import (
    BadQuoteSignatureError,
    MalformedError,
    NotAQuoteError,
    PcrMismatchError,
    PolicyError,
    UnsupportedKeyError,
    WeakAttestationKeyError,
    WrongNonceError,
    WrongPlaceError,
    WrongSelectionError,
)
from tokens.wire import Public, Quote, Selection, TpmSignature

_REQUIRED = (
    (credential.FIXED_TPM, "fixedTPM"),
    (credential.FIXED_PARENT, "fixedParent"),
    (credential.SENSITIVE_ORIGIN, "sensitiveDataOrigin"),
    (credential.RESTRICTED, "restricted"),
    (credential.SIGN, "sign"),
)


def check_attestation_key(ak: Public) -> None:
    """An AK must sign only what its TPM made, and never leave it.

    Raises:
        WeakAttestationKeyError: naming the attribute. UnsupportedKeyError: too short, or named by SHA-1.
    """
    missing = [name for bit, name in _REQUIRED if not ak.attributes & bit]
    if missing:
        raise WeakAttestationKeyError(f"the attestation key lacks {', '.join(missing)}")
    if ak.attributes & credential.DECRYPT:
        raise WeakAttestationKeyError("the attestation key may also decrypt")
    if wire.hash_name(ak.name_algorithm) == "sha1":
        raise UnsupportedKeyError("an attestation key named by SHA-1 is too weak")
    if ak.type == wire.ALG_RSA and ak.rsa_bits < 2048:
        raise UnsupportedKeyError(f"an RSA attestation key of {ak.rsa_bits} bits is too short")


def check_place(ak: Public, ek: Public, qualified_signer: bytes) -> None:
    """The AK is a child of the EK, or a primary of the endorsement hierarchy.

    An AK under the owner hierarchy sees other, obfuscated reset counters, and so walks round "one credential a boot".

    Raises:
        WrongPlaceError.
    """
    hierarchy = struct.pack(">I", wire.RH_ENDORSEMENT)
    allowed = (ak.qualified_name(hierarchy), ak.qualified_name(ek.qualified_name(hierarchy)))
    if not any(hmac.compare_digest(qualified_signer, name) for name in allowed):
        raise WrongPlaceError("the attestation key is not under the endorsement hierarchy of this TPM")


def verify_quote(
    data: bytes,
    signature: bytes,
    ak: Public,
    ek: Public,
    nonce: bytes,
    selections: Sequence[Selection],
    pcrs: Mapping[tuple[int, int], bytes],
) -> Quote:
    """Check a quote whole; `pcrs` maps (bank algorithm, index) to the value that the machine says it has.

    Raises:
        TpmError or MalformedError: the class says what is wrong.
    """
    check_attestation_key(ak)
    try:
        quote = wire.read_quote(data)
    except MalformedError as error:
        raise NotAQuoteError(str(error)) from None
    _check_signature(data, wire.read_signature(signature), ak)
    if not hmac.compare_digest(quote.nonce, nonce):
        raise WrongNonceError("the quote does not cover this exchange")
    check_place(ak, ek, quote.qualified_signer)
    if quote.selections != tuple(selections):
        raise WrongSelectionError(f"the quote covers {_words(quote.selections)}, asked for was {_words(selections)}")
    _check_values(quote, ak, pcrs)
    return quote


def _check_signature(data: bytes, signature: TpmSignature, ak: Public) -> None:
    if wire.hash_name(signature.hash) == "sha1":
        raise UnsupportedKeyError("a quote signed over SHA-1 is too weak")
    algorithm = credential.HASHES[wire.hash_name(signature.hash)]
    key = credential.crypto_key(ak)
    try:
        if isinstance(key, rsa.RSAPublicKey):
            scheme: padding.AsymmetricPadding
            if signature.algorithm == wire.ALG_RSASSA:
                scheme = padding.PKCS1v15()
            elif signature.algorithm == wire.ALG_RSAPSS:
                scheme = padding.PSS(padding.MGF1(algorithm), padding.PSS.AUTO)
            else:
                raise BadQuoteSignatureError("an ECDSA signature for an RSA key")
            key.verify(signature.signature, data, scheme, algorithm)
        else:
            if signature.algorithm != wire.ALG_ECDSA:
                raise BadQuoteSignatureError("an RSA signature for an ECC key")
            key.verify(utils.encode_dss_signature(signature.r, signature.s), data, ec.ECDSA(algorithm))
    except (InvalidSignature, ValueError):
        raise BadQuoteSignatureError("the quote was not signed by this attestation key") from None


def _check_values(quote: Quote, ak: Public, pcrs: Mapping[tuple[int, int], bytes]) -> None:
    """The quote holds one digest over the values in order of selection, by the hash of the AK's scheme."""
    selected = [(selection.algorithm, index) for selection in quote.selections for index in selection.indices]
    if sorted(selected) != sorted(pcrs):
        raise WrongSelectionError("the PCR values given are not those that were quoted")
    for algorithm, index in selected:
        size = hashlib.new(wire.hash_name(algorithm)).digest_size
        if len(pcrs[algorithm, index]) != size:
            raise PcrMismatchError(f"PCR {index} of {wire.hash_name(algorithm)} must have {size} bytes")
    for selection in quote.selections:
        if selection.indices and not any(any(pcrs[selection.algorithm, index]) for index in selection.indices):
            raise WrongSelectionError(f"nothing was ever measured into the {wire.hash_name(selection.algorithm)} bank")
    joined = b"".join(pcrs[key] for key in selected)
    name = wire.hash_name(ak.scheme_hash or ak.name_algorithm)
    if not hmac.compare_digest(hashlib.new(name, joined).digest(), quote.pcr_digest):
        raise PcrMismatchError("the PCR values are not those that were quoted")


def check_policy(pcrs: Mapping[tuple[int, int], bytes], policy: Mapping[tuple[int, int], frozenset[bytes]]) -> None:
    """Each PCR of the policy has one of the values that it allows. An empty policy allows everything, in plain sight.

    Raises:
        PolicyError: naming the first PCR that differs.
    """
    for (algorithm, index), allowed in sorted(policy.items()):
        value = pcrs.get((algorithm, index))
        if value is None:
            raise PolicyError(f"PCR {index} of {wire.hash_name(algorithm)} was not quoted")
        if value not in allowed:
            raise PolicyError(f"PCR {index} of {wire.hash_name(algorithm)} is {value.hex()}, which is not allowed")


def _words(selections: Sequence[Selection]) -> str:
    banks = (f"{wire.HASHES.get(s.algorithm, hex(s.algorithm))}:{','.join(map(str, s.indices))}" for s in selections)
    return " + ".join(banks) or "nothing"

"""The TPM's endorsement key as the inventory names it: the SHA-256 of its DER SubjectPublicKeyInfo (RFC 5280, 8017,
5480). Its template makes it RSA of 2,048 bits with 65,537, or ECC on P-256 (`node.agent.tpm`)."""

import base64
from hashlib import sha256
from pathlib import Path
from typing import Any

from tokens.wire import Public, TokenError, read_public

from ..agent.errors import TpmError
from ..agent.net import plain
from ..agent.tpm import opened

_RSA = bytes.fromhex("30820122300d06092a864886f70d01010105000382010f003082010a0282010100")
_EXPONENT = bytes.fromhex("0203010001")
_P256 = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200") + b"\x04"


def spki(key: Public) -> bytes:
    """The DER of a key of one of the two forms."""
    if key.rsa_modulus:
        return _RSA + key.rsa_modulus.to_bytes(256, "big") + _EXPONENT
    return _P256 + key.x.to_bytes(32, "big") + key.y.to_bytes(32, "big")


def endorsement(root: Path) -> tuple[dict[str, Any] | None, str]:
    """`ek_sha256` and `certificate` (base64 of DER, or null), None without a usable TPM; and why it is not usable."""
    try:
        with opened(root) as tpm:
            if tpm is None:
                return None, "no TPM 2.0"
            identity = tpm.identity()
    except (TpmError, TokenError) as error:
        return None, plain(str(error))
    certificate = identity.ek_certificate
    said = base64.b64encode(certificate).decode() if certificate else None
    return {"ek_sha256": sha256(spki(read_public(identity.ek_public))).hexdigest(), "certificate": said}, ""

"""A TPM's keys and statements in software: what a good exchange looks like, to be altered one field at a time.

The real thing is beside it: `tests/tools/tokens/test_tpm.py` holds the same code against swtpm.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from tokens import wire
from tokens.wire import Public, Selection, read_public, sized

AK_ATTRIBUTES = 0x50072
EK_ATTRIBUTES = 0x300B2
SHA256 = 0xB
RSA_EK = rsa.generate_private_key(65537, 2048)
RSA_AK = rsa.generate_private_key(65537, 2048)
ECC_EK = ec.generate_private_key(ec.SECP384R1())
ECC_AK = ec.generate_private_key(ec.SECP256R1())
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def public(key: Key, attributes: int, *, storage: bool, scheme: int = wire.ALG_NULL, name: int = SHA256) -> Public:
    """The public area of a key, as a TPM would marshal it."""
    body = struct.pack(">HI", name, attributes) + sized(b"")
    body += struct.pack(">HHH", wire.ALG_AES, 128, wire.ALG_CFB) if storage else struct.pack(">H", wire.ALG_NULL)
    body += struct.pack(">H", scheme) + (struct.pack(">H", SHA256) if scheme != wire.ALG_NULL else b"")
    if isinstance(key, rsa.RSAPrivateKey):
        modulus = key.public_key().public_numbers().n.to_bytes(key.key_size // 8, "big")
        body = struct.pack(">H", wire.ALG_RSA) + body + struct.pack(">HI", key.key_size, 0) + sized(modulus)
    else:
        numbers, length = key.public_key().public_numbers(), (key.key_size + 7) // 8
        curve = 0x3 if length == 32 else 0x4
        body = struct.pack(">H", wire.ALG_ECC) + body + struct.pack(">HH", curve, wire.ALG_NULL)
        body += sized(numbers.x.to_bytes(length, "big")) + sized(numbers.y.to_bytes(length, "big"))
    return read_public(sized(body))


@dataclass
class Exchange:
    """A good quote in parts: alter one, then `sign`."""

    ek_key: Key = field(default_factory=lambda: RSA_EK)
    ak_key: Key = field(default_factory=lambda: ECC_AK)
    scheme: int = wire.ALG_ECDSA
    ak_attributes: int = AK_ATTRIBUTES
    nonce: bytes = hashlib.sha256(b"exchange").digest()
    magic: int = wire.GENERATED
    kind: int = wire.ST_ATTEST_QUOTE
    resets: int = 5
    restarts: int = 6
    hierarchy: int = wire.RH_ENDORSEMENT
    selection: tuple[Selection, ...] = (Selection(SHA256, (0, 7)),)
    pcrs: dict[tuple[int, int], bytes] = field(
        default_factory=lambda: {(SHA256, 0): b"\x11" * 32, (SHA256, 7): b"\x22" * 32}
    )

    @property
    def ek(self) -> Public:
        return public(self.ek_key, EK_ATTRIBUTES, storage=True)

    @property
    def ak(self) -> Public:
        return public(self.ak_key, self.ak_attributes, storage=False, scheme=self.scheme)

    def quote(self) -> bytes:
        """The marshalled TPMS_ATTEST."""
        signer = self.ak.qualified_name(self.ek.qualified_name(struct.pack(">I", self.hierarchy)))
        values = b"".join(self.pcrs[s.algorithm, i] for s in self.selection for i in s.indices)
        banks = b"".join(
            struct.pack(">HB", s.algorithm, 3) + sum(1 << i for i in s.indices).to_bytes(3, "little")
            for s in self.selection
        )
        head = struct.pack(">IH", self.magic, self.kind) + sized(signer) + sized(self.nonce)
        clock = struct.pack(">QIIBQ", 1234, self.resets, self.restarts, 1, 7)
        return head + clock + struct.pack(">I", len(self.selection)) + banks + sized(hashlib.sha256(values).digest())

    def sign(self, data: bytes) -> bytes:
        """The marshalled TPMT_SIGNATURE over `data`."""
        head = struct.pack(">HH", self.scheme, SHA256)
        if isinstance(self.ak_key, ec.EllipticCurvePrivateKey):
            r, s = decode_dss_signature(self.ak_key.sign(data, ec.ECDSA(hashes.SHA256())))
            return head + sized(r.to_bytes(32, "big")) + sized(s.to_bytes(32, "big"))
        scheme: padding.AsymmetricPadding = padding.PKCS1v15()
        if self.scheme == wire.ALG_RSAPSS:
            scheme = padding.PSS(padding.MGF1(hashes.SHA256()), 32)
        return head + sized(self.ak_key.sign(data, scheme, hashes.SHA256()))


def spec_header(banks: Mapping[int, int]) -> bytes:
    """The first event of a log with these banks (algorithm → digest size): what firmware writes before it measures."""
    body = b"Spec ID Event03\0" + struct.pack("<IBBBBI", 0, 0, 2, 0, 2, len(banks))
    body += b"".join(struct.pack("<HH", algorithm, size) for algorithm, size in banks.items()) + b"\0"
    return struct.pack("<II20xI", 0, 3, len(body)) + body

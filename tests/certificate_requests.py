"""Certificate requests written byte by byte, for tests of what no library would write."""

import base64
import ipaddress
from collections.abc import Sequence

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

PKCS9, MICROSOFT = "2a864886f70d01090e", "2b060104018237020114"
"""The object identifiers of extension requests: 1.2.840.113549.1.9.14, and 1.3.6.1.4.1.311.2.1.14 as well to some."""
SAN, USAGE, CONSTRAINTS = "551d11", "551d0f", "551d13"
UTF8, PRINTABLE = 0x0C, 0x13
ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")
ECDSA_SHA384 = bytes.fromhex("300a06082a8648ce3d040303")
RSA_SHA256 = bytes.fromhex("300d06092a864886f70d01010b0500")
ED25519 = bytes.fromhex("300506032b6570")
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey
KEY = ec.derive_private_key(0xB007, ec.SECP256R1())


def value(tag: int, *contents: bytes) -> bytes:
    """A DER value."""
    data = b"".join(contents)
    if len(data) < 0x80:
        return bytes([tag, len(data)]) + data
    length = len(data).to_bytes((len(data).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + data


def oid(hexadecimal: str) -> bytes:
    return value(0x06, bytes.fromhex(hexadecimal))


def part(kind: str, text: bytes, tag: int = UTF8) -> bytes:
    """A part of a subject: "55040a" is O, "550403" CN."""
    return value(0x30, oid(kind), value(tag, text))


def subject(node: str = "n1", tag: int = UTF8) -> bytes:
    organisation = part("55040a", b"system:nodes", tag)
    return value(0x30, value(0x31, organisation), value(0x31, part("550403", b"system:node:" + node.encode(), tag)))


def dns(name: str) -> bytes:
    return value(0x82, name.encode())


def address(text: str) -> bytes:
    return value(0x87, ipaddress.ip_address(text).packed)


def extension(*names: bytes, kind: str = SAN, critical: bytes = b"") -> bytes:
    return value(0x30, oid(kind), critical, value(0x04, value(0x30, *names)))


def attribute(*extensions: bytes, kind: str = PKCS9, more: Sequence[bytes] = ()) -> bytes:
    """An extension request; `more`: further values of its set."""
    return value(0x30, oid(kind), value(0x31, value(0x30, *extensions), *more))


def spki(key: Key = KEY) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def body(*attributes: bytes, named: bytes = b"", key: bytes = b"", version: bytes = b"\x02\x01\x00") -> bytes:
    """What is signed."""
    return value(0x30, version, named or subject(), key or spki(), value(0xA0, *attributes))


def algorithm_of(key: Key) -> bytes:
    """The usual one, which is what it signs with."""
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return ECDSA_SHA384 if key.key_size == 384 else ECDSA_SHA256
    return RSA_SHA256 if isinstance(key, rsa.RSAPrivateKey) else ED25519


def sign(data: bytes, key: Key = KEY) -> bytes:
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(data, ec.ECDSA(hashes.SHA384() if key.key_size == 384 else hashes.SHA256()))
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    return key.sign(data)


def signed(tbs: bytes, algorithm: bytes = b"", key: Key = KEY, more: bytes = b"") -> bytes:
    """The request in DER; `more`: behind the signature."""
    return value(0x30, tbs, algorithm or algorithm_of(key), value(0x03, b"\0", sign(tbs, key)), more)


def pem(der: bytes) -> bytes:
    text = base64.b64encode(der)
    lines = b"".join(text[at : at + 64] + b"\n" for at in range(0, len(text), 64))
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + lines + b"-----END CERTIFICATE REQUEST-----\n"

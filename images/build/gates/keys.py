"""Private keys and password hashes in bytes. Pure.

A program that reads keys has their first line in it (python's cryptography, say): a key is that line with a key behind
it. In the trees of the shipped recipes nothing is found.
"""

import base64
import re

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_der_private_key

_BREAK = rb"(?:\s|\\r|\\n)"
_BODY = _BREAK + rb"+(?:[A-Za-z][A-Za-z-]*: [^\n\\]{0,200}" + _BREAK + rb"+)*[A-Za-z0-9+/=]{16}"
"""Headers (RFC 1421's, OpenPGP's) and then the key; line breaks may be written as in JSON."""
_PEM = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----" + _BODY)
_KINDS: tuple[tuple[str, bytes, re.Pattern[bytes]], ...] = (
    ("PEM", b"PRIVATE KEY", _PEM),
    (
        "PuTTY",
        b"PuTTY-User",
        re.compile(rb"PuTTY-User-Key-File-[0-9]: [^\n]*\n(?:[^\n]*\n){1,64}?Private-Lines: [0-9]"),
    ),
    ("signify", b"secret key", re.compile(rb"untrusted comment: [^\n]{0,1024}secret key\r?\nR[A-Za-z0-9+/]{64}")),
    ("age", b"AGE-SECRET-KEY", re.compile(rb"AGE-SECRET-KEY-1[0-9A-Z]{58}")),
    ("WireGuard", b"PrivateKey", re.compile(rb"PrivateKey\s*=\s*[A-Za-z0-9+/]{43}=")),
)
"""Kind, what a file must have in it to be looked at twice (finding bytes is quick, finding patterns is not), form."""
_PACKED_MARK = b"LS0tLS1CRUdJTi"
_PACKED = re.compile(_PACKED_MARK + rb"[A-Za-z0-9+/]{64,400}")
"""A PEM block in base64, as kubeconfigs have it (`client-key-data`)."""
_LONGEST_DER = 16 * 1024

_SCHEMES = tuple(f"${name}$".encode() for name in ("1", "apr1", "5", "6", "2a", "2b", "2x", "2y", "y", "gy", "7"))
_SALTED = rb"[./0-9A-Za-z]{1,16}\$"
PASSWORD = re.compile(
    rb"\$(?:"
    rb"(?:1|apr1)\$" + _SALTED + rb"[./0-9A-Za-z]{22}"
    rb"|5\$(?:rounds=[0-9]+\$)?" + _SALTED + rb"[./0-9A-Za-z]{43}"
    rb"|6\$(?:rounds=[0-9]+\$)?" + _SALTED + rb"[./0-9A-Za-z]{86}"
    rb"|2[abxy]\$[0-9]{2}\$[./0-9A-Za-z]{53}"
    rb"|g?y\$[./0-9A-Za-z]+\$[./0-9A-Za-z]{1,86}\$[./0-9A-Za-z]{43}"
    rb"|7\$[./0-9A-Za-z]{11,97}\$[./0-9A-Za-z]{43}"
    rb")(?![./0-9A-Za-z])"
)
"""The forms of crypt(5) that are in use, and Apache's; each has a length of its own."""


def private_key(data: bytes) -> str:
    """The kind of private key that is in `data`, or nothing."""
    for kind, mark, pattern in _KINDS:
        if mark in data and pattern.search(data):
            return kind
    for match in _PACKED.finditer(data) if _PACKED_MARK in data else ():
        if _PEM.search(base64.b64decode(match[0][: len(match[0]) // 4 * 4])):
            return "PEM in base64"
    return "DER" if _is_der(data) else ""


def _is_der(data: bytes) -> bool:
    """PKCS#8, PKCS#1 or SEC 1, encrypted or not: one whole sequence that the library takes for a key."""
    head = data[:4]
    if len(data) > _LONGEST_DER or len(head) < 4 or head[0] != 0x30:
        return False
    size = {0x81: head[2] + 3, 0x82: int.from_bytes(head[2:4], "big") + 4}.get(head[1], head[1] + 2)
    if size != len(data):
        return False
    try:
        load_der_private_key(data, None)
    except TypeError:  # encrypted: the password is asked for
        return True
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


def password_hash(data: bytes) -> bool:
    """Whether a password hash is in `data`."""
    return any(mark in data for mark in _SCHEMES) and PASSWORD.search(data) is not None

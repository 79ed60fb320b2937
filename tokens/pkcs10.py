"""One strict reading of a node's certificate request: what it says to us it says to every parser, or it is refused.

We approve by what we read, and the signer signs what *it* reads (Go's crypto/x509, of the first PEM block). So nothing
is left to a parser's taste: PEM and DER must be the canonical ones, byte for byte; the subject is O and CN, and the
attributes are none, or one extension request with alternative names alone. Kubelets and the agent write nothing else.

Sources: RFC 7468 sections 2 and 3 (PEM), RFC 2986 section 4 (requests), RFC 2985 section 5.4.2 (extensionRequest),
RFC 5280 section 4.2.1.6 (alternative names), X.690 sections 8, 10 and 11 (DER); the algorithms' identifiers are of
RFC 5758 section 3.2, RFC 4055 section 5 and RFC 8410 section 3.
"""

import base64
import binascii
import ipaddress
import re
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

from tokens.errors import CsrError

LONGEST = 32_768
"""Bytes of PEM; a request of RSA 4096 with a hundred names has less than a quarter of it."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Key = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey
_SEQUENCE, _SET, _OID, _BITS, _OCTETS = 0x30, 0x31, 0x06, 0x03, 0x04
_UTF8, _PRINTABLE, _ATTRIBUTES, _DNS, _IP = 0x0C, 0x13, 0xA0, 0x82, 0x87
_VERSION = bytes.fromhex("020100")
_ORGANISATION, _COMMON_NAME, _SAN = bytes.fromhex("55040a"), bytes.fromhex("550403"), bytes.fromhex("551d11")
_EXTENSION_REQUEST = bytes.fromhex("2a864886f70d01090e")
_ECDSA: dict[bytes, hashes.HashAlgorithm] = {
    bytes.fromhex("300a06082a8648ce3d040302"): hashes.SHA256(),
    bytes.fromhex("300a06082a8648ce3d040303"): hashes.SHA384(),
    bytes.fromhex("300a06082a8648ce3d040304"): hashes.SHA512(),
}
_RSA: dict[bytes, hashes.HashAlgorithm] = {
    bytes.fromhex("300d06092a864886f70d01010b0500"): hashes.SHA256(),
    bytes.fromhex("300d06092a864886f70d01010c0500"): hashes.SHA384(),
    bytes.fromhex("300d06092a864886f70d01010d0500"): hashes.SHA512(),
}
_ED25519 = bytes.fromhex("300506032b6570")
_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_NAME = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_NODE = re.compile(rb"system:node:([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)")


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """What a request asks for. `spki`: DER SubjectPublicKeyInfo. Without names and addresses: a client's."""

    node: str
    spki: bytes
    names: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()


def read(pem: bytes) -> NodeRequest:
    """A request that is signed by the key it names, for O=system:nodes and CN=system:node:<node>.

    Raises:
        CsrError: anything else, with what it is.
    """
    body = _only(_der(pem), _SEQUENCE, "the request")
    signed, rest = _first(body, _SEQUENCE, "the request's body")
    algorithm, rest = _first(rest, _SEQUENCE, "the signature's algorithm")
    signature = _bits(rest, "the signature")
    fields = _only(signed, _SEQUENCE, "the request's body")
    if not fields.startswith(_VERSION):
        raise CsrError("the request's version is not that of PKCS#10 (0)")
    subject, fields = _first(fields[len(_VERSION) :], _SEQUENCE, "the subject")
    spki, fields = _first(fields, _SEQUENCE, "the key")
    node, key = _node(subject), _key(spki)
    names, addresses = _attributes(_only(fields, _ATTRIBUTES, "the list of attributes"))
    _check_signature(key, algorithm, signature, signed)
    return NodeRequest(node, spki, names, addresses)


def _der(pem: bytes) -> bytes:
    begin, end = b"-----BEGIN CERTIFICATE REQUEST-----\n", b"-----END CERTIFICATE REQUEST-----\n"
    if len(pem) > LONGEST:
        raise CsrError(f"a request of {len(pem)} bytes; at most {LONGEST} are looked at")
    if not pem.startswith(begin) or not pem.endswith(end) or pem.count(b"-----") != 4:
        raise CsrError("must be exactly one PEM block of a certificate request")
    text = pem[len(begin) : -len(end)]
    try:
        der = base64.b64decode(text.replace(b"\n", b""), validate=True)
    except binascii.Error:
        raise CsrError("the PEM block is not base64") from None
    whole = base64.b64encode(der)
    if text != b"".join(whole[at : at + 64] + b"\n" for at in range(0, len(whole), 64)):
        raise CsrError("the PEM block is not written in the one strict way (RFC 7468: lines of 64, no spaces)")
    return der


def _first(data: bytes, tag: int, what: str) -> tuple[bytes, bytes]:
    """The first value of `data`, with its header, and what follows it."""
    header, length = _header(data, tag, what)
    if header + length > len(data):
        raise CsrError(f"{what} is cut off")
    return data[: header + length], data[header + length :]


def _only(data: bytes, tag: int, what: str) -> bytes:
    """The contents of the value that `data` is."""
    header, length = _header(data, tag, what)
    if header + length > len(data):
        raise CsrError(f"{what} is cut off")
    if header + length < len(data):
        raise CsrError(f"bytes follow {what}")
    return data[header:]


def _header(data: bytes, tag: int, what: str) -> tuple[int, int]:
    """The lengths of header and contents (X.690, 10.1: definite and as short as can be)."""
    if len(data) < 2 or data[0] != tag:
        raise CsrError(f"{what} is missing, or of another type than is read here")
    if data[1] < 0x80:
        return 2, data[1]
    count = data[1] & 0x7F
    length = int.from_bytes(data[2 : 2 + count], "big")
    if not 1 <= count <= 2 or len(data) < 2 + count or length < 0x80 or data[2] == 0:
        raise CsrError(f"{what} is not strict DER: its length is indefinite, too long, or not the shortest")
    return 2 + count, length


def _bits(data: bytes, what: str) -> bytes:
    bits = _only(data, _BITS, what)
    if bits[:1] != b"\0":
        raise CsrError(f"{what} is not a whole number of bytes")
    return bits[1:]


def _node(subject: bytes) -> str:
    try:
        first, second = _first(_only(subject, _SEQUENCE, "the subject"), _SET, "the subject's organisation")
        (first_type, organisation), (second_type, name) = _text(first, _ORGANISATION), _text(second, _COMMON_NAME)
        match = _NODE.fullmatch(name) if organisation == b"system:nodes" else None
    except CsrError:
        match = None
    if match is None:
        raise CsrError("the subject must be exactly O=system:nodes and CN=system:node:<name>")
    if {first_type, second_type} - {_UTF8, _PRINTABLE}:
        raise CsrError("a text of the subject is neither a UTF8String nor a PrintableString")
    return match[1].decode()


def _text(data: bytes, oid: bytes) -> tuple[int, bytes]:
    """The text, after the tag of its type, of a part of a subject that has one attribute, of that type."""
    pair = _only(_only(data, _SET, "a part of the subject"), _SEQUENCE, "a part of the subject")
    kind, text = _first(pair, _OID, "the type of a part of the subject")
    if kind[2:] != oid or not text:
        raise CsrError("another part, or in another order")
    return text[0], _only(text, text[0], "a text of the subject")


def _key(spki: bytes) -> Key:
    try:
        key = serialization.load_der_public_key(spki)
        same = spki == key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    except Exception as error:  # noqa: BLE001 - the parser has no error class of its own; whatever it says, it is no key
        raise CsrError(f"the key cannot be read: {type(error).__name__}") from None
    if not same:
        raise CsrError("the key is not written in the one strict way (DER, points uncompressed)")
    if isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, (ec.SECP256R1, ec.SECP384R1)):
        return key
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048:
        numbers = key.public_numbers()
        if key.key_size > 8192 or numbers.e != 65537 or numbers.n % 2 == 0:
            raise CsrError("an RSA key must have the exponent 65537, an odd modulus, and at most 8192 bits")
        return key
    raise CsrError("the key must be ECDSA P-256 or P-384, Ed25519, or RSA of at least 2048 bits")


def _attributes(data: bytes) -> tuple[tuple[str, ...], tuple[Address, ...]]:
    """None, or exactly one PKCS#9 extension request of exactly one extension: alternative names."""
    if not data:
        return (), ()
    attribute, more = _first(data, _SEQUENCE, "an attribute")
    if more:
        raise CsrError("the request has more than one attribute; parsers differ in which of them they read")
    kind, values = _first(_only(attribute, _SEQUENCE, "an attribute"), _OID, "an attribute's type")
    if kind[2:] != _EXTENSION_REQUEST:
        raise CsrError("the request's attribute is not PKCS#9's extension request (1.2.840.113549.1.9.14)")
    value = _only(values, _SET, "the extension request's one value")
    extension, more = _first(_only(value, _SEQUENCE, "the extension request"), _SEQUENCE, "an extension")
    if more:
        raise CsrError("the request has more than one extension")
    kind, contents = _first(_only(extension, _SEQUENCE, "an extension"), _OID, "an extension's type")
    if kind[2:] != _SAN:
        raise CsrError("the only extension of a request is the alternative names' (2.5.29.17)")
    if contents[:1] != bytes([_OCTETS]):
        raise CsrError("the alternative names are marked critical, or are none")
    return _alternative_names(_only(_only(contents, _OCTETS, "the extension"), _SEQUENCE, "the alternative names"))


def _alternative_names(data: bytes) -> tuple[tuple[str, ...], tuple[Address, ...]]:
    names: list[str] = []
    addresses: list[Address] = []
    if not data:
        raise CsrError("the list of alternative names is empty")
    while data:
        if data[0] not in (_DNS, _IP):
            raise CsrError("alternative names must be DNS names or addresses")
        element, data = _first(data, data[0], "an alternative name")
        contents = _only(element, element[0], "an alternative name")
        if element[0] == _DNS:
            names.append(_name(contents))
        else:
            addresses.append(_address(contents))
    return tuple(names), tuple(addresses)


def _name(contents: bytes) -> str:
    name = contents.decode("ascii", "replace")
    if len(name) > 253 or not _NAME.fullmatch(name):
        raise CsrError("an alternative name is not a DNS name of letters, digits, hyphens and single dots")
    return name


def _address(contents: bytes) -> Address:
    if len(contents) not in (4, 16):
        raise CsrError(f"an address of {len(contents)} bytes; IPv4 has 4, IPv6 16")
    address = ipaddress.ip_address(contents)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CsrError("an IPv4 address is written as IPv6; the signer would make another of it")
    return address


def _check_signature(key: Key, algorithm: bytes, signature: bytes, signed: bytes) -> None:
    try:
        if isinstance(key, ec.EllipticCurvePublicKey) and algorithm in _ECDSA:
            if utils.encode_dss_signature(*utils.decode_dss_signature(signature)) != signature:
                raise CsrError("the signature is not strict DER")
            key.verify(signature, signed, ec.ECDSA(_ECDSA[algorithm]))
        elif isinstance(key, rsa.RSAPublicKey) and algorithm in _RSA:
            key.verify(signature, signed, padding.PKCS1v15(), _RSA[algorithm])
        elif isinstance(key, ed25519.Ed25519PublicKey) and algorithm == _ED25519:
            key.verify(signature, signed)
        else:
            raise CsrError(
                "the signature's algorithm does not fit the key, or is none of SHA-2 with ECDSA or RSA, Ed25519"
            )
    except (InvalidSignature, ValueError):
        raise CsrError("the request is not signed by the key that it names") from None

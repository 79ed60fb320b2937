"""A machine with a TPM in software, as join sees it: keys, ActivateCredential, quotes, counters."""

import base64
import hashlib
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.unit.tokens.soft import ECC_AK, ECC_EK, RSA_EK, SHA256, Exchange, Key, spec_header
from tokens import wire
from tokens.credential import HASHES, kdfa, kdfe, spki_sha256
from tokens.wire import PROOF_TAG, Selection, quote_nonce, sized

MAC = "52:54:00:00:00:01"
MEASURED = {index: hashlib.sha256(b"pcr %d" % index).digest() for index in range(24)}
PCRS = {index: hashlib.sha256(bytes(32) + digest).digest() for index, digest in MEASURED.items()}
EVENT_LOG = spec_header({SHA256: 32}) + b"".join(
    struct.pack("<IIIH", index, 8, 1, SHA256) + digest + struct.pack("<I", 0) for index, digest in MEASURED.items()
)
"""Of the firmware that measured once into each PCR; it leads to `PCRS`."""


def text(data: bytes) -> str:
    """Base64, as the wire has it."""
    return base64.b64encode(data).decode()


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A key's DER SubjectPublicKeyInfo."""
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A key of an agent."""
    return ec.generate_private_key(ec.SECP256R1())


@dataclass
class Machine:
    """A machine as its agent shows it. `tpm=False`: it says that it has none."""

    boot: str
    macs: tuple[str, ...] = (MAC,)
    serial: str | None = None
    key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    ek: Key = field(default_factory=lambda: RSA_EK)
    ak: Key = field(default_factory=lambda: ECC_AK)
    resets: int = 5
    restarts: int = 6
    pcrs: dict[int, bytes] = field(default_factory=lambda: dict(PCRS))
    hierarchy: int = wire.RH_ENDORSEMENT
    tpm: bool = True
    nonce: str | None = None
    eventlog: bytes | None = None
    previous: ec.EllipticCurvePrivateKey | None = None

    @property
    def ek_sha256(self) -> str:
        """How its TPM is pinned."""
        return spki_sha256(self._exchange().ek)

    def hello(self, **changes: Any) -> dict[str, Any]:
        """The body of hello."""
        one = self._exchange()
        keys = {"ek_public": text(sized(one.ek.raw)), "ek_certificate": None, "ak_public": text(sized(one.ak.raw))}
        hints = {"uuid": None, "serial": self.serial, "macs": list(self.macs)}
        body = {"version": 1, "boot": self.boot, "spki": text(spki(self.key)), "hints": hints}
        return body | {"tpm": keys if self.tpm else None, "nonce": self.nonce} | changes

    def attest(self, answer: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """The body of attest. `changes`: fields of the body, or of `tpm`, to be replaced."""
        state = base64.b64decode(answer["state"])
        body = {"version": 1, "state": answer["state"], "proof": text(self.prove(state, self.key))}
        body["previous_proof"] = text(self.prove(state, self.previous)) if self.previous is not None else None
        body["tpm"] = self.statement(answer, state) if answer["assurance"] == "tpm" else None
        for name, value in changes.items():
            (body if name in body else body["tpm"])[name] = value
        return body

    def statement(self, answer: dict[str, Any], state: bytes) -> dict[str, Any]:
        """What the TPM says of this exchange."""
        blob, encrypted = (base64.b64decode(answer[name]) for name in ("credential_blob", "encrypted_secret"))
        secret = self.activate(blob, encrypted)
        indices = tuple(answer["pcrs"]["sha256"])
        one = self._exchange()
        one.nonce, one.selection = quote_nonce(state, secret, spki(self.key)), (Selection(SHA256, indices),)
        one.pcrs = {(SHA256, index): self.pcrs[index] for index in indices}
        quote = one.quote()
        return {
            "secret": text(secret),
            "quote": text(quote),
            "signature": text(one.sign(quote)),
            "pcrs": {"sha256": {str(index): self.pcrs[index].hex() for index in indices}},
            "eventlog": None if self.eventlog is None else text(self.eventlog),
        }

    def activate(self, blob: bytes, encrypted: bytes) -> bytes:
        """TPM2_ActivateCredential."""
        one = self._exchange()
        name = wire.hash_name(one.ek.name_algorithm)
        seed = self._seed(name, wire.Reader(encrypted).sized())
        body = wire.Reader(wire.Reader(blob).sized())
        outer = body.sized()
        identity = body.take(len(blob) - 2 - 2 - len(outer))
        size = hashlib.new(name).digest_size * 8
        check = hmac.HMAC(kdfa(name, seed, b"INTEGRITY", b"", b"", size), HASHES[name])
        check.update(identity + one.ak.name)
        check.verify(outer)
        key = kdfa(name, seed, b"STORAGE", one.ak.name, b"", one.ek.symmetric_bits)
        decryptor = Cipher(algorithms.AES(key), CFB(bytes(16))).decryptor()
        return wire.Reader(decryptor.update(identity) + decryptor.finalize()).sized()

    def prove(self, state: bytes, key: ec.EllipticCurvePrivateKey) -> bytes:
        """The proof of possession."""
        return key.sign(PROOF_TAG + state, ec.ECDSA(hashes.SHA256()))

    def _seed(self, name: str, encrypted: bytes) -> bytes:
        if isinstance(self.ek, rsa.RSAPrivateKey):
            oaep = padding.OAEP(padding.MGF1(HASHES[name]), HASHES[name], b"IDENTITY\0")
            return self.ek.decrypt(encrypted, oaep)
        reader = wire.Reader(encrypted)
        x, y = reader.sized(), reader.sized()
        numbers = ec.EllipticCurvePublicNumbers(int.from_bytes(x, "big"), int.from_bytes(y, "big"), self.ek.curve)
        shared = self.ek.exchange(ec.ECDH(), numbers.public_key())
        own = self.ek.public_key().public_numbers().x.to_bytes(len(x), "big")
        return kdfe(name, shared, b"IDENTITY", x, own, hashlib.new(name).digest_size * 8)

    def _exchange(self) -> Exchange:
        return Exchange(
            ek_key=self.ek,
            ak_key=self.ak,
            resets=self.resets,
            restarts=self.restarts,
            hierarchy=self.hierarchy,
        )


def other_tpm() -> Key:
    """The EK of a TPM that nobody knows."""
    return ECC_EK

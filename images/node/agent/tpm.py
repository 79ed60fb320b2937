"""The TPM 2.0, spoken to through the kernel's resource manager: identity, ActivateCredential, quote.

Sources: TCG "TPM 2.0 Library" parts 2 (structures) and 3 (commands); "TCG EK Credential Profile" 2.x, annex B.3
(templates L-1 and L-2) and 2.2.1.4 (NV indices).
"""

import contextlib
import os
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from tokens.wire import HASHES, RH_ENDORSEMENT, Reader, read_quote, sized

from .errors import TpmError
from .tpm_command import Transport, command, transact

Banks = Mapping[str, Sequence[int]]
"""PCR indices by the name of their bank (`sha256`), in the order in which they are quoted."""


@dataclass(frozen=True, slots=True)
class Identity:
    """TPM2B_PUBLIC of EK and AK, and the EK's certificate (DER) where the TPM holds one."""

    ek_public: bytes
    ek_certificate: bytes | None
    ak_public: bytes


@dataclass(frozen=True, slots=True)
class Quoted:
    """TPMS_ATTEST, TPMT_SIGNATURE, and the PCR values that were quoted."""

    attest: bytes
    signature: bytes
    pcrs: dict[str, dict[int, bytes]]


class Tpm(Protocol):
    """What the exchange needs of a TPM; `Device` is the real one."""

    def identity(self) -> Identity:
        """The TPM's keys."""
        ...

    def activate(self, credential_blob: bytes, encrypted_secret: bytes) -> bytes:
        """The secret of a TPM2B_ID_OBJECT and TPM2B_ENCRYPTED_SECRET made for this EK and AK."""
        ...

    def quote(self, nonce: bytes, banks: Banks) -> Quoted:
        """The AK's statement on PCRs, covering `nonce`."""
        ...


_PASSWORD, _NULL, _NO_ALG = 0x40000009, 0x40000007, b"\x00\x10"
_CREATE_PRIMARY, _ACTIVATE, _POLICY_SECRET, _START_SESSION = 0x131, 0x147, 0x151, 0x176
_NV_READ, _NV_PUBLIC, _QUOTE, _FLUSH, _PCR_READ = 0x14E, 0x169, 0x158, 0x165, 0x17E
# EK: fixedTPM, fixedParent, sensitiveDataOrigin, adminWithPolicy, restricted, decrypt; PolicySecret(endorsement).
_EK_POLICY = bytes.fromhex("837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa")
_EK_HEAD = struct.pack(">HI", 0xB, 0x000300B2) + sized(_EK_POLICY) + bytes.fromhex("000600800043") + _NO_ALG
EK_RSA = b"\x00\x01" + _EK_HEAD + struct.pack(">HI", 2048, 0) + sized(bytes(256))
EK_ECC = b"\x00\x23" + _EK_HEAD + b"\x00\x03" + _NO_ALG + sized(bytes(32)) + sized(bytes(32))
# AK: fixedTPM, fixedParent, sensitiveDataOrigin, userWithAuth, noDA (a lock-out must not keep a machine out),
# restricted, sign; ECDSA with SHA-256 on P-256.
AK_ECC = bytes.fromhex("0023000b000504720000" + "0010" + "0018000b" + "0003" + "0010" + "0000" + "0000")
_CERTIFICATES = {EK_RSA: 0x01C00002, EK_ECC: 0x01C0000A}
_NOT_HERE = (0x81, 0x84, 0x87, 0x8A)  # ASYMMETRIC, VALUE, KEY_SIZE, TYPE: a TPM without RSA-2048


@dataclass
class Device:
    """A TPM behind `transport`. `close` flushes everything that it loaded. Raises TpmError or MalformedError."""

    transport: Transport
    template: bytes = EK_RSA
    pause: Callable[[float], object] = time.sleep
    _ek: int = 0
    _ak: int = 0
    _identity: Identity | None = field(default=None, repr=False)

    def close(self) -> None:
        """Flush EK and AK from the TPM, which has room for few; whatever needs them next loads them again."""
        for handle in (self._ak, self._ek):
            if handle:
                self._flush(handle)
        self._ak = self._ek = 0
        self._identity = None

    def identity(self) -> Identity:
        """Load EK and AK: the same ones as long as nobody clears the TPM."""
        if self._identity is None:
            try:
                self._ek, ek = self._primary(self.template)
            except TpmError as error:
                if self.template != EK_RSA or error.code & 0xBF not in _NOT_HERE:
                    raise
                self.template = EK_ECC
                self._ek, ek = self._primary(self.template)
            self._ak, ak = self._primary(AK_ECC)
            self._identity = Identity(ek, self._certificate(), ak)
        return self._identity

    def activate(self, credential_blob: bytes, encrypted_secret: bytes) -> bytes:
        """TPM2_ActivateCredential, allowed by PolicySecret(endorsement)."""
        self.identity()
        start = struct.pack(">II", _NULL, _NULL)
        nonce, policy = sized(os.urandom(16)), b"\x01" + _NO_ALG + b"\x00\x0b"
        session = self._command(_START_SESSION, parameters=start + nonce + sized(b"") + policy).number(4)
        try:
            empty = sized(b"") * 3 + bytes(4)
            self._command(_POLICY_SECRET, (RH_ENDORSEMENT, session), (_PASSWORD,), empty)
            sealed = credential_blob + encrypted_secret
            response = self._command(_ACTIVATE, (self._ak, self._ek), (_PASSWORD, session), sealed)
            response.number(4)
            return response.sized()
        finally:
            self._flush(session)

    def quote(self, nonce: bytes, banks: Banks) -> Quoted:
        """TPM2_Quote, and the values that it covers: read again where one was extended in between."""
        self.identity()
        for _ in range(4):
            parameters = sized(nonce) + _NO_ALG + _selection(banks)
            response = self._command(_QUOTE, (self._ak,), (_PASSWORD,), parameters)
            answer = response.take(response.number(4))
            attest = Reader(answer).sized()
            signature = answer[2 + len(attest) :]
            pcrs = {bank: self._pcrs(bank, indices) for bank, indices in banks.items()}
            joined = b"".join(value for values in pcrs.values() for value in values.values())
            if sha256(joined).digest() == read_quote(attest).pcr_digest:
                return Quoted(attest, signature, pcrs)
        raise TpmError("the TPM's PCRs change all the time: something extends them")

    def _pcrs(self, bank: str, indices: Sequence[int]) -> dict[int, bytes]:
        values: dict[int, bytes] = {}
        for at in range(0, len(indices), 8):  # a TPML_DIGEST has at most eight
            part = indices[at : at + 8]
            response = self._command(_PCR_READ, parameters=_selection({bank: part}))
            response.number(4)
            for _ in range(response.number(4)):
                response.number(2)
                response.take(response.number(1))
            digests = [response.sized() for _ in range(response.number(4))]
            if len(digests) != len(part):
                raise TpmError(f"the TPM keeps no {bank} PCRs: enable that bank in the firmware's set-up")
            values.update(zip(part, digests, strict=True))
        return values

    def _primary(self, template: bytes) -> tuple[int, bytes]:
        """A primary key of the endorsement hierarchy: its handle and TPM2B_PUBLIC."""
        parameters = sized(sized(b"") * 2) + sized(template) + sized(b"") + bytes(4)
        response = self._command(_CREATE_PRIMARY, (RH_ENDORSEMENT,), (_PASSWORD,), parameters)
        handle, _ = response.number(4), response.number(4)
        return handle, sized(response.sized())

    def _certificate(self) -> bytes | None:
        """The EK's certificate; None: there is none, or none that can be read. It only ever conditions enrolment."""
        index = _CERTIFICATES[self.template]
        try:
            public = Reader(self._command(_NV_PUBLIC, (index,)).sized())
            public.take(10)
            public.sized()
            size, data = public.number(2), b""
            while len(data) < size <= 4096:
                parameters = struct.pack(">HH", min(512, size - len(data)), len(data))
                response = self._command(_NV_READ, (index, index), (_PASSWORD,), parameters)
                response.number(4)
                data += response.sized()
        except TpmError:
            return None
        # Some indices are larger than the certificate: its own length counts (DER, a SEQUENCE of two length bytes).
        if data[:2] != b"\x30\x82":
            return None
        return data[: 4 + int.from_bytes(data[2:4], "big")]

    def _flush(self, handle: int) -> None:
        with contextlib.suppress(TpmError, OSError):
            self._command(_FLUSH, parameters=struct.pack(">I", handle))

    def _command(
        self, code: int, handles: Sequence[int] = (), sessions: Sequence[int] = (), parameters: bytes = b""
    ) -> Reader:
        return command(self.transport, self.pause, code, handles, sessions, parameters)


def _selection(banks: Banks) -> bytes:
    """TPML_PCR_SELECTION."""
    numbers = {name: number for number, name in HASHES.items()}
    fields = [struct.pack(">I", len(banks))]
    for bank, indices in banks.items():
        fields.append(struct.pack(">HB", numbers[bank], 3) + sum(1 << i for i in set(indices)).to_bytes(3, "little"))
    return b"".join(fields)


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Device | None]:
    """The machine's TPM 2.0; None: it has none. A Unix socket in its place is a simulator's.

    Raises:
        TpmError: it has one that cannot be used.
    """
    path = root / "dev/tpmrm0"
    try:
        is_socket = stat.S_ISSOCK(path.stat().st_mode)
    except FileNotFoundError:
        yield None
        return
    try:
        with contextlib.ExitStack() as stack:
            if is_socket:
                link = stack.enter_context(socket.socket(socket.AF_UNIX))
                link.connect(str(path.resolve()))
                file = link.fileno()
            else:
                file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                stack.callback(os.close, file)
            device = Device(lambda message: transact(file, message))
            stack.callback(device.close)
            yield device
    except OSError as error:
        raise TpmError(f"cannot use {path}: {error.strerror or error}") from None

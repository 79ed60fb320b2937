"""The wire of join, read strictly: whatever the bytes, a value or `BadClaimError`. The contract: `docs/join.md`."""

import base64
import binascii
import re
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import Name
from netboot.lifecycle.errors import BadClaimError
from netboot.lifecycle.events import BootId
from netboot.machines.identity import parse_mac, parse_serial, parse_uuid
from netboot.machines.values import AssuranceLevel, PcrIndex

LONGEST_HELLO = 16 * 1024
LONGEST_ATTEST = 256 * 1024
LONGEST_STATE = 8192
"""Bytes; agents take no longer one."""


def _decoded(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("must be base64 in a string")  # noqa: TRY004 - pydantic collects only ValueError
    try:
        data = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64 (standard alphabet, padded)") from None
    if base64.b64encode(data).decode() != value:
        raise ValueError("is not base64 as everybody writes it")
    return data


_Decoded = Annotated[bytes, BeforeValidator(_decoded)]
Key = Annotated[_Decoded, Field(min_length=1, max_length=1024)]
Statement = Annotated[_Decoded, Field(min_length=1, max_length=2048)]
Sealed = Annotated[_Decoded, Field(min_length=1, max_length=LONGEST_STATE)]
EkCertificate = Annotated[_Decoded, Field(min_length=1, max_length=8192)]
EventLog = Annotated[_Decoded, Field(min_length=1, max_length=LONGEST_ATTEST)]
Secret = Annotated[_Decoded, Field(min_length=32, max_length=32)]
Digest = Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})$")]
Bank = Literal["sha1", "sha256", "sha384", "sha512"]


class Hints(Strict):
    """What the machine calls itself. Never identity: what does not pass is left out, for a placeholder says nothing."""

    uuid: str | None = None
    serial: str | None = None
    macs: Annotated[tuple[str, ...], Field(max_length=32)] = ()


class TpmKeys(Strict):
    """Public areas (TPM2B_PUBLIC) and, where the TPM has one, its vendor's certificate."""

    ek_public: Key
    ek_certificate: EkCertificate | None = None
    ak_public: Key


class Hello(Strict):
    """The body of `POST /v1/join/hello`. `spki`: base64 DER of the key that the token will be bound to."""

    version: Literal[1]
    boot: BootId
    spki: Key
    hints: Hints = Hints()
    tpm: TpmKeys | None = None
    """None: the machine says that it has none."""
    nonce: Sealed | None = None


class TpmStatement(Strict):
    """What the TPM answered: the secret of the challenge, its quote, and the PCRs that are quoted."""

    secret: Secret = Field(repr=False)
    quote: Statement
    signature: Statement
    pcrs: dict[Bank, Annotated[dict[PcrIndex, Digest], Field(max_length=24)]]
    eventlog: EventLog | None = None


class Attest(Strict):
    """The body of `POST /v1/join/attest`. `proof`: the state signed by the key of hello; `previous_proof`: by the one
    that holds the credential of this boot."""

    version: Literal[1]
    state: Sealed
    proof: Statement
    previous_proof: Statement | None = None
    tpm: TpmStatement | None = None


class HelloAnswer(Strict):
    """The answer to hello; bytes in base64. What is of a TPM is left out on other assurance levels."""

    assurance: AssuranceLevel
    state: str
    now_ms: int
    credential_blob: str | None = None
    encrypted_secret: str | None = None
    pcrs: dict[str, tuple[int, ...]] | None = None

    def as_json(self) -> dict[str, Any]:
        """The body on the wire (docs/join.md)."""
        return self.model_dump(mode="json", exclude_none=True)


class AttestAnswer(Strict):
    """The answer to attest. `token` shows in no repr."""

    token: str = Field(repr=False)
    expires_ms: int
    node_name: str
    cluster: Name
    apiservers: tuple[str, ...]
    authorities: str
    labels: dict[str, str]
    taints: tuple[str, ...]
    now_ms: int

    def as_json(self) -> dict[str, Any]:
        """The body on the wire (docs/join.md)."""
        return self.model_dump(mode="json")


M = TypeVar("M", Hello, Attest)
_PLAIN = re.compile(r"[a-z0-9_]{1,20}")
"""Names of fields that may be repeated; others come from the sender."""


def read(data: bytes, model: type[M]) -> M:
    """The message in a body.

    Raises:
        BadClaimError: not one; the words name the field, never what it holds.
    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        fault = first_fault(error)
        location = tuple(str(part) if _PLAIN.fullmatch(str(part)) else "?" for part in fault.location[:4])
        raise BadClaimError(f"not a {model.__name__.lower()}: {replace(fault, location=location)}") from None
    except RecursionError:
        raise BadClaimError(f"not a {model.__name__.lower()}: nested too deep") from None


class Identifiers(Strict):
    """What a machine calls itself, after the allow-list and in one form: never identity."""

    macs: tuple[str, ...] = ()
    uuid: str | None = None
    serial: str | None = None


def normalised(hints: Hints) -> Identifiers:
    """The hints that can be used."""

    def tried(parse: Any, value: str | None) -> str | None:
        try:
            return None if value is None else str(parse(value))
        except ValueError:
            return None

    macs = tuple(mac for mac in (tried(parse_mac, hint) for hint in hints.macs) if mac is not None)
    return Identifiers(macs=macs, uuid=tried(parse_uuid, hints.uuid), serial=tried(parse_serial, hints.serial))


def encoded(data: bytes) -> str:
    """Bytes as the wire has them."""
    return base64.b64encode(data).decode()

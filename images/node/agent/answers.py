"""What join and apiserver answer, read strictly. Fields that are not known here are left alone: servers grow."""

import base64
import binascii
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tokens.wire import HASHES

from .errors import AnswerError

_NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
WORD = r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
LABEL = rf"({_NAME}/)?[A-Za-z0-9]([A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?"
_TAINT = re.compile(rf"({LABEL})(=({WORD}))?:(NoSchedule|PreferNoSchedule|NoExecute)")
_ENDPOINT = re.compile(r"https://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Challenge:
    """The answer to hello. `banks` is empty where no TPM is asked for."""

    assurance: str
    state: bytes = field(repr=False)
    credential_blob: bytes
    encrypted_secret: bytes
    banks: dict[str, tuple[int, ...]]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Taint:
    """One taint that the node registers with."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer to attest: who this node is, where its cluster is, and the token, which shows in no repr."""

    token: str = field(repr=False)
    expires_ms: int
    node_name: str
    cluster: str
    apiservers: tuple[str, ...]
    authorities: str
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    now_ms: int


def read_challenge(body: Any) -> Challenge:
    """The answer to hello.

    Raises:
        AnswerError: naming the field.
    """
    assurance, now_ms = _text(body, "assurance", "tpm|nonce|address"), _time(body, "now_ms")
    state = _bytes(body, "state", 8192)
    if assurance != "tpm":
        return Challenge(assurance, state, b"", b"", {}, now_ms)
    blob, secret = _bytes(body, "credential_blob", 1024), _bytes(body, "encrypted_secret", 1024)
    return Challenge(assurance, state, blob, secret, _banks(_get(body, "pcrs")), now_ms)


def read_admission(body: Any) -> Admission:
    """The answer to attest.

    Raises:
        AnswerError: naming the field, never what it says.
    """
    apiservers, taints = _get(body, "apiservers"), _get(body, "taints")
    if not _all_text(apiservers) or not 1 <= len(apiservers) <= 16 or not all(map(_ENDPOINT.fullmatch, apiservers)):
        raise AnswerError("join's answer: apiservers is not a list of https addresses")
    authorities = _text(body, "authorities", r"[\n\r -~]{1,262144}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=authorities)
    except (ssl.SSLError, ValueError):
        raise AnswerError("join's answer: authorities is not PEM certificates") from None
    return Admission(
        token=_text(body, "token", r"[a-z0-9]{6}\.[a-z0-9]{16}"),
        expires_ms=_time(body, "expires_ms"),
        node_name=_text(body, "node_name", _NAME),
        cluster=_text(body, "cluster", _NAME),
        apiservers=tuple(apiservers),
        authorities=authorities,
        labels=_labels(_get(body, "labels")),
        taints=_taints(taints),
        now_ms=_time(body, "now_ms"),
    )


def _get(body: Any, name: str) -> Any:
    if not isinstance(body, dict) or name not in body:
        raise AnswerError(f"join's answer: there is no {name}")
    return body[name]


def _text(body: Any, name: str, form: str) -> str:
    value = _get(body, name)
    if not isinstance(value, str) or not re.fullmatch(form, value):
        raise AnswerError(f"join's answer: {name} is not what it should be")
    return value


def _time(body: Any, name: str) -> int:
    value = _get(body, name)
    if type(value) is not int or not 0 <= value < 2**53:
        raise AnswerError(f"join's answer: {name} is not a time in milliseconds")
    return value


def _bytes(body: Any, name: str, limit: int) -> bytes:
    value = _get(body, name)
    try:
        data = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    if not 0 < len(data) <= limit:
        raise AnswerError(f"join's answer: {name} is not up to {limit} bytes in base64")
    return data


def _banks(value: Any) -> dict[str, tuple[int, ...]]:
    if not isinstance(value, dict) or not value or not set(value) <= set(HASHES.values()):
        raise AnswerError("join's answer: pcrs does not name banks that we know")
    for indices in value.values():
        if not isinstance(indices, list) or not indices or any(type(index) is not int for index in indices):
            raise AnswerError("join's answer: pcrs are not lists of numbers")
        if indices != sorted(set(indices)) or indices[0] < 0 or indices[-1] > 23:
            raise AnswerError("join's answer: pcrs are not in ascending order from 0 to 23")
    return {bank: tuple(indices) for bank, indices in value.items()}


def _labels(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or len(value) > 64:
        raise AnswerError("join's answer: labels is not a small object")
    for key, word in value.items():
        if not re.fullmatch(LABEL, key) or not isinstance(word, str) or not re.fullmatch(WORD, word):
            raise AnswerError("join's answer: labels are not Kubernetes labels")
    return dict(value)


def _taints(value: Any) -> tuple[Taint, ...]:
    matches = [_TAINT.fullmatch(text) for text in value] if _all_text(value) and len(value) <= 64 else [None]
    if not all(matches):
        raise AnswerError("join's answer: taints are not of the form key=value:Effect")
    return tuple(_taint(match[0]) for match in matches if match)


def _taint(text: str) -> Taint:
    head, _, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    return Taint(key, value, effect)


def _all_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)

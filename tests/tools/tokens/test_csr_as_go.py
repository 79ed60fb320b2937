"""What we accept of certificate requests, Go's crypto/x509 accepts and reads the same: over requests made and bent by
chance, 10,000 in each run of the tests, 200,000 by `make fuzz` (`NETBOOT_FUZZ`; the seed is in each failure's words).
"""

import base64
import json
import os
import random
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from lab.toolchain import find_go
from tests.certificate_requests import (
    CONSTRAINTS,
    KEY,
    MICROSOFT,
    PKCS9,
    PRINTABLE,
    SAN,
    USAGE,
    UTF8,
    address,
    attribute,
    body,
    dns,
    extension,
    oid,
    part,
    pem,
    signed,
    spki,
    value,
)
from tokens.errors import CsrError
from tokens.pkcs10 import NodeRequest, read

pytestmark = pytest.mark.tools
ROOT = Path(__file__).parents[3]
COUNT = int(os.environ.get("NETBOOT_FUZZ", "10000"))
SEED = 20_260_601
NAMES = (
    "n1",
    "N1.example",
    "a_b",
    "*.n1",
    "kubernetes.default.svc",
    "1.2.3.4",
    "a..b",
    ".a",
    "a.",
    "-a",
    "",
    "n1\0x",
    "é",
)
ADDRESSES = ("192.0.2.7", "2001:db8::7", "::ffff:192.0.2.7", "::", "0.0.0.0", "::1")
STRINGS = (UTF8, UTF8, UTF8, PRINTABLE, 0x14, 0x16, 0x1E, 0x1C, 0x1B)
KEYS = (
    ec.generate_private_key(ec.SECP384R1()),
    ec.generate_private_key(ec.SECP521R1()),
    ed25519.Ed25519PrivateKey.generate(),
    rsa.generate_private_key(65537, 2048),
    rsa.generate_private_key(3, 2048),
)
ALGORITHMS = tuple(
    bytes.fromhex(text)
    for text in (
        "300a06082a8648ce3d040303",  # SHA-384: not what it is signed with
        "300c06082a8648ce3d0403020500",  # parameters where there are none
        "300d06092a864886f70d01010b0500",  # RSA's
        "300506032b6570",  # Ed25519's
        "300906072a8648ce3d0401",  # SHA-1
    )
)


@pytest.fixture(scope="module")
def go_reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("go") / "reader"
    argv = [str(find_go(ROOT / ".cache")), "build", "-trimpath", "-o", str(program), "main.go"]
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    subprocess.run(argv, cwd=ROOT / "lab/kube/go_reader", env=environment, check=True)
    return program


def general_name(chance: random.Random) -> bytes:
    roll = chance.random()
    if roll < 0.45:
        return dns(chance.choice(NAMES[:3]))
    if roll < 0.85:
        return address(chance.choice(ADDRESSES[:2]))
    if roll < 0.92:
        return dns(chance.choice(NAMES))
    if roll < 0.97:
        return address(chance.choice(ADDRESSES))
    tag = chance.choice((0x81, 0x82, 0x86, 0x87, 0x88, 0xA0, 0xA2, 0xA4, 0x89))
    return value(tag, chance.randbytes(chance.choice((0, 1, 4, 5, 16, 17))))


def an_extension(chance: random.Random) -> bytes:
    kind = chance.choices((SAN, USAGE, CONSTRAINTS), (20, 1, 1))[0]
    critical = chance.choices((b"", b"\x01\x01\xff", b"\x01\x01\x00", b"\x01\x01\x01"), (20, 1, 1, 1))[0]
    names = [general_name(chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    return extension(*names, kind=kind, critical=critical)


def an_attribute(chance: random.Random) -> bytes:
    kind = chance.choices((PKCS9, MICROSOFT, "2a864886f70d010907"), (14, 1, 1))[0]
    extensions = [an_extension(chance) for _ in range(chance.choices((0, 1, 2), (1, 20, 2))[0])]
    more = [value(0x30, an_extension(chance))] if chance.random() < 0.05 else []
    return attribute(*extensions, kind=kind, more=more)


def a_subject(chance: random.Random) -> bytes:
    texts = [b"system:node:n1", b"system:node:worker-7.example"] * 4 + [b"system:node:N1", b"n1", b"system:node:n1\0"]
    organisation = part(
        "55040a", chance.choices((b"system:nodes", b"system:masters"), (30, 1))[0], chance.choice(STRINGS)
    )
    common = part("550403", chance.choice(texts), chance.choice(STRINGS))
    shapes = [[value(0x31, organisation), value(0x31, common)]] * 12
    shapes += [
        [value(0x31, common), value(0x31, organisation)],
        [value(0x31, organisation, common)],
        [value(0x31, common)],
    ]
    shapes += [[value(0x31, organisation), value(0x31, common)] * 2]
    return value(0x30, *chance.choice(shapes))


def bent(chance: random.Random, data: bytes) -> bytes:
    """Bytes of it altered, left out, doubled or put in: what no structure of ours would write."""
    out = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(out))
        match chance.randrange(5):
            case 0:
                out[at] = chance.randrange(256)
            case 1:
                out[at] ^= 1 << chance.randrange(8)
            case 2:
                del out[at : at + chance.choice((1, 1, 2, 8))]
            case 3:
                out[at:at] = chance.choice((b"\0", b"\x80", b"\x05\x00", b"\xff", out[at : at + 4]))
            case _:
                out[at] = (out[at] + chance.choice((1, -1))) % 256
    return bytes(out)


def relengthened(chance: random.Random, data: bytes) -> bytes:
    """One length written as BER allows and DER does not: longer than it must be, or indefinite; those around it fit."""
    inner, pad = values_of(data)[0][1], chance.choice((1, 2, 3, 4))
    if data[0] in (0x30, 0x31, 0xA0) and inner and chance.random() < 0.8:
        values = [whole for whole, _ in values_of(inner)]
        which = chance.randrange(len(values))
        values[which] = relengthened(chance, values[which])
        return value(data[0], *values)
    if data[0] & 0x20 and chance.random() < 0.3:
        return data[:1] + b"\x80" + inner + b"\0\0"
    return data[:1] + bytes([0x80 | pad]) + len(inner).to_bytes(4, "big")[-pad:] + inner


def values_of(data: bytes) -> list[tuple[bytes, bytes]]:
    """Each value whole, and its contents; what is bent already may be cut short."""
    values = []
    while data:
        header = 2 + (data[1] & 0x7F if data[1:2] >= b"\x80" else 0)
        size = header + (int.from_bytes(data[2:header], "big") if header > 2 else data[1] if len(data) > 1 else 0)
        values.append((data[:size], data[header:size]))
        data = data[size:]
    return values


def a_request(chance: random.Random) -> bytes:
    """PEM: most are bent somewhere, by structure, by bytes before they are signed, or by bytes after."""
    rare: Callable[[], bool] = lambda: chance.random() < 0.02  # noqa: E731
    attributes = [an_attribute(chance) for _ in range(chance.choices((0, 1, 2), (4, 20, 2))[0])]
    version = (
        chance.choice((b"\x02\x01\x01", b"\x02\x01\xff", b"\x02\x02\x00\x00", b"\x02\x00"))
        if rare()
        else b"\x02\x01\x00"
    )
    signer = chance.choice(KEYS) if rare() else KEY
    key = bent(chance, spki(signer)) if rare() else spki(signer)
    named = a_subject(chance) if chance.random() < 0.6 else b""
    tbs = body(*attributes, named=named, key=key, version=version)
    if chance.random() < 0.15:
        tbs = bent(chance, tbs)
    elif chance.random() < 0.1:
        tbs = relengthened(chance, tbs)
    der = signed(tbs, chance.choice(ALGORITHMS) if rare() else b"", signer, more=oid(SAN) if rare() else b"")
    if rare():
        der = bent(chance, der)
    if rare():
        der = relengthened(chance, der)
    text = pem(der + (b"\0" if rare() else b""))
    if rare():
        text = bent(chance, text)
    return (
        chance.choice((text + text, b"x\n" + text, text + b"x", text.replace(b"\n", b"\r\n"), text[:-1]))
        if rare()
        else text
    )


def go_says(program: Path, requests: list[bytes]) -> list[dict[str, Any]]:
    sent = b"".join(struct.pack(">I", len(request)) + request for request in requests)
    answer = subprocess.run([program], input=sent, capture_output=True, check=True, timeout=300).stdout
    return [json.loads(line) for line in answer.splitlines()]


def ours(request: bytes) -> NodeRequest | None:
    try:
        return read(request)
    except CsrError:
        return None


def as_go_would_say(accepted: NodeRequest) -> dict[str, Any]:
    return {
        "refused": "",
        "organization": ["system:nodes"],
        "common_name": f"system:node:{accepted.node}",
        "parts": 2,
        "names": list(accepted.names) or None,
        "addresses": [base64.b64encode(one.packed).decode() for one in accepted.addresses] or None,
        "others": 0,
        "extensions": 1 if accepted.names or accepted.addresses else 0,
        "key": base64.b64encode(accepted.spki).decode(),
    }


def test_what_we_accept_go_accepts_and_reads_the_same(go_reader: Path) -> None:
    chance, kinds = random.Random(SEED), Counter[str]()
    for begin in range(0, COUNT, 10_000):
        requests = [a_request(chance) for _ in range(min(10_000, COUNT - begin))]
        answers = go_says(go_reader, requests)
        assert len(answers) == len(requests)
        for request, go in zip(requests, answers, strict=True):
            accepted = ours(request)
            kinds[f"{'we' if accepted else 'not we'}, {'not Go' if go['refused'] else 'Go'}"] += 1
            if accepted is not None:
                assert go == as_go_would_say(accepted), f"seed {SEED}:\n{request.decode()}"
    # Were nearly all of them refused, or accepted, by either, this would prove little.
    assert kinds["we, Go"] > COUNT / 20, kinds
    assert kinds["not we, Go"] > COUNT / 20, kinds
    assert kinds["not we, not Go"] > COUNT / 20, kinds

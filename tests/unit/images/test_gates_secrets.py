"""Private keys and passwords: what is one, and what only looks like one."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from hypothesis import given
from hypothesis import strategies as st

from images.build.gates.accounts import with_password
from images.build.gates.checks import secrets
from images.build.gates.keys import password_hash, private_key
from tests.unit.images.gate_facts import CONTENT, facts, said

EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
RSA = rsa.generate_private_key(65537, 2048)
PASSWORD = BestAvailableEncryption(b"secret")
PEM = EC.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


FORMS = [
    (PrivateFormat.PKCS8, NoEncryption()),
    (PrivateFormat.PKCS8, PASSWORD),
    (PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    (PrivateFormat.TraditionalOpenSSL, PASSWORD),
    (PrivateFormat.OpenSSH, NoEncryption()),
]


@pytest.mark.parametrize("key", [EC, RSA])
@pytest.mark.parametrize(("form", "encryption"), FORMS)
def test_keys_as_openssl_and_ssh_write_them(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, form: PrivateFormat, encryption: KeySerializationEncryption
) -> None:
    data = key.private_bytes(Encoding.PEM, form, encryption)
    assert private_key(data) == private_key(b"# comment\r\n" + data.replace(b"\n", b"\r\n")) == "PEM"
    assert private_key(json.dumps({"key": data.decode()}).encode()) == "PEM"
    assert private_key(b"key: |\n" + b"".join(b"    " + line + b"\n" for line in data.splitlines())) == "PEM"


@pytest.mark.parametrize("key", [EC, RSA, ED])
def test_keys_in_binary_form(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> None:
    assert private_key(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())) == "DER"
    assert private_key(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, PASSWORD)) == "DER"
    assert private_key(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)) == ""


def test_keys_of_other_tools() -> None:
    armour = b"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nlQOYBF0abcdefghijklm\n"
    config = b"client-key-data: " + base64.b64encode(PEM) + b"\n"
    putty = (
        b"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nPublic-Lines: 2\nAAAA\nBBBB\nPrivate-Lines: 1\nCCCC\n"
    )
    found = [
        private_key(data)
        for data in (
            armour,
            config,
            putty,
            b"untrusted comment: signify secret key\n" + b"RW" + b"A" * 140 + b"\n",
            b"# created: now\nAGE-SECRET-KEY-1" + b"Q" * 58 + b"\n",
            b"[WireGuard]\nPrivateKey = " + base64.b64encode(bytes(32)) + b"\n",
        )
    ]
    assert found == ["PEM", "PEM in base64", "PuTTY", "signify", "age", "WireGuard"]


@pytest.mark.parametrize(
    "data",
    [
        b'_SK_START = b"-----BEGIN OPENSSH PRIVATE KEY-----"\n_SK_END = b"-----END OPENSSH PRIVATE KEY-----"\n',
        b"-----BEGIN PRIVATE KEY-----\0-----END PRIVATE KEY-----\0-----BEGIN EC PRIVATE KEY-----\0",
        b"-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
        b"-----BEGIN PUBLIC KEY-----\n" + b"A" * 64 + b"\n",
        b"certificate-authority-data: " + base64.b64encode(b"-----BEGIN CERTIFICATE-----\n" + b"A" * 90),
        b"untrusted comment: netboot public key 1\nRW" + b"A" * 54 + b"\n",
        b"PrivateKeyFile=/etc/wireguard/key\n",
        b"",
        b"0",
        b"0\x82\xff\xff",
    ],
)
def test_what_is_no_key(data: bytes) -> None:
    assert private_key(data) == ""


HASHES = [
    "$1$abcdefgh$" + "a" * 22,
    "$apr1$abcdefgh$" + "a" * 22,
    "$5$rounds=5000$salt$" + "b" * 43,
    "$6$saltsalt$" + "c" * 86,
    "$2y$05$" + "d" * 53,
    "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$" + "e" * 43,
    "$gy$j9T$F5Jx5fExrKuPp53xLKQ..1$" + "f" * 43,
]


@pytest.mark.parametrize("text", HASHES)
def test_hashes_of_passwords_wherever_they_are(text: str) -> None:
    assert password_hash(f"user:{text}:1\n".encode())
    assert not password_hash(f"user:{text[:-1]}\n".encode())
    assert not password_hash(f"user:{text}a\n".encode())


@given(st.binary(max_size=300))
def test_any_bytes_can_be_looked_at(data: bytes) -> None:
    private_key(data)
    password_hash(data)
    private_key(b"0\x82" + len(data).to_bytes(2, "big") + data)


def test_accounts_with_a_password() -> None:
    shadow = f"""\
root:*:20000:0:99999:7:::
daemon:!*:20000::::::
_apt:!:20000::::::
locked:!{HASHES[3]}:20000::::::
ops:{HASHES[5]}:20000::::::
des:ab0123456789.:20000::::::
guest::20000::::::
"""
    assert list(with_password("/etc/shadow", shadow)) == [
        "user locked in /etc/shadow has a password hash",
        "user ops in /etc/shadow has a password hash",
        "user des in /etc/shadow has a password hash",
        "user guest in /etc/shadow needs no password",
    ]
    assert list(with_password("/etc/passwd", "root:x:0:0::/root:/bin/sh\nold::0:0::/:/bin/sh\n\n# c\n")) == [
        "user old in /etc/passwd needs no password"
    ]
    assert list(with_password("/etc/gshadow", f"adm:*::\nusers:!::\nnone:::\nops:{HASHES[3]}::\n")) == [
        "group ops in /etc/gshadow has a password hash"
    ]


def test_the_words_for_a_key_in_the_initrd(tmp_path: Path) -> None:
    found = facts(tmp_path, early_keys={"/etc/netboot/keys/a.pub": "PEM"}, content=CONTENT)
    assert said(secrets.GATE, found) == [
        (
            "secrets: /etc/netboot/keys/a.pub in the initrd holds a private key (PEM)\n"
            "  take it out of the recipe; machines make or fetch their keys when they run (docs/join.md)"
        )
    ]


@pytest.mark.parametrize(
    ("path", "machines", "found"),
    [
        ("/usr/lib/x86_64-linux-gnu/libgnutls.so.30.34.3", True, False),
        ("/usr/lib/aarch64-linux-gnu/libgnutls.so.30.37.1", True, False),
        ("/usr/lib/x86_64-linux-gnu/libgnutls.so.30.34.3", False, True),
        ("/usr/lib/x86_64-linux-gnu/libmine.so.30.34.3", True, True),
        ("/srv/lib/x/libgnutls.so.30.1", True, True),
    ],
)
def test_keys_of_a_library_s_own_self_tests_are_published(
    path: str, machines: bool, found: bool, tmp_path: Path
) -> None:
    """GnuTLS' own, as a library and nothing else that is called so."""
    content = replace(CONTENT, private_keys={path: "PEM"}, machines={path: 62} if machines else {})
    line = f"secrets: {path} holds a private key (PEM)"
    remedy = "take it out of the recipe; machines make or fetch their keys when they run (docs/join.md)"
    assert said(secrets.GATE, facts(tmp_path, content=content)) == ([f"{line}\n  {remedy}"] if found else [])

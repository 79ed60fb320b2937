"""Certificates and ssh keys of authorities that the configuration names by file."""

import base64
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import TypeAdapter

from images.artifact.bundle import SshKey
from images.values.strict import Fault, FaultsError
from netboot import credentials

_SSH_KEY: TypeAdapter[str] = TypeAdapter(SshKey)


def read_authorities(path: Path, key: str) -> tuple[str, ...]:
    """The certificates of a PEM file, one or several, each in its usual form. `key`: which names the file, for words.

    Raises:
        images.values.strict.FaultsError: it cannot be read, holds none, or one that is none.
    """
    try:
        certificates = x509.load_pem_x509_certificates(credentials.read(path))
    except OSError as error:
        raise FaultsError([Fault(str(path), 0, "", credentials.unread(key, error))]) from None
    except ValueError:
        raise FaultsError([Fault(str(path), 0, "", f"{key} must be certificates in PEM, one or several")]) from None
    return tuple(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)


def read_ssh_authorities(path: Path, key: str) -> tuple[str, ...]:
    """The public keys of a file as `ssh-keygen` writes them, one a line, without their comments. `key`: which names the
    file, for words.

    Raises:
        images.values.strict.FaultsError: it cannot be read, holds none, or a line that is none.
    """
    try:
        lines = credentials.read(path).decode("ascii", "replace").splitlines()
    except OSError as error:
        raise FaultsError([Fault(str(path), 0, "", credentials.unread(key, error))]) from None
    keys = [(number, " ".join(line.split()[:2])) for number, line in enumerate(lines, 1) if line.strip()]
    faults = [
        Fault(str(path), number, "", f"{key} must be public keys of ssh (ssh-ed25519 AAAA...), one a line")
        for number, found in keys or [(0, "")]
        if not _is_ssh_key(found)
    ]
    if faults:
        raise FaultsError(faults)
    return tuple(found for _, found in keys)


def _is_ssh_key(text: str) -> bool:
    """Whether it is of the form that a bundle takes, and what is in it (RFC 4253, 6.6) says the same kind."""
    try:
        kind, encoded = _SSH_KEY.validate_python(text).split(" ")
        inside = base64.b64decode(encoded, validate=True)
    except ValueError:
        return False
    sound = base64.b64encode(inside).decode() == encoded
    return sound and inside.startswith(len(kind).to_bytes(4, "big") + kind.encode())

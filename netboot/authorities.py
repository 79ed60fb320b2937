"""Certificates of authorities that the configuration names by file."""

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from images.values.strict import Fault, FaultsError
from netboot import credentials


def read_authorities(path: Path, key: str) -> tuple[str, ...]:
    """The certificates of a PEM file, one or several, each in its usual form. `key`: which names the file, for words.

    Raises:
        images.values.strict.FaultsError: it cannot be read, holds none, or one that is none.
    """
    try:
        certificates = x509.load_pem_x509_certificates(credentials.read(path))
    except OSError as error:
        raise FaultsError([Fault(str(path), 0, "", f"{key} cannot be read: {error.strerror}")]) from None
    except ValueError:
        raise FaultsError([Fault(str(path), 0, "", f"{key} must be certificates in PEM, one or several")]) from None
    return tuple(certificate.public_bytes(Encoding.PEM).decode() for certificate in certificates)

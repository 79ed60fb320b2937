"""Authorities of TPM makers: a folder of PEM files, each with one certificate or several."""

from pathlib import Path

from cryptography import x509

from images.errors import StoreError
from images.values.files import names
from netboot.lifecycle.errors import StateUnavailableError
from tokens.ekcert import read_certificates
from tokens.errors import MalformedError

ENDINGS = (".pem", ".crt", ".cer")


def load_roots(folder: Path) -> list[x509.Certificate]:
    """Every certificate of the folder's `*.pem`, `*.crt` and `*.cer`.

    Raises:
        StateUnavailableError: the folder or a file cannot be read, or holds what is no certificate: naming it.
    """
    found: list[x509.Certificate] = []
    try:
        for name in names(folder):
            if name.endswith(ENDINGS) and not name.startswith("."):
                found += read_certificates((folder / name).read_bytes())
    except StoreError as error:
        raise StateUnavailableError(f"join.tpm_roots: {error}") from None
    except OSError as error:
        raise StateUnavailableError(f"join.tpm_roots: {error.filename} cannot be read: {error.strerror}") from None
    except MalformedError as error:
        raise StateUnavailableError(f"join.tpm_roots: {folder / name}: {error}") from None
    if not found:
        raise StateUnavailableError(f"join.tpm_roots: {folder} holds no certificate: nobody could enrol")
    return found

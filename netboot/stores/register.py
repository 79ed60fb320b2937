"""Who has which TPM, for whichever process must know: the enrolments on disk, overruled by the inventory in force."""

from collections.abc import Callable
from pathlib import Path

from cryptography import x509

from images.errors import StoreError
from images.values.files import names
from netboot import credentials
from netboot.config import Config
from netboot.join.enrolment import EnrolmentStore
from netboot.join.register import Register
from netboot.lifecycle.errors import StateUnavailableError
from netboot.machines.values import Inventory
from netboot.stores.enrolment import SqliteEnrolments
from tokens.ekcert import read_certificates
from tokens.errors import MalformedError

ENDINGS = (".pem", ".crt", ".cer")


def open_register(config: Config, inventory: Callable[[], Inventory], store: EnrolmentStore | None = None) -> Register:
    """The register of a site; `inventory()` may raise NotReadyError. `store` None: what is on record is on disk."""
    folder = config.join.tpm_roots if config.join is not None else None
    roots = (lambda: load_roots(folder)) if folder is not None else None
    return Register(store or SqliteEnrolments(config.data / "enrolment.db"), inventory, roots)


def load_roots(folder: Path) -> list[x509.Certificate]:
    """The authorities of TPM makers: every certificate of the folder's `*.pem`, `*.crt` and `*.cer`.

    Raises:
        StateUnavailableError: the folder or a file cannot be read, or holds what is no certificate: naming it.
    """
    certificates: list[x509.Certificate] = []
    try:
        for name in names(folder):
            if name.endswith(ENDINGS) and not name.startswith("."):
                certificates += read_certificates(credentials.read(folder / name))
    except StoreError as error:
        raise StateUnavailableError(f"join.tpm_roots: {error}") from None
    except OSError as error:
        raise StateUnavailableError(credentials.unread(f"join.tpm_roots: {error.filename}", error)) from None
    except MalformedError as error:
        raise StateUnavailableError(f"join.tpm_roots: {folder / name}: {error}") from None
    if not certificates:
        raise StateUnavailableError(f"join.tpm_roots: {folder} holds no certificate: nobody could enrol")
    return certificates

"""Who has which TPM, for whichever process must know: the enrolments on disk, overruled by the inventory in force."""

from collections.abc import Callable

from netboot.config import Config
from netboot.join.register import Register
from netboot.machines.values import Inventory
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.roots import load_roots


def open_register(config: Config, inventory: Callable[[], Inventory]) -> Register:
    """The register of a site; `inventory()` may raise NotReadyError."""
    folder = config.join.tpm_roots if config.join is not None else None
    roots = (lambda: load_roots(folder)) if folder is not None else None
    return Register(SqliteEnrolments(config.data / "enrolment.db"), inventory, roots)

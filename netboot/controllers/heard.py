"""What other processes, and loops, said last, as the controllers read it."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from netboot.config import Config
from netboot.controllers.nodes.cordoned import file_of
from netboot.controllers.sight import LARGEST
from netboot.lifecycle.cordons import Cordon, CordonsStatus
from netboot.lifecycle.errors import CannotTellError
from netboot.status import FRESH_MS, up_ms
from netboot.status.controllers import LifecycleStatus
from netboot.status.fetcher import FetcherStatus
from netboot.stores.status import StatusFolder


def said(status: StatusFolder) -> LifecycleStatus | None:
    """What the lifecycle's loop said last; None: nothing that can be read."""
    with suppress(CannotTellError):
        return status.read("lifecycle", LifecycleStatus)
    return None


def cordoned(config: Config, status: StatusFolder) -> dict[str, Cordon]:
    """What node collectors have just said of Nodes that are cordoned."""
    cordons: dict[str, Cordon] = {}
    for cluster in config.clusters:
        with suppress(CannotTellError):
            said = status.read(file_of(cluster), CordonsStatus, LARGEST)
            if said is not None and abs(up_ms() - said.up_ms) <= FRESH_MS:
                cordons |= said.cordons
    return cordons


def absent(status: Path) -> Mapping[str, str]:
    """Image → why it is not here, as the fetcher says; empty where it has said nothing yet."""
    try:
        fetcher = StatusFolder(status).read("fetcher", FetcherStatus)
    except CannotTellError:
        return {}
    return fetcher.images if fetcher is not None else {}

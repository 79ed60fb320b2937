"""Which processes report a condition of their own, and by which class."""

from netboot.status.approver import ApproverStatus
from netboot.status.fetcher import FetcherStatus
from netboot.status.join import JoinStatus
from netboot.status.keys import KeysStatus
from netboot.status.nodes import NodesStatus
from netboot.status.pause import PauseStatus
from netboot.status.resources import ResourcesStatus, ShipperStatus
from netboot.status.traces import TracesStatus

Reporting = (
    FetcherStatus
    | ApproverStatus
    | NodesStatus
    | JoinStatus
    | PauseStatus
    | TracesStatus
    | ResourcesStatus
    | ShipperStatus
    | KeysStatus
)

_CLASSES: dict[str, type[Reporting]] = {
    "fetcher": FetcherStatus,
    "approver": ApproverStatus,
    "nodes": NodesStatus,
    "join": JoinStatus,
    "pause": PauseStatus,
    "traces": TracesStatus,
    "resources": ResourcesStatus,
    "shipper": ShipperStatus,
    "keys": KeysStatus,
}


def reporting_class(process: str) -> type[Reporting] | None:
    """The class of what this process (`approver-default`) writes; None: one that reports no condition of its own."""
    return _CLASSES.get(process.partition("-")[0])

"""Why a condition of a machine is as it is: the one table. docs/conditions.md has the same, and a test holds them
together; whoever judges gives a reason, and the table says which status that is."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

Status = Literal["True", "False", "Unknown"]


class ConditionType(StrEnum):
    """What is judged of a machine; True is good. In the order in which they are shown."""

    BOOTED = "Booted"
    JOINED = "Joined"
    HEALTHY = "Healthy"
    IN_SERVICE = "InService"
    UP_TO_DATE = "UpToDate"
    REACHABLE = "Reachable"


class Reason(StrEnum):
    """In CamelCase, as Kubernetes has them; the same word means the same in every condition."""

    BOOTED = "Booted"
    JOINED = "Joined"
    IN_SERVICE = "InService"
    UP_TO_DATE = "UpToDate"
    BOOTING = "Booting"
    JOINING = "Joining"
    STUCK = "Stuck"
    BOOT_LOOP = "BootLoop"
    FAILED = "Failed"
    LOST = "Lost"
    NEVER_BOOTED = "NeverBooted"
    DISABLED = "Disabled"
    NO_CLUSTER = "NoCluster"
    CHECKS_PASSED = "ChecksPassed"
    CHECKS_WARN = "ChecksWarn"
    CHECKS_FAILED = "ChecksFailed"
    CHECKS_UNKNOWN = "ChecksUnknown"
    NO_REPORT = "NoReport"
    REPORT_STALE = "ReportStale"
    HEALTH_GATED = "HealthGated"
    CORDONED = "Cordoned"
    NOT_JOINED = "NotJoined"
    NODE_READY = "NodeReady"
    NODE_NOT_READY = "NodeNotReady"
    NODE_NOT_SEEN = "NodeNotSeen"
    RETIRED = "Retired"
    QUARANTINED = "Quarantined"
    HELD = "Held"
    DRAINING = "Draining"
    OTHER_IMAGE = "OtherImage"
    IMAGE_UNKNOWN = "ImageUnknown"
    NO_IMAGE = "NoImage"
    HEARD_FROM = "HeardFrom"
    SILENT = "Silent"


_T, _R = ConditionType, Reason
STATUSES: Mapping[ConditionType, Mapping[Reason, Status]] = {
    _T.BOOTED: {
        _R.BOOTED: "True",
        _R.BOOTING: "False",
        _R.STUCK: "False",
        _R.BOOT_LOOP: "False",
        _R.FAILED: "False",
        _R.NEVER_BOOTED: "False",
        _R.DISABLED: "False",
        _R.LOST: "Unknown",
        _R.RETIRED: "Unknown",
    },
    _T.JOINED: {
        _R.JOINED: "True",
        _R.BOOTING: "False",
        _R.JOINING: "False",
        _R.STUCK: "False",
        _R.BOOT_LOOP: "False",
        _R.FAILED: "False",
        _R.NEVER_BOOTED: "False",
        _R.DISABLED: "False",
        _R.NO_CLUSTER: "False",
        _R.LOST: "Unknown",
        _R.RETIRED: "Unknown",
    },
    _T.HEALTHY: {
        _R.CHECKS_PASSED: "True",
        _R.CHECKS_WARN: "True",
        _R.CHECKS_FAILED: "False",
        _R.CHECKS_UNKNOWN: "Unknown",
        _R.NO_REPORT: "Unknown",
        _R.REPORT_STALE: "Unknown",
    },
    _T.IN_SERVICE: {
        _R.IN_SERVICE: "True",
        _R.HEALTH_GATED: "False",
        _R.CORDONED: "False",
        _R.NODE_NOT_READY: "False",
        _R.NOT_JOINED: "False",
        _R.NO_CLUSTER: "False",
        _R.RETIRED: "False",
        _R.QUARANTINED: "False",
        _R.HELD: "False",
        _R.DRAINING: "False",
        _R.NODE_NOT_SEEN: "Unknown",
    },
    _T.UP_TO_DATE: {
        _R.UP_TO_DATE: "True",
        _R.OTHER_IMAGE: "False",
        _R.NEVER_BOOTED: "Unknown",
        _R.IMAGE_UNKNOWN: "Unknown",
        _R.NO_IMAGE: "Unknown",
    },
    _T.REACHABLE: {
        _R.NODE_READY: "True",
        _R.HEARD_FROM: "True",
        _R.NODE_NOT_READY: "False",
        _R.SILENT: "False",
        _R.NEVER_BOOTED: "Unknown",
        _R.NO_REPORT: "Unknown",
        _R.NODE_NOT_SEEN: "Unknown",
    },
}
"""Condition → reason → the status that it has for that reason."""

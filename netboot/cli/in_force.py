"""Whether the service that runs goes by the configuration as it is now: what its supervisor wrote down on this host,
and `/readyz` says."""

import time
from pathlib import Path
from typing import Literal, NamedTuple

from images.values import files
from netboot.clock import monotonic_ms
from netboot.config import Config
from netboot.lifecycle.errors import CannotTellError
from netboot.readiness import of_configuration
from netboot.status import FRESH_MS
from netboot.status.supervisor import SupervisorStatus
from netboot.stores.status import StatusFolder

_SAYS_SECONDS = 5.0
"""Within which a supervisor has looked at a file that was changed just now: it does every two seconds."""
_LOOK_SECONDS = 0.1
_ELSEWHERE = "of one elsewhere ask there, with its file"


class InForce(NamedTuple):
    """`changed`: it goes by an older one; `unknown`: nobody can tell."""

    state: Literal["in-force", "changed", "unknown"]
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}" if self.remedy else self.message


def in_force(file: Path, config: Config) -> InForce:
    """Of the service whose data that is. Of a file that was changed just now it waits for the supervisor to look."""
    untold = "cannot tell whether a service goes by it"
    try:
        said = _said(StatusFolder(config.data / "status"), file)
    except CannotTellError as error:
        why = str(error).removeprefix("cannot tell: ")
        return InForce("unknown", f"{untold}: {why}", "ask as its account, or `netboot doctor`")
    if said is None:
        return InForce("unknown", f"{untold}: none runs on this host with data {config.data}", _ELSEWHERE)
    if (quiet := monotonic_ms() - said.uptime_ms) > FRESH_MS:
        why = f"the one with data {config.data} was last heard {quiet // 1000} s ago"
        return InForce("unknown", f"{untold}: {why}", "`netboot doctor` says whether it runs; if not, start it")
    if said.file and Path(said.file).resolve() != file.resolve():
        return InForce("unknown", f"{untold}: the one with data {config.data} reads {said.file}", "name that file")
    detail = of_configuration(said.changed)
    if detail.ok:
        return InForce("in-force", "the service that runs goes by it")
    return InForce("changed", f"the service that runs goes by an older one: {detail.message}", detail.remedy)


def _said(status: StatusFolder, file: Path) -> SupervisorStatus | None:
    """What a supervisor has said last; None: none has since this host started, or it said that it stops."""
    begun, until = monotonic_ms(), time.monotonic() + _SAYS_SECONDS
    found = files.look(file)
    just_now = found is not None and abs(time.time() - found.st_ctime) < _SAYS_SECONDS
    while True:
        said = status.read("supervisor", SupervisorStatus)
        if said is None or said.state == "stopping" or said.uptime_ms - monotonic_ms() > FRESH_MS:
            return None  # the last: by the clock of a start of this host before this one
        silent = begun - said.uptime_ms > FRESH_MS
        if not just_now or silent or said.uptime_ms > begun or time.monotonic() >= until:
            return said
        time.sleep(_LOOK_SECONDS)

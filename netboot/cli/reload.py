"""`netboot config reload`: the service takes of its configuration what it can without a restart. Works on this host."""

import os
import re
import signal
import time
from pathlib import Path

import click

from images.values import files
from netboot.cli.client import CANNOT_TELL, NOT_ALLOWED, ApiError, with_exit_codes
from netboot.cli.file_acts import record
from netboot.cli.output import output_option, show
from netboot.cli.paths import config_option, find_config

ANSWER_SECONDS = 15.0
_LOOK_SECONDS = 0.1


@click.command()
@config_option
@output_option
@with_exit_codes
def reload(config: Path | None, output: str) -> None:
    """Have the service take what it can of netboot.yaml without a restart, and say what needs one.

    Run it on the service's host, as its user or root: it is the signal SIGHUP, as `systemctl reload netboot` sends it,
    and an answer. A configuration with faults is not taken at all. Processes are started again one after the other,
    and their addresses stay open.

    \b
      netboot config check
      netboot config reload
    """
    from netboot.status.supervisor import SupervisorStatus
    from netboot.stores.lock import holder
    from netboot.stores.status import StatusFolder

    settings = find_config(config)
    status, pid = StatusFolder(settings.data / "status"), holder(settings.data / "lock")
    if pid is None:
        remedy = "start it: it reads netboot.yaml then; where `data` was changed, restart it"
        raise ApiError(f"no service works on {settings.data}", remedy, CANNOT_TELL)
    before = status.read("supervisor", SupervisorStatus)
    _require_its(pid, settings.data / "lock")
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        raise ApiError(f"the service, process {pid}, has just ended", "start it", CANNOT_TELL) from None
    except PermissionError:
        raise ApiError(
            f"the service, process {pid}, is another user's", "run this as it, or root", NOT_ALLOWED
        ) from None
    deadline = time.monotonic() + ANSWER_SECONDS
    while (now := status.read("supervisor", SupervisorStatus)) is None or (
        before is not None and now.reloads == before.reloads
    ):
        if time.monotonic() >= deadline:
            raise ApiError("the service does not say whether it did", "see its log", CANNOT_TELL)
        time.sleep(_LOOK_SECONDS)
    record(settings.data, "config-reload", {"taken": now.taken, "left": now.changed}, after={"taken": list(now.taken)})
    taken = ", ".join(now.taken)
    lines = [f"taken: {taken}; processes are started again, one after the other" if taken else "nothing was taken"]
    show(output, {"taken": now.taken, "left": now.changed}, (), (), "\n".join([*lines, *filter(None, [now.changed])]))


def _require_its(pid: int, lock: Path) -> None:
    """Whoever may write the lock file could have root send a signal to any process.

    Raises:
        ApiError: the process is not its owner's.
    """
    try:
        said = files.small(Path(f"/proc/{pid}/status")).decode(errors="replace")
    except OSError:
        said = ""
    owner, uids = lock.stat().st_uid, re.search(r"(?m)^Uid:\t(\d+)", said)
    if uids is None or int(uids[1]) != owner:
        words = f"{lock} names process {pid}, which is not there, or not its owner's (uid {owner})"
        raise ApiError(words, "see who serves it, by `fuser` of that file, and send it SIGHUP", NOT_ALLOWED)

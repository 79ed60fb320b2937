"""A small service for tests of the supervisor: `python -m tests.sockets.supervised FOLDER [how]`."""

import json
import logging
import os
import signal
import sys
from pathlib import Path

from images.values.strict import Strict
from netboot import logs
from netboot.process import end_with
from netboot.stores.status import write_status
from netboot.supervise import supervisor
from netboot.supervise.process import Definition
from netboot.supervise.supervisor import Supervisor


class Seen(Strict):
    """What the supervisor tells: name → ready, restarts, last exit."""

    state: str
    processes: dict[str, tuple[bool, int, str | None]]


def supervise(folder: Path, how: str) -> None:
    """Three processes of three stages."""
    logs.set_up("supervisor", "supervisor", logs.Log())
    supervisor.HURRY_SECONDS = 20.0  # long enough for those that end, on a busy machine too
    supervisor.STAGE_SECONDS = 3600.0  # longer than any test waits, so that who has ended has hurried
    pid = os.getpid()

    def definition(name: str, stage: int, reload: bool = False) -> Definition:
        def spec(ready: int, _listener: int | None) -> bytes:
            return json.dumps({"ready": ready, "supervisor": pid, "folder": str(folder), "how": how}).encode()

        return Definition(name, spec, stage=stage, reload=reload)

    Supervisor(
        [sys.executable, "-m", "tests.sockets.supervised", "--process"],
        [definition("last", 2, reload=True), definition("first", 0), definition("middle", 1)],
        environment=dict(os.environ),
        once_ready=lambda: (folder / "ready").touch(),
        report=lambda state, processes: write_status(
            folder,
            "state",
            Seen(
                state=state,
                processes={one.definition.name: (one.ready, one.restarts, one.last_exit) for one in processes},
            ),
        ),
    ).run()
    (folder / "log").open("a").write("supervisor ended\n")


def be(name: str) -> None:
    """A process: writes `<name>.pid`, is ready, ends on SIGTERM; with `how=deaf` `first` does not."""
    spec = json.loads(sys.stdin.read())
    end_with(spec["supervisor"])
    folder = Path(spec["folder"])

    def say(words: str) -> None:
        with (folder / "log").open("a") as file:
            file.write(f"{name} {words}\n")

    def end(_number: int, _frame: object) -> None:
        if not (spec["how"] == "deaf" and name == "first"):
            say("ended")
            sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, lambda _n, _f: say("reloads"))
    staged = folder / f".{name}.pid"
    staged.write_text(str(os.getpid()))
    staged.rename(folder / f"{name}.pid")
    os.write(spec["ready"], b"1")
    while True:
        signal.pause()


if __name__ == "__main__":
    logging.raiseExceptions = True
    if sys.argv[1] == "--process":
        be(sys.argv[2])
    else:
        supervise(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")

"""A small service for tests of the supervisor: `python -m tests.sockets.supervised FOLDER [how]`."""

import json
import logging
import os
import signal
import sys
import time
from pathlib import Path

from images.values.strict import Strict
from netboot import logs
from netboot.process import end_with
from netboot.stores.status import write_status
from netboot.supervise import Plane, Supervisor


class Seen(Strict):
    """What the supervisor tells: name → ready, restarts, last exit."""

    state: str
    children: dict[str, tuple[bool, int, str | None]]


def supervise(folder: Path, how: str) -> None:
    """Three planes of three stages."""
    logs.set_up("supervisor")
    pid = os.getpid()

    def plane(name: str, stage: int, reload: bool = False) -> Plane:
        def orders(ready: int, _listener: int | None) -> bytes:
            return json.dumps({"ready": ready, "supervisor": pid, "folder": str(folder), "how": how}).encode()

        return Plane(name, orders, stage=stage, reload=reload)

    Supervisor(
        [sys.executable, "-m", "tests.sockets.supervised", "--plane"],
        [plane("last", 2, reload=True), plane("first", 0), plane("middle", 1)],
        environment=dict(os.environ),
        once_ready=lambda: (folder / "ready").touch(),
        report=lambda state, children: write_status(
            folder,
            "state",
            Seen(
                state=state,
                children={child.plane.name: (child.ready, child.restarts, child.last_exit) for child in children},
            ),
        ),
    ).run()
    (folder / "log").open("a").write("supervisor ended\n")


def be(name: str) -> None:
    """A plane: writes `<name>.pid`, is ready, ends on SIGTERM; with `how=deaf` `first` does not."""
    orders = json.loads(sys.stdin.read())
    end_with(orders["supervisor"])
    folder = Path(orders["folder"])

    def say(words: str) -> None:
        with (folder / "log").open("a") as file:
            file.write(f"{name} {words}\n")

    def end(_number: int, _frame: object) -> None:
        if not (orders["how"] == "deaf" and name == "first"):
            say("ended")
            sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, lambda _n, _f: say("reloads"))
    (folder / f"{name}.pid").write_text(str(os.getpid()))
    os.write(orders["ready"], b"1")
    while True:
        time.sleep(60)


if __name__ == "__main__":
    logging.raiseExceptions = True
    if sys.argv[1] == "--plane":
        be(sys.argv[2])
    else:
        supervise(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")

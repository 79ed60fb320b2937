"""What the supervisor says: of itself, and of each process that it keeps running."""

from typing import Literal

from images.values.strict import Strict


class ProcessStatus(Strict):
    """One process as the supervisor sees it. `pid` None: it is down at the moment; `last_exit`: how it ended last;
    `problem`: why it is not ready though it runs."""

    ready: bool
    pid: int | None
    restarts: int
    last_exit: str | None
    problem: str = ""


class SupervisorStatus(Strict):
    """Written with every change, and every two seconds; `processes` by name. `uptime_ms`: when, by this machine's
    monotonic clock: a wrong time of day must not look like a frozen supervisor. `file`: the configuration that it
    reads; `changed`: in words, that this is another than the one in force; "": it is not. `reloads`: how often it was
    read again by an operator's word, `taken`: which keys that brought the last time."""

    state: Literal["running", "stopping"]
    pid: int
    uptime_ms: int
    processes: dict[str, ProcessStatus]
    file: str = ""
    changed: str = ""
    reloads: int = 0
    taken: tuple[str, ...] = ()

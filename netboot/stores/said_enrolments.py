"""Who is retired and which boot windows are open, for processes that only have to know: from the enrolments on disk;
or, with `enrolments_kubernetes`, from what a join server has read in the cluster and written down."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from netboot.config import Config
from netboot.join.enrolment import EnrolmentStore, Record
from netboot.lifecycle.errors import CannotTellError
from netboot.status import up_ms
from netboot.status.enrolments import AGAIN_MS, FRESH_MS, LARGEST, NAME, BootWindowSaid, EnrolmentsStatus
from netboot.stores.commits import Changed, Commits, Replaced
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.status import StatusFile, StatusFolder


class Recorded(Protocol):
    """Who says what is on record of machines."""

    def records(self) -> list[Record]:
        """Of every machine that has any, by name; of some parts of it, where only these are known."""
        ...


class SaidEnrolments:
    """Of machines that are retired, or have an open boot window: of these no more than that."""

    def __init__(self, status: Path, up: Callable[[], int] = up_ms) -> None:
        self._status, self._up = StatusFolder(status), up

    def records(self) -> list[Record]:
        """By name.

        Raises:
            CannotTellError: no join server has said it lately.
        """
        said = self._status.read(NAME, EnrolmentsStatus, LARGEST)
        if said is None or abs(self._up() - said.up_ms) > FRESH_MS:
            raise CannotTellError(
                "enrolments: no join server has read them lately: `netboot doctor` and /readyz (join-0) say why"
            )
        found = {
            name: Record(machine=name, window="boot", window_id=window.id, window_until_ms=window.until_ms, revision=1)
            for name, window in said.windows.items()
        }
        for name, since_ms in said.retired.items():
            found[name] = Record(machine=name, state="retired", since_ms=since_ms, revision=1)
        return [found[name] for name in sorted(found)]


class SayEnrolments:
    """Writes down what is read in the cluster for those who ask no API server."""

    def __init__(self, config: Config, store: EnrolmentStore, now_ms: Callable[[], int]) -> None:
        self._store, self._now_ms = store, now_ms
        self._file = StatusFile(config.data / "status", NAME)
        self._last: EnrolmentsStatus | None = None
        self.problem = ""
        """Why it cannot be told; "": it can."""

    def tell(self) -> None:
        """Read, and write where it is another thing, or was written long ago."""
        now_ms = self._now_ms()
        try:
            said = self._read(now_ms)
        except CannotTellError as error:
            self.problem = f"enrolments cannot be read: {error}"
            return
        self.problem, last = "", self._last
        same = last is not None and (said.retired, said.windows) == (last.retired, last.windows)
        if (last is None or not same or up_ms() - last.up_ms >= AGAIN_MS) and self._file.write(said):
            self._last = said

    def _read(self, now_ms: int) -> EnrolmentsStatus:
        noticed = self._store.noticed()
        windows = {
            one.machine: BootWindowSaid(id=one.window_id, until_ms=one.window_until_ms)
            for one in noticed
            if one.open_window(now_ms) == "boot"
        }
        retired = {one.machine: one.since_ms for one in noticed if one.state == "retired"}
        return EnrolmentsStatus(at_ms=now_ms, retired=retired, windows=windows)


def recorded(config: Config) -> Recorded:
    """What says it for this site."""
    if config.enrolments_kubernetes is not None:
        return SaidEnrolments(config.data / "status")
    return SqliteEnrolments(config.data / "enrolment.db")


def changes_of(config: Config) -> Changed:
    """The file that changes when it does."""
    if config.enrolments_kubernetes is not None:
        return Replaced(config.data / "status" / f"{NAME}.json")
    return Commits(config.data / "enrolment.db")

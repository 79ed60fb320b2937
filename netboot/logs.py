"""The service's log: one event a line on stderr, as `key=value` (logfmt) or JSON, nothing in it that a terminal would
obey. Its fields: docs/logs.md."""

import json
import logging
import math
import re
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

from pydantic import Field

from images.values.strict import Strict

LONGEST = 2_000
"""Characters of one value; a traceback is cut in the middle."""
OURS = ("netboot", "images", "ipxe", "tokens")
"""Whose lines `debug` is for. Libraries say no more than `info`: what the Kubernetes client says below that has tokens
in it (`kubernetes.client.rest`: response bodies)."""
REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
Level = Literal["debug", "info", "warning", "error"]
Speaker = Literal[
    "supervisor",
    "boot",
    "management",
    "controllers",
    "join",
    "approver",
    "nodes",
    "fetcher",
    "pause",
    "traces",
    "resources",
    "shipper",
    "keys",
]
"""The supervisor, and every kind of process."""
_FIELDS: ContextVar[Mapping[str, object]] = ContextVar("fields", default={})  # noqa: B039 - never changed in place


class Log(Strict):
    """`log` of netboot.yaml. `levels`: of some kinds of process another."""

    format: Literal["logfmt", "json"] = "logfmt"
    level: Level = "info"
    levels: dict[Speaker, Level] = Field(default_factory=dict)

    def level_of(self, kind: str) -> int:
        """That of a kind of process, as `logging` has it."""
        name: str = next((level for speaker, level in self.levels.items() if speaker == kind), self.level)
        return int(getattr(logging, name.upper()))


def request_id(given: str | None) -> str:
    """Of a request: what it came with (`X-Request-ID`) where that is well-formed, else a new one."""
    return given if given is not None and REQUEST_ID.fullmatch(given) else secrets.token_hex(8)


@contextmanager
def about(**fields: object) -> Iterator[None]:
    """What is logged inside, by this thread or task, has these fields too."""
    before = _FIELDS.set({**_FIELDS.get(), **fields})
    try:
        yield
    finally:
        _FIELDS.reset(before)


def begin(**fields: object) -> None:
    """The same until the next `begin` of this thread or task: for frameworks that call a function at either end."""
    _FIELDS.set(fields)


def current() -> Mapping[str, object]:
    """What is logged now has these fields."""
    return _FIELDS.get()


def learn(**fields: object) -> None:
    """More about what was begun last; where nothing was, nobody asks."""
    if _FIELDS.get():
        _FIELDS.set({**_FIELDS.get(), **fields})


def cut(text: str) -> str:
    """At most `LONGEST` characters, both ends of it."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def value(text: str) -> str:
    """A logfmt value: quoted where needed, with control and other unprintable characters escaped."""
    text = cut(text)
    if text and all(c.isalnum() or c in "-_.:/@+%[]" for c in text) and text.isascii():
        return text
    inner = "".join(c if c.isprintable() and c not in '"\\' else json.dumps(c)[1:-1] for c in text)
    return f'"{inner}"'


def _plain(part: object) -> object:
    """For JSON: numbers and truth as they are, all else as text that has a UTF-8 form."""
    if part is None or isinstance(part, bool | int) or (isinstance(part, float) and math.isfinite(part)):
        return part
    return cut(str(part)).encode("utf-8", "backslashreplace").decode()


def as_logfmt(fields: Mapping[str, object]) -> str:
    """`key=value key="two words"`."""
    return " ".join(f"{key}={value(str(part))}" for key, part in fields.items())


def as_json(fields: Mapping[str, object]) -> str:
    """One object, in ASCII."""
    return json.dumps({key: _plain(part) for key, part in fields.items()}, ensure_ascii=True, allow_nan=False)


class Lines(logging.Formatter):
    """A record as one line: `time`, `level`, `process`, `msg`, then what is known of what it is about (`about`), what
    the call gives as `extra={"fields": {…}}`, and `error`, a traceback. No field takes the place of one before it but
    for what the call gives."""

    def __init__(self, process: str, form: Literal["logfmt", "json"] = "logfmt") -> None:
        super().__init__()
        self._process, self._write = process, as_json if form == "json" else as_logfmt

    def format(self, record: logging.LogRecord) -> str:
        """One line, in the form that was chosen."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        head = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "process": self._process,
            "msg": record.getMessage(),
        }
        fields = {**head, **_FIELDS.get(), **getattr(record, "fields", {}), **head}
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        return self._write(fields)


class Trouble:
    """What is wrong with one thing: said when it begins, when it changes, and when it has ended, not in each round of
    who finds it. Threads may share one."""

    def __init__(self, log: logging.Logger, about: str, ended: str, level: int = logging.WARNING) -> None:
        """`about`: what comes before the problem's words; `ended`: the whole line of when there is none any more."""
        self._log, self._about, self._ended, self._level = log, about, ended, level
        self._noting = threading.Lock()
        self.problem: str | None = None
        """The last that was noted."""

    def note(self, problem: str | None, defect: BaseException | None = None) -> None:
        """What is wrong now; None: nothing. `defect`: its traceback is of interest."""
        with self._noting:
            before, self.problem = self.problem, problem
        if problem == before:
            return
        if problem is None:
            self._log.warning("%s", self._ended)
        else:
            self._log.log(self._level, "%s: %s", self._about, problem, exc_info=defect)


def set_up(process: str, kind: str, log: Log) -> None:
    """Send everything that is logged here to stderr, in the name of `process`, which is of that kind."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(process, log.format))
    root, level = logging.getLogger(), log.level_of(kind)
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    for name in OURS:
        logging.getLogger(name).setLevel(level)
    threading.excepthook = _thread_ended


def _thread_ended(how: threading.ExceptHookArgs) -> None:
    """As Python has it: not what ends a thread quietly. What it would print is many lines, as they are."""
    if how.exc_value is not None and not isinstance(how.exc_value, SystemExit):
        name = how.thread.name if how.thread is not None else "that is gone"
        logging.getLogger(__name__).error("the thread %s ended by a defect", name, exc_info=how.exc_value)

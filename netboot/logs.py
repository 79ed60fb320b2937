"""The service's log: one event a line on stderr, `key=value` (logfmt), nothing in it that a terminal would obey."""

import json
import logging
import sys
import threading
import time
import traceback

LONGEST = 2_000
"""Characters of one value; a traceback is cut in the middle."""


def value(text: str) -> str:
    """A logfmt value: quoted where needed, with control and other unprintable characters escaped."""
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"
    if text and all(c.isalnum() or c in "-_.:/@+%[]" for c in text) and text.isascii():
        return text
    inner = "".join(c if c.isprintable() and c not in '"\\' else json.dumps(c)[1:-1] for c in text)
    return f'"{inner}"'


class Lines(logging.Formatter):
    """`time=… level=… process=… msg=… [key=value …] [error=…]`; further keys come from `extra={"fields": {…}}`."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """A record as one line of logfmt."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields = {
            "time": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "process": self._process,
            "msg": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = "".join(traceback.format_exception(record.exc_info[1]))
        return " ".join(f"{key}={value(str(part))}" for key, part in fields.items())


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


def set_up(process: str, level: int = logging.INFO) -> None:
    """Send everything that is logged here to stderr, in the name of `process`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)

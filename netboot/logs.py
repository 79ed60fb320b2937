"""The service's log: one event a line on stderr, `key=value` (logfmt), nothing in it that a terminal would obey."""

import json
import logging
import sys
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


def set_up(process: str, level: int = logging.INFO) -> None:
    """Send everything that is logged here to stderr, in the name of `process`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)

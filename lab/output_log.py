"""What a process or a serial console says: kept in a file with the time of every line, and waited for by event."""

import codecs
import re
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TextIO

from lab.errors import DeadlineError, EndedError

_CONTROL = re.compile(r"\x1b\[[0-9;?=]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>c78]|[\x00-\x08\x0b-\x1f\x7f]")
"""Cursor movements of firmware menus and other bytes that no log should hold."""
_UNFINISHED = re.compile(r"\x1b(\[[0-9;?=]*|[()])?$")
"""The beginning of one, at the end of what has arrived."""
_TAIL_LINES = 25


class OutputLog:
    """The lines of one source. `path` holds them, each with its seconds since the start; `text` without.

    `read` is called on a thread of its own until it returns no bytes.
    """

    def __init__(self, name: str, path: Path, read: Callable[[], bytes]) -> None:
        self.name, self.path = name, path
        self._changed = threading.Condition()
        self._text, self._ended = "", False
        self._begun = monotonic()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._follow, args=(read,), name=f"output of {name}", daemon=True)
        self._thread.start()

    @property
    def text(self) -> str:
        """All that was said so far, the unfinished last line too."""
        with self._changed:
            return self._text

    @property
    def ended(self) -> bool:
        """Whether the source has closed its end."""
        with self._changed:
            return self._ended

    def tail(self, lines: int = _TAIL_LINES) -> str:
        """The last lines that say anything."""
        return "\n".join([line for line in self.text.splitlines() if line.strip()][-lines:])

    def wait_for(self, pattern: str, seconds: float, *, after: int = 0) -> re.Match[str]:
        """Wait until `pattern` (a regular expression, `.` within one line) is said after character `after`.

        Raises:
            DeadlineError: it was not said within `seconds`.
            EndedError: the source ended without having said it.
        """
        compiled, deadline = re.compile(pattern, re.MULTILINE), monotonic() + seconds
        with self._changed:
            while True:
                match = compiled.search(self._text, after)
                if match:
                    return match
                left = deadline - monotonic()
                if self._ended or left <= 0:
                    break
                self._changed.wait(left)
            ended = self._ended
        what = f"{self.name} {'ended without saying' if ended else f'did not say within {seconds:g} s'}"
        message = f"{what}: {pattern}\nthe end of {self.path}:\n{self.tail()}"
        raise EndedError(message) if ended else DeadlineError(message)

    def join(self, seconds: float = 60) -> None:
        """Wait until everything that the source said is in the file."""
        self._thread.join(seconds)

    def _follow(self, read: Callable[[], bytes]) -> None:
        decoder, held = codecs.getincrementaldecoder("utf-8")("replace"), ""
        with self.path.open("a", encoding="utf-8") as file:
            while True:
                try:
                    data = read()
                except OSError:  # a machine that was killed resets its end
                    data = b""
                if not data:
                    break
                text = held + decoder.decode(data)
                unfinished = _UNFINISHED.search(text)
                finished = text[: unfinished.start()] if unfinished else text
                held = text[len(finished) :]
                self._take(_CONTROL.sub("", finished), file)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _take(self, text: str, file: TextIO) -> None:
        """Into the file first: who is woken may look there."""
        fresh = not self._text or self._text.endswith("\n")
        stamp = f"[{monotonic() - self._begun:9.3f}] "
        for line in text.splitlines(keepends=True):
            file.write((stamp if fresh else "") + line)
            fresh = line.endswith("\n")
        file.flush()
        with self._changed:
            self._text += text
            self._changed.notify_all()

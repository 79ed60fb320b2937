"""One way to end what several threads work on: steps, and the tools that they run, look whether they are to go on."""

import os
import select
import signal
import threading
from contextlib import ExitStack
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Self

from images.errors import ImageError

_CURRENT: ContextVar["Cancellation | None"] = ContextVar("images.cancel", default=None)


class EndedError(ImageError):
    """What was going on was ended: because something else failed, or by Ctrl-C. It is never the cause itself."""


class Cancellation:
    """Told once, for good. Whoever waits for something else may wait for its file descriptor too."""

    def __init__(self) -> None:
        self._told = False
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def close(self) -> None:
        """Every thread that adopted this has ended: the descriptor's number may become another file's."""
        os.close(self._event)

    def tell(self) -> None:
        """All that is going on is to end. May be called again."""
        self._told = True
        os.eventfd_write(self._event, 1)

    def fileno(self) -> int:
        """Ready to be read from as soon as it was told."""
        return self._event

    def adopt(self) -> None:
        """From now on what this thread does, `images.run` too, ends when this is told."""
        _CURRENT.set(self)

    def check(self) -> None:
        """Raise EndedError if it was told."""
        if self._told:
            raise EndedError("ended, because another step failed or the build was interrupted")


class Interruptible(Cancellation):
    """A block that Ctrl-C ends: what its own thread does, and the threads that adopt this, which end before the block.

    KeyboardInterrupt is raised where the block ends, unless another reason to end was told first. Python would raise it
    between any two instructions of the main thread: where it starts a thread or waits for one, and before any was told.
    Of threads that are not the main one, and where Ctrl-C is ignored or has another handler, no signal is touched.
    """

    def __init__(self) -> None:
        super().__init__()
        self._interrupted = False
        self._ctrl_c = ExitStack()
        self._before: Token[Cancellation | None] | None = None

    def __enter__(self) -> Self:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                self._hear()
            except BaseException:  # no descriptor, no thread: nobody would take the handler away again
                self._ctrl_c.close()
                raise
        self._before = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._before is not None
        _CURRENT.reset(self._before)
        self._ctrl_c.close()
        self.close()
        if self._interrupted:
            raise KeyboardInterrupt from None

    def _hear(self) -> None:
        """The handler is there first and goes last: before and after, KeyboardInterrupt may come at any instruction."""
        signal.signal(signal.SIGINT, lambda _number, _frame: self._interrupt())
        self._ctrl_c.callback(signal.signal, signal.SIGINT, signal.default_int_handler)
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(writing, False)  # as set_wakeup_fd wants it
        watcher = threading.Thread(target=self._watch, args=(reading,), name="Ctrl-C", daemon=True)
        watcher.start()
        self._ctrl_c.callback(watcher.join)
        self._ctrl_c.callback(os.close, writing)
        self._ctrl_c.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(writing, warn_on_full_buffer=False))

    def _watch(self, reading: int) -> None:
        """Python calls handlers in the main thread, which does not wake up for a signal that came right before it began
        to wait; so the signals' numbers come here too, until the other end is closed."""
        with os.fdopen(reading, "rb", buffering=0) as numbers:
            while said := numbers.read(64):
                if signal.SIGINT in said:
                    self._interrupt()

    def _interrupt(self) -> None:
        """Without a lock: the main thread may hold it, and be interrupted."""
        self._interrupted = self._interrupted or not self._told
        self.tell()


def current() -> Cancellation | None:
    """What ends this thread's work; None: nothing but itself."""
    return _CURRENT.get()


def check() -> None:
    """Raise EndedError if this thread's work is to end."""
    ending = current()
    if ending:
        ending.check()


def pause(seconds: float) -> None:
    """Wait.

    Raises:
        EndedError: as soon as this thread's work is to end.
    """
    ending = current()
    select.select([ending] if ending else [], [], [], seconds)
    check()

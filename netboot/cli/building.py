"""How a build shows itself: on a terminal live lines of running steps, plain lines elsewhere. Always on stderr."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text


class Building:
    """Progress of one build, as a context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
        self._status = self._console.status("starting") if self._console.is_terminal else None
        self._running: dict[str, str] = {}
        self.steps: list[dict[str, object]] = []
        """What was done: step, seconds, cached."""

    def __enter__(self) -> Self:
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def heading(self, text: str) -> None:
        """Begin a part of several steps."""
        self._console.print(Text(text, style="bold"))

    def relay(self, text: str) -> None:
        """Print a line of a build that another process does."""
        self._console.print(Text(text))

    def begin(self, step: str) -> None:
        """Show a step as running."""
        self.line(step, "")

    def line(self, step: str, text: str) -> None:
        """A step's line of a terminal; nowhere else, where a thousand lines of packages help nobody."""
        self._running[step] = text
        self._show()

    def _show(self) -> None:
        if self._status and self._running:
            room = max(self._console.width - 20, 20)
            lines = [
                Text.assemble((f"{step:<10}", "bold"), " ", (text[:room], "dim"))
                for step, text in self._running.items()
            ]
            self._status.update(Text("\n  ").join(lines))

    def end(self, step: str, seconds: float, *, cached: bool) -> None:
        """Print the line of a step that ended, and keep it for `steps`."""
        self._running.pop(step, None)
        self._show()
        self.steps.append({"step": step, "seconds": round(seconds, 3), "cached": cached})
        took = "cached" if cached else f"{seconds:.1f} s"
        self._console.print(Text.assemble(f"{step:<10}", f"{took:>8}"))

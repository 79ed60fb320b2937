"""Steps that run as soon as what they need is there, side by side: a thread each, because tools do the work.

The first that fails ends the others, their tools too, and its error is the one that is raised. Ctrl-C does the same.
"""

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from images.build.cache import Cache
from images.build.step import NO_TOOLS, I, Product, Step
from images.cancel import Interruptible


class Progress(Protocol):
    """Who wants to know how a build goes. Several steps may be under way; one call at a time is made."""

    def begin(self, step: str) -> None:
        """A step begins; others may be under way."""

    def line(self, step: str, text: str) -> None:
        """One line of what a step, or a tool that it runs, says while it works."""

    def end(self, step: str, seconds: float, *, cached: bool) -> None:
        """A step ended after `seconds`; `cached`: its product was there."""


class Graph:
    """A context manager that ends when all steps have ended. `products`: what they made, by the steps' names."""

    def __init__(self, cache: Cache, progress: Progress) -> None:
        self._cache, self._progress = cache, progress
        self._guard = threading.Lock()
        self._begun: list[threading.Event] = []
        """Of each thread that was started: set when it needs nothing of ours any more."""
        self._failure: BaseException | None = None
        self._cancellation = Interruptible()
        self.products: dict[str, Product] = {}

    def __enter__(self) -> Self:
        self._cancellation.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if value is not None:
            self._fail(value)
        for end in self._begun:
            end.wait()
        self._cancellation.__exit__(kind, value, trace)  # raises, where it was Ctrl-C that ended all
        if self._failure is not None and self._failure is not value:
            raise self._failure from None

    def step(
        self, step: Step[I], inputs: Callable[[], I], tools: Mapping[str, str] = NO_TOOLS
    ) -> Callable[[], Product]:
        """Begin a step as soon as its inputs are there, and return what waits for its product.

        Args:
            inputs: called in the step's own thread, where it waits for the products of other steps.
            tools: versions of those that it uses.
        """

        def run() -> None:
            self._cancellation.adopt()
            try:
                self._run(step, inputs(), tools)
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits for all
                self._fail(error)
            finally:
                end.set()

        def wait() -> Product:
            end.wait()
            self._cancellation.check()
            return self.products[step.name]

        end = threading.Event()
        threading.Thread(target=run, name=step.name).start()
        self._begun.append(end)
        return wait

    def _run(self, step: Step[I], inputs: I, tools: Mapping[str, str]) -> None:
        self._tell(lambda: self._progress.begin(step.name))
        start = time.monotonic()
        product, cached = self._cache.obtain(
            step, inputs, lambda line: self._tell(lambda: self._progress.line(step.name, line)), tools
        )
        self._tell(lambda: self._progress.end(step.name, time.monotonic() - start, cached=cached))
        self.products[step.name] = product

    def _tell(self, what: Callable[[], None]) -> None:
        with self._guard:
            self._cancellation.check()
            what()

    def _fail(self, error: BaseException) -> None:
        """The first error is the cause; those that follow from it say nothing."""
        with self._guard:
            if self._failure is None:
                self._failure = error
        self._cancellation.tell()

"""Steps side by side: what waits for what, what the first failure and Ctrl-C end, and what progress is told."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from images.build.cache import Cache
from images.build.graph import Graph
from images.build.step import Product, Say, Step
from images.errors import CommandError, ImageError
from images.run import run
from tests.unit.images.samples import unplanned
from tests.unit.images.test_run import wait_gone

RETRY_POLICY = 60.0


@dataclass(frozen=True)
class Inputs:
    text: str
    before: tuple[Product, ...] = ()


class Told:
    """Progress that is written down."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    def begin(self, step: str) -> None:
        self.calls.append(("begin", step))

    def line(self, step: str, text: str) -> None:
        self.calls.append((text, step))

    def end(self, step: str, seconds: float, *, cached: bool) -> None:
        self.calls.append(("cached" if cached else "end", step))


def write(inputs: Inputs, out: Path, say: Say) -> None:
    say("writing")
    (out / "file").write_text(inputs.text + "".join((product / "file").read_text() for product in inputs.before))


def named(name: str, work: object = write) -> Step[Inputs]:
    return Step(name, 1, work, outputs=("file",), inputs=unplanned)  # type: ignore[arg-type]


def meeting(barrier: threading.Barrier) -> object:
    def work(inputs: Inputs, out: Path, say: Say) -> None:
        barrier.wait(RETRY_POLICY)
        write(inputs, out, say)

    return work


def test_what_does_not_wait_for_each_other_runs_side_by_side(tmp_path: Path) -> None:
    """The two in the middle meet: one after the other they never would."""
    barrier, told = threading.Barrier(2), Told()
    with Cache(tmp_path) as cache, Graph(cache, told) as graph:
        first = graph.step(named("first"), lambda: Inputs("1"))
        left = graph.step(named("left", meeting(barrier)), lambda: Inputs("l", (first(),)))
        right = graph.step(named("right", meeting(barrier)), lambda: Inputs("r", (first(),)))
        last = graph.step(named("last"), lambda: Inputs("=", (left(), right())))
    assert (last() / "file").read_text() == "=l1r1"
    assert sorted(graph.products) == ["first", "last", "left", "right"]
    assert told.calls[:3] == [("begin", "first"), ("writing", "first"), ("end", "first")]
    assert sorted(told.calls[3:5]) == [("begin", "left"), ("begin", "right")]
    assert told.calls[-3:] == [("begin", "last"), ("writing", "last"), ("end", "last")]


def test_products_of_an_earlier_build_are_used(tmp_path: Path) -> None:
    told = Told()
    for _ in range(2):
        with Cache(tmp_path) as cache, Graph(cache, told) as graph:
            graph.step(named("only"), lambda: Inputs("1"))
    assert told.calls == [
        ("begin", "only"),
        ("writing", "only"),
        ("end", "only"),
        ("begin", "only"),
        ("cached", "only"),
    ]


def test_the_first_failure_is_the_error_and_ends_the_tools_of_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")

    def tool(inputs: Inputs, out: Path, say: Say) -> None:
        run(["sh", "-c", f"sleep 1000 & echo $! >{tmp_path}/ready; wait"])

    pids: list[int] = []

    def fail(inputs: Inputs, out: Path, say: Say) -> None:
        pids.append(int((tmp_path / "ready").read_text()))
        raise ImageError("this is broken")

    told = Told()
    with Cache(tmp_path / "cache") as cache:
        with pytest.raises(ImageError) as caught, Graph(cache, told) as graph:
            endless = graph.step(named("tool", tool), lambda: Inputs("1"))
            graph.step(named("fail", fail), lambda: Inputs("2"))
            graph.step(named("never"), lambda: Inputs("3", (endless(),)))
        assert list((tmp_path / "cache/tmp").iterdir()) == []
    assert str(caught.value) == "this is broken"
    wait_gone(pids[0])
    assert sorted(told.calls) == [("begin", "fail"), ("begin", "tool")]
    assert list((tmp_path / "cache/products").iterdir()) == []


def test_a_failed_tools_own_error_is_shown_and_not_what_follows_from_it(tmp_path: Path) -> None:
    def tool(inputs: Inputs, out: Path, say: Say) -> None:
        run(["sh", "-c", "echo no space >&2; exit 3"])

    with Cache(tmp_path) as cache, pytest.raises(CommandError) as caught, Graph(cache, Told()) as graph:
        before = graph.step(named("tool", tool), lambda: Inputs("1"))
        graph.step(named("after"), lambda: Inputs("2", (before(),)))
        before()
    assert (caught.value.status, caught.value.output) == (3, "no space")


def test_inputs_that_cannot_be_made_are_a_failure_too(tmp_path: Path) -> None:
    def inputs() -> Inputs:
        raise ImageError("no such file")

    with Cache(tmp_path) as cache, pytest.raises(ImageError, match="no such file"), Graph(cache, Told()) as graph:
        graph.step(named("only"), inputs)


def test_a_step_that_waits_for_another_build_can_be_ended(tmp_path: Path) -> None:
    """Another build makes the same product and does not end before ours has."""
    begun, ours_ended = threading.Event(), threading.Event()

    def slow(inputs: Inputs, out: Path, say: Say) -> None:
        begun.set()
        assert ours_ended.wait(RETRY_POLICY)
        write(inputs, out, say)

    step = named("slow", slow)

    def other() -> None:
        with Cache(tmp_path) as cache:
            cache.obtain(step, Inputs("1"), lambda _: None)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert begun.wait(RETRY_POLICY)
        waits = threading.Event()

        def fail(inputs: Inputs, out: Path, say: Say) -> None:
            assert waits.wait(RETRY_POLICY)
            raise ImageError("this is broken")

        class Waiting(Told):
            def line(self, step: str, text: str) -> None:
                super().line(step, text)
                waits.set()

        told = Waiting()
        with Cache(tmp_path) as cache, pytest.raises(ImageError, match="this is broken"), Graph(cache, told) as graph:
            graph.step(step, lambda: Inputs("1"))
            graph.step(named("fail", fail), lambda: Inputs("2"))
        assert ("another build is making this; waiting for it", "slow") in told.calls
    finally:
        ours_ended.set()
        thread.join(RETRY_POLICY)


def test_of_two_threads_that_want_the_same_product_one_makes_it(tmp_path: Path) -> None:
    begun, asked = threading.Event(), threading.Event()
    made: list[str] = []

    def work(inputs: Inputs, out: Path, say: Say) -> None:
        made.append(inputs.text)
        begun.set()
        assert asked.wait(RETRY_POLICY)
        write(inputs, out, say)

    step, found = named("same", work), []
    with Cache(tmp_path) as cache:
        threads = [
            threading.Thread(target=lambda: found.append(cache.obtain(step, Inputs("1"), lambda _: None)[1]))
            for _ in range(2)
        ]
        threads[0].start()
        assert begun.wait(RETRY_POLICY)
        threads[1].start()
        asked.set()
        for thread in threads:
            thread.join(RETRY_POLICY)
    assert (made, sorted(found)) == (["1"], [False, True])


INTERRUPTED = """
import signal, sys
from pathlib import Path
from images.build.cache import Cache
from images.build.graph import Graph
from tests.unit.images.test_graph import Inputs, Told, named
from images.run import run

def tool(inputs, out, say):
    run(["sh", "-c", f"sleep 1000 & echo $! >{sys.argv[1]}/{inputs.text}; wait"])

try:
    with Cache(Path(sys.argv[1], "cache")) as cache, Graph(cache, Told()) as graph:
        one = graph.step(named("one", tool), lambda: Inputs("ready1"))
        graph.step(named("two", tool), lambda: Inputs("ready2"))
        graph.step(named("three"), lambda: Inputs("3", (one(),)))
        signal.pthread_sigmask(signal.SIG_BLOCK, eval(sys.argv[2]))
finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
"""


@pytest.mark.parametrize("masked", ["{}", "{signal.SIGINT}"], ids=["the main thread hears", "it is about to wait"])
def test_ctrl_c_ends_all_and_leaves_nothing(tmp_path: Path, masked: str) -> None:
    """A signal that comes right before the main thread begins to wait does not wake it: that is like one that is not
    for it."""
    for name in ("ready1", "ready2"):
        os.mkfifo(tmp_path / name)
    argv = [sys.executable, "-c", INTERRUPTED, str(tmp_path), masked]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        pids = [int((tmp_path / name).read_text()) for name in ("ready1", "ready2")]
        process.send_signal(signal.SIGINT)
        try:
            _, shown = process.communicate(timeout=RETRY_POLICY)
        finally:
            process.kill()
    for pid in pids:
        wait_gone(pid)
    assert process.returncode == -signal.SIGINT
    assert shown.splitlines()[-1] == "KeyboardInterrupt"
    assert list((tmp_path / "cache/tmp").iterdir()) == list((tmp_path / "cache/products").iterdir()) == []

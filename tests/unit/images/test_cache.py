"""The build cache: what is made once, what a kill leaves, two at once, and its size."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from images.build.cache import Cache
from images.build.step import Product, Say, Step
from images.errors import ImageError
from images.values.digests import plain
from tests.processes import wait_for
from tests.unit.images.samples import unplanned


@dataclass(frozen=True)
class Inputs:
    text: str
    before: Product | None = None


def quiet(line: str) -> None:
    pass


def write(inputs: Inputs, out: Path, say: Say) -> None:
    say(f"writing {inputs.text}")
    (out / "file").write_text(inputs.text)


def counted(name: str = "write", version: int = 1) -> tuple[Step[Inputs], list[str]]:
    """A step, and the texts that it really wrote."""
    made: list[str] = []

    def work(inputs: Inputs, out: Path, say: Say) -> None:
        made.append(inputs.text)
        write(inputs, out, say)

    return Step(name, version, work, outputs=("file",), inputs=unplanned), made


def test_a_step_is_done_once_for_the_same_inputs_and_version(tmp_path: Path) -> None:
    step, made = counted()
    for expected in (False, True):
        with Cache(tmp_path) as cache:
            product, cached = cache.obtain(step, Inputs("a"), quiet)
            assert (cached, (product / "file").read_text()) == (expected, "a")
            assert cache.obtain(step, Inputs("a"), quiet) == (product, True)
    with Cache(tmp_path) as cache:
        assert cache.obtain(step, Inputs("b"), quiet)[1] is False
        assert cache.obtain(counted(version=2)[0], Inputs("a"), quiet)[1] is False
    assert made == ["a", "b"]


def test_a_steps_key_changes_with_its_inputs_its_version_and_its_data(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "x").write_text("1")
    step = Step("write", 1, write, outputs=("file",), inputs=unplanned, data=(source,))
    keys = [step.key(Inputs("a")), step.key(Inputs("b")), step.key(Inputs("a", Product("k", tmp_path)))]
    keys.append(step.key(Inputs("a", Product("l", tmp_path))))
    keys.append(Step("write", 2, write, outputs=("file",), inputs=unplanned, data=(source,)).key(Inputs("a")))
    (source / "x").write_text("2")
    keys.append(step.key(Inputs("a")))
    (source / "x").chmod(0o755)
    keys.append(step.key(Inputs("a")))
    (source / "y").symlink_to("x")
    keys.append(step.key(Inputs("a")))
    assert len(set(keys)) == len(keys)


def test_a_product_is_known_by_its_content_and_not_by_its_place(tmp_path: Path) -> None:
    step, _ = counted()
    assert step.key(Inputs("a", Product("k", tmp_path))) == step.key(Inputs("a", Product("k", tmp_path / "elsewhere")))


def test_a_path_is_no_input() -> None:
    with pytest.raises(TypeError, match="cannot be an input of a step"):
        plain(Path("/etc/passwd"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_plain_keeps_what_json_can_say(value: object) -> None:
    assert plain(value) == value


def test_a_step_that_fails_leaves_nothing_and_is_done_again(tmp_path: Path) -> None:
    def fail(inputs: Inputs, out: Path, say: Say) -> None:
        write(inputs, out, say)
        raise ImageError("no")

    with Cache(tmp_path) as cache:
        with pytest.raises(ImageError, match="no"):
            cache.obtain(Step("write", 1, fail, outputs=("file",), inputs=unplanned), Inputs("a"), quiet)
        assert list((tmp_path / "products").iterdir()) == list((tmp_path / "tmp").iterdir()) == []
        assert cache.obtain(counted()[0], Inputs("a"), quiet)[1] is False


def test_a_step_without_its_output_is_a_fault_that_names_it(tmp_path: Path) -> None:
    step = Step("write", 1, write, outputs=("file", "other", "third"), inputs=unplanned)
    with Cache(tmp_path) as cache, pytest.raises(ImageError) as caught:
        cache.obtain(step, Inputs("a"), quiet)
    assert str(caught.value) == "step write ended without its output: other, third"
    assert list((tmp_path / "products").iterdir()) == []


def test_a_cache_that_cannot_be_used_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageError) as caught, Cache(tmp_path / "file"):
        pass
    assert str(caught.value) == f"cannot use {tmp_path}/file as the build cache: File exists; name another with --cache"


def test_the_least_recently_used_products_go_first(tmp_path: Path) -> None:
    step, _ = counted()
    with Cache(tmp_path) as cache:
        for at, text in enumerate(("a", "b", "c")):
            product, _ = cache.obtain(step, Inputs(text * 5000), quiet)
            os.utime(product.path, (1000 + at, 1000 + at))
    with Cache(tmp_path) as cache:
        cache.obtain(step, Inputs("a" * 5000), quiet)  # used again: now the youngest
    with Cache(tmp_path, limit=12_000):
        pass
    with Cache(tmp_path) as cache:
        found = [cache.obtain(step, Inputs(text * 5000), quiet)[1] for text in ("a", "c", "b")]
    assert found == [True, True, False]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_product_in_use_is_not_pruned(tmp_path: Path) -> None:
    step, _ = counted()
    with Cache(tmp_path) as user:
        product, _ = user.obtain(step, Inputs("a"), quiet)
        with Cache(tmp_path, limit=0):
            pass
        assert (product / "file").read_text() == "a"
    with Cache(tmp_path, limit=0):
        pass
    assert not product.path.exists()


def test_two_builds_prune_at_once_what_neither_needs(tmp_path: Path) -> None:
    """The second has listed a product that the first removes before the second comes to it."""

    class Second(Cache):
        def _discard(self, path: Path) -> bool:
            with Cache(tmp_path, limit=0):
                pass
            return super()._discard(path)

    step, _ = counted()
    with Cache(tmp_path) as cache:
        for text in "ab":
            cache.obtain(step, Inputs(text), quiet)
    with Second(tmp_path, limit=0):
        pass
    assert [list((tmp_path / name).iterdir()) for name in ("products", "tmp", "locks")] == [[], [], []]


def test_a_build_that_fails_prunes_nothing(tmp_path: Path) -> None:
    step, _ = counted()
    with Cache(tmp_path) as cache:
        product, _ = cache.obtain(step, Inputs("a"), quiet)
    with pytest.raises(ImageError), Cache(tmp_path, limit=0):
        raise ImageError
    assert product.path.is_dir()


def test_two_builds_of_one_step_make_it_once(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()
    made, waits = [], []

    def slow(inputs: Inputs, out: Path, say: Say) -> None:
        made.append(inputs.text)
        begun.set()
        assert go.wait(60)
        write(inputs, out, say)

    step = Step("write", 1, slow, outputs=("file",), inputs=unplanned)
    results: list[bool] = []

    def build(say: Say) -> None:
        with Cache(tmp_path) as cache:
            results.append(cache.obtain(step, Inputs("a"), say)[1])

    def waiting(line: str) -> None:
        waits.append(line)
        go.set()

    first = threading.Thread(target=build, args=(quiet,))
    first.start()
    assert begun.wait(60)
    second = threading.Thread(target=build, args=(waiting,))
    second.start()
    first.join(60)
    second.join(60)
    assert made == ["a"]
    assert waits == ["another build is making this; waiting for it"]
    assert sorted(results) == [False, True]


def test_the_second_makes_it_where_the_first_fails(tmp_path: Path) -> None:
    begun, go = threading.Event(), threading.Event()

    def work(inputs: Inputs, out: Path, say: Say) -> None:
        if not begun.is_set():
            begun.set()
            assert go.wait(60)
            raise ImageError("no")
        write(inputs, out, say)

    step = Step("write", 1, work, outputs=("file",), inputs=unplanned)

    def first() -> None:
        with pytest.raises(ImageError), Cache(tmp_path) as cache:
            cache.obtain(step, Inputs("a"), quiet)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(60)
    with Cache(tmp_path) as cache:
        product, cached = cache.obtain(step, Inputs("a"), lambda _: go.set())
        assert (cached, (product / "file").read_text()) == (False, "a")
    thread.join(60)


def test_leftovers_of_the_killed_are_swept_and_those_of_the_living_stay(tmp_path: Path) -> None:
    with Cache(tmp_path) as living, living.scratch() as used:
        (tmp_path / "tmp" / "left").mkdir()
        (tmp_path / "tmp" / "left" / "file").write_text("x")
        with Cache(tmp_path):
            pass
        assert [path.name for path in (tmp_path / "tmp").iterdir()] == [used.name]
    assert list((tmp_path / "tmp").iterdir()) == []


CHAIN = """
import os, sys
from pathlib import Path
from tests.unit.images.chain import build
build(Path(sys.argv[1]), lambda: print("x", flush=True))
"""


@contextmanager
def building(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", CHAIN, str(folder)], stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


@settings(max_examples=12, deadline=None)
@given(ticks=st.integers(0, 24), number=st.sampled_from([signal.SIGKILL, signal.SIGINT]))
def test_killed_at_any_moment_the_next_build_works(
    tmp_path_factory: pytest.TempPathFactory, ticks: int, number: signal.Signals
) -> None:
    """A real process builds a chain of steps and ticks before, amid and after each; it is killed at some tick."""
    from tests.unit.images.chain import build

    folder = tmp_path_factory.mktemp("cache")
    with building(folder) as process:
        assert process.stdout
        for _ in range(ticks):
            ready, _, _ = select.select([process.stdout], [], [], 180)
            assert ready
            if not os.read(process.stdout.fileno(), 2):
                break
        process.send_signal(number)
        process.stdout.read()
        process.wait(180)
    for product in (folder / "products").iterdir() if (folder / "products").is_dir() else ():
        assert len((product / "data").read_bytes()) == 3000, "a product is whole or not there"
    assert build(folder, lambda: None) == b"c" * 1000 + b"b" * 1000 + b"a" * 1000

    def swept() -> bool:
        """A tool that was being started when its builder was killed holds its locks until it runs."""
        with Cache(folder):
            return list((folder / "tmp").iterdir()) == []

    wait_for(swept)


def test_a_folder_named_from_where_we_are_is_the_same_for_tools_that_are_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt takes the path of a key for no path where it is not absolute."""
    monkeypatch.chdir(tmp_path)
    with Cache(Path("cache")) as cache, cache.scratch() as scratch:
        assert cache.packages == tmp_path / "cache/packages"
        assert scratch.is_absolute()

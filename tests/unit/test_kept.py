"""What many ask for at once is made by one, and is no older than is said."""

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest

from netboot.lifecycle.errors import OverloadedError
from netboot.web import kept
from netboot.web.kept import Kept


def test_it_is_made_again_when_it_is_old() -> None:
    now, made = [0.0], list[bytes]()

    def make() -> bytes:
        made.append(str(len(made)).encode())
        return made[-1]

    scrapes = Kept(1.0, lambda: now[0])
    assert [scrapes.of(make), scrapes.of(make)] == [b"0", b"0"]
    now[0] = 0.99
    assert scrapes.of(make) == b"0"
    now[0] = 1.0
    assert scrapes.of(make) == b"1"


def test_while_one_makes_it_others_get_the_one_before_or_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now, begun, goes_on = [0.0], threading.Event(), threading.Event()

    def slow() -> bytes:
        begun.set()
        assert goes_on.wait(180)
        return b"new"

    scrapes = Kept(1.0, lambda: now[0])
    assert scrapes.of(lambda: b"old") == b"old"
    now[0] = 2.0
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(scrapes.of, slow)
        assert begun.wait(180)
        assert scrapes.of(slow) == b"old"
        now[0] = kept.OLDEST_SECONDS
        monkeypatch.setattr(kept, "WAIT_SECONDS", 0.01)
        with pytest.raises(OverloadedError, match="it is being made for somebody else"):
            scrapes.of(slow)
        monkeypatch.setattr(kept, "WAIT_SECONDS", 180.0)
        waits = pool.submit(scrapes.of, lambda: b"made twice")
        goes_on.set()
        assert (first.result(180), waits.result(180)) == (b"new", b"new")


def test_few_wait_and_keep_a_thread_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "WAIT_SECONDS", 180.0)  # all are there before the first has waited for too long
    begun, goes_on = threading.Event(), threading.Event()

    def slow() -> bytes:
        begun.set()
        assert goes_on.wait(180)
        return b"new"

    scrapes = Kept(1.0)
    with ThreadPoolExecutor(kept.MOST_WAITING + 3) as pool:
        asked = [pool.submit(scrapes.of, slow)]
        assert begun.wait(180)
        asked += [pool.submit(scrapes.of, slow) for _ in range(kept.MOST_WAITING + 2)]
        told = list(islice(as_completed(asked, 180), 2))
        goes_on.set()
    assert [str(each.exception()) for each in told] == ["it is being made for somebody else"] * 2
    assert [each.result() for each in asked if each not in told] == [b"new"] * (kept.MOST_WAITING + 1)


def test_what_is_read_without_the_lock_is_never_half_new() -> None:
    """The moment in which it was made, and what was made, are seen together."""
    moments, seen = iter([0.0, 0.0]), list[object]()

    class Watching(Kept):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if "_lock" in vars(self) and self._lock.locked():
                seen.append(name)

    assert Watching(1.0, lambda: next(moments)).of(lambda: b"made") == b"made"
    assert len(seen) == 1


def test_a_failure_is_not_kept_and_keeps_nobody_out() -> None:
    scrapes = Kept(1.0)

    def broken() -> bytes:
        raise OverloadedError("a file")

    with pytest.raises(OverloadedError, match="a file"):
        scrapes.of(broken)
    assert scrapes.of(lambda: b"made") == b"made"

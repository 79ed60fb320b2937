"""The fetcher: what it tries, when it tries again, what it says meanwhile."""

from collections.abc import Callable

import pytest

from images.errors import ImageError
from images.registry.errors import AbsentError
from netboot.controllers import fetcher
from netboot.controllers.fetcher import Fetcher
from netboot.lifecycle.errors import NotReadyError
from netboot.status import up_ms
from netboot.status.fetcher import FetcherStatus, Transfer

ONE, TWO = "1" * 64, "2" * 64
PLACE = "registry.example/images"


class Clock:
    """Stands still but for `monotonic`."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return 1_700_000_000_000


class Upstream:
    """Has what is in `sizes`; what is in `errors` fails with that."""

    where = PLACE

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.errors: dict[str, ImageError] = {}
        self.asked: list[str] = []
        self.during: Callable[[], None] = lambda: None

    def fetch(self, digest: str, progress: Callable[[int, int], None]) -> int:
        self.asked.append(digest)
        if digest in self.errors:
            raise self.errors[digest]
        progress(0, self.sizes[digest])
        self.during()
        progress(self.sizes[digest], self.sizes[digest])
        return self.sizes[digest]


class Scene:
    """A fetcher with all that it touches."""

    def __init__(self) -> None:
        self.upstream, self.clock = Upstream(), Clock()
        self.wanted: list[str] = []
        self.fetcher = Fetcher(
            self.upstream, lambda: self.wanted, self.clock, monotonic=lambda: self.clock.seconds, draw=lambda: 1.0
        )


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_nothing_is_missing(scene: Scene) -> None:
    assert not scene.fetcher.step()
    before = up_ms()
    status = scene.fetcher.status()
    assert before <= status.up_ms <= up_ms()
    assert status == FetcherStatus(
        at_ms=1_700_000_000_000,
        up_ms=status.up_ms,
        ok=True,
        message=f"every image of a channel is here; others come from {PLACE}",
        remedy="wait",
        images={},
        transfer=None,
        fetched=0,
        bytes=0,
        failed=0,
    )


def test_an_image_comes(scene: Scene) -> None:
    scene.wanted, scene.upstream.sizes = [ONE], {ONE: 1000}
    seen: list[FetcherStatus] = []
    scene.upstream.during = lambda: seen.append(scene.fetcher.status())
    assert scene.fetcher.step()
    during = seen[0]
    assert not during.ok
    assert during.message == f"fetching 111111111111 from {PLACE}"
    assert during.images == {ONE: f"it is not here yet: being fetched from {PLACE}"}
    assert during.transfer == Transfer(image=ONE, bytes=0, of=1000)
    scene.wanted = []
    assert not scene.fetcher.step()
    after = scene.fetcher.status()
    assert (after.ok, after.fetched, after.bytes, after.failed) == (True, 1, 1000, 0)


def test_one_that_fails_is_tried_again_later_and_later(scene: Scene) -> None:
    scene.wanted, scene.upstream.errors = [ONE], {ONE: AbsentError("it has no image")}
    tried = []
    for second in range(200):
        scene.clock.seconds = float(second)
        before = len(scene.upstream.asked)
        scene.fetcher.step()
        if len(scene.upstream.asked) > before:
            tried.append(second)
    assert tried == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    said = scene.fetcher.status()
    assert not said.ok
    assert said.message == "it has no image"
    assert said.remedy == "it is tried again by itself; see upstream in the configuration"
    assert said.images == {ONE: "it is not here yet, tried again: it has no image"}
    assert said.failed == 9


def test_one_that_fails_does_not_hold_up_another(scene: Scene) -> None:
    scene.wanted, scene.upstream.sizes = [ONE, TWO], {TWO: 5}
    scene.upstream.errors = {ONE: AbsentError("it has no image")}
    assert scene.fetcher.step()
    assert scene.upstream.asked == [ONE, TWO]


def test_what_nobody_wants_any_more_is_forgotten(scene: Scene) -> None:
    scene.wanted, scene.upstream.errors = [ONE], {ONE: AbsentError("it has no image")}
    scene.fetcher.step()
    scene.wanted = []
    scene.fetcher.step()
    assert scene.fetcher.status().ok
    scene.wanted = [ONE]
    scene.fetcher.step()
    assert scene.upstream.asked == [ONE, ONE]  # wanted anew: at once


def test_nothing_is_published_yet(scene: Scene) -> None:
    def wanted() -> list[str]:
        raise NotReadyError("nothing")

    assert not Fetcher(scene.upstream, wanted, scene.clock).step()


def test_a_defect_is_said_for_as_long_as_it_lasts(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "LOOK_SECONDS", 0.0)
    said = [scene.fetcher.status()]

    def wanted() -> list[str]:
        said.append(scene.fetcher.status())
        if len(said) == 2:
            raise LookupError("nobody foresaw this")
        if len(said) == 4:
            scene.fetcher._cancellation.set()
        return []

    scene.fetcher._missing = wanted
    scene.fetcher.start()
    scene.fetcher._thread.join(60)
    well = f"every image of a channel is here; others come from {PLACE}"
    assert [(status.ok, status.message) for status in said] == [
        (True, well),
        (True, well),
        (False, "a defect; see the log"),
        (True, well),
    ]


def test_a_transfer_ends_with_the_service(scene: Scene) -> None:
    scene.wanted, scene.upstream.sizes = [ONE], {ONE: 5}
    scene.upstream.during = lambda: scene.fetcher._cancellation.set()
    scene.fetcher.start()
    scene.fetcher._thread.join(60)
    assert not scene.fetcher._thread.is_alive()
    assert scene.fetcher.status().fetched == 0


def test_a_wait_ends_with_the_service(scene: Scene) -> None:
    scene.fetcher._cancellation.set()
    with pytest.raises(Exception, match=r"^$"):
        scene.fetcher.pause(3600)

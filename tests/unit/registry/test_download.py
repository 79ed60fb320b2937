"""One blob from a place that fails in every way: the file is what was signed, or there is an error in words."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.artifact.manifest import Artifact
from images.errors import StoreError
from images.registry.answers import Stream
from images.registry.download import download
from images.registry.errors import DamagedError, RegistryError, UnreachableError
from images.registry.retry import RetryPolicy
from images.registry.sources import SignedManifest

DATA = bytes(range(200))
ROOT = Artifact(sha256=hashlib.sha256(DATA).hexdigest(), size=len(DATA))
SHORT = ROOT.sha256[:12]
Act = tuple[int | None, bool, int | None]


class Place:
    """Each request is answered by the next of `acts`, and by all of the data when they are used up.

    An act: how many bytes come before the connection breaks (None: all), whether it continues where it is asked to,
    and which byte of what it sends is spoilt (None: none).
    """

    where = "there"

    def __init__(self, acts: list[Act]) -> None:
        self.acts = list(acts)
        self.asked: list[int] = []

    def signed(self, name: str) -> SignedManifest:
        raise AssertionError(name)

    @contextmanager
    def blob(self, artifact: Artifact, name: str, offset: int) -> Iterator[Stream]:
        assert (artifact, name) == (ROOT, "root")
        self.asked.append(offset)
        come, ranges, spoilt = self.acts.pop(0) if self.acts else (None, True, None)
        start = offset if ranges else 0
        data = bytearray(DATA[start:])
        if spoilt is not None and spoilt < len(data):
            data[spoilt] ^= 1
        yield Stream(start, self._blocks(bytes(data), come))

    def _blocks(self, data: bytes, come: int | None) -> Iterator[bytes]:
        yield from (data[at : at + 7] for at in range(0, len(data if come is None else data[:come]), 7))
        if come is not None:
            raise UnreachableError("there broke off in the middle of root")


def patient(attempts: int = 5) -> RetryPolicy:
    return RetryPolicy(attempts=attempts, sleep=lambda _seconds: None)


ACTS = st.tuples(st.none() | st.integers(0, 210), st.booleans(), st.none() | st.integers(0, 220))


@given(st.lists(ACTS, max_size=8))
def test_what_was_signed_or_an_error(tmp_path_factory: pytest.TempPathFactory, acts: list[Act]) -> None:
    target = tmp_path_factory.getbasetemp() / "download"
    told = 0

    def progress(step: int) -> None:
        nonlocal told
        told += step
        assert 0 <= told <= len(DATA)

    try:
        download(Place(acts), "root", ROOT, target, patient(), progress)
    except RegistryError as error:
        assert isinstance(error, DamagedError | UnreachableError)
        assert acts
    else:
        assert target.read_bytes() == DATA
        assert told == len(DATA)


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    place = Place([(14, True, None), (70, True, None)])
    download(place, "root", ROOT, tmp_path / "root", patient(), lambda _step: None)
    assert place.asked == [0, 14, 84]


def test_an_attempt_that_brought_something_does_not_count(tmp_path: Path) -> None:
    """A bad line gets there, a byte at a time."""
    place = Place([(7, True, None)] * 28)
    download(place, "root", ROOT, tmp_path / "root", patient(2), lambda _step: None)
    assert (tmp_path / "root").read_bytes() == DATA


def test_attempts_that_bring_nothing_do(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError) as error:
        download(Place([(0, True, None)] * 9), "root", ROOT, tmp_path / "root", patient(3), lambda _step: None)
    assert str(error.value) == "there broke off in the middle of root (tried 3 times)"


def test_spoilt_once_is_fetched_again(tmp_path: Path) -> None:
    place = Place([(None, True, 100)])
    download(place, "root", ROOT, tmp_path / "root", patient(), lambda _step: None)
    assert place.asked == [0, 0]
    assert (tmp_path / "root").read_bytes() == DATA


def test_spoilt_twice_is_what_the_place_has(tmp_path: Path) -> None:
    with pytest.raises(DamagedError) as error:
        download(Place([(None, True, 100)] * 2), "root", ROOT, tmp_path / "root", patient(), lambda _step: None)
    assert str(error.value) == f"root (blob {SHORT}) of there is damaged: its bytes are not those that were signed"


def test_the_disk_is_full() -> None:
    with pytest.raises(StoreError) as error:
        download(Place([]), "root", ROOT, Path("/dev/full"), patient(), lambda _step: None)
    assert str(error.value) == (
        "cannot write /dev/full: No space left on device; free some space, for example with `netboot image gc`"
    )


def test_what_is_interrupted_is_not_tried_again(tmp_path: Path) -> None:
    def interrupt(_step: int) -> None:
        raise KeyboardInterrupt

    place = Place([])
    with pytest.raises(KeyboardInterrupt):
        download(place, "root", ROOT, tmp_path / "root", patient(), interrupt)
    assert place.asked == [0]

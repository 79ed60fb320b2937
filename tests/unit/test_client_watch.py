"""A watch of the client: what is cut goes on, with nothing missing and nothing twice."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.client.errors import CannotTellError, ClientError, FailedError, UnknownError
from netboot.client.watch import Watch, events

CUT = CannotTellError("cut")


def sent(place: int, *numbers: int) -> bytes:
    """Lines that come at once: the last has the id."""
    lines = [b"data: " + json.dumps({"event": {"id": number}}).encode() + b"\n\n" for number in numbers]
    return b"".join([*lines[:-1], f"id: {place}\n".encode(), lines[-1]])


class Service:
    """Each connection sends what is next in `turns`, and ends by what stands there: None, or a failure."""

    def __init__(self, *turns: tuple[bytes, ClientError | None]) -> None:
        self.turns, self.asked, self.waits, self.now = list(turns), list[Any](), list[float](), 0.0

    def watch(self, retry_seconds: float = 60) -> Watch:
        return Watch(self.connect, retry_seconds=retry_seconds, wait=self.wait, clock=lambda: self.now)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    @contextmanager
    def connect(self, headers: Mapping[str, object]) -> Iterator[Iterator[bytes]]:
        assert headers["Accept"] == "text/event-stream"
        self.asked.append(headers.get("Last-Event-ID"))
        data, failure = self.turns.pop(0)
        yield self.chunks(data, failure)

    def chunks(self, data: bytes, failure: ClientError | None) -> Iterator[bytes]:
        yield data
        if failure is not None:
            raise failure


def numbers(watch: Watch, count: int) -> list[int]:
    return [next(watch)["event"]["id"] for _ in range(count)]


def test_it_goes_on_after_the_last_id_when_it_is_cut() -> None:
    service = Service((sent(2, 1, 2), CUT), (sent(3, 2), None), (b"", CUT), (sent(4, 4), CUT))
    watch = service.watch()
    assert numbers(watch, 4) == [1, 2, 2, 4]
    assert service.asked == [None, "2", "3", "3"]
    assert service.waits == [0.5, 0.5, 1.0]
    assert watch.last_id == "4"


def test_what_had_come_of_lines_without_an_id_is_not_told_twice() -> None:
    part = sent(9, 3, 4, 5)
    cut = part.index(b'data: {"event": {"id": 5')
    service = Service((sent(2, 2), None), (part[:cut], CUT), (part[: cut // 2], CUT), (part + sent(10, 3), None))
    assert numbers(service.watch(), 5) == [2, 3, 4, 5, 3]
    assert service.asked == [None, "2", "2", "2"]


def test_after_a_gap_it_goes_on_from_where_the_service_is() -> None:
    """As after a state that was lost: what comes has smaller numbers, and is told."""
    missing = b'id: 1\ndata: {"gap": "the state was lost", "since": 1}\n\n'
    service = Service((sent(9, 8, 9), CUT), (missing + sent(2, 2), CUT), (sent(3, 3), CUT))
    watch = service.watch()
    assert numbers(watch, 2) == [8, 9]
    assert next(watch) == {"gap": "the state was lost", "since": 1}
    assert numbers(watch, 2) == [2, 3]
    assert service.asked == [None, "9", "2"]


def test_a_first_try_that_fails_is_said_at_once() -> None:
    service = Service((b"", CannotTellError("nothing listens there")))
    with pytest.raises(CannotTellError, match="nothing listens there"):
        next(service.watch())
    assert service.waits == []


def test_trying_again_ends_and_a_no_is_no() -> None:
    away = CannotTellError("nothing listens there")
    service = Service((sent(1, 1), None), *[(b"", away)] * 20)
    watch = service.watch(retry_seconds=10)
    assert numbers(watch, 1) == [1]
    with pytest.raises(CannotTellError, match="nothing listens there"):
        next(watch)
    assert service.waits == [0.5, 1.0, 2.0, 4.0, 8.0]
    gone = Service((sent(1, 1), None), (b"", UnknownError("no machine has the name gpu-001")))
    watch = gone.watch()
    assert numbers(watch, 1) == [1]
    with pytest.raises(UnknownError):
        next(watch)


def test_a_stream_that_ends_without_a_word_is_said() -> None:
    with pytest.raises(CannotTellError) as ended:
        next(Service((b"", None)).watch())
    assert str(ended.value) == ("the service ended the stream\nRemedy: it is stopping, or was restarted: try again")


@pytest.mark.parametrize("data", [b"data: {\n\n", b"data: 7\n\n", b"data: {}\n\n", b"data: []\n\n"])
def test_what_is_no_event_of_ours_is_a_failure(data: bytes) -> None:
    with pytest.raises(FailedError, match="what comes is no event of netboot"):
        list(events(iter([data])))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.data())
def test_it_does_not_matter_how_bytes_come(wanted: list[int], data: st.DataObject) -> None:
    whole = b": a comment\n" + b"".join(sent(each, each) for each in wanted)
    whole = whole.replace(b"\n", b"\r\n") if data.draw(st.booleans()) else whole
    ends = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    chunks = [whole[begin:end] for begin, end in zip([0, *ends], [*ends, len(whole)], strict=True)]
    assert [(place, line["event"]["id"]) for place, line in events(iter(chunks))] == [(str(n), n) for n in wanted]
    assert list(events(iter([whole[:-2]])))[len(wanted) - 1 :] == []

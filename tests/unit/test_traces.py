"""Boots as traces: what a trace says, who is exported when, and what becomes of what no collector takes."""

import json
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from images.values.strict import FaultsError
from netboot.config import load_config
from netboot.config_outside import Traces
from netboot.controllers import traces
from netboot.controllers.traces import Position, TracesController
from netboot.lifecycle.boot_spans import ROOT, BootTrace, Moment, RejectedError, boot_trace, span_id, trace_id
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.phases import Phase, source_of
from netboot.lifecycle.state import FeedEntry
from netboot.lifecycle.trace import Trace, apply
from netboot.stores.boots_ended import EndedBoots
from netboot.stores.otlp import OtlpCollector, read_headers
from tests.otlp import receiving, rejecting, said
from tests.records import IMAGE, START, boot_id, event, script
from tests.sites import make_site

BOOT = boot_id("gpu-001", 1)
AT = START + 1_000


def booted(*phases: tuple[Phase, int], detail: str = "") -> Trace:
    trace = apply(None, script("gpu-001", 1))
    for phase, after_ms in phases:
        trace = apply(trace, event("gpu-001", 1, phase, after_ms, detail))
    return trace


def test_a_boot_is_one_trace_of_the_whole_and_a_span_of_each_phase() -> None:
    trace = booted((Phase.KERNEL_FETCHED, 100), (Phase.INITRD_FETCHED, 200), (Phase.SWITCHED, 3_000))
    found = boot_trace(trace, None)
    whole, *phases = found.spans
    assert (whole.name, whole.parent, whole.begin_ms, whole.end_ms, whole.failed) == (ROOT, None, AT, AT + 3_000, "")
    assert whole.attributes == {
        "netboot.boot": BOOT,
        "netboot.machine": "gpu-001",
        "netboot.outcome": "Switched",
        "netboot.image": IMAGE,
        "netboot.channel": "stable",
        "netboot.profile": "compute",
        "netboot.cluster": "default",
    }
    first = phases[0]
    assert (first.name, first.begin_ms, first.end_ms) == ("ScriptServed", AT, AT + 100)
    assert phases[-1].attributes == {
        "netboot.until": "Switched",
        "netboot.missing": "InitrdStarted, ImageFetched, ImageVerified",
    }
    assert {each.parent for each in phases} == {whole.span_id}
    assert found == boot_trace(trace, None), "a restart exports the same"
    assert trace_id(BOOT).to_bytes(16).hex() == BOOT.replace("-", "")


def test_a_boot_that_failed_says_why_and_one_in_service_did_not() -> None:
    trace = booted((Phase.FAILED, 900), detail="no route")
    whole = boot_trace(trace, None).spans[0]
    assert (whole.failed, whole.moments) == ("no route", (Moment("failed", AT + 900, {"netboot.detail": "no route"}),))
    served = boot_trace(booted((Phase.READY, 9_000)), AT + 10_000)
    assert (served.spans[0].failed, served.spans[0].attributes["netboot.outcome"]) == ("", "InService")
    assert served.spans[-1].attributes["netboot.until"] == "InService"


def test_a_boot_links_to_the_one_before_and_says_whose_order_rebooted_it() -> None:
    before = apply(None, script("gpu-001", 0))
    order = Drain(
        id="d1", machine="gpu-001", what="reboot", boot=before.boot, who="alice", reason="a fan", since_ms=0,
        deadline_ms=1, end="rebooted",
    )  # fmt: skip
    found = boot_trace(booted(), None, before, [order.model_copy(update={"end": "undone"}), order])
    assert found.before == before.boot
    cause = {key: value for key, value in found.spans[0].attributes.items() if "reboot" in key}
    assert cause == {"netboot.reboot.order": "d1", "netboot.reboot.by": "alice", "netboot.reboot.reason": "a fan"}
    other = boot_trace(booted(), None, before, [order.model_copy(update={"boot": "b"})]).spans[0].attributes
    assert "netboot.reboot.by" not in other


class Clock:
    def now_ms(self) -> int:
        return START


class World:
    """Boots that began and have ended, a collector, and a clock."""

    where = "the collector"

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.done: set[str] = set()
        self.problem: Exception | None = None
        self.got: list[str] = []
        self.now = 0.0
        self.kept: Position | None = None
        self.writes, self.full = 0, False
        self.soon: float | None = None

    def started(self, after: int | None, limit: int) -> tuple[int, int, dict[str, float | None]]:
        if after is None:
            return len(self.begun), 0, {}
        new = self.begun[after : after + limit]
        return after + len(new), len(new), dict.fromkeys(new, self.soon)

    def ended(self, boot: str) -> tuple[BootTrace | None, float | None]:
        if boot == "unreadable":
            raise CannotTellError("boot unreadable cannot be read")
        if boot == "gone":
            return None, None
        return (BootTrace(boot, ()), None) if boot in self.done else (None, 5.0)

    def export(self, boots: Sequence[BootTrace]) -> None:
        if self.problem is not None:
            raise self.problem
        self.got += [each.boot for each in boots]

    def keep(self, position: Position) -> bool:
        self.kept, self.writes = position, self.writes + 1
        return not self.full

    def controller(self) -> TracesController:
        return TracesController(self, self, self.kept, self.keep, Clock(), lambda: self.now)


def test_each_boot_that_has_ended_is_exported_once_over_a_restart_too() -> None:
    world = World()
    world.begun = ["old"]
    controller = world.controller()
    controller.step()
    world.begun += ["a", "gone", "b"]
    world.done = {"old", "a"}
    controller.step()
    assert world.got == ["a"], "what had begun before is not"
    assert (controller.status().open, controller.status().exported) == (1, 1)
    world.now += 10
    controller.step()
    assert world.kept == Position(feed=4, boots=("b",))
    again = world.controller()
    world.done.add("b")
    again.step()
    again.step()
    assert world.got == ["a", "b"]


def test_a_collector_that_cannot_be_reached_is_said_and_what_it_does_not_take_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(traces, "MOST_WAITING", 2)
    world, controller = World(), None
    controller = world.controller()
    controller.step()
    world.problem = CannotTellError("it cannot be reached: refused")
    world.begun, world.done = ["a", "b", "c"], {"a", "b", "c"}
    for _ in range(3):
        controller.step()
    status = controller.status()
    assert (status.ok, status.waiting, status.dropped, status.exported) == (False, 2, 1, 0)
    assert status.message == "traces do not go to the collector: it cannot be reached: refused"
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "traces do not go to the collector: it cannot be reached: refused"
    ]
    world.now += 100
    world.problem = None
    controller.step()
    assert world.got == ["b", "c"], "the oldest went"
    assert controller.status().message == "in order"


def test_what_the_collector_rejects_is_dropped_and_counted() -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.begun, world.done, world.problem = ["a"], {"a"}, RejectedError("no")
    controller.step()
    status = controller.status()
    assert (status.ok, status.waiting, status.dropped, status.failed) == (True, 0, 1, 0)


def test_a_boot_that_cannot_be_read_keeps_no_other_back() -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.begun, world.done = ["unreadable", "a"], {"a"}
    controller.step()
    assert controller.status().message == "traces do not go to the collector: boot unreadable cannot be read"
    controller.step()
    assert (world.got, controller.status().open) == (["a"], 1)


def test_what_was_read_is_exported_also_while_nothing_more_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.begun, world.done, world.problem = ["a"], {"a"}, CannotTellError("refused")
    controller.step()
    monkeypatch.setattr(world, "started", lambda *_: (_ for _ in ()).throw(CannotTellError("state.db is damaged")))
    controller.step()
    assert controller.status().message == "traces do not go to the collector: refused"
    world.now, world.problem = 100, None
    controller.step()
    assert (world.got, controller.status().message) == (["a"], "traces do not go to the collector: state.db is damaged")


def test_a_boot_that_was_forgotten_before_it_was_exported_is_counted() -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.begun = ["gone"]
    controller.step()
    assert (controller.status().open, controller.status().dropped) == (0, 1)


def test_a_boot_that_became_ready_is_looked_at_sooner() -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.begun = ["a"]
    controller.step()
    world.begun, world.soon, world.done = ["a", "a"], 1.0, {"a"}
    controller.step()
    world.now = 1.0
    controller.step()
    assert world.got == ["a"], "before the five seconds are over after which it would have been"


def test_what_did_not_change_is_not_written_again_but_what_could_not_be() -> None:
    world = World()
    controller = world.controller()
    for world.now in (10, 20, 30):
        controller.step()
    assert world.writes == 1
    world.begun, world.full = ["a"], True
    for world.now in (40, 50):
        controller.step()
    assert world.writes == 3


def test_a_stop_writes_down_how_far_it_came() -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.begun, world.done = ["a"], {"a"}
    controller.step()
    assert world.kept == Position(feed=0), "it was written a moment ago"
    controller.start()
    controller.stop()
    assert world.kept == Position(feed=1)


def test_a_turn_that_does_not_end_is_said() -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.now = 180
    assert controller.status().ok
    world.now = 190
    assert controller.status().message == "traces do not go to the collector: nothing has moved for 190 s"
    controller.step()
    assert controller.status().message == "in order"


def test_a_defect_of_one_batch_keeps_no_other_back() -> None:
    world = World()
    controller = world.controller()
    controller.step()
    world.begun, world.done, world.problem = ["a"], {"a", "b"}, ValueError("nobody foresaw this")
    controller.step()
    assert (controller.status().dropped, controller.status().message) == (
        1,
        "traces do not go to the collector: a defect; see the log",
    )
    world.begun, world.problem = ["a", "b"], None
    controller.step()
    assert world.got == ["b"]


def test_boots_under_way_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST_OPEN", 2)
    world = World()
    controller = world.controller()
    controller.step()
    world.begun = ["a", "b", "c"]
    controller.step()
    assert (controller.status().open, controller.status().dropped) == (2, 1)


def test_what_is_sent_is_otlp_with_the_headers_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=somebody")
    file = tmp_path / "headers"
    file.write_text("Authorization: Bearer abc\n\nX-Scope-OrgID: 7\n")
    file.chmod(0o600)
    before = apply(None, script("gpu-001", 0))
    with receiving() as receiver:
        place = Traces(endpoint=receiver.url, headers_file=file)
        OtlpCollector(place, "lab").export([boot_trace(booted((Phase.FAILED, 900), detail="no route"), None, before)])
    [(path, headers)] = receiver.asked
    assert path == "/v1/traces"
    assert (headers["Authorization"], headers["X-Scope-OrgID"]) == ("Bearer abc", "7")
    [whole] = receiver.spans
    assert (whole.trace_id.hex(), whole.name, whole.status.message) == (BOOT.replace("-", ""), "boot", "no route")
    assert said(whole)["netboot.machine"] == "gpu-001"
    [link] = whole.links
    assert link.trace_id.hex() == before.boot.replace("-", "")
    assert link.span_id == span_id(before.boot, ROOT).to_bytes(8)
    [resource] = receiver.resources
    assert {key: resource[key] for key in ("service.name", "netboot.site")} == {
        "service.name": "netboot",
        "netboot.site": "lab",
    }
    assert "host.name" not in resource


def test_one_boot_is_the_same_trace_to_the_sdk_in_memory_and_over_otlp() -> None:
    before = apply(None, script("gpu-001", 0))
    ended = boot_trace(booted((Phase.SWITCHED, 300), (Phase.FAILED, 900), detail="no route"), None, before)
    memory = InMemorySpanExporter()
    with receiving() as receiver:
        collector = OtlpCollector(Traces(endpoint=receiver.url), "lab")
        for span in collector.spans([ended]):
            SimpleSpanProcessor(memory).on_end(span)  # drops what is not sampled, or has no context
        collector.export([ended])
    kept = memory.get_finished_spans()
    assert len(kept) == len(ended.spans) > 2
    assert [in_short(span) for span in kept] == [
        {
            "ids": (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex()),
            "name": span.name,
            "at": (span.start_time_unix_nano, span.end_time_unix_nano),
            "attributes": said(span),
            "failed": span.status.message,
            "events": [(each.name, each.time_unix_nano) for each in span.events],
            "links": [(each.trace_id.hex(), each.span_id.hex()) for each in span.links],
        }
        for span in receiver.spans
    ]
    assert {span.context.trace_id for span in kept} == {trace_id(BOOT)}
    [whole] = [span for span in kept if span.parent is None]
    assert {span.parent.span_id for span in kept if span.parent is not None} == {whole.context.span_id}
    assert json.loads(whole.to_json())["status"] == {"status_code": "ERROR", "description": "no route"}


def in_short(span: ReadableSpan) -> dict[str, object]:
    """A span of the SDK's, as the receiver has one that came."""
    parent = f"{span.parent.span_id:016x}" if span.parent is not None else ""
    return {
        "ids": (f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}", parent),
        "name": span.name,
        "at": (span.start_time, span.end_time),
        "attributes": dict(span.attributes or {}),
        "failed": span.status.description or "",
        "events": [(each.name, each.timestamp) for each in span.events],
        "links": [(f"{each.context.trace_id:032x}", f"{each.context.span_id:016x}") for each in span.links],
    }


@pytest.mark.parametrize(
    ("status", "answer", "words", "kind"),
    [
        (503, b"", "it answers 503, and not 200", CannotTellError),
        (302, b"", "it answers 302, and not 200", CannotTellError),
        (401, b"", "it answers 401, and not 200", CannotTellError),
        (200, b"<html>", "it answers 200 and something that is not OTLP: is it a collector?", CannotTellError),
        (400, b"", "the collector answers 400", RejectedError),
        (200, rejecting(2), "the collector rejected 2 of their spans", RejectedError),
    ],
)
def test_an_answer_that_is_no_yes(status: int, answer: bytes, words: str, kind: type[Exception]) -> None:
    with receiving() as receiver:
        receiver.status, receiver.answer, receiver.headers = status, answer, {"Location": f"{receiver.url}/elsewhere"}
        with pytest.raises(kind) as caught:
            OtlpCollector(Traces(endpoint=receiver.url), "lab").export([boot_trace(booted(), None)])
    assert str(caught.value) == words
    assert len(receiver.asked) == 1


def test_an_answer_that_comes_a_byte_at_a_time_is_late() -> None:
    over = Event()

    def trickle(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not over.wait(0.05):
                connection.sendall(b"\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=trickle, args=[listener], daemon=True)
        thread.start()
        place = Traces(endpoint=f"http://127.0.0.1:{listener.getsockname()[1]}", deadline_seconds=0.5)
        try:
            with pytest.raises(CannotTellError, match=r"^it did not answer within 0\.5 s$"):
                OtlpCollector(place, "lab").export([boot_trace(booted(), None)])
        finally:
            over.set()
            thread.join(60)


NO_HEADER = "of {path} is no header: write `Name: value`, each once"


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("A: b\n", 0o644, "others can read traces.headers_file {path} (mode 0644): `chmod 600 {path}`"),
        ("A: b\nno header\n", 0o600, f"traces.headers_file: line 2 {NO_HEADER}"),
        ("Content-Length: 3\n", 0o600, f"traces.headers_file: line 1 {NO_HEADER}"),
        ("A: b\na: c\n", 0o600, f"traces.headers_file: line 2 {NO_HEADER}"),
    ],
)
def test_a_file_of_headers_that_is_not_as_it_should_be(tmp_path: Path, text: str, mode: int, words: str) -> None:
    path = tmp_path / "headers"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(CannotTellError) as caught:
        read_headers(path)
    assert str(caught.value) == words.format(path=path)


@given(st.binary(max_size=200))
def test_any_file_of_headers_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any-headers"
    path.write_bytes(data)
    path.chmod(0o600)
    try:
        headers = read_headers(path)
    except CannotTellError:
        return
    assert all(value.isprintable() and value == value.strip(" ") for value in headers.values())


def test_headers_do_not_go_where_everybody_reads_them(tmp_path: Path) -> None:
    make_site(tmp_path / "site")
    file = tmp_path / "site" / "netboot.yaml"
    text = file.read_text()
    file.write_text(text + "traces: {endpoint: 'http://192.0.2.1:4318', headers_file: secrets/h}\n")
    with pytest.raises(FaultsError, match="headers_file wants an https:// endpoint: everybody on the way would read"):
        load_config(file)
    file.write_text(text + "traces: {endpoint: 'http://127.0.0.1:4318', headers_file: secrets/h}\n")
    found = load_config(file).traces
    assert found is not None
    assert (found.headers_file, found.port) == (tmp_path / "site" / "secrets" / "h", 4318)


def test_a_boot_is_looked_at_five_seconds_after_it_is_ready_and_again_as_it_has_been_in_service_for_five() -> None:
    fed = [
        FeedEntry(id=number, at_ms=AT, boot=BOOT, machine="gpu-001", phase=phase, source=source_of(phase))
        for number, phase in enumerate((Phase.SCRIPT_SERVED, Phase.BOOTED, Phase.READY), 1)
    ]
    trace, seen = booted((Phase.READY, 9_000)), {BOOT: START - 4_000}
    states = SimpleNamespace(
        feed=lambda after, _limit: fed[after or 0 :], boot=lambda _: trace, boots=lambda *_: [trace]
    )
    history = SimpleNamespace(in_service=lambda _: seen)
    ended = EndedBoots(cast(Any, states), cast(Any, history), cast(Any, None), Clock())
    assert ended.started(0, 9) == (3, 3, {BOOT: 5.0})
    fed.pop()
    assert ended.started(0, 9) == (2, 2, {BOOT: None})
    assert ended.ended(BOOT) == (None, 1.0)
    seen[BOOT] = START - 5_000
    assert ended.ended(BOOT)[0] == boot_trace(trace, START - 5_000)

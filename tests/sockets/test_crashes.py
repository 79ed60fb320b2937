"""What is found of kernels that crashed: taken from machines, shown to operators with both boots that it concerns."""

import json
from pathlib import Path

import pytest

from netboot.boot import ingest
from netboot.clock import rfc3339
from netboot.lifecycle.events import LONGEST_CRASH, AnyRecord, CrashRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from tests.commands import Run
from tests.records import START, boot_id, event, found_crash, script
from tests.sockets.api import NOW, Api
from tests.sockets.boot_server import MAC1, MAC2, RunningBootServer, serve

FIRST, SECOND, _CLAIM, FINDER = (boot_id("gpu-001", number) for number in (1, 2, 3, 4))
PANIC = "[   41.1] sysrq: Trigger a crash\n[   41.2] Kernel panic - not syncing: sysrq triggered crash\n"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """Of gpu-001 boots 1, 2 and 4, which began a second apart, and a claim between the last two."""
    api = Api(tmp_path)
    booted = [event("gpu-001", number, Phase.BOOTED) for number in (1, 2, 4)]
    crashes = [found_crash("gpu-001", 4, 3_500, PANIC), found_crash("gpu-001", 4, 500, "of long ago\n")]
    records: list[AnyRecord] = [*(script("gpu-001", number) for number in (1, 2, 3, 4)), *booted, *crashes]
    api.states.take(Batch("boot-0.db", 1, len(records), records))
    return api


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("netboot.cli.times.time", lambda: NOW / 1000)
    return run


def test_a_crash_is_of_the_last_boot_that_began_before_it_and_with_the_one_that_found_it(api: Api) -> None:
    came = {"at": rfc3339(START + 4_400), "peer": "192.0.2.7", "found_by": FINDER}
    panic = {**came, "crashed_at": rfc3339(START + 3_500), "text": PANIC, "boot": SECOND}
    old = {**came, "crashed_at": rfc3339(START + 500), "text": "of long ago\n", "boot": None}
    shown = [api.get(f"/v1/boots/{boot}").json for boot in (FIRST, SECOND, _CLAIM, FINDER)]
    assert [one["crashes"] for one in shown] == [[], [panic], [], [old, panic]]
    listed = api.get("/v1/boots?machine=gpu-001").json["boots"]
    assert [one["found_crashes"] for one in listed] == [2, 0, 0, 0]
    assert "Kernel panic" not in json.dumps(listed), "texts are long: of one boot alone"


def test_the_operator_reads_it_with_the_boot_that_crashed(run: Run) -> None:
    out = run("boot", "show", SECOND).out
    lines = "".join(f"  {line}\n" for line in PANIC.splitlines())
    assert out.endswith(
        f"\nits kernel crashed at 2023-11-14 22:13:23Z by its clock; boot {FINDER} found the end of its log, "
        f"as 192.0.2.7 reported:\n{lines}"
    )


def test_the_boot_that_found_it_says_whose_it_was(run: Run) -> None:
    out = run("boot", "show", FINDER).out
    assert (
        "\na kernel, of which boot cannot be told, crashed at 2023-11-14 22:13:20Z by its clock; "
        "this boot found the end of its log, as 192.0.2.7 reported:\n  of long ago\n"
        f"\nthe kernel of boot {SECOND} crashed at 2023-11-14 22:13:23Z by its clock; "
        "this boot found the end of its log, as 192.0.2.7 reported:\n  [   41.1] sysrq"
    ) in out
    (row,) = [line for line in run("boot", "list").out.splitlines() if line.startswith(FINDER)]
    assert row.endswith("it found a crash: `netboot boot show`")


def test_a_crash_whose_text_cannot_be_read_is_told_still(run: Run, api: Api) -> None:
    (panic,) = [record for record in api.states.crashes if record.text == PANIC]
    api.states.crashes.remove(panic)
    shown = api.get(f"/v1/boots/{SECOND}").json
    assert [(one["crashed_at"], one["text"]) for one in shown["crashes"]] == [(rfc3339(START + 3_500), None)]
    assert run("boot", "show", SECOND).out.endswith(
        f"; boot {FINDER} found the end of its log, as 192.0.2.7 reported:\n"
        "  it cannot be read (any more): the service's log says why\n"
    )


def path_of(boot: str) -> str:
    return f"/v1/boots/{boot}/crashes"


def body(**fields: object) -> bytes:
    return json.dumps({"mac": MAC1, "crashed_ms": START, "text": PANIC, **fields}).encode()


def test_a_crash_is_acknowledged_when_it_is_durable(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        longest = '"' * LONGEST_CRASH
        for text in (PANIC, longest):
            answer = await server.ask(path_of(boot), "POST", body(text=text))
            assert (answer.status, answer.body) == (204, b"")
        first, second = server.records()
        assert first == CrashRecord(
            at_ms=first.at_ms, boot=boot, machine="gpu-001", crashed_ms=START, text=PANIC, peer="127.0.0.1"
        )
        assert second.text == longest
        assert server.internals.counters.events == {"accepted": 2, "refused": 0, "limited": 0}

    serve(tmp_path, use)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        body(text="\x1b[2J"),
        body(text="\r"),
        body(text="é"),
        body(text="x" * (LONGEST_CRASH + 1)),
        body(crashed_ms=-1),
        body(crashed_ms=None),
        body(more="x"),
        body(phase="Booted"),
    ],
)
def test_what_is_no_crash_report_or_not_safe_to_show_is_refused(tmp_path: Path, sent: bytes) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(path_of(server.boot_of("gpu-001")), "POST", sent)
        assert (answer.status, answer.body[:19]) == (400, b"not a crash report:")
        assert server.records() == []
        assert server.internals.counters.events == {"accepted": 0, "refused": 1, "limited": 0}

    serve(tmp_path, use)


def test_a_crash_of_another_machine_s_boot_or_too_long_is_refused(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        answer = await server.ask(path_of(boot), "POST", body(mac=MAC2))
        assert (answer.status, answer.body) == (404, b"no such boot of this machine; see `netboot boot list`\n")
        head = f"POST {path_of(boot)} HTTP/1.1\r\nHost: x\r\nContent-Length: 40961\r\n\r\n"
        answer = await server.send(head.encode())
        assert (answer.status, answer.body) == (413, b"a crash report has at most 40960 bytes: send less\n")
        assert server.records() == []

    serve(tmp_path, use)


def test_one_boot_cannot_fill_the_journal_with_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven at once, and one more in four seconds."""
    monkeypatch.setattr(ingest, "HOLD_SECONDS", 0.0)

    async def use(server: RunningBootServer) -> None:
        boot, sent = server.boot_of("gpu-001"), body(text="x" * LONGEST_CRASH)
        statuses = [(await server.ask(path_of(boot), "POST", sent)).status for _ in range(12)]
        accepted, limited = statuses.count(204), statuses.count(429)
        assert (statuses[:7], accepted + limited) == ([204] * 7, 12)
        assert limited > 0
        assert server.internals.counters.events == {"accepted": accepted, "refused": 0, "limited": limited}

    serve(tmp_path, use)

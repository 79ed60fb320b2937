"""The last lines of a boot's console: taken from machines, shown to operators where they look for why it is late."""

import json
import time
from pathlib import Path

import pytest

from netboot.boot import ingest
from netboot.clock import rfc3339
from netboot.lifecycle.events import LONGEST_CONSOLE, AnyRecord, ConsoleRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from tests.commands import Run
from tests.records import START, boot_id, console, event, script
from tests.sockets.api import NOW, Api
from tests.sockets.boot_server import MAC1, MAC2, RunningBootServer, serve

OVER, LATE, CLAIM = (boot_id("gpu-001", number) for number in (1, 2, 3))
LINES = "[   41.1] mlx5_core 0000:41:00.0: link down\n[   41.2] netboot: no link\n"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """Of gpu-001 a boot that came to its end, one that did not, and a claim; the first two sent their last lines."""
    api = Api(tmp_path)
    records: list[AnyRecord] = [script("gpu-001", number) for number in (1, 2, 3)]
    records += [event("gpu-001", 1, Phase.ATTESTED), event("gpu-001", 1, Phase.READY, 900)]
    records += [console("gpu-001", 1, text="up\n"), event("gpu-001", 2, Phase.INITRD_STARTED)]
    records += [console("gpu-001", 2, 41_200, LINES), console("gpu-001", 2, 11_200, "of before\n")]
    api.states.take(Batch("boot-0.db", 1, len(records), records))
    return api


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("netboot.cli.times.time", lambda: NOW / 1000)
    return run


def test_the_newest_is_with_its_boot_and_of_lists_that_there_is_one(api: Api) -> None:
    shown = [api.get(f"/v1/boots/{boot}").json["console"] for boot in (OVER, LATE, CLAIM)]
    said = {"at": rfc3339(START + 43_200), "uptime_ms": 41_200, "peer": "192.0.2.7", "text": LINES}
    assert shown == [{"at": rfc3339(START + 1_700), "uptime_ms": 700, "peer": "192.0.2.7", "text": "up\n"}, said, None]
    listed = api.get("/v1/boots?machine=gpu-001").json["boots"]
    when = {one["boot"]: one["console_at"] for one in listed}
    assert when == {CLAIM: None, LATE: rfc3339(START + 43_200), OVER: rfc3339(START + 1_700)}
    assert "mlx5" not in json.dumps(listed), "texts are long: of one boot alone"
    late = next(one for one in listed if one["boot"] == LATE)
    assert late["last_at"] == rfc3339(START + 2_500), "that it sends its console is no step of it"


def test_the_operator_reads_it_below_the_phases_and_is_led_there_by_explain(run: Run) -> None:
    lines = "".join(f"  {line}\n" for line in LINES.splitlines())
    assert run("boot", "show", LATE).out.endswith(
        "\nthe last lines of its console, at 2023-11-14 22:14:03Z, 41.2 s after its kernel started, "
        f"as 192.0.2.7 reported:\n{lines}"
    )
    assert json.loads(run("boot", "show", LATE, "--output", "json").out)["console"]["text"] == LINES
    hints = [line for line in run("explain", "gpu-001").out.splitlines() if line.startswith("  console ")]
    told = f"  console `netboot boot show {LATE}` has its last lines, of 56 s ago"
    assert hints == [told], "and none of the one that is over"


def test_one_that_is_not_kept_any_more_is_told_still(run: Run, api: Api) -> None:
    del api.states.consoles[LATE]
    shown = api.get(f"/v1/boots/{LATE}").json["console"]
    assert shown == {"at": rfc3339(START + 43_200), "uptime_ms": 41_200, "peer": "192.0.2.7", "text": None}
    assert run("boot", "show", LATE).out.endswith(
        ", as 192.0.2.7 reported:\n"
        "  they are longer ago than is kept, or cannot be read: then the service's log says why\n"
    )


def path_of(boot: str) -> str:
    return f"/v1/boots/{boot}/console"


def body(**fields: object) -> bytes:
    return json.dumps({"mac": MAC1, "uptime_ms": 41_200, "text": LINES, **fields}).encode()


def test_what_a_machine_sends_is_acknowledged_when_it_is_durable(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        longest = '"' * LONGEST_CONSOLE
        for sent in (body(), body(mac=None, machine="gpu-001", text=longest)):
            answer = await server.ask(path_of(boot), "POST", sent)
            assert (answer.status, answer.body) == (204, b"")
        first, second = server.records()
        known = {"at_ms": first.at_ms, "boot": boot, "machine": "gpu-001", "peer": "127.0.0.1"}
        assert first == ConsoleRecord(uptime_ms=41_200, text=LINES, **known)
        assert second.text == longest
        assert server.internals.counters.events == {"accepted": 2, "refused": 0, "limited": 0}

    serve(tmp_path, use)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        body(text=""),
        body(text=None),
        body(text="\x1b[2J"),
        body(text="\r"),
        body(text="\t"),
        body(text="é"),
        body(text="x" * (LONGEST_CONSOLE + 1)),
        body(uptime_ms=-1),
        body(uptime_ms=None),
        body(uptime_ms=1.5),
        body(crashed_ms=1),
    ],
)
def test_what_is_no_console_report_or_not_safe_to_show_is_refused(tmp_path: Path, sent: bytes) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(path_of(server.boot_of("gpu-001")), "POST", sent)
        assert (answer.status, answer.body[:21]) == (400, b"not a console report:")
        assert server.records() == []
        assert server.internals.counters.events == {"accepted": 0, "refused": 1, "limited": 0}

    serve(tmp_path, use)


def test_of_another_machine_s_boot_or_too_long_it_is_refused(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        for path, sent in ((path_of(boot), body(mac=MAC2)), (path_of(boot_id("gpu-001", 1)), body())):
            answer = await server.ask(path, "POST", sent)
            assert (answer.status, answer.body) == (404, b"no such boot of this machine; see `netboot boot list`\n")
        head = f"POST {path_of(boot)} HTTP/1.1\r\nHost: x\r\nContent-Length: 10241\r\n\r\n"
        answer = await server.send(head.encode())
        assert (answer.status, answer.body) == (413, b"a console report has at most 10240 bytes: send less\n")
        assert server.records() == []

    serve(tmp_path, use)


def test_one_boot_cannot_fill_the_journal_with_its_console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty-eight at once, and one more each second."""
    monkeypatch.setattr(ingest, "HOLD_SECONDS", 0.0)

    async def use(server: RunningBootServer) -> None:
        boot, sent = server.boot_of("gpu-001"), body(text="x" * LONGEST_CONSOLE)
        statuses, began = list[int](), time.monotonic()
        while 429 not in statuses and len(statuses) < 200:  # soon, unless each takes nearly a second
            statuses.append((await server.ask(path_of(boot), "POST", sent)).status)
        accepted, most = len(statuses) - 1, 29 + time.monotonic() - began
        assert (28 <= accepted <= most, statuses) == (True, [*[204] * accepted, 429])
        assert server.internals.counters.events == {"accepted": accepted, "refused": 0, "limited": 1}

    serve(tmp_path, use)

"""What a kernel left when it crashed: sent in order, read by the service's own model, removed when it is taken."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from images.build.initrd import STAGE
from netboot.lifecycle.events import LONGEST_CRASH, CrashReport
from tests.tools.images.boot_stage import Stage
from tests.tools.images.origin import Origin, serving

pytestmark = pytest.mark.tools

SENT = "/v1/boots/01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f/crashes"
WHEN = 1_700_000_000
LAST = "[   41.2] Kernel panic - not syncing: sysrq triggered crash\n"


@pytest.fixture
def service() -> Iterator[Origin]:
    with serving(Origin()) as origin:
        yield origin


def left(stage: Stage, name: str, head: str, text: str | bytes, seconds: int = WHEN) -> Path:
    """An entry as the kernel shows it (fs/pstore/platform.c): a line that says which piece it is, then the piece."""
    folder = stage.folder / "pstore"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(f"{head}\n".encode() + (text.encode() if isinstance(text, str) else text))
    os.utime(path, (seconds, seconds))
    return path


def deliver(stage: Stage, service: Origin) -> list[str]:
    """One attempt; what the stage said."""
    return stage.sh("deliver_crashes", REPORT=service.url, PSTORE=str(stage.folder / "pstore")).stdout.splitlines()


def reports(service: Origin) -> list[CrashReport]:
    assert {path for path, _ in service.posted} <= {SENT}
    return [CrashReport.model_validate_json(body) for _, body in service.posted]


def entries(stage: Stage) -> list[str]:
    return sorted(path.name for path in (stage.folder / "pstore").iterdir())


def test_the_pieces_of_a_log_are_one_text_and_go_when_the_service_has_it(stage: Stage, service: Origin) -> None:
    left(stage, "dmesg-erst-72", "Panic#1 Part1", LAST)
    left(stage, "dmesg-erst-73", "Panic#1 Part10", "[    0.1] first\n", WHEN + 1)
    left(stage, "dmesg-erst-74", "Panic#1 Part2", '[   41.1] a "word", a \\ and a\ttab\n')
    said = deliver(stage, service)
    (report,) = reports(service)
    assert report == CrashReport(
        mac="52:54:00:12:34:56",
        machine="node-1",
        crashed_ms=report.crashed_ms,
        text='[    0.1] first\n[   41.1] a "word", a \\ and a tab\n' + LAST,
    )
    assert abs(report.crashed_ms - WHEN * 1000) <= 1000
    assert entries(stage) == []
    names = "dmesg-erst-73 dmesg-erst-74 dmesg-erst-72"
    assert said == [f"netboot: the service has the end of the log of a kernel that crashed: {names}"]


def test_each_crash_is_a_report_the_earliest_first(stage: Stage, service: Origin) -> None:
    left(stage, "dmesg-efi-4", "Panic#1 Part1", "later\n", WHEN + 600)
    left(stage, "dmesg-efi-3", "Panic#1 Part1", "early\n")
    left(stage, "dmesg-efi-1", "Panic#2 Part1", "its panic\n", WHEN + 300)
    left(stage, "dmesg-efi-2", "Oops#1 Part1", "its oops\n", WHEN + 299)
    deliver(stage, service)
    assert [report.text for report in reports(service)] == ["early\n", "its oops\n", "its panic\n", "later\n"]
    assert [report.crashed_ms for report in reports(service)] == [(WHEN + after) * 1000 for after in (0, 299, 300, 600)]


@pytest.mark.parametrize("status", [429, 503])
def test_what_cannot_be_sent_now_stays_in_the_firmware(stage: Stage, service: Origin, status: int) -> None:
    left(stage, "dmesg-erst-1", "Panic#1 Part1", LAST)
    left(stage, "dmesg-erst-2", "Panic#1 Part1", LAST, WHEN + 60)
    service.post_statuses = [status]
    assert deliver(stage, service) == []
    assert (len(service.posted), entries(stage)) == (1, ["dmesg-erst-1", "dmesg-erst-2"])
    deliver(stage, service)
    assert entries(stage) == []


def test_what_a_service_refuses_stays_too_and_stops_no_other(stage: Stage, service: Origin) -> None:
    """One of before that has no such address."""
    left(stage, "dmesg-erst-1", "Panic#1 Part1", LAST)
    left(stage, "dmesg-erst-2", "Panic#1 Part1", LAST, WHEN + 60)
    service.post_statuses = [404]
    first, *_ = deliver(stage, service)
    assert first == (
        "netboot: the service refuses the end of a log of 2023-11-14 22:13:20: "
        "wget: server returned error: HTTP/1.1 404 Not Found"
    )
    assert entries(stage) == ["dmesg-erst-1"]


def test_what_is_no_log_of_a_crash_or_cannot_be_read_stays(stage: Stage, service: Origin) -> None:
    left(stage, "console-ramoops-0", "Panic#1 Part1", "not this one\n")
    left(stage, "dmesg-erst-1.enc.z", "\x1f\x8b\x00", b"\x00\xff")
    left(stage, "dmesg-efi-2", "", "no head\n")
    assert (deliver(stage, service), service.posted, len(entries(stage))) == ([], [], 3)


def test_a_machine_without_such_firmware_sends_nothing(stage: Stage, service: Origin) -> None:
    assert (deliver(stage, service), service.posted) == ([], [])
    assert list(stage.run_folder.glob("*crash*")) == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_whatever_the_kernel_said_can_be_taken(stage: Stage, service: Origin, text: bytes) -> None:
    left(stage, "dmesg-erst-1", "Panic#1 Part1", text)
    service.posted.clear()
    deliver(stage, service)
    plain = "".join(chr(c) for c in text.replace(b"\t", b" ") if c == 10 or 32 <= c <= 126)
    assert [report.text for report in reports(service)] == ["".join(f"{line}\n" for line in lines(plain))]
    assert entries(stage) == []


def lines(text: str) -> list[str]:
    """Its lines, the last also where it has no end."""
    return text.removesuffix("\n").split("\n") if text else []


def test_of_a_text_that_is_too_long_the_end_is_sent(stage: Stage, service: Origin) -> None:
    left(stage, "dmesg-erst-1", "Panic#1 Part1", '"' * 20_000 + LAST)
    deliver(stage, service)
    ((_, body),) = service.posted
    (report,) = reports(service)
    assert (report.text[-len(LAST) :], len(report.text)) == (LAST, 16_000)
    assert len(report.text) <= LONGEST_CRASH and len(body) < 33_000


def test_firmware_that_does_not_forget_is_said(stage: Stage, service: Origin) -> None:
    left(stage, "dmesg-efi-1", "Panic#1 Part1", LAST)
    done = stage.sh("rm() { false; }; deliver_crashes", REPORT=service.url, PSTORE=str(stage.folder / "pstore"))
    assert done.stdout.splitlines() == [
        "netboot: the service has the end of the log of a kernel that crashed: dmesg-efi-1",
        "netboot: its firmware does not forget it: each boot will send it again",
    ]


def test_the_root_sends_what_the_initrd_could_not(stage: Stage, service: Origin) -> None:
    """Also where a unit before was ended while it delivered."""
    for lock in ("delivering", "delivering-crashes"):
        (stage.run_folder / lock).mkdir()
    left(stage, "dmesg-erst-1", "Panic#1 Part1", LAST)
    here, boot = stage.run_folder, SENT.split("/")[3]
    script = (STAGE.parent / "root/usr/lib/netboot/tell.sh").read_text().replace("/run/netboot", str(here))
    (here / "boot.env").write_text(f"BOOT={boot}\nREPORT={service.url}\nMAC=52:54:00:12:34:56\nNAME=node-1\n")
    stage.sh('cp "$LIB/words.sh" "$LIB/report.sh" "$LIB/crash.sh" "$RUN/" && cp "$BUSYBOX" "$RUN/busybox"')
    (stage.folder / "tell.sh").write_text(f"PSTORE={stage.folder}/pstore\n{script}")
    stage.sh('exec "$BUSYBOX" sh tell.sh Switched')
    assert sorted(path for path, _ in service.posted) == [SENT, SENT.replace("crashes", "events")]
    assert entries(stage) == []

"""The end of the console of a boot that fails or is late: sent whole, once, to whom events go, and never in the way."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from images.build.initrd import STAGE
from tests.processes import wait_for
from tests.tools.images.boot_stage import Stage
from tests.tools.images.origin import Origin, serving

pytestmark = pytest.mark.tools

BOOT = "01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f"
SENT = f"/v1/boots/{BOOT}/console"
LOG = 'dmesg() { cat log; }\nconsole() { send_console dmesg; echo "$?"; }\n'
"""The kernel's log is a file; one attempt, and its status."""
ROOT = STAGE.parent / "root/usr/lib/netboot/console.sh"
REMOTE = "/lib/systemd/systemd-journal-remote"
SYSTEMCTL = """\
#!/bin/sh
case "$*" in
  "--quiet is-active "*) echo "$3" >>asked; [ -e "$3" ] ;;
  "--plain --no-legend --no-pager list-jobs") echo "7 data.mount start running"; echo "2 a.target start waiting" ;;
esac
"""
ENTRY = """\
__REALTIME_TIMESTAMP={at}000000
__MONOTONIC_TIMESTAMP={at}000000
_BOOT_ID=0123456789abcdef0123456789abcdef
_HOSTNAME=node-1
MESSAGE={message}
{fields}

"""


@pytest.fixture
def service() -> Iterator[Origin]:
    with serving(Origin()) as origin:
        yield origin


def log(stage: Stage, text: str | bytes) -> None:
    (stage.folder / "log").write_bytes(text.encode() if isinstance(text, str) else text)


def sent(service: Origin) -> list[str]:
    """The bodies, without what differs from run to run."""
    assert {path for path, _ in service.posted} <= {SENT}
    return [re.sub(r'(?<="uptime_ms":)[1-9][0-9]*,', "N,", body.decode()) for _, body in service.posted]


def body(text: str) -> str:
    """As it is sent; `text`: within a string of JSON."""
    return f'{{"mac":"52:54:00:12:34:56","machine":"node-1","uptime_ms":N,"text":"{text}"}}'


def test_the_console_whole(stage: Stage, service: Origin) -> None:
    log(stage, b'[    0.1] Linux\n[    1.2] a "word", a \\ and a\ttab, \x1b[31mred\xff\r\n[    1.3] no end')
    assert stage.sh(f"{LOG}console", REPORT=service.url).stdout == "0\n"
    text = r"[    0.1] Linux\n[    1.2] a \"word\", a \\ and a tab, [31mred\n[    1.3] no end\n"
    assert sent(service) == [body(text)]


def test_a_machine_of_which_nothing_is_known(stage: Stage, service: Origin) -> None:
    log(stage, "one\n")
    stage.sh(f"{LOG}console", REPORT=service.url, MAC="", NAME="")
    assert sent(service) == ['{"mac":null,"machine":null,"uptime_ms":N,"text":"one\\n"}']


def test_the_kernels_own_log_by_busybox(stage: Stage, service: Origin) -> None:
    said = stage.sh("dmesg | tail -n 1").stdout.rstrip("\n").replace("\\", r"\\").replace('"', r"\"")
    stage.sh("send_console dmesg", REPORT=service.url)
    (whole,) = sent(service)
    assert said in whole


def test_of_a_text_that_is_too_long_the_end_is_sent(stage: Stage, service: Origin) -> None:
    log(stage, '"' * 5_000 + "\nlast words")
    stage.sh(f"{LOG}console", REPORT=service.url)
    assert sent(service) == [body(r"\"" * 3_989 + r"\nlast words\n")]


def test_what_has_not_changed_is_not_sent_again(stage: Stage, service: Origin) -> None:
    log(stage, "one\n")
    stage.sh(f"{LOG}console; console; echo two >>log; console; console", REPORT=service.url)
    assert sent(service) == [body(r"one\n"), body(r"one\ntwo\n")]


def test_an_empty_log_is_not_sent(stage: Stage, service: Origin) -> None:
    log(stage, b"\x00\xff")
    assert stage.sh(f"{LOG}console", REPORT=service.url).stdout == "0\n"
    assert sent(service) == []


@pytest.mark.parametrize(("status", "words"), [(404, "Not Found"), (400, "Bad Request")])
def test_a_service_that_does_not_take_it_is_named_once(stage: Stage, service: Origin, status: int, words: str) -> None:
    """One of before has no such address. What it refused is not sent again; what is new is, and no line says so. Also
    where what is said goes to a further console."""
    log(stage, "one\n")
    service.post_statuses = [status, status]
    script = f"{LOG}say one; console; console; echo two >>log; console; echo three >>log; console"
    done = stage.sh(script, REPORT=service.url, CONSOLES="null")
    assert done.stdout == (
        "netboot: one\nnetboot: the service refuses the end of the console: "
        f"wget: server returned error: HTTP/1.1 {status} {words}\n0\n0\n0\n0\n"
    )
    assert sent(service) == [body(r"one\n"), body(r"one\ntwo\n"), body(r"one\ntwo\nthree\n")]


@pytest.mark.parametrize("status", [408, 429, 503])
def test_the_next_takes_the_place_of_what_could_not_be_sent(stage: Stage, service: Origin, status: int) -> None:
    log(stage, "one\n")
    service.post_statuses = [status, status]
    done = stage.sh(f"{LOG}console; console; echo two >>log; console; console", REPORT=service.url)
    assert done.stdout == "0\n0\n0\n0\n"
    assert sent(service) == [body(r"one\n"), body(r"one\n"), body(r"one\ntwo\n")]
    assert list((stage.run_folder / "events").iterdir()) == []


def test_a_service_that_is_not_there_stops_nothing(stage: Stage) -> None:
    log(stage, "one\n")
    assert stage.sh(f"{LOG}console; echo goes on", REPORT="http://127.0.0.1:9").stdout == "0\ngoes on\n"


def beside(stage: Stage, script: str, *holds: Callable[[], bool], **variables: str) -> str:
    """Run `script`, which goes on from each `step` when the next of `holds` does, and after the last ends what it has
    in the background, as before the switch; what it said. Who is still there would keep its output open."""
    os.mkfifo(stage.folder / "go")
    go = os.open(stage.folder / "go", os.O_RDWR)  # both ends, for to open one waits for who opens the other
    ended = f"{LOG}step() {{ read -r _ <go; }}\n{script}\nstep\nend_jobs"
    with ThreadPoolExecutor(1) as beside_us:
        running = beside_us.submit(stage.sh, ended, **variables)
        try:
            for each in holds:
                wait_for(each)
                os.write(go, b"\n")
        finally:
            os.write(go, b"\n" * len(holds))
        said = running.result().stdout
    os.close(go)
    return said


def test_a_boot_that_takes_long_is_shown_to_the_service_that_the_bundle_names(stage: Stage, service: Origin) -> None:
    """Until there is one to that of the command line, and none is shown twice what is the same."""
    log(stage, "one\n")
    with serving(Origin()) as of_command_line:
        script = (
            f"REPORT={of_command_line.url}; watch_console; step\nREPORT={service.url}; watch_console; echo two >>log"
        )
        shown = (lambda: of_command_line.posted != [], lambda: service.posted != [])
        said = beside(stage, script, *shown, CONSOLE_FIRST="1")
        assert (said, sent(of_command_line), sent(service)) == ("", [body(r"one\n")], [body(r"one\ntwo\n")])


def test_a_failure_shows_the_console_at_once(stage: Stage, service: Origin) -> None:
    """And the steps go on meanwhile, also where nobody takes it."""
    log(stage, "one\n")
    script = 'watch_console; REASON="no root"; failures=0; failed; echo goes on'
    said = beside(stage, script, lambda: service.posted != [], REPORT=service.url, CONSOLE_FIRST="900", DEBUG="")
    assert said == "netboot: FAILED (1 of 10): no root\ngoes on\n"
    assert sent(service) == [body(r"one\n")]


def test_a_failure_before_there_is_a_network_waits_for_nothing(stage: Stage) -> None:
    assert stage.sh("show_console; echo $?; ls run").stdout == "0\nevents\nimage\n"


def test_who_was_to_show_it_may_be_gone(stage: Stage) -> None:
    """A pipe at whose other end nobody is stops no step."""
    assert stage.sh("mkdir run/console; mkfifo run/console/failed; show_console; echo goes on").stdout == "goes on\n"


def test_waits_grow_to_half_an_hour(stage: Stage) -> None:
    script = 'seconds=$CONSOLE_FIRST; for _ in 1 2 3 4 5 6 7 8; do echo "$seconds"; longer; done'
    assert stage.sh(script).stdout.split() == ["40", "80", "160", "320", "640", "1280", "1800", "1800"]


def test_a_machine_that_nobody_has_declared_shows_nothing(stage: Stage) -> None:
    (stage.folder / "cmdline").write_text("quiet netboot.discovery=1 systemd.unit=netboot-discovery.target\n")
    assert stage.sh("watch_console cmdline; show_console; ls run; jobs").stdout == "events\nimage\n"


def journal(stage: Stage, *said: tuple[str, str]) -> None:
    """The machine's, of messages with their fields, read by the real `journalctl`; and the units of its image."""
    folder = stage.folder / "journal"
    folder.mkdir()
    exported = "".join(ENTRY.format(at=1 + at, message=what, fields=fields) for at, (what, fields) in enumerate(said))
    writing = [REMOTE, f"--output={folder / 'system.journal'}", "-"]
    subprocess.run(writing, input=exported, capture_output=True, text=True, timeout=60, check=True)
    (stage.folder / "bin/journalctl").write_text(f'#!/bin/sh\nexec /usr/bin/journalctl --directory={folder} "$@"\n')
    (stage.folder / "bin/journalctl").chmod(0o755)
    (stage.folder / "bin/systemctl").write_text(SYSTEMCTL)
    (stage.folder / "bin/systemctl").chmod(0o755)
    (stage.folder / "system").mkdir()
    for name in ("netboot-booted.service", "netboot-switched.service"):
        (stage.folder / "system" / name).touch()


def of_root(stage: Stage, service: Origin, *, joins: bool = False) -> Path:
    """The root's program, with what the initrd leaves for it."""
    here = stage.run_folder
    (here / "boot.env").write_text(f"BOOT={BOOT}\nREPORT={service.url}\nMAC=52:54:00:12:34:56\nNAME=node-1\n")
    stage.sh('cp "$LIB/words.sh" "$LIB/report.sh" "$LIB/console.sh" "$RUN/" && cp "$BUSYBOX" "$RUN/busybox"')
    if joins:
        (stage.folder / "system/netboot-join.service").touch()
    program = stage.folder / "console.sh"
    text = (
        ROOT.read_text().replace("/run/netboot", str(here)).replace("/usr/lib/systemd/system", f"{stage.folder}/system")
    )
    program.write_text(text)
    return program


def test_of_a_root_that_is_late_a_console_is_sent_and_no_secret_of_a_service(stage: Stage, service: Origin) -> None:
    """Kernel, systemd and netboot's own units, until the boot is over: it is up, and has joined."""
    journal(
        stage,
        ("switching to the root image", "_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=netboot"),
        ("Failed to mount /data", "_TRANSPORT=journal\n_PID=1\nSYSLOG_IDENTIFIER=systemd\nUNIT=data.mount"),
        ("password=hunter2", "_TRANSPORT=stdout\n_PID=77\nSYSLOG_IDENTIFIER=systemd\n_SYSTEMD_UNIT=db.service"),
        ("trying again", "_TRANSPORT=stdout\n_PID=9\nSYSLOG_IDENTIFIER=python3\n_SYSTEMD_UNIT=netboot-join.service"),
        ("EXT4-fs error", "_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=kernel"),
        ("audit: type=1123 cmd=hunter2", "_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=kernel"),
        ("hunter2", "_TRANSPORT=kernel\nSYSLOG_IDENTIFIER=backup"),
        ("Started run-u7.service - /usr/bin/db -p hunter2", "_PID=1\nSYSLOG_IDENTIFIER=systemd\nUNIT=run-u7.service"),
        ("netboot-like", "_TRANSPORT=stdout\n_PID=8\nSYSLOG_IDENTIFIER=netboot\n_SYSTEMD_UNIT=netboot-x.service"),
    )
    of_root(stage, service, joins=True)
    with ThreadPoolExecutor(1) as beside_us:
        running = beside_us.submit(stage.sh, 'exec "$BUSYBOX" sh console.sh 1')
        wait_for(lambda: service.posted != [])
        (stage.folder / "multi-user.target").touch()
        wait_for(lambda: "netboot-join.service\n" in (stage.folder / "asked").read_text())
        (stage.folder / "netboot-join.service").touch()
        done = running.result(300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    lines = (
        "[    1.000000] node-1 netboot: switching to the root image",
        "[    2.000000] node-1 systemd[1]: Failed to mount /data",
        "[    4.000000] node-1 python3[9]: trying again",
        "[    5.000000] node-1 kernel: EXT4-fs error",
        "systemd: A start job is running for data.mount",
    )
    assert sent(service) == [body("".join(rf"{line}\n" for line in lines))]


def test_a_root_that_is_up_in_time_sends_nothing(stage: Stage, service: Origin) -> None:
    journal(stage, ("Startup finished", "_TRANSPORT=journal\n_PID=1\nSYSLOG_IDENTIFIER=systemd"))
    of_root(stage, service)
    (stage.folder / "multi-user.target").touch()
    done = stage.sh('exec "$BUSYBOX" sh console.sh 1')
    assert (done.returncode, done.stdout, done.stderr, service.posted) == (0, "", "", [])

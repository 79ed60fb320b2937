"""Events: the service's own model reads them, in order, and none is lost while it is away."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from images.build.initrd import STAGE
from netboot.lifecycle.events import BootEvent
from tests.tools.images.boot_stage import Stage
from tests.tools.images.origin import Origin, serving

pytestmark = pytest.mark.tools

REAL = '. "$LIB/report.sh"\n'
"""The real `deliver` again, with retries at once."""
PATH = "/v1/boots/01890a5d-ac96-874b-9e3c-5b3f1c2d4e5f/events"


@pytest.fixture
def service() -> Iterator[Origin]:
    with serving(Origin()) as origin:
        yield origin


def events(origin: Origin) -> list[tuple[str, str]]:
    found = [BootEvent.model_validate_json(body) for path, body in origin.posted if path == PATH]
    return [(event.phase.value, event.detail) for event in found]


def waiting(stage: Stage) -> int:
    return len(list((stage.run_folder / "events").iterdir()))


def test_an_event_whole(stage: Stage, service: Origin) -> None:
    stage.sh(REAL + 'report InitrdStarted "kernel 6.1"; deliver', REPORT=service.url)
    (event,) = (BootEvent.model_validate_json(body) for _, body in service.posted)
    assert (event.mac, event.machine, event.phase, event.detail) == (
        "52:54:00:12:34:56",
        "node-1",
        "InitrdStarted",
        "kernel 6.1",
    )
    assert event.uptime_ms is not None
    assert event.uptime_ms > 0
    assert waiting(stage) == 0


def test_a_machine_without_a_name(stage: Stage, service: Origin) -> None:
    stage.sh(REAL + "report InitrdStarted; deliver", REPORT=service.url, NAME="")
    (event,) = (BootEvent.model_validate_json(body) for _, body in service.posted)
    assert event.machine is None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(exclude_characters="\0'", codec="utf-8"), max_size=400))
def test_whatever_went_wrong_can_be_said(stage: Stage, text: str) -> None:
    stage.sh(f"report Failed '{text}'")
    (path,) = (stage.run_folder / "events").iterdir()
    event = BootEvent.model_validate_json(path.read_bytes())
    path.unlink()
    plain = "".join(c for c in text.replace('"', "'").replace("\\", "/").replace("\n", " ") if " " <= c <= "~")
    assert event.detail == plain[:300]


def test_events_wait_for_a_service_that_is_away_and_come_in_order(stage: Stage, service: Origin) -> None:
    service.post_statuses = [503, 503, 503]
    away = stage.sh(REAL + "report InitrdStarted one; report ImageFetched two; deliver", REPORT=service.url)
    assert (away.returncode, waiting(stage), len(service.posted)) == (0, 2, 3)
    stage.sh(REAL + "report ImageVerified three; deliver", REPORT=service.url)
    assert events(service)[3:] == [("InitrdStarted", "one"), ("ImageFetched", "two"), ("ImageVerified", "three")]
    assert waiting(stage) == 0


def test_events_of_several_processes_in_one_hundredth_of_a_second_keep_their_order(stage: Stage) -> None:
    """The clock that they are named by says no more than that."""
    numbers = " ".join(str(number) for number in range(20))
    three = "(report InitrdStarted $n-1; report InitrdStarted $n-2); report InitrdStarted $n-3"
    stage.sh(f"for n in {numbers}; do {three}; done")
    found = [
        BootEvent.model_validate_json(path.read_bytes()) for path in sorted((stage.run_folder / "events").iterdir())
    ]
    assert [event.detail for event in found] == [f"{number}-{part}" for number in range(20) for part in (1, 2, 3)]


def test_what_is_reported_meanwhile_goes_too(stage: Stage) -> None:
    post = 'post() { rm "$1"; [ -e posted ] || report ImageVerified two; echo "${1##*/}" >>posted; }\n'
    stage.sh(REAL + post + "report ImageFetched one; deliver")
    assert waiting(stage) == 0
    assert [line.split("-")[1] for line in (stage.folder / "posted").read_text().splitlines()] == ["001", "002"]


@pytest.mark.parametrize("status", [400, 404, 413])
def test_an_event_that_the_service_will_never_take_is_dropped_with_words(
    stage: Stage, service: Origin, status: int
) -> None:
    service.post_statuses = [status]
    done = stage.sh(REAL + "report InitrdStarted one; report ImageFetched two; deliver", REPORT=service.url)
    assert f"netboot: the service refuses an event: wget: server returned error: HTTP/1.1 {status}" in done.stdout
    assert (len(service.posted), waiting(stage)) == (2, 0)


@pytest.mark.parametrize("status", [408, 429])
def test_later_is_not_never(stage: Stage, service: Origin, status: int) -> None:
    service.post_statuses = [status]
    stage.sh(REAL + "report InitrdStarted; deliver", REPORT=service.url)
    assert (len(service.posted), waiting(stage)) == (2, 0)


def test_a_service_that_is_not_there_stops_nothing(stage: Stage) -> None:
    done = stage.sh(REAL + "report InitrdStarted; deliver; echo goes on", REPORT="http://127.0.0.1:9")
    assert (done.stdout, waiting(stage)) == ("goes on\n", 1)


def test_without_a_boot_id_there_is_nobody_to_tell(stage: Stage) -> None:
    stage.sh("report Failed 'no boot id'", BOOT="")
    assert waiting(stage) == 0


def test_the_root_tells_what_the_initrd_could_not(stage: Stage, service: Origin) -> None:
    root = STAGE.parent / "root/usr/lib/netboot/tell.sh"
    stage.sh("report ImageVerified one")
    here = stage.run_folder
    script = root.read_text().replace("/run/netboot", str(here))
    (here / "boot.env").write_text(
        f"BOOT={PATH.split('/')[3]}\nREPORT={service.url}\nMAC=52:54:00:12:34:56\nNAME=node-1\n"
    )
    for part in ("words.sh", "report.sh", "crash.sh"):
        stage.sh(f'cp "$LIB/{part}" "$RUN/"')
    stage.sh('cp "$BUSYBOX" "$RUN/busybox"')
    (stage.folder / "tell.sh").write_text(f"PSTORE={stage.folder}\n{script}")
    (stage.folder / "bin/systemctl").write_text("#!/bin/sh\necho chrony.service loaded failed failed Time\n")
    (stage.folder / "bin/systemctl").chmod(0o755)
    stage.sh('exec "$BUSYBOX" sh tell.sh Switched')
    (here / "tell").write_text("ssh host key SHA256:x, principals sre\n")
    stage.sh('exec "$BUSYBOX" sh tell.sh Booted')
    told = [("Switched", ""), ("Booted", "ssh host key SHA256:x, principals sre; failed units: chrony.service ")]
    assert events(service) == [("ImageVerified", "one"), *told]

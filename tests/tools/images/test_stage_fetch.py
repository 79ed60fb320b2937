"""Fetching the root image from origins that die, stall, lie, are busy, slow, forget Range or serve another file."""

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from images.artifact.manifest import CHUNK_SIZE
from images.build.initrd import STAGE
from tests.tools.images.boot_stage import Stage
from tests.tools.images.origin import Origin, serving

pytestmark = pytest.mark.tools

ROOT = random.Random(7).randbytes(3 * CHUNK_SIZE + 12345)  # four chunks, the last one short
DIGEST = hashlib.sha256(ROOT).hexdigest()
BLOB = f"/v1/blobs/{DIGEST}"
FETCH = 'fetch_root && verify_root || echo "REASON $REASON"; wait\n'


@dataclass
class Machine:
    stage: Stage
    stack: ExitStack

    def origin(self, **faults: object) -> Origin:
        origin = Origin(files={BLOB: ROOT}, **faults)  # type: ignore[arg-type]
        return self.stack.enter_context(serving(origin))

    def fetch(
        self, *origins: Origin, preferred: int = 1, processors: int = 1, script: str = FETCH, stall: int = 20
    ) -> CompletedProcess[str]:
        """`preferred`: how many of the origins are preferred alike: each is a connection. `stall`: after so many
        seconds one that brings nothing is left; on a busy machine a good one may bring nothing for some."""
        chunks = [ROOT[at : at + CHUNK_SIZE] for at in range(0, len(ROOT), CHUNK_SIZE)]
        lines = "".join(f"{i} {hashlib.sha256(chunk).hexdigest()}\n" for i, chunk in enumerate(chunks))
        (self.stage.run_folder / "manifest.json.chunks").write_text(lines)
        self.stage.image.touch()
        settings = {"SIZE": str(len(ROOT)), "ROOT": DIGEST, "CHUNK": str(CHUNK_SIZE), "COUNT": "4"}
        urls = " ".join(origin.url for origin in origins)
        settings |= {"ORIGINS": urls, "PREFERRED": str(preferred), "REPORT": "http://127.0.0.1:9"}
        stubs = f"STALL_SECONDS={stall}\nnproc() {{ echo {processors}; }}\nlink_speed() {{ echo 0; }}\n"
        return self.stage.sh(stubs + script, **settings)

    @property
    def fetched(self) -> bytes:
        return self.stage.image.read_bytes()

    def details(self) -> list[str]:
        """Phase and detail of what was reported, in order."""
        found = [eval(path.read_text()) for path in sorted(Path(self.stage.run_folder / "events").glob("*.json"))]
        return [f"{event['phase']}: {event['detail']}" for event in found]


@pytest.fixture
def machine(stage: Stage) -> Iterator[Machine]:
    with ExitStack() as stack:
        yield Machine(stage, stack)


def part(first: int, last: int = 3) -> str:
    """The Range of chunks."""
    return f"bytes={first * CHUNK_SIZE}-{min((last + 1) * CHUNK_SIZE, len(ROOT)) - 1}"


def once(alter: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """The first answer only."""
    left = [alter]
    return lambda data: left.pop()(data) if left else data


def altered(offset: int, what: bytes = b"\xff\x00\xff") -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + what + data[offset + len(what) :]


@pytest.mark.parametrize("processors", [1, 2, 9])
def test_one_good_origin_is_asked_once(machine: Machine, processors: int) -> None:
    good, other = machine.origin(), machine.origin()
    done = machine.fetch(good, other, processors=processors)
    assert machine.fetched == ROOT, done
    assert (good.asked, other.asked) == ([(BLOB, part(0))], [])
    assert machine.details()[1] == "ImageVerified: 4 chunks"
    assert machine.details()[0].endswith(f" s from {good.url} ")
    assert machine.details()[0].startswith(f"ImageFetched: {len(ROOT)} bytes in ")


def test_origins_that_are_preferred_alike_bring_it_together(machine: Machine) -> None:
    origins = [machine.origin(rate=8_000_000) for _ in range(2)]
    third = machine.origin()
    machine.fetch(*origins, third, preferred=2)
    assert machine.fetched == ROOT
    assert all(f" {origin.url} " in machine.details()[0] for origin in origins)
    assert third.asked == []


def test_an_origin_that_dies_is_followed_by_the_next_from_that_chunk_on(machine: Machine) -> None:
    dying, good = machine.origin(dies_at=5_000_000), machine.origin()
    machine.fetch(dying, good)
    assert machine.fetched == ROOT
    assert dying.ranges_of(BLOB) == [part(0)] + 2 * [f"bytes=5000000-{len(ROOT) - 1}"]
    assert good.ranges_of(BLOB) == [part(1)]


def test_what_an_origin_that_dies_leaves_is_done_by_the_others(machine: Machine) -> None:
    dying, good = machine.origin(dies_at=0), machine.origin()
    machine.fetch(dying, good, preferred=2)
    assert machine.fetched == ROOT
    assert machine.details()[0].endswith(f" s from {good.url} ")


def test_a_single_origin_that_dies_once_is_asked_for_the_rest(machine: Machine) -> None:
    dying = machine.origin(dies_at=9_000_001, recovers=True)
    machine.fetch(dying)
    assert machine.fetched == ROOT
    assert dying.ranges_of(BLOB) == [part(0), f"bytes=9000001-{len(ROOT) - 1}"]


def test_an_origin_that_stalls_is_left(machine: Machine) -> None:
    stalling, good = machine.origin(stalls_at=4_000_000), machine.origin()
    done = machine.fetch(stalling, good, stall=3)
    assert machine.fetched == ROOT
    assert good.ranges_of(BLOB) == [part(0)]
    assert f"netboot: left {stalling.url}: less than 65536 bytes came in 3 seconds\n" in done.stdout


def test_what_a_slow_origin_has_begun_last_is_brought_by_another_too(machine: Machine) -> None:
    slow, quick = machine.origin(rate=200_000), machine.origin()
    machine.fetch(slow, quick, preferred=2)
    assert machine.fetched == ROOT
    assert machine.details()[0].endswith(f" s from {quick.url} ")


def test_an_origin_far_slower_than_another_is_left_for_the_next(machine: Machine) -> None:
    """The slow one brings two pieces at least in each time that it is judged by: it never seems to stand still."""
    slow, quick, next_one = machine.origin(rate=50_000), machine.origin(rate=1_500_000), machine.origin()
    done = machine.fetch(slow, quick, next_one, preferred=2, stall=3)
    assert machine.fetched == ROOT
    assert f"netboot: left {slow.url}: " in done.stdout
    assert " KiB/s, less than a tenth of the fastest\n" in done.stdout
    assert next_one.asked != []


def test_an_origin_that_stood_still_is_asked_once_more_when_there_is_no_other(machine: Machine) -> None:
    standing, slow, gone = machine.origin(stalls_at=1000), machine.origin(rate=700_000), machine.origin(status=404)

    def goes_on(data: bytes) -> bytes:
        standing.stalls_at = 1000 if len(standing.asked) == 1 else None
        return data

    standing.alter = goes_on
    done = machine.fetch(standing, slow, gone, preferred=2, stall=3)
    assert machine.fetched == ROOT
    left = [line.split()[2] for line in done.stdout.splitlines() if line.startswith("netboot: left ")]
    assert left == [f"{standing.url}:", f"{gone.url}:"]
    assert f" {standing.url} " in machine.details()[0]


def test_where_all_are_slow_for_the_link_another_joins_in(machine: Machine) -> None:
    slow, next_one = machine.origin(rate=1_000_000), machine.origin()
    done = machine.fetch(slow, next_one, script="link_speed() { echo 1000; }\n" + FETCH, stall=3)
    assert machine.fetched == ROOT
    assert " KiB/s is little for this link, asking one origin more\n" in done.stdout
    assert next_one.asked != []


@pytest.mark.parametrize(("status", "words"), [(503, "503 Service Unavailable"), (429, "429 Too Many Requests")])
def test_a_busy_origin_is_waited_for_and_has_not_failed(machine: Machine, status: int, words: str) -> None:
    busy, other = machine.origin(busy=[(status, "7")] * 5), machine.origin()
    done = machine.fetch(busy, other, script='pause() { echo "pause $1"; }\n' + FETCH)
    assert machine.fetched == ROOT
    line = f"netboot: {busy.url} is busy ({words}), asking it again in 7 seconds or a little more"
    said = [line for line in done.stdout.splitlines() if not line.startswith("netboot: root image")]
    assert said == [line, "pause 14"] * 5
    assert other.asked == []


def test_a_busy_origin_is_not_waited_for_without_end(machine: Machine) -> None:
    busy = machine.origin(busy=[(503, "300")] * 7)
    done = machine.fetch(busy)
    assert done.stdout.splitlines()[-1] == (
        f"REASON cannot fetch the root image, it stays at 0 of 4 chunks: {busy.url}: "
        "503 Service Unavailable, after 1800 seconds of waiting"
    )
    assert len(busy.asked) == 7


def test_while_an_origin_is_busy_for_long_another_joins_in(machine: Machine) -> None:
    busy, good = machine.origin(busy=[(503, "61")]), machine.origin()
    until_whole = 'pause() { for _ in $(seq 1800); do [ "$(good_count)" -lt 4 ] || break; sleep 0.1; done; }\n'
    machine.fetch(busy, good, script=until_whole + FETCH)
    assert machine.fetched == ROOT
    assert good.ranges_of(BLOB) != []
    assert len(busy.asked) == 1


def test_what_an_origin_says_of_itself_is_cut_and_printable(stage: Stage) -> None:
    answer = r"printf 'HTTP/1.1 502 \033[2J%0200d\r\nContent-Range: \007bytes\r\nContent-Length: \0331\r\n\r\n' 0"
    asked = '{ . $LIB/http.sh; ask host /path >/dev/null; echo "$status|$range|$length"; }'
    assert stage.sh(f"{answer} | {asked}").stdout == f"HTTP/1.1 502 [2J{'0' * 83}|bytes|1\n"


@pytest.mark.parametrize(("said", "speed"), [("25000", "25000"), ("-1", "100"), ("", "100")])
def test_a_link_of_unknown_speed_is_taken_for_a_slow_one(stage: Stage, said: str, speed: str) -> None:
    (stage.folder / "net/eth0").mkdir(parents=True)
    (stage.folder / "net/eth0/speed").write_text(said)
    assert stage.sh(f"NET={stage.folder}/net UPLINK=eth0\nlink_speed").stdout == f"{speed}\n"


def test_what_an_origin_left_unverified_takes_no_room(machine: Machine) -> None:
    leaves = 'bring() { ls "$FETCH" | grep ^part; : >"$FETCH/part.$slot.0"; error=gone; return 1; }\n'
    done = machine.fetch(machine.origin(), machine.origin(), script=leaves + FETCH)
    assert done.stdout.count("netboot: left ") == 2
    assert "part." not in done.stdout


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [
        ("7", "7"),
        ("0", "1"),
        ("010", "10"),
        ("86400", "300"),
        ("99999999999999999999", "300"),
        ("Sun, 06 Nov 1994 08:49:37 GMT", "37"),
        ("Sun, 06 Nov 1994 09:49:37 GMT", "300"),
        ("Sun, 06 Nov 1994 08:00:00 GMT", "1"),
        ("", ""),
        ("soon", ""),
        ("-5", ""),
        ("1.5", ""),
    ],
)
def test_when_a_busy_server_wants_us_back(stage: Stage, retry_after: str, seconds: str) -> None:
    script = f". $LIB/http.sh; seconds_until '{retry_after}' 'Sun, 06 Nov 1994 08:49:00 GMT'"
    assert stage.sh(script).stdout.strip() == seconds


def test_a_date_without_the_servers_own_clock_says_nothing(stage: Stage) -> None:
    assert stage.sh(". $LIB/http.sh; seconds_until 'Sun, 06 Nov 1994 08:49:37 GMT' ''").stdout == ""


def test_a_server_without_ranges_starts_again_and_ends(machine: Machine) -> None:
    forgetful = machine.origin(ranges=False, dies_at=6_000_000, recovers=True)
    machine.fetch(forgetful)
    assert machine.fetched == ROOT
    assert forgetful.ranges_of(BLOB) == [part(0), f"bytes=6000000-{len(ROOT) - 1}"]


def test_servers_without_ranges_are_of_use_one_at_a_time(machine: Machine) -> None:
    origins = [machine.origin(ranges=False, rate=8_000_000) for _ in range(2)]
    done = machine.fetch(*origins, preferred=2)
    assert machine.fetched == ROOT
    assert done.stdout.count(": sends no parts\n") == 1


def test_a_damaged_chunk_is_fetched_from_another_origin(machine: Machine) -> None:
    damaging = machine.origin(alter=altered(CHUNK_SIZE + 77))
    good = machine.origin()
    machine.fetch(damaging, good)
    assert machine.fetched == ROOT
    assert any(str(asked).startswith(f"bytes={CHUNK_SIZE}-") for asked in good.ranges_of(BLOB))
    assert machine.details()[1] == f"ImageVerified: 4 chunks, chunk 1 again from {good.url}"


def test_what_was_damaged_once_on_its_way_is_asked_for_again(machine: Machine) -> None:
    damaging = machine.origin(alter=once(altered(len(ROOT) - 3)))
    done = machine.fetch(damaging)
    assert machine.fetched == ROOT
    assert f"netboot: chunk 3 from {damaging.url} is damaged, it will be fetched again\n" in done.stdout
    assert damaging.ranges_of(BLOB) == [part(0), part(3)]


def test_an_origin_that_lies_is_left_and_the_whole_image_is_right(machine: Machine) -> None:
    lying, good = machine.origin(alter=lambda data: data[::-1]), machine.origin(rate=8_000_000)
    done = machine.fetch(lying, good, preferred=2)
    assert machine.fetched == ROOT
    assert f"netboot: left {lying.url}: sends damaged chunks\n" in done.stdout
    assert machine.details()[0].endswith(f" s from {good.url} ")


def test_a_chunk_that_is_damaged_everywhere_refuses_the_image(machine: Machine) -> None:
    first, second = (machine.origin(alter=altered(10)) for _ in range(2))
    done = machine.fetch(first, second)
    left = "; ".join(sorted(f"{origin.url}: sends damaged chunks" for origin in (first, second)))
    assert done.stdout.splitlines()[-1] == (
        f"REASON ImageRefused: chunk 0 of the root image is damaged at every origin that sends it: {left}"
    )
    assert all("ImageVerified" not in detail for detail in machine.details())


def test_a_chunk_that_cannot_be_hashed_is_not_believed(machine: Machine) -> None:
    """As where no memory is left for a process."""
    good, library = machine.origin(), machine.stage.folder / "library"
    shutil.copytree(STAGE, library)
    with (library / "http.sh").open("a") as file:
        file.write("sha256sum() { return 1; }\n")
    done = machine.fetch(good, script=f"LIB={library}\n{FETCH}")
    assert done.stdout.splitlines()[-1] == (
        "REASON ImageRefused: chunk 0 of the root image is damaged at every origin that sends it: "
        f"{good.url}: sends damaged chunks"
    )
    assert (machine.fetched, machine.details()) == (b"", [])


def test_another_file_of_the_same_size_is_refused_however_many_chunks_are_wrong(machine: Machine) -> None:
    other = machine.origin(alter=lambda data: data[::-1])
    done = machine.fetch(other)
    assert done.stdout.splitlines()[-1] == (
        "REASON ImageRefused: chunk 0 of the root image is damaged at every origin that sends it: "
        f"{other.url}: sends damaged chunks"
    )
    assert len(other.asked) <= 2


def test_after_a_failure_what_was_verified_is_kept(machine: Machine) -> None:
    dying = machine.origin(dies_at=2 * CHUNK_SIZE + 5)
    machine.fetch(dying)
    dying.dies_at = None
    machine.fetch(dying)
    assert machine.fetched == ROOT
    assert dying.ranges_of(BLOB)[-1] == part(2)


def test_a_short_file_fails_with_what_was_answered(machine: Machine) -> None:
    short = machine.origin(alter=lambda data: data[:1_000_000])
    done = machine.fetch(short)
    assert done.stdout.splitlines()[-1] == (
        f"REASON cannot fetch the root image, it stays at 0 of 4 chunks: {short.url}: "
        "answers a part with: HTTP/1.1 206 Partial Content, bytes 0-999999/1000000"
    )


@pytest.mark.parametrize("ranges", [True, False])
def test_a_long_file_is_refused_and_does_not_fill_the_memory(machine: Machine, ranges: bool) -> None:
    long = machine.origin(alter=lambda data: data + bytes(30_000_000), ranges=ranges)
    done = machine.fetch(long)
    size = len(ROOT) + 30_000_000
    answer = (
        f"answers a part with: HTTP/1.1 206 Partial Content, bytes 0-{len(ROOT) - 1}/{size}"
        if ranges
        else f"has another file: {size} bytes, not {len(ROOT)}"
    )
    assert done.stdout.splitlines()[-1] == (
        f"REASON cannot fetch the root image, it stays at 0 of 4 chunks: {long.url}: {answer}"
    )
    assert machine.fetched == b""


def test_nobody_has_the_image(machine: Machine) -> None:
    first, second = machine.origin(status=404), machine.origin(status=503)
    done = machine.fetch(first, second)
    assert f"netboot: left {first.url}: answers: HTTP/1.1 404 Not Found\n" in done.stdout
    left = sorted(
        [
            f"{first.url}: answers: HTTP/1.1 404 Not Found",
            f"{second.url}: answers: HTTP/1.1 503 Service Unavailable",
        ]
    )
    assert done.stdout.splitlines()[-1] == (
        f"REASON cannot fetch the root image, it stays at 0 of 4 chunks: {'; '.join(left)}"
    )
    assert len(first.asked) == len(second.asked) == 3


def test_an_origin_is_asked_by_name_too(machine: Machine) -> None:
    good = machine.origin()
    good.url = good.url.replace("127.0.0.1", "localhost")
    machine.fetch(good)
    assert machine.fetched == ROOT


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://10.0.2.2:8080/v1/blobs/a", "10.0.2.2 8080 10.0.2.2:8080 /v1/blobs/a"),
        ("http://origin.example/v1", "origin.example 80 origin.example /v1"),
        ("http://[fd00::1]:8080/v1", "fd00::1 8080 [fd00::1]:8080 /v1"),
        ("http://[fd00::1]/v1/x", "fd00::1 80 [fd00::1] /v1/x"),
    ],
)
def test_parts_of_a_url(stage: Stage, url: str, parts: str) -> None:
    assert stage.sh(f"split_url '{url}'; echo $host $port $authority $path").stdout == parts + "\n"

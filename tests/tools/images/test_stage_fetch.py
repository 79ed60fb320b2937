"""Fetching the root image from origins that die, stall, lie, forget Range or serve another file."""

import hashlib
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from images.artifact.manifest import CHUNK_SIZE
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

    def fetch(self, *origins: Origin, script: str = FETCH) -> CompletedProcess[str]:
        chunks = [ROOT[at : at + CHUNK_SIZE] for at in range(0, len(ROOT), CHUNK_SIZE)]
        lines = "".join(f"{i} {hashlib.sha256(chunk).hexdigest()}\n" for i, chunk in enumerate(chunks))
        (self.stage.run_folder / "manifest.json.chunks").write_text(lines)
        self.stage.image.touch()
        settings = {"SIZE": str(len(ROOT)), "ROOT": DIGEST, "CHUNK": str(CHUNK_SIZE), "COUNT": "4"}
        urls = " ".join(origin.url for origin in origins)
        return self.stage.sh("STALL_SECONDS=1\n" + script, ORIGINS=urls, REPORT="http://127.0.0.1:9", **settings)

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


def altered(offset: int, what: bytes = b"\xff\x00\xff") -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + what + data[offset + len(what) :]


def test_one_good_origin_is_asked_once(machine: Machine) -> None:
    good, other = machine.origin(), machine.origin()
    done = machine.fetch(good, other)
    assert machine.fetched == ROOT, done
    assert (good.asked, other.asked) == ([(BLOB, None)], [])
    assert machine.details()[1] == "ImageVerified: 4 chunks"
    assert machine.details()[0].endswith(f" s from {good.url} ")
    assert machine.details()[0].startswith(f"ImageFetched: {len(ROOT)} bytes in ")


def test_an_origin_that_dies_is_followed_by_the_next_where_it_ended(machine: Machine) -> None:
    dying, good = machine.origin(dies_at=5_000_000), machine.origin()
    machine.fetch(dying, good)
    assert machine.fetched == ROOT
    assert (dying.asked, good.asked) == ([(BLOB, None)], [(BLOB, "bytes=5000000-")])


def test_a_single_origin_that_dies_once_is_asked_for_the_rest(machine: Machine) -> None:
    dying = machine.origin(dies_at=9_000_001, recovers=True)
    machine.fetch(dying)
    assert machine.fetched == ROOT
    assert dying.ranges_of(BLOB) == [None, "bytes=9000001-"]


def test_an_origin_that_stalls_is_left(machine: Machine) -> None:
    stalling, good = machine.origin(stalls_at=4_000_000), machine.origin()
    done = machine.fetch(stalling, good)
    assert machine.fetched == ROOT
    assert good.asked == [(BLOB, "bytes=4000000-")]
    assert (
        f"left {stalling.url} at 4000000 of {len(ROOT)} bytes: less than 65536 bytes came in 1 seconds" in done.stdout
    )


def test_a_server_without_ranges_starts_again_and_ends(machine: Machine) -> None:
    forgetful = machine.origin(ranges=False, dies_at=6_000_000, recovers=True)
    machine.fetch(forgetful)
    assert machine.fetched == ROOT
    assert forgetful.ranges_of(BLOB) == [None, "bytes=6000000-"]


def test_a_damaged_chunk_is_fetched_alone_from_another_origin(machine: Machine) -> None:
    damaging = machine.origin(alter=altered(CHUNK_SIZE + 77))
    good = machine.origin()
    machine.fetch(damaging, good)
    assert machine.fetched == ROOT
    assert damaging.asked == [(BLOB, None)]
    assert good.asked == [(BLOB, f"bytes={CHUNK_SIZE}-{2 * CHUNK_SIZE - 1}")]
    assert machine.details()[1] == f"ImageVerified: 4 chunks, chunk 1 again from {good.url}"


def test_the_last_and_shorter_chunk_is_fetched_alone_too(machine: Machine) -> None:
    damaging, good = machine.origin(alter=altered(len(ROOT) - 3)), machine.origin()
    machine.fetch(damaging, good)
    assert machine.fetched == ROOT
    assert good.asked == [(BLOB, f"bytes={3 * CHUNK_SIZE}-{len(ROOT) - 1}")]


def test_the_sender_of_each_chunk_is_known_after_a_change_of_origin(machine: Machine) -> None:
    dying = machine.origin(dies_at=2 * CHUNK_SIZE)
    damaging = machine.origin(alter=altered(3 * CHUNK_SIZE))
    machine.fetch(dying, damaging)
    assert machine.fetched[: 3 * CHUNK_SIZE] == ROOT[: 3 * CHUNK_SIZE]
    # The damaged chunk came from the second one, so the first is asked for it, although it is dead at that offset.
    assert dying.ranges_of(BLOB) == [None, f"bytes={3 * CHUNK_SIZE}-{len(ROOT) - 1}"]


def test_a_chunk_that_is_damaged_everywhere_refuses_the_image(machine: Machine) -> None:
    first, second = (machine.origin(alter=altered(10)) for _ in range(2))
    done = machine.fetch(first, second)
    assert done.stdout.splitlines()[-1] == (
        f"REASON ImageRefused: chunk 0 of the root image is damaged at every origin: {second.url} {first.url}"
    )
    assert all("ImageVerified" not in detail for detail in machine.details())


def test_another_file_of_the_same_size_is_refused_however_many_chunks_are_wrong(machine: Machine) -> None:
    other = machine.origin(alter=lambda data: data[::-1])
    done = machine.fetch(other)
    assert done.stdout.splitlines()[-1] == (
        f"REASON ImageRefused: chunk 0 of the root image is damaged at every origin: {other.url}"
    )
    assert all("ImageVerified" not in detail for detail in machine.details())


def test_every_chunk_can_come_from_another_origin(machine: Machine) -> None:
    other, good = machine.origin(alter=lambda data: data[::-1]), machine.origin()
    machine.fetch(other, good)
    assert machine.fetched == ROOT
    assert len(good.asked) == 4


def test_where_nobody_gives_parts_the_good_beginning_is_kept(machine: Machine) -> None:
    forgetful = machine.origin(ranges=False, alter=altered(2 * CHUNK_SIZE + 5))
    done = machine.fetch(forgetful)
    assert machine.fetched == ROOT[: 2 * CHUNK_SIZE]
    assert done.stdout.splitlines()[-1] == (
        "REASON chunk 2 of the root image was damaged and no origin sends it alone: "
        f"{forgetful.url}: answers a part with: HTTP/1.1 200 OK;"
    )


def test_after_a_cut_the_next_attempt_fetches_the_rest(machine: Machine) -> None:
    forgetful = machine.origin(ranges=False, alter=altered(2 * CHUNK_SIZE + 5))
    good = machine.origin(ranges=True, status=503)
    machine.fetch(forgetful, good)
    good.status = 200
    forgetful.alter = bytes
    machine.fetch(forgetful, good, script="FILE=$RUN/image/root.img\n" + 'verify_root || echo "$REASON"; wait\n')
    assert machine.fetched == ROOT


def test_a_short_file_fails_with_where_it_ends(machine: Machine) -> None:
    short = machine.origin(alter=lambda data: data[:1_000_000])
    done = machine.fetch(short)
    assert done.stdout.splitlines()[-1] == (
        f"REASON cannot fetch the root image, it stays at 1000000 of {len(ROOT)} bytes; last: {short.url}: "
        "wget: server returned error: HTTP/1.1 416 Requested Range Not Satisfiable"
    )


def test_a_long_file_is_refused_and_does_not_fill_the_memory(machine: Machine) -> None:
    long = machine.origin(alter=lambda data: data + bytes(30_000_000))
    done = machine.fetch(long)
    assert done.stdout.splitlines()[-1] == (
        f"REASON ImageRefused: {long.url} sent more than the {len(ROOT)} bytes of the root image"
    )
    assert machine.fetched == b""


def test_nobody_has_the_image(machine: Machine) -> None:
    first, second = machine.origin(status=404), machine.origin(status=503)
    done = machine.fetch(first, second)
    assert (
        f"left {first.url} at 0 of {len(ROOT)} bytes: wget: server returned error: HTTP/1.1 404 Not Found"
        in done.stdout
    )
    assert done.stdout.splitlines()[-1] == (
        f"REASON cannot fetch the root image, it stays at 0 of {len(ROOT)} bytes; last: {second.url}: "
        "wget: server returned error: HTTP/1.1 503 Service Unavailable"
    )
    assert len(first.asked) == len(second.asked) == 3


def test_a_verifier_that_dies_never_makes_a_chunk_good(machine: Machine) -> None:
    good = machine.origin()
    done = machine.fetch(good, script=FETCH.replace("verify_root", "LIB=/nonexistent && verify_root"))
    assert done.stdout.splitlines()[-1].startswith("REASON chunk 0 of the root image was damaged")
    assert all("ImageVerified" not in detail for detail in machine.details())


def test_a_part_is_asked_for_by_name_too(machine: Machine) -> None:
    good = machine.origin()
    url = good.url.replace("127.0.0.1", "localhost")
    machine.stage.sh(f"fetch_range {url}{BLOB} 5 7")
    assert (machine.stage.run_folder / "image/chunk").read_bytes() == ROOT[5:12]
    assert good.asked == [(BLOB, "bytes=5-11")]


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

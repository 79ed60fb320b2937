"""Three origins behind links of 10, 20 and 40 Mbit/s (tbf), each in a network namespace of its own.

Who brings what, and who is left; how long it takes is `python -m bench --only origins`.
"""

import contextlib
import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from lab.processes import run
from tests.tools.images.boot_stage import Stage
from tests.tools.images.origin import Origin, serving
from tests.tools.namespaces import namespace

pytestmark = pytest.mark.tools

MBIT = (10, 20, 40)
"""Little: a busy machine, too, takes it all, and not its processors but the links say who brings how much."""
BAD = 1
"""Which of them lies or dies, by its place."""
CHUNK = 1 << 20
CHUNKS = 56
ROOT = random.Random(9).randbytes(CHUNKS * CHUNK)
DIGEST = hashlib.sha256(ROOT).hexdigest()
FETCH = 'link_speed() { echo 0; }\nfetch_root && verify_root || echo "REASON $REASON"; wait\n'


@dataclass
class Network:
    """The machine, origins in the order of `MBIT`, and what they have sent together."""

    stage: Stage
    origins: list[Origin]
    half_way: Callable[[], None] = lambda: None
    """What happens once half of all bytes were sent."""
    bytes: Counter[int] = field(default_factory=Counter)

    def sent(self, number: int, count: int) -> None:
        self.bytes[number] += count
        if self.bytes.total() >= len(ROOT) // 2:
            self.half_way()

    def fetch(self) -> CompletedProcess[str]:
        run_folder = self.stage.run_folder
        chunks = [ROOT[at : at + CHUNK] for at in range(0, len(ROOT), CHUNK)]
        lines = "".join(f"{number} {hashlib.sha256(chunk).hexdigest()}\n" for number, chunk in enumerate(chunks))
        (run_folder / "manifest.json.chunks").write_text(lines)
        self.stage.image.touch()
        urls = " ".join(origin.url for origin in self.origins)
        settings = {"ORIGINS": urls, "PREFERRED": "3", "ROOT": DIGEST, "SIZE": str(len(ROOT)), "COUNT": str(CHUNKS)}
        done = self.stage.sh(FETCH, CHUNK=str(CHUNK), REPORT="http://127.0.0.1:9", **settings)
        assert self.stage.image.read_bytes() == ROOT, done
        return done

    def brought(self) -> list[int]:
        """Chunks that are whole and right, by origin."""
        lines = (self.stage.run_folder / "image/fetch/good").read_text().splitlines()
        first = {line.split()[0]: line.split()[1] for line in reversed(lines)}
        assert len(first) == CHUNKS
        found = Counter(first.values())
        return [found[origin.url] for origin in self.origins]


@pytest.fixture
def network(stage: Stage, tmp_path: Path) -> Iterator[Network]:
    with contextlib.ExitStack() as stack:
        machine = stack.enter_context(namespace(tmp_path, "machine"))
        run(["ip", "link", "set", "lo", "up"], namespace=machine)
        here = Network(replace(stage, namespace=machine), [])
        for number, mbit in enumerate(MBIT):
            inside = stack.enter_context(namespace(tmp_path, f"origin-{number}"))
            for command, where in (
                (f"ip link add port{number} type veth peer name eth0 netns {inside}", machine),
                (f"ip addr add 198.51.100.{16 * number + 1}/28 dev port{number}", machine),
                (f"ip link set port{number} up", machine),
                (f"ip addr add 198.51.100.{16 * number + 2}/28 dev eth0", inside),
                ("ip link set eth0 up", inside),
                (f"tc qdisc add dev eth0 root tbf rate {mbit}mbit burst 64k latency 50ms", inside),
            ):
                run(command.split(), namespace=where)
            origin = Origin({f"/v1/blobs/{DIGEST}": ROOT}, sent=lambda count, number=number: here.sent(number, count))  # type: ignore[misc]
            here.origins.append(stack.enter_context(serving(origin, f"198.51.100.{16 * number + 2}", inside)))
        yield here


def left(done: CompletedProcess[str]) -> list[str]:
    return [line for line in done.stdout.splitlines() if line.startswith("netboot: left ")]


def test_each_brings_a_part_the_faster_more(network: Network) -> None:
    done = network.fetch()
    slow, middle, fast = network.brought()
    assert 0 < slow < middle < fast, done
    assert left(done) == []


def test_one_that_lies_from_half_way_on_is_left_and_named(network: Network) -> None:
    bad = network.origins[BAD]
    network.half_way = bad.lies.set
    done = network.fetch()
    assert left(done) == [f"netboot: left {bad.url}: sends damaged chunks"]
    assert all(count > 0 for count in network.brought()), "what it brought before stays"


def test_what_one_that_dies_half_way_had_begun_is_done_by_the_others(network: Network) -> None:
    bad = network.origins[BAD]
    network.half_way = bad.gone.set
    done = network.fetch()
    assert [line.partition(": ")[2].partition(": ")[0] for line in left(done)] == [f"left {bad.url}"]
    slow, _, fast = network.brought()
    assert 0 < slow < fast

"""Origins behind links of known speed, and the initrd's own fetch from them; in a network namespace of its own.

`unshare --net python -m bench.shaped FOLDER ROUNDS MIB` prints seconds by case as JSON: `bench.origins` starts it.
"""

import hashlib
import json
import random
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

from bench.serving import BenchError
from images.artifact.manifest import CHUNK_SIZE
from images.build.initrd import STAGE

RATES = (20, 40, 80)
"""Mbit/s of each origin's link."""
FAST = len(RATES)
"""An origin alone, by its place behind those of `RATES`; at `FAST_RATE` Mbit/s."""
FAST_RATE = 1000
BAD = 1
"""The origin that lies or dies half-way, by its place in `RATES`."""
PIECE = 65536
Fault = Literal["none", "lies", "dies"]


class Origin:
    """One file at one address; once half of all was sent it is as `fault` says."""

    def __init__(self, number: int, data: bytes, fault: Fault, sent: "Sent") -> None:
        self.number, self.address = number, f"127.0.0.{number + 2}"
        self.data, self.fault, self.sent = data, fault, sent
        self.url = f"http://{self.address}:8000"


class Sent:
    """Bytes that all origins together have sent, and half of those that there are."""

    def __init__(self, half: int) -> None:
        self.bytes, self._half, self._lock = 0, half, threading.Lock()

    def add(self, count: int) -> None:
        """More of them."""
        with self._lock:
            self.bytes += count

    @property
    def half_way(self) -> bool:
        """Whether so much was sent."""
        return self.bytes >= self._half


def shape() -> None:
    """Loopback with a token bucket (a class of htb) for each origin: what it sends is shaped, what it gets is not."""
    commands = ["ip link set lo up mtu 1500", "tc qdisc add dev lo root handle 1: htb"]
    for number, rate in enumerate((*RATES, FAST_RATE)):
        burst = 32 * (1 + rate // 100)
        commands.append(
            f"tc class add dev lo parent 1: classid 1:{number + 1} htb rate {rate}mbit burst {burst}kb cburst {burst}kb"
        )
    for command in commands:
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"{command}: {done.stderr.strip()}")


def _handler(origin: Origin) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            # htb takes a socket's priority for the class that its packets are of
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, 0x10001 + origin.number)

        def do_GET(self) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", f"bytes=0-{len(origin.data) - 1}"))
            if asked is None or self._broken():
                self.close_connection = True
                return
            first, last = int(asked[1]), int(asked[2])
            self.send_response(206 if "Range" in self.headers else 200)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(origin.data)}")
            self.send_header("Content-Length", str(last - first + 1))
            self.end_headers()
            for at in range(first, last + 1, PIECE):
                if self._broken():
                    self.close_connection = True
                    return
                piece = origin.data[at : min(at + PIECE, last + 1)]
                lies = origin.fault == "lies" and origin.sent.half_way
                self.wfile.write(piece[::-1] if lies else piece)
                origin.sent.add(len(piece))

        def _broken(self) -> bool:
            return origin.fault == "dies" and origin.sent.half_way

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
            pass

    return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass  # the stage goes away when somebody else has begun the next chunk


@contextmanager
def serving(origin: Origin) -> Iterator[Origin]:
    """Serve until the block ends."""
    with _Server((origin.address, 8000), _handler(origin)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield origin
        finally:
            server.shutdown()


FETCH = 'fetch_root && verify_root || { echo "$REASON"; exit 1; }\n'
STREAM = """
hash() {
  number=$1
  while [ "$number" -lt "$COUNT" ]; do
    sum=$(dd if="$FILE" bs="$CHUNK" skip="$number" count=1 2>/dev/null | sha256sum)
    [ "$sum" = "$(sed -n "s/^$number //p" "$RUN/manifest.json.chunks")  -" ] || exit 1
    number=$((number + $(nproc)))
  done
}
FILE=$RUN/image/root.img
wget -q -O "$FILE" "$ORIGINS/v1/blobs/$ROOT" || exit 1
worker=0 workers=''
while [ "$worker" -lt "$(nproc)" ]; do
  hash "$worker" &
  worker=$((worker + 1)) workers="$workers $!"
done
for worker in $workers; do wait "$worker" || exit 1; done
"""
"""The peer of one origin alone: one stream into the file, then all chunks hashed, a worker for each processor."""


def fetch(folder: Path, data: bytes, origins: Sequence[Origin], way: str = FETCH) -> float:
    """Seconds until the image is there and verified, all origins preferred alike.

    Raises:
        BenchError: it did not bring the image, whole and right.
    """
    run, tools = folder / "run", folder / "bin"
    shutil.rmtree(run, ignore_errors=True)
    for place in (run / "events", run / "image", tools):
        place.mkdir(parents=True, exist_ok=True)
    busybox = shutil.which("busybox") or "busybox"
    subprocess.run([busybox, "--install", "-s", str(tools)], check=True)
    chunks = [data[at : at + CHUNK_SIZE] for at in range(0, len(data), CHUNK_SIZE)]
    lines = "".join(f"{number} {hashlib.sha256(chunk).hexdigest()}\n" for number, chunk in enumerate(chunks))
    (run / "manifest.json.chunks").write_text(lines)
    (run / "image/root.img").touch()
    names = ("words", "report", "settings", "network", "trust", "fetch", "watch", "mount")
    values = {
        "RUN": str(run),
        "LIB": str(STAGE),
        "BUSYBOX": busybox,
        "BOOT": "",
        "ORIGINS": " ".join(origin.url for origin in origins),
        "PREFERRED": str(len(origins)),
        "SIZE": str(len(data)),
        "ROOT": "a" * 64,
        "CHUNK": str(CHUNK_SIZE),
        "COUNT": str(len(chunks)),
    }
    script = "".join(f"{name}='{value}'\n" for name, value in values.items())
    script += "".join(f'. "$LIB/{name}.sh"\n' for name in names) + way
    with (folder / "said").open("w+") as said:  # no pipe: a `sleep` of the stage's watcher would hold it open
        start = time.monotonic()
        done = subprocess.run(
            [busybox, "sh", "-c", script], env={"PATH": str(tools)}, stdout=said, stderr=said, check=False
        )
        seconds = time.monotonic() - start
        said.seek(0)
        if done.returncode or (run / "image/root.img").read_bytes() != data:
            raise BenchError(f"the stage did not fetch the image: {said.read()[-800:]}")
    return seconds


def main() -> None:
    """All cases by turns, `rounds` times."""
    folder, rounds, mib = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    shape()
    chance = random.Random(1)
    data = b"".join(chance.randbytes(1 << 20) for _ in range(mib))
    everyone, honest = range(len(RATES)), [number for number in range(len(RATES)) if number != BAD]
    cases: dict[str, tuple[Sequence[int], Fault, str]] = {
        "together": (everyone, "none", FETCH),
        "rest": (honest, "none", FETCH),
        "lies": (everyone, "lies", FETCH),
        "dies": (everyone, "dies", FETCH),
        "alone": ((FAST,), "none", FETCH),
        "stream": ((FAST,), "none", STREAM),
    }
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, (numbers, fault, way) in cases.items():
            sent = Sent(len(data) // 2)
            origins = [Origin(number, data, fault if number == BAD else "none", sent) for number in numbers]
            with ExitStack() as stack:
                served = [stack.enter_context(serving(origin)) for origin in origins]
                found[name].append(fetch(folder, data, served, way))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()

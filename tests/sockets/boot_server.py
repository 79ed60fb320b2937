"""The boot server for tests: the real one on a real socket of loopback, in the test's own event loop."""

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from images.artifact.manifest import Artifact
from netboot.addresses import Address
from netboot.boot.nonces import Seal
from netboot.boot.server import BootServer
from netboot.clock import SystemClock
from netboot.config import Config, Provisioning
from netboot.config_nodes import Discovery
from netboot.lifecycle.bootid import mint
from netboot.lifecycle.events import Record
from netboot.lifecycle.snapshot import ImageFacts, Snapshot
from netboot.machines.values import Channel, Inventory, Machine, Match, Profile
from netboot.processes.boot import compose
from netboot.stores.journal_reader import read_after
from netboot.stores.snapshot import write_snapshot

KERNEL = b"kernel " * 1_000
INITRD = b"initrd " * 2_000
ROOT = bytes(range(256)) * 40_000
"""Larger than two slices of sendfile."""
IMAGE = "e" * 64
MAC1, MAC2, MAC_OFF, MAC_STRANGER = (f"52:54:00:00:00:0{number}" for number in (1, 2, 3, 9))

_RECORD: TypeAdapter[Any] = TypeAdapter(Record)


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Answer:
    """A whole answer, as it came."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


def parse(raw: bytes) -> Answer:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(int(first.split()[1]), headers, body)


@dataclass
class RunningBootServer:
    """A boot server that answers on `port`."""

    config: Config
    internals: BootServer
    port: int

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)

    async def send(self, raw: bytes) -> Answer:
        """Send bytes as they are, read until the server closes."""
        reader, writer = await self.connect()
        try:
            writer.write(raw)
            return parse(await asyncio.wait_for(reader.read(-1), 60))
        finally:
            await close(writer)

    async def ask(self, target: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        """One request on a connection of its own."""
        lines = [f"{method} {target} HTTP/1.1", "Host: netboot", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        return await self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))

    def records(self) -> list[Any]:
        """What has been journalled."""
        journal = self.config.data / "journal" / "boot-0.db"
        return [_RECORD.validate_json(row.body) for row in read_after(journal, 0, most=10**6)]

    def boot_of(self, machine: str, number: int = 1) -> str:
        """A boot id as the server mints it."""
        key = (self.config.data / "boot-id.key").read_bytes()
        return mint(key, machine, IMAGE, 1_700_000_000_000 + number // 64, number)

    def publish(self, **changes: Any) -> None:
        """Publish another snapshot."""
        write_snapshot(self.config.data / "snapshot.json", snapshot(self.port).model_copy(update=changes))


def snapshot(port: int) -> Snapshot:
    """Two machines that boot, one that is disabled."""
    names = (("gpu-001", MAC1, True), ("gpu-002", MAC2, True), ("off-001", MAC_OFF, False))
    machines = tuple(
        Machine(name=name, match=Match(macs=(mac,)), profile="compute", enabled=enabled) for name, mac, enabled in names
    )
    facts = ImageFacts(
        digest=IMAGE,
        name="tiny",
        architecture="amd64",
        epoch=1,
        kernel=Artifact(sha256=digest_of(KERNEL), size=len(KERNEL)),
        initrd=Artifact(sha256=digest_of(INITRD), size=len(INITRD)),
        kernel_arguments=("console=ttyS0",),
        ram_mib=512,
    )
    url = f"http://127.0.0.1:{port}"
    return Snapshot(
        site="test",
        published_ms=1_700_000_000_000,
        inventory=Inventory(
            machines=machines,
            profiles=(Profile(name="compute", channel="stable", kernel_arguments=("quiet",)),),
            channels=(Channel(name="stable"),),
        ),
        channels={"stable": IMAGE},
        unusable={},
        images={IMAGE: facts},
        url=url,
        origins=(url,),
    )


def fill_store(store: Path) -> None:
    """Blobs, a manifest and a site bundle; what is in them does not matter to this server."""
    for folder in ("blobs", f"images/{IMAGE}", "site"):
        (store / folder).mkdir(parents=True)
    for data in (KERNEL, INITRD, ROOT, b""):
        (store / "blobs" / digest_of(data)).write_bytes(data)
    (store / "images" / IMAGE / "manifest.json").write_bytes(b'{"a":"manifest"}\n')
    (store / "images" / IMAGE / "manifest.sig").write_bytes(b"untrusted comment: manifest\n")
    (store / "site" / "bundle.json").write_bytes(b'{"a":"bundle"}\n')
    (store / "site" / "bundle.sig").write_bytes(b"untrusted comment: bundle\n")


@asynccontextmanager
async def running(
    root: Path, *, published: bool = True, seal: Seal | None = None, discovery: Discovery | None = None, **limits: Any
) -> AsyncIterator[RunningBootServer]:
    """A boot server that serves until the block ends. `limits`: fields of `provisioning`."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    provisioning = Provisioning(listen=Address("127.0.0.1", port), url=f"http://127.0.0.1:{port}", workers=1, **limits)
    config = Config(
        site="test", data=root / "data", store=root / "store", provisioning=provisioning, discovery=discovery
    )
    config.data.mkdir(exist_ok=True)
    if not config.store.exists():
        fill_store(config.store)
    if published:
        write_snapshot(config.data / "snapshot.json", snapshot(port))
    internals = compose(config, 0, SystemClock(), seal)
    acceptor = await internals.listen(listener)
    try:
        yield RunningBootServer(config, internals, port)
    finally:
        await internals.drain(acceptor)


async def close(writer: asyncio.StreamWriter) -> None:
    """End a connection, whatever the other end did with it."""
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def serve(root: Path, use: Callable[[RunningBootServer], Awaitable[None]], **options: Any) -> None:
    """Run `use` against a server."""

    async def whole() -> None:
        async with running(root, **options) as server:
            await asyncio.wait_for(use(server), 180)

    asyncio.run(whole())

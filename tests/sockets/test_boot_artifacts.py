"""Artifacts over real sockets: ranges, conditions, names; whole transfers become phases of a boot."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from netboot.boot import server as boot_server
from netboot.boot import transfers
from netboot.lifecycle.snapshot import Revocations
from netboot.stores.snapshot import read_snapshot, write_snapshot
from tests.sockets.boot_server import IMAGE, INITRD, KERNEL, MAC1, ROOT, RunningBootServer, close, digest_of, serve

BLOB = f"/v1/blobs/{digest_of(ROOT)}"
TAG = f'"{digest_of(ROOT)}"'


def test_a_blob_whole_and_its_headers(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(BLOB)
        assert (answer.status, answer.body) == (200, ROOT)
        assert answer.headers["content-length"] == str(len(ROOT))
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["etag"] == TAG
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["accept-ranges"] == "bytes"
        assert server.internals.counters.transfers == {"whole": 1, "broken": 0}
        assert server.internals.counters.bytes_sent == len(ROOT)
        assert server.internals.artifacts.transfers == set()

    serve(tmp_path, use)


def test_head_says_what_get_would_and_ignores_range(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        for answer in (await server.ask(BLOB, "HEAD"), await server.ask(BLOB, "HEAD", Range="bytes=0-9")):
            assert (answer.status, answer.body) == (200, b"")
            assert answer.headers["content-length"] == str(len(ROOT))
            assert answer.headers["etag"] == TAG

    serve(tmp_path, use)


def test_no_manifest_of_a_revoked_image(tmp_path: Path) -> None:
    """So an initrd that knows no revocations stops; blobs go out, for another image may have the same."""

    async def use(server: RunningBootServer) -> None:
        place = f"/v1/images/{IMAGE}/manifest"
        assert [(await server.ask(f"{place}.{kind}")).status for kind in ("json", "sig")] == [200, 200]
        file = server.config.data / "snapshot.json"
        revoked = {"revocations": Revocations(issued=1, images=(IMAGE,))}
        write_snapshot(file, read_snapshot(file).model_copy(update=revoked))
        await server.internals.live.refresh(force=True)
        for kind in ("json", "sig"):
            answer = await server.ask(f"{place}.{kind}")
            assert (answer.status, answer.body) == (
                404,
                b"this image is revoked at this site: see `netboot image revocations`\n",
            )
        assert (await server.ask(BLOB)).status == 200

    serve(tmp_path, use)


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=4194300-8388615", 4194300, 8388615),
        ("bytes=-5", len(ROOT) - 5, len(ROOT) - 1),
        ("bytes=10239990-", 10239990, len(ROOT) - 1),
    ],
)
def test_one_range(tmp_path: Path, asked: str, first: int, last: int) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(BLOB, Range=asked)
        assert answer.status == 206
        assert answer.headers["content-range"] == f"bytes {first}-{last}/{len(ROOT)}"
        assert answer.body == ROOT[first : last + 1]
        assert answer.headers["content-length"] == str(last + 1 - first)

    serve(tmp_path, use)


def test_ranges_that_cannot_be_are_told_the_size(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        for asked in (f"bytes={len(ROOT)}-", "bytes=-0"):
            answer = await server.ask(BLOB, Range=asked)
            assert answer.status == 416
            assert answer.headers["content-range"] == f"bytes */{len(ROOT)}"

    serve(tmp_path, use)


def test_several_ranges_and_nonsense_get_the_whole_file(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        many = ",".join(f"{n}-{n}" for n in range(0, 600, 2))
        for asked in ("bytes=0-0,2-2", f"bytes={many}", "bytes=9-1", "furlongs=1-2", "bytes=a-b"):
            answer = await server.ask(BLOB, Range=asked)
            assert (answer.status, len(answer.body)) == (200, len(ROOT))

    serve(tmp_path, use)


def test_conditions(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        same = await server.ask(BLOB, If_None_Match=f'"x", W/{TAG}')
        assert (same.status, same.body, same.headers["etag"]) == (304, b"", TAG)
        assert (await server.ask(BLOB, If_None_Match='"other"')).status == 200
        assert (await server.ask(BLOB, Range="bytes=0-9", If_Range=TAG)).body == ROOT[:10]
        assert (await server.ask(BLOB, Range="bytes=0-9", If_Range='"other"')).body == ROOT
        assert (await server.ask(BLOB, Range="bytes=0-9", If_Range="Wed, 21 Oct 2015 07:28:00 GMT")).body == ROOT

    serve(tmp_path, use)


def test_an_empty_blob(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        target = f"/v1/blobs/{digest_of(b'')}"
        answer = await server.ask(target)
        assert (answer.status, answer.body, answer.headers["content-length"]) == (200, b"", "0")
        assert (await server.ask(target, Range="bytes=0-")).status == 416

    serve(tmp_path, use)


def test_the_other_files_of_an_origin(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        manifest = await server.ask(f"/v1/images/{IMAGE}/manifest.json")
        assert (manifest.status, manifest.body) == (200, b'{"a":"manifest"}\n')
        assert manifest.headers["etag"] == f'"{IMAGE}"'
        assert manifest.headers["content-type"] == "application/json"
        assert "immutable" in manifest.headers["cache-control"]
        assert (await server.ask(f"/v1/images/{IMAGE}/manifest.sig")).body == b"untrusted comment: manifest\n"
        bundle = await server.ask("/v1/site/bundle.json")
        assert (bundle.body, bundle.headers["cache-control"]) == (b'{"a":"bundle"}\n', "no-cache")
        assert (await server.ask("/v1/site/bundle.sig")).body == b"untrusted comment: bundle\n"
        assert (await server.ask("/v1/site/bundle.json", If_None_Match=bundle.headers["etag"])).status == 304
        staged = server.config.store / "site" / "new"
        staged.write_bytes(b'{"a":"newer bundle"}\n')
        staged.replace(server.config.store / "site" / "bundle.json")
        newer = await server.ask("/v1/site/bundle.json", If_None_Match=bundle.headers["etag"])
        assert (newer.status, newer.body) == (200, b'{"a":"newer bundle"}\n')

    serve(tmp_path, use)


@pytest.mark.parametrize(
    "target",
    [
        "/v1/blobs/",
        "/v1/blobs/../secret",
        "/v1/blobs/..%2fsecret",
        "/v1/blobs/%2e%2e/secret",
        "/v1/blobs/" + "0" * 63,
        "/v1/blobs/" + "0" * 65,
        "/v1/blobs/" + "0" * 64 + "/",
        "/v1/blobs/" + "0" * 64 + "%00",
        "/v1/blobs/" + "A" * 64,
        "/v1/blobs/%30" + "0" * 63,
        "//v1/blobs/" + "0" * 64,
        "/v1//blobs/" + "0" * 64,
        "/v1/./blobs/" + "0" * 64,
        "/v1/images/" + IMAGE + "/../../blobs/x",
        "/v1/images/" + IMAGE + "/manifest.json/",
        "/v1/images/" + IMAGE + "/manifest.exe",
        "/v1/images/..%5c/manifest.json",
        "/v1/site/../netboot.yaml",
        "/v1/site/bundle.json%00.sig",
        "/v1/site/",
        "/v1/boot/",
        "/V1/boot",
        "/",
        "/etc/passwd",
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/metrics",
    ],
)
def test_paths_that_are_not_ours_never_reach_the_file_system(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(server: RunningBootServer) -> None:
        (server.config.store / "secret").write_text("secret")

        def reached(path: str, what: str) -> None:
            pytest.fail(f"opened {path}")

        monkeypatch.setattr("netboot.boot.artifacts.open_file", reached)
        answer = await server.ask(target)
        assert answer.status == 404
        assert answer.body.count(b"\n") == 1
        assert b"etc" not in answer.body

    serve(tmp_path, use)


def test_a_blob_that_is_missing_is_404_and_one_that_cannot_be_read_is_503(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        blobs = server.config.store / "blobs"
        missing = await server.ask(f"/v1/blobs/{'0' * 64}")
        assert (missing.status, missing.body) == (404, f"no such blob {'0' * 64}; see `netboot image list`\n".encode())
        (blobs / ("1" * 64)).symlink_to("/etc/passwd")
        (blobs / ("2" * 64)).mkdir()
        os.mkfifo(blobs / ("3" * 64))
        for digit in "123":
            answer = await server.ask(f"/v1/blobs/{digit * 64}")
            assert (answer.status, answer.headers["retry-after"]) == (503, "10")
            assert answer.body == b"the store cannot be used right now; see the log of the service\n"

    serve(tmp_path, use)


def test_a_bundle_of_links_within_the_store_is_served_and_no_link_out_of_it(tmp_path: Path) -> None:
    """As a ConfigMap is mounted: all of it changes with one link."""

    async def use(server: RunningBootServer) -> None:
        site = server.config.store / "site"
        (site / "..now").mkdir()
        (site / "bundle.json").rename(site / "..now/bundle.json")
        (site / "..data").symlink_to("..now")
        (site / "bundle.json").symlink_to("..data/bundle.json")
        assert (await server.ask("/v1/site/bundle.json")).body == b'{"a":"bundle"}\n'
        (site / "..now/bundle.json").unlink()
        assert (await server.ask("/v1/site/bundle.json")).status == 404
        (site / "..now/bundle.json").symlink_to("/etc/passwd")
        answer = await server.ask("/v1/site/bundle.json")
        assert (answer.status, answer.body) == (
            503,
            b"the store cannot be used right now; see the log of the service\n",
        )

    serve(tmp_path, use)


def test_methods_that_are_not_ours_are_told_which_are(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        for target, allowed in (
            (BLOB, "GET, HEAD"),
            ("/boot.ipxe", "GET, HEAD"),
            ("/v1/boot", "GET"),
            (f"/v1/boots/{server.boot_of('gpu-001')}/events", "POST"),
        ):
            answer = await server.ask(target, "DELETE")
            assert (answer.status, answer.headers["allow"]) == (405, allowed)
        assert (await server.ask("/nothing", "DELETE")).status == 404

    serve(tmp_path, use)


def events(server: RunningBootServer) -> list[tuple[str, str]]:
    return [(record.machine, record.phase) for record in server.records() if record.kind == "event"]


def test_whole_transfers_of_kernel_and_initrd_are_phases_and_nothing_else_is(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        asks = f"?boot={boot}&machine=gpu-001"
        kernel, initrd = f"/v1/blobs/{digest_of(KERNEL)}", f"/v1/blobs/{digest_of(INITRD)}"
        nothing: dict[str, str] = {}
        for target, method, headers in (
            (kernel, "GET", nothing),
            (kernel + asks, "HEAD", nothing),
            (kernel + asks, "GET", {"Range": "bytes=0-9"}),
            (kernel + asks, "GET", {"If-None-Match": f'"{digest_of(KERNEL)}"'}),
            (BLOB + asks, "GET", nothing),
            (f"{kernel}?boot={boot}&machine=gpu-002", "GET", nothing),
            (f"{kernel}?boot={boot}&machine=nobody", "GET", nothing),
            (f"{kernel}?boot={boot}", "GET", nothing),
            (f"{kernel}?boot=%00&machine=gpu-001", "GET", nothing),
        ):
            assert (await server.ask(target, method, None, **headers)).status in (200, 206, 304)
        assert events(server) == []
        assert (await server.ask(kernel + asks)).body == KERNEL
        assert (await server.ask(initrd + asks)).body == INITRD
        assert events(server) == [("gpu-001", "KernelFetched"), ("gpu-001", "InitrdFetched")]

    serve(tmp_path, use)


def test_a_reader_that_stands_still_is_ended_and_its_transfer_was_not_whole(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        big = b"\0" * 64 * 2**20
        (server.config.store / "blobs" / digest_of(big)).write_bytes(big)
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(f"GET /v1/blobs/{digest_of(big)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        # not until it is under way: that lasts for half a second, too short for a busy machine to see
        await until(lambda: any(server.internals.counters.transfers.values()))
        await until(lambda: server.internals.gate.open == 0)
        assert server.internals.counters.transfers == {"whole": 0, "broken": 1}
        assert server.internals.counters.bytes_sent < len(big)
        await close(writer)

    serve(tmp_path, use, send_stall_seconds=0.5)


def test_a_reader_that_dribbles_is_ended_by_what_it_has_to_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the kernel, which ends such a one too where it looks: here it does not."""

    def without_user_timeout(listener: socket.socket, _limits: object) -> None:
        listener.setblocking(False)

    async def use(server: RunningBootServer) -> None:
        monkeypatch.setattr(transfers, "LEAST", 2**30)
        big = b"\0" * 64 * 2**20
        (server.config.store / "blobs" / digest_of(big)).write_bytes(big)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(f"GET /v1/blobs/{digest_of(big)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        dribbling = asyncio.ensure_future(dribble(reader))
        await until(lambda: any(server.internals.counters.transfers.values()))
        dribbling.cancel()
        assert server.internals.counters.transfers == {"whole": 0, "broken": 1}
        await until(lambda: server.internals.gate.open == 0)
        await close(writer)

    monkeypatch.setattr(boot_server, "prepare_listener", without_user_timeout)
    serve(tmp_path, use, send_stall_seconds=0.5)


async def dribble(reader: asyncio.StreamReader) -> None:
    """Take a little, again and again."""
    while True:
        await reader.read(2**16)
        await asyncio.sleep(0.05)


def test_a_reader_that_goes_away_ends_its_transfer_and_nothing_is_said_of_the_boot(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        big = b"\0" * 64 * 2**20
        (server.config.store / "blobs" / digest_of(big)).write_bytes(big)
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(f"GET /v1/blobs/{digest_of(big)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await until(lambda: bool(server.internals.artifacts.transfers))
        writer.transport.abort()
        await until(lambda: server.internals.counters.transfers["broken"] == 1)
        await until(lambda: server.internals.gate.open == 0)
        assert (await server.ask(f"/v1/boot?mac={MAC1}")).status == 200

    serve(tmp_path, use)


def test_a_file_that_became_shorter_is_never_taken_for_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(server: RunningBootServer) -> None:
        path = server.config.store / "blobs" / digest_of(KERNEL)
        honest = transfers.open_file

        def shrinks(path: str, what: str) -> object:
            opened = honest(path, what)
            os.truncate(path, 10)
            return opened

        monkeypatch.setattr("netboot.boot.artifacts.open_file", shrinks)
        reader, writer = await server.connect()
        asks = f"?boot={server.boot_of('gpu-001')}&machine=gpu-001"
        writer.write(f"GET /v1/blobs/{path.name}{asks} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        try:
            said = await reader.read(-1)
        except ConnectionError:
            said = b""
        assert len(said.partition(b"\r\n\r\n")[2]) <= 10
        await close(writer)
        assert server.internals.counters.transfers == {"whole": 0, "broken": 1}
        assert events(server) == []

    serve(tmp_path, use)


async def until(so: object) -> None:
    """Wait for a condition of the server; the test as a whole has a deadline."""
    assert callable(so)
    while not so():
        await asyncio.sleep(0.01)

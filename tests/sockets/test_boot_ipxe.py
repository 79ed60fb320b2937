"""iPXE over HTTP: by a table of names, whole, in parts, and what was there when the server began."""

from pathlib import Path

from netboot.dhcp.binaries import LONGEST
from tests.sockets.boot_server import RunningBootServer, digest_of, serve

SMALL, FULL = b"MZ small " * 20_000, b"MZ full " * 100_000


def folder(root: Path) -> Path:
    """As Debian's package has it: some are links; what is too large, or no file, is not there."""
    (made := root / "ipxe").mkdir()
    (made / "snponly.efi").write_bytes(SMALL)
    (root / "elsewhere.efi").write_bytes(FULL)
    (made / "ipxe.efi").symlink_to(root / "elsewhere.efi")
    (made / "undionly.kpxe").write_bytes(bytes(LONGEST + 1))
    (made / "ipxe-arm64.efi").mkdir()
    return made


def test_what_the_folder_had_at_the_start(tmp_path: Path) -> None:
    made = folder(tmp_path)

    async def use(server: RunningBootServer) -> None:
        for name, data in (("snponly.efi", SMALL), ("ipxe.efi", FULL)):
            (made / name).unlink()
            tag = f'"{digest_of(data)}"'
            answer = await server.ask(f"/ipxe/{name}")
            assert (answer.status, answer.body) == (200, data)
            headers = ("content-type", "content-length", "etag", "cache-control", "accept-ranges")
            assert [answer.headers[header] for header in headers] == [
                "application/efi",
                str(len(data)),
                tag,
                "no-cache",
                "bytes",
            ]
            head = await server.ask(f"/ipxe/{name}", "HEAD")
            assert (head.status, head.headers["content-length"], head.body) == (200, str(len(data)), b"")
            assert (await server.ask(f"/ipxe/{name}", If_None_Match=tag)).status == 304
            part = await server.ask(f"/ipxe/{name}", Range="bytes=3-10")
            assert (part.status, part.body) == (206, data[3:11])
        assert server.internals.counters.transfers == {"whole": 4, "broken": 0}

    serve(tmp_path, use, ipxe=made)


def test_no_other_name_is_looked_for(tmp_path: Path) -> None:
    made = folder(tmp_path)
    (made / "secret").write_bytes(b"secret")

    async def use(server: RunningBootServer) -> None:
        for name in ("", "secret", "../ipxe/ipxe.efi", "./ipxe.efi", "ipxe%2eefi", "ipxe.efi/", "IPXE.EFI"):
            answer = await server.ask(f"/ipxe/{name}")
            assert (answer.status, b"secret" in answer.body) == (404, False), name
        assert (await server.ask("/ipxe/snponly.efi", "POST")).status == 405

    serve(tmp_path, use, ipxe=made)


def test_a_site_without_any(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        assert (await server.ask("/ipxe/snponly.efi")).status == 404
        assert (await server.ask("/boot.ipxe")).status == 200

    serve(tmp_path, use, ipxe=tmp_path / "nowhere")

"""`/boot.ipxe` and `/v1/boot` over real sockets: whole scripts, whatever happens."""

import asyncio
import hashlib
import re
from pathlib import Path

import pytest

from netboot.lifecycle.bootid import belongs, is_of
from netboot.lifecycle.decided import arguments_digest
from netboot.lifecycle.events import DiscoveryRecord, ScriptRecord
from tests.sockets.boot_server import (
    IMAGE,
    INITRD,
    KERNEL,
    MAC1,
    MAC_OFF,
    MAC_STRANGER,
    RunningBootServer,
    digest_of,
    serve,
)

_BOOT_ID = r"[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_SLEEP = re.compile(r"^sleep ([0-9]+)", re.MULTILINE)


def boot_script(port: int, boot: str, seconds: int) -> str:
    url = f"http://127.0.0.1:{port}"
    asks = f"?boot={boot}&machine=gpu-001"
    return f"""\
#!ipxe
# netboot: machine gpu-001, image {IMAGE}
imgfree ||
echo netboot: gpu-001 boots image {IMAGE[:12]}, boot {boot}
kernel --timeout 60000 --name kernel {url}/v1/blobs/{digest_of(KERNEL)}{asks} initrd=initrd \
netboot.boot={boot} netboot.image={IMAGE} netboot.report={url} netboot.origins={url} \
BOOTIF=01-${{netX/mac:hexhyp}} systemd.hostname=gpu-001 console=ttyS0 quiet || goto retry
initrd --timeout 60000 --name initrd {url}/v1/blobs/{digest_of(INITRD)}{asks} || goto retry
boot ||
:retry
imgfree ||
echo netboot: gpu-001 could not start image {IMAGE[:12]}, asking again in {seconds} seconds
sleep {seconds} ||
chain --replace --autofree --timeout 30000 {url}/boot.ipxe ||
goto retry
"""


def test_a_known_machine_gets_its_whole_script_and_the_record_is_durable_first(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask("/v1/boot?mac=5254-0000-0001&uuid=&arch=x86_64&platform=efi&serial=")
        assert answer.status == 200
        assert answer.headers["netboot-outcome"] == "boot"
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-length"] == str(len(answer.body))
        text = answer.body.decode()
        boot = re.findall(_BOOT_ID, text)[0]
        assert text == boot_script(server.port, boot, int(_SLEEP.findall(text)[0]))
        assert belongs((server.config.data / "boot-id.key").read_bytes(), boot, "gpu-001")
        assert is_of(boot, IMAGE, None)
        (record,) = server.records()
        assert record == ScriptRecord(
            at_ms=record.at_ms,
            boot=boot,
            machine="gpu-001",
            cluster="default",
            image=IMAGE,
            profile="compute",
            channel="stable",
            decision=record.decision,
            script=hashlib.sha256(text.replace(boot, "").encode()).hexdigest()[:16],
            arguments=arguments_digest(("console=ttyS0", "quiet")),
            peer="127.0.0.1",
        )

    serve(tmp_path, use)


def test_every_script_is_a_boot_of_its_own_also_on_one_connection(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        request = f"GET /v1/boot?mac={MAC1} HTTP/1.1\r\nHost: netboot\r\n"
        raw = (f"{request}\r\n" * 3 + f"{request}Connection: close\r\n\r\n").encode()
        reader, writer = await server.connect()
        writer.write(raw)
        said = (await reader.read(-1)).decode()
        writer.close()
        await writer.wait_closed()
        assert said.count("HTTP/1.1 200 OK") == 4
        numbers = [int(record.boot[19:21], 16) for record in server.records()]
        assert [(number - numbers[0]) % 64 for number in numbers] == [0, 1, 2, 3], "also in one millisecond"
        assert said.count("Connection: close") == 1

    serve(tmp_path, use)


def test_http_1_0_is_answered_and_closed(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.send(f"GET /v1/boot?mac={MAC1} HTTP/1.0\r\n\r\n".encode())
        assert answer.status == 200
        assert answer.body.startswith(b"#!ipxe\n")

    serve(tmp_path, use)


def test_the_absolute_form_of_a_request_means_the_same(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(f"http://127.0.0.1:{server.port}/v1/boot?mac={MAC1}")
        assert answer.headers["netboot-outcome"] == "boot"

    serve(tmp_path, use)


def test_the_chain_script_collects_identity_and_never_gives_up(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask("/boot.ipxe")
        assert answer.status == 200
        text = answer.body.decode()
        url, seconds = f"http://127.0.0.1:{server.port}", _SLEEP.findall(text)[0]
        assert 5 <= int(seconds) <= 20
        assert text.startswith("#!ipxe\n")
        assert f"chain --replace --autofree --timeout 30000 {url}/v1/boot?mac=${{netX/mac:hexhyp}}&" in text
        assert "exit" not in text
        head = await server.ask("/boot.ipxe", "HEAD")
        assert (head.status, head.body) == (200, b"")
        assert int(head.headers["content-length"]) > 100

    serve(tmp_path, use)


def test_an_unknown_machine_waits_and_is_journalled_once(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        for _ in range(3):
            answer = await server.ask(f"/v1/boot?mac={MAC_STRANGER}&serial=ABC&arch=x86_64")
            assert (answer.status, answer.headers["netboot-outcome"]) == (200, "unknown")
            text = answer.body.decode()
            seconds = int(_SLEEP.findall(text)[0])
            assert 20 <= seconds <= 40
            assert (
                text
                == f"""\
#!ipxe
imgfree ||
echo netboot: this machine is not in the inventory of site test
echo netboot: - MAC 52:54:00:00:00:09
echo netboot: - UUID (none usable)
echo netboot: - serial ABC
echo netboot: - architecture amd64
echo netboot: - no machine of the inventory has MAC 52:54:00:00:00:09 or serial ABC
:wait
echo netboot: asking again in {seconds} seconds
sleep {seconds} ||
chain --replace --autofree --timeout 30000 http://127.0.0.1:{server.port}/boot.ipxe ||
goto wait
"""
            )
        (record,) = server.records()
        assert isinstance(record, DiscoveryRecord)
        assert (record.outcome, record.mac, record.serial) == ("unknown", MAC_STRANGER, "ABC")

    serve(tmp_path, use)


def test_a_disabled_machine_is_told_why_and_journalled_as_refused(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(f"/v1/boot?mac={MAC_OFF}")
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "refused")
        assert b"echo netboot: refused: this machine is disabled (off-001)\n" in answer.body
        (record,) = server.records()
        assert (record.kind, record.outcome, record.mac) == ("discovery", "refused", MAC_OFF)

    serve(tmp_path, use)


def test_a_machine_for_which_there_is_no_usable_image_is_told_so_and_it_is_written_down(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        server.publish(channels={"stable": None}, images={})
        await server.internals.live.refresh()
        for _ in range(2):
            answer = await server.ask(f"/v1/boot?mac={MAC1}")
            assert (answer.status, answer.headers["netboot-outcome"]) == (200, "unavailable")
        (record,) = server.records()
        assert (record.kind, record.machine, record.peer) == ("wait", "gpu-001", "127.0.0.1")
        assert record.reason == "channel stable has no image yet: run `netboot channel set stable <image>`"

    serve(tmp_path, use)


def test_waits_are_jittered(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        bodies = [(await server.ask(f"/v1/boot?mac={MAC_STRANGER}")).body.decode() for _ in range(30)]
        assert len({_SLEEP.findall(body)[0] for body in bodies}) > 3

    serve(tmp_path, use)


def test_before_anything_was_published_machines_are_told_to_come_back(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(f"/v1/boot?mac={MAC1}")
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "unavailable")
        assert b"echo netboot: cannot tell right now what this machine boots\n" in answer.body
        ready = await server.ask("/readyz")
        assert ready.status == 503
        assert b"is not there: nothing has been published yet" in ready.body
        assert (await server.ask("/healthz")).status == 200

    serve(tmp_path, use, published=False)


def test_a_journal_that_cannot_be_written_gives_a_retrying_script_and_recovers(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        assert (await server.ask(f"/v1/boot?mac={MAC1}")).headers["netboot-outcome"] == "boot"  # the journal is there
        journal = server.config.data / "journal"
        journal.rename(server.config.data / "aside")  # in one step: the worker may be making files in it
        journal.write_text("in the way")
        answer = await server.ask(f"/v1/boot?mac={MAC1}")
        while answer.headers["netboot-outcome"] == "boot":  # the open file goes on until the next look at it
            await asyncio.sleep(0.05)
            answer = await server.ask(f"/v1/boot?mac={MAC1}")
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "unavailable")
        assert b"machine gpu-001 may boot, but its boot cannot be written down right now" in answer.body
        ready = await server.ask("/readyz")
        assert ready.status == 503
        assert b"cannot be written" in ready.body
        posted = await server.ask(
            f"/v1/boots/{server.boot_of('gpu-001')}/events", "POST", f'{{"mac":"{MAC1}","phase":"Booted"}}'.encode()
        )
        assert (posted.status, posted.headers["retry-after"]) == (503, "10")
        assert posted.body == b"cannot be written down right now; try again\n"
        journal.unlink()
        assert (await server.ask(f"/v1/boot?mac={MAC1}")).headers["netboot-outcome"] == "boot"
        assert (await server.ask("/readyz")).status == 200

    serve(tmp_path, use)


def test_a_defect_gives_firmware_a_script_and_the_log_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def use(server: RunningBootServer) -> None:
        catalogue = server.internals.live.catalogue
        assert catalogue is not None

        def broken(query: str) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(catalogue, "find", broken)
        answer = await server.ask(f"/v1/boot?mac={MAC1}")
        assert (answer.status, answer.headers["netboot-outcome"]) == (200, "unavailable")
        assert answer.body.startswith(b"#!ipxe\n")

    serve(tmp_path, use)
    assert "defect: /v1/boot was not answered" in caplog.text


def test_every_url_that_a_script_names_resolves(tmp_path: Path) -> None:
    """The boot contract: what the templates write is what the server answers."""

    async def use(server: RunningBootServer) -> None:
        asked: set[str] = set()
        scripts = ["/boot.ipxe"] + [f"/v1/boot?mac={mac}" for mac in (MAC1, MAC_OFF, MAC_STRANGER)]
        for start in scripts:
            text = (await server.ask(start)).body.decode()
            for url in re.findall(r"http://127\.0\.0\.1:[0-9]+(/\S*)", text):
                target = url.replace("${netX/mac:hexhyp}", MAC1.replace(":", "-"))
                target = re.sub(r"\$\{[^}]*\}", "", target)
                answer = await server.ask(target)
                assert answer.status == 200, target
                asked.add(target.partition("?")[0])
        kernel, initrd = digest_of(KERNEL), digest_of(INITRD)
        assert asked == {"/boot.ipxe", "/v1/boot", f"/v1/blobs/{kernel}", f"/v1/blobs/{initrd}"}
        phases = [record.phase for record in server.records() if record.kind == "event"]
        assert phases == ["KernelFetched", "InitrdFetched"]

    serve(tmp_path, use)

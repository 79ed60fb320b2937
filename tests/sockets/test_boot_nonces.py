"""`/v1/boots/<id>/nonce`, and the scripts that name it: while the window is open, for boots of its machine."""

import base64
import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest

from netboot.join.state import Nonce, seal_nonce, unseal_nonce
from netboot.lifecycle.snapshot import BootWindow
from netboot.stores.sealing import SealingKeysError
from tests.nonces import nonce_text
from tests.sockets.boot_server import MAC1, MAC2, MAC_OFF, Answer, RunningBootServer, serve
from tokens.sealed import Keyset, SealingKey

KEYS = Keyset((SealingKey(b"n" * 32),))
GONE = b"no nonce for this boot: no boot window of its machine is open; `netboot token issue` opens one\n"


def seal(*, mac: str, address: str, machine: str, window: str, now_ms: int) -> bytes:
    nonce = Nonce(mac=mac, address=address, machine=machine, window=window)
    return seal_nonce(KEYS, "test", nonce, now_ms, os.urandom)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def opened(server: RunningBootServer, seconds: int = 600, *names: str) -> None:
    until = now_ms() + seconds * 1000
    server.publish(windows={name: BootWindow(id=f"w-{name}", until_ms=until) for name in names or ("gpu-001",)})
    await server.internals.live.refresh(force=True)


def path(server: RunningBootServer, machine: str = "gpu-001", mac: str = MAC1, boot: str | None = None) -> str:
    return f"/v1/boots/{boot or server.boot_of(machine)}/nonce?machine={machine}&mac={mac.replace(':', '-')}"


def nonce_in(answer: Answer) -> Nonce:
    """What is sealed in an answer."""
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
    return unseal_nonce(KEYS, "test", base64.b64decode(nonce_text(answer.body), validate=True), now_ms())


def test_a_boot_of_the_machine_gets_a_nonce_for_its_card_and_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    sent: list[Answer] = []

    async def use(server: RunningBootServer) -> None:
        await opened(server)
        answer = await server.ask(path(server))
        sent.append(answer)
        found = nonce_in(answer)
        assert found == Nonce(mac=MAC1, address="127.0.0.1", machine="gpu-001", window="w-gpu-001")
        assert answer.headers["content-type"] == "application/octet-stream"
        assert (await server.ask(path(server))).body != answer.body
        for method in ("POST", "HEAD", "PUT"):
            assert (await server.ask(path(server), method)).status == 405
        assert server.records() == []

    serve(tmp_path, use, seal=seal)
    assert "the nonce of a boot window was fetched" in caplog.text
    assert nonce_text(sent[0].body) not in caplog.text


@pytest.mark.parametrize(
    ("what", "query"),
    [
        ("another machine's boot", {"boot": "gpu-002"}),
        ("a boot that nobody minted", {"boot": None}),
        ("another machine's card", {"mac": MAC2}),
        ("a card of nobody", {"mac": "52:54:00:00:00:77"}),
        ("no card", {"mac": "x"}),
        ("another machine", {"machine": "gpu-002"}),
        ("a machine of nobody", {"machine": "gpu-009"}),
        ("a disabled machine", {"machine": "off-001", "mac": MAC_OFF}),
        ("a machine twice", {"machine": "gpu-001&machine=gpu-001"}),
        ("many fields", {"machine": "gpu-001" + "&a=1" * 9}),
    ],
)
def test_for_anything_else_there_is_none(tmp_path: Path, what: str, query: dict[str, Any]) -> None:
    async def use(server: RunningBootServer) -> None:
        await opened(server, 600, "gpu-001", "off-001")
        machine = query.get("machine", "gpu-001")
        boot = "01a0c450-6fe8-8000-8001-000000000000"
        if query.get("boot", machine) is not None:
            boot = server.boot_of(query.get("boot", machine))
        answer = await server.ask(path(server, machine, query.get("mac", MAC1), boot))
        assert (answer.status, answer.body) == (404, GONE)
        assert answer.headers["cache-control"] == "no-store"

    serve(tmp_path, use, seal=seal)


def test_a_window_that_is_closed_over_or_was_never_open(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        assert (await server.ask(path(server))).body == GONE
        await opened(server, -1)
        assert (await server.ask(path(server))).body == GONE
        await opened(server)
        assert (await server.ask(path(server))).status == 200
        server.publish()
        await server.internals.live.refresh(force=True)
        assert (await server.ask(path(server))).body == GONE

    serve(tmp_path, use, seal=seal)


def test_where_machines_do_not_join_there_are_no_nonces(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        await opened(server)
        assert (await server.ask(path(server))).body == GONE

    serve(tmp_path, use)


def test_without_a_key_it_cannot_be_told_right_now(tmp_path: Path) -> None:
    def broken(**_: Any) -> bytes:
        raise SealingKeysError("the nonce keys cannot be read")

    async def use(server: RunningBootServer) -> None:
        await opened(server)
        answer = await server.ask(path(server))
        assert (answer.status, answer.headers["cache-control"]) == (503, "no-store")
        assert int(answer.headers["retry-after"]) > 0

    serve(tmp_path, use, seal=broken)


def test_the_script_names_it_only_while_the_window_is_open(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        async def names_it(mac: str) -> bool:
            text = (await server.ask(f"/v1/boot?mac={mac}")).body.decode()
            assert text.startswith("#!ipxe\n# netboot: machine ")
            assert ("initrd=nonce" in text) == ("/nonce?machine=" in text)
            return "initrd=nonce" in text

        assert not await names_it(MAC1)
        await opened(server)
        assert await names_it(MAC1)
        assert not await names_it(MAC2)
        await opened(server, -1)
        assert not await names_it(MAC1)

    serve(tmp_path, use, seal=seal)


def test_the_url_of_a_script_is_answered(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        await opened(server)
        text = (await server.ask(f"/v1/boot?mac={MAC1}")).body.decode()
        (line,) = (one for one in text.splitlines() if one.startswith("initrd ") and "nonce" in one)
        url = line.split()[5].replace("${netX/mac:hexhyp}", MAC1.replace(":", "-"))
        answer = await server.ask(url.removeprefix(f"http://127.0.0.1:{server.port}"))
        assert nonce_in(answer).machine == "gpu-001"

    serve(tmp_path, use, seal=seal)

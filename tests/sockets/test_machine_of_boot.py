"""A machine that no MAC leads to: it is declared by UUID alone, and nothing that it reports is lost."""

import json
import os
from pathlib import Path
from typing import Any

from netboot.join.state import Nonce, seal_nonce
from netboot.lifecycle.snapshot import BootWindow
from netboot.machines.values import Inventory, Machine, Match
from tests.sockets.boot_server import KERNEL, MAC1, MAC_STRANGER, RunningBootServer, digest_of, serve, snapshot
from tests.sockets.test_boot_nonces import KEYS, nonce_in, now_ms

UUID = "4c4c4544-0042-3510-8052-b4c04f4e4d31"
CHECKS = [{"name": "cpus", "status": "pass", "severity": "major", "summary": "2 CPUs", "ms": 3, "facts": {}}]


def seal(*, mac: str, address: str, machine: str, window: str, now_ms: int) -> bytes:
    return seal_nonce(KEYS, "test", Nonce(mac=mac, address=address, machine=machine, window=window), now_ms, os.urandom)


async def publish(server: RunningBootServer) -> None:
    """`old-001`, by its UUID alone, with a boot window; beside the machines that there are."""
    known = snapshot(server.port).inventory
    machine = Machine(name="old-001", match=Match(uuid=UUID), profile="compute", identity="nonce")
    inventory = Inventory(machines=(*known.machines, machine), profiles=known.profiles, channels=known.channels)
    window = BootWindow(id="w", until_ms=now_ms() + 600_000)
    server.publish(inventory=inventory, windows={"old-001": window})
    await server.internals.live.refresh(force=True)


async def booted(server: RunningBootServer) -> str:
    """The boot id in the script that it is served."""
    await publish(server)
    script = (await server.ask(f"/v1/boot?mac={MAC_STRANGER}&uuid={UUID}")).body.decode()
    return script.split("netboot.boot=")[1].split()[0]


def recorded(server: RunningBootServer) -> list[tuple[str, str, str]]:
    return [(one.kind, one.machine, one.boot) for one in server.records()]


def test_its_events_are_taken_by_its_name(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = await booted(server)
        for mac in (MAC_STRANGER, None, MAC1):  # a card that nobody declared, none that is known, another machine's
            event = {"mac": mac, "machine": "old-001", "phase": "Booted"}
            assert (await server.ask(f"/v1/boots/{boot}/events", "POST", json.dumps(event).encode())).status == 204
        assert recorded(server) == [("script", "old-001", boot), *[("event", "old-001", boot)] * 3]

    serve(tmp_path, use)


def test_who_names_it_without_a_boot_of_it_is_refused(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = await booted(server)
        lies: tuple[tuple[str, dict[str, Any]], ...] = (
            (server.boot_of("gpu-001"), {"machine": "old-001"}),
            (boot, {"machine": "gpu-001", "mac": MAC1}),
            (boot, {"machine": None, "mac": MAC_STRANGER}),
            (boot, {}),
        )
        for wrong, who in lies:
            event = json.dumps({**who, "phase": "Booted"}).encode()
            assert (await server.ask(f"/v1/boots/{wrong}/events", "POST", event)).status == 404
        assert recorded(server) == [("script", "old-001", boot)]

    serve(tmp_path, use)


def test_a_name_that_is_wrong_does_not_hide_what_the_card_proves(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        for name in ("renamed", "gpu-002"):
            event = json.dumps({"mac": MAC1, "machine": name, "phase": "Booted"}).encode()
            assert (await server.ask(f"/v1/boots/{boot}/events", "POST", event)).status == 204
        assert recorded(server) == [("event", "gpu-001", boot)] * 2

    serve(tmp_path, use)


def test_its_health_is_asked_for_and_taken(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = await booted(server)
        expected = await server.ask(f"/v1/boots/{boot}/health?machine=old-001&mac={MAC_STRANGER}")
        assert (expected.status, json.loads(expected.body)["expected"]) == (200, {})
        report = {"schema": 1, "machine": "old-001", "mac": MAC_STRANGER, "taken_ms": 5, "checks": CHECKS}
        assert (await server.ask(f"/v1/boots/{boot}/health", "POST", json.dumps(report).encode())).status == 204
        assert recorded(server)[1:] == [("health", "old-001", boot)]

    serve(tmp_path, use)


def test_its_files_are_counted_as_its_own(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = await booted(server)
        target = f"/v1/blobs/{digest_of(KERNEL)}?boot={boot}&machine=old-001"
        assert (await server.ask(target)).body == KERNEL
        assert recorded(server)[1:] == [("event", "old-001", boot)]

    serve(tmp_path, use)


def test_its_nonce_is_for_the_card_that_it_booted_from(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = await booted(server)
        answer = await server.ask(f"/v1/boots/{boot}/nonce?machine=old-001&mac={MAC_STRANGER}")
        assert nonce_in(answer) == Nonce(mac=MAC_STRANGER, address="127.0.0.1", machine="old-001", window="w")
        for query in ("machine=old-001", f"machine=gpu-001&mac={MAC_STRANGER}", f"mac={MAC1}"):
            assert (await server.ask(f"/v1/boots/{boot}/nonce?{query}")).status == 404

    serve(tmp_path, use, seal=seal)

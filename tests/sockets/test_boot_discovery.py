"""Discovery over real sockets: what an unknown machine is served, what it may report, and when it is told to reboot."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from netboot.boot import ingest
from netboot.boot.discovery import OLDEST_MS, share
from netboot.config_nodes import Discovery
from netboot.lifecycle.bootid import mint
from netboot.lifecycle.hardware import KEPT_MS, LONGEST_REPORT, MOST_MACHINES
from netboot.machines.values import Machine, Match
from tests.records import made_of
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
    snapshot,
)

ON = Discovery(channel="stable", kernel_arguments=("quiet",))
UUID = "4e4f4445-0000-4000-8000-000000000001"


def report(mac: str = MAC_STRANGER, **more: Any) -> bytes:
    return json.dumps({**made_of(mac).report.model_dump(mode="json"), **more}).encode()


async def boot_of(server: RunningBootServer, mac: str = MAC_STRANGER) -> str:
    """The id in the script that it is served."""
    answer = await server.ask(f"/v1/boot?mac={mac}&uuid={UUID}&arch=x86_64")
    assert answer.headers["netboot-outcome"] == "discovery", answer.body.decode()
    return str(re.findall(r"netboot\.boot=(\S+)", answer.body.decode())[0])


def discovery_script(port: int, boot: str, seconds: str) -> str:
    url, name = f"http://127.0.0.1:{port}", "discovery-52-54-00-00-00-09"
    asks = f"?boot={boot}&machine={name}"
    return f"""\
#!ipxe
# netboot: machine {name}, image {IMAGE}
imgfree ||
echo netboot: {name} boots image {IMAGE[:12]}, boot {boot}
kernel --timeout 60000 --name kernel {url}/v1/blobs/{digest_of(KERNEL)}{asks} initrd=initrd \
netboot.boot={boot} netboot.image={IMAGE} netboot.report={url} netboot.origins={url} \
BOOTIF=01-${{netX/mac:hexhyp}} systemd.hostname={name} console=ttyS0 quiet netboot.discovery=1 \
systemd.unit=netboot-discovery.target || goto retry
initrd --timeout 60000 --name initrd {url}/v1/blobs/{digest_of(INITRD)}{asks} || goto retry
boot ||
:retry
imgfree ||
echo netboot: {name} could not start image {IMAGE[:12]}, asking again in {seconds} seconds
sleep {seconds} ||
chain --replace --autofree --timeout 30000 {url}/boot.ipxe ||
goto retry
"""


def test_an_unknown_machine_says_what_it_is_made_of_and_reboots_once_it_is_declared(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        text = (await server.ask(f"/v1/boot?mac={MAC_STRANGER}&arch=x86_64")).body.decode()
        boot, seconds = re.findall(r"netboot\.boot=(\S+)", text)[0], re.findall(r"(?m)^sleep (\d+)", text)[0]
        assert text == discovery_script(server.port, boot, seconds)
        path, query = f"/v1/boots/{boot}/discovery", f"?mac={MAC_STRANGER}&uuid={UUID}&serial="
        assert json.loads((await server.ask(path + query)).body) == {"schema": 1, "declared": False}
        assert (await server.ask(path, "POST", report())).status == 204
        seen, record = server.records()
        assert (seen.kind, record.kind, record.boot, record.peer) == ("discovery", "hardware", boot, "127.0.0.1")
        assert record.report == made_of(MAC_STRANGER).report
        inventory = snapshot(server.port).inventory
        mine = Machine(name="new-001", match=Match(uuid=UUID), profile="compute")
        server.publish(inventory=inventory.model_copy(update={"machines": (*inventory.machines, mine)}))
        await server.internals.live.refresh()
        assert json.loads((await server.ask(path + query)).body) == {"schema": 1, "declared": True}
        assert server.internals.counters.discovery == {"accepted": 1, "refused": 0, "limited": 0}
        assert server.internals.counters.scripts["discovery"] == 1

    serve(tmp_path, use, discovery=ON)


def test_a_boot_of_discovery_is_of_one_mac_and_address_and_of_no_machine(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot, other = await boot_of(server), await boot_of(server, "52:54:00:00:00:08")
        key = (server.config.data / "boot-id.key").read_bytes()
        now = server.internals.clock.now_ms()
        theirs = mint(key, f"discovery {MAC_STRANGER} 192.0.2.77", IMAGE, now, 1)
        old = mint(key, f"discovery {MAC_STRANGER} 127.0.0.1", IMAGE, now - OLDEST_MS - 1, 1)
        ours = server.boot_of("gpu-001")
        for wrong in (other, theirs, old, ours, "x"):
            answer = await server.ask(f"/v1/boots/{wrong}/discovery", "POST", report())
            assert answer.status == 404
            assert (await server.ask(f"/v1/boots/{wrong}/discovery?mac={MAC_STRANGER}")).status == 404
        assert answer.body.startswith(b"no machine of that MAC and address is discovered by this boot; ")
        named = {"phase": "Switched", "machine": "discovery-52-54-00-00-00-09", "mac": MAC_STRANGER}
        for machine in (named, {**named, "machine": "gpu-001", "mac": MAC1}):
            sent = json.dumps(machine).encode()
            assert (await server.ask(f"/v1/boots/{boot}/events", "POST", sent)).status == 404
        assert (await server.ask(f"/v1/boots/{boot}/nonce?machine=gpu-001&mac={MAC1}")).status == 404
        assert [record.kind for record in server.records()] == ["discovery", "discovery"]
        assert server.internals.counters.discovery["refused"] == 10

    serve(tmp_path, use, discovery=ON)


def test_what_is_no_report_is_refused_and_too_many_are_not_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "HOLD_SECONDS", 0.0)  # after sixteen seconds there is room for another one

    async def use(server: RunningBootServer) -> None:
        path = f"/v1/boots/{await boot_of(server)}/discovery"
        for wrong, words in (
            (b"{", b"not a report of hardware: Invalid JSON"),
            (report(more=1), b"more: Extra inputs are not permitted"),
            (report(memory_bytes=-1), b"memory_bytes: Input should be greater than or equal to 0"),
            (report(cpu={"model": "\x1b[2J", "count": 1}), b"cpu.model: "),
        ):
            answer = await server.ask(path, "POST", wrong)
            assert (answer.status, words in answer.body) == (400, True), answer.body
        assert (await server.ask(path, "POST", b" " * (LONGEST_REPORT + 1))).status == 413
        large = report().ljust(LONGEST_REPORT)
        answers = [(await server.ask(path, "POST", large)).status for _ in range(8)]
        assert (answers[0], answers[-1]) == (204, 429)
        assert set(answers) == {204, 429}
        assert server.internals.counters.discovery["refused"] == 5
        assert server.internals.counters.discovery["limited"] == answers.count(429)

    serve(tmp_path, use, discovery=ON)


def test_of_a_machine_that_is_declared_by_now_nothing_more_is_written_down(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        path = f"/v1/boots/{await boot_of(server)}/discovery"
        inventory = snapshot(server.port).inventory
        mine = Machine(name="new-001", match=Match(macs=(MAC_STRANGER,)), profile="compute")
        server.publish(inventory=inventory.model_copy(update={"machines": (*inventory.machines, mine)}))
        await server.internals.live.refresh()
        assert (await server.ask(path, "POST", report())).status == 204
        assert json.loads((await server.ask(f"{path}?mac={MAC_STRANGER}")).body)["declared"]
        assert [record.kind for record in server.records()] == ["discovery"]

    serve(tmp_path, use, discovery=ON)


def test_ten_machines_at_once_are_discovered_and_the_others_wait_as_ever(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        discovering = server.internals.app.discovering
        macs = [f"52:54:00:00:01:{number:02x}" for number in range(MOST_MACHINES + 1)]
        for mac in (*macs[:-1], macs[0]):
            await boot_of(server, mac)
        answer = await server.ask(f"/v1/boot?mac={macs[-1]}")
        assert answer.headers["netboot-outcome"] == "unknown"
        assert b"echo netboot: - it is not discovered yet: as many machines are as may be at once\n" in answer.body
        inventory = snapshot(server.port).inventory
        mine = Machine(name="new-001", match=Match(macs=(macs[3],)), profile="compute")
        server.publish(inventory=inventory.model_copy(update={"machines": (*inventory.machines, mine)}))
        await server.internals.live.refresh()
        await boot_of(server, macs[-1])
        now = server.internals.clock.now_ms()
        assert not discovering.begins(macs[3], now)
        assert discovering.begins(macs[3], now + KEPT_MS)
        others = [f"52:54:00:00:02:{number:02x}" for number in range(MOST_MACHINES)]
        assert all(discovering.begins(mac, now + KEPT_MS) for mac in others)
        assert not discovering.begins(macs[-1], now + KEPT_MS)
        assert discovering.begins(macs[-1], now), "the clock was set back, and who had a place has none"

    serve(tmp_path, use, discovery=ON)
    assert [share(index, 4) for index in range(4)] == [3, 3, 2, 2]


def test_who_is_not_unknown_or_cannot_run_the_image_is_not_discovered(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        for query, outcome, words in (
            (f"mac={MAC_OFF}", "refused", b"this machine is disabled"),
            (f"mac={MAC1}", "boot", b"systemd.hostname=gpu-001"),
            ("uuid=" + UUID, "unknown", b"no machine of the inventory has UUID"),
            (f"mac={MAC_STRANGER}&arch=arm64", "unknown", b"image tiny of channel stable is for amd64"),
        ):
            answer = await server.ask(f"/v1/boot?{query}")
            assert (answer.headers["netboot-outcome"], words in answer.body) == (outcome, True), answer.body
        server.publish(channels={"stable": None}, images={})
        await server.internals.live.refresh()
        answer = await server.ask(f"/v1/boot?mac={MAC_STRANGER}")
        why = b"channel stable (`discovery` of the configuration) has no usable image"
        assert (answer.headers["netboot-outcome"], why in answer.body) == ("unknown", True)

    serve(tmp_path, use, discovery=ON)


def test_without_discovery_nothing_is_taken(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        key = (server.config.data / "boot-id.key").read_bytes()
        now = server.internals.clock.now_ms()
        boot = mint(key, f"discovery {MAC_STRANGER} 127.0.0.1", IMAGE, now, 1)
        assert (await server.ask(f"/v1/boots/{boot}/discovery", "POST", report())).status == 404
        answer = await server.ask(f"/v1/boot?mac={MAC_STRANGER}")
        assert answer.headers["netboot-outcome"] == "unknown"
        assert b"discovered" not in answer.body

    serve(tmp_path, use)

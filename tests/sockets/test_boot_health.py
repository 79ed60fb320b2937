"""`/v1/boots/<id>/health` over real sockets."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from netboot.boot import requests
from netboot.lifecycle.errors import BadClaimError
from netboot.lifecycle.health import HealthReport
from netboot.machines.classes import Class, Gpus
from netboot.machines.health import Health
from tests.sockets.boot_server import MAC1, MAC2, MAC_STRANGER, RunningBootServer, serve, snapshot

CHECK = {"name": "cpus", "status": "pass", "severity": "major", "summary": "2 CPUs", "ms": 3, "facts": {"online": 2}}


def body(**fields: Any) -> bytes:
    return json.dumps({"schema": 1, "machine": "gpu-001", "taken_ms": 5, "checks": [CHECK], **fields}).encode()


def path_of(boot: str) -> str:
    return f"/v1/boots/{boot}/health"


def expecting(server: RunningBootServer, profile: Health, machine: Health) -> None:
    """Publish what `gpu-001` and its profile should have."""
    known = snapshot(server.port).inventory
    machines = tuple(
        one.model_copy(update={"health": machine}) if one.name == "gpu-001" else one for one in known.machines
    )
    profiles = tuple(one.model_copy(update={"health": profile}) for one in known.profiles)
    server.publish(inventory=known.model_copy(update={"machines": machines, "profiles": profiles}))


def test_a_report_is_acknowledged_when_it_is_durable(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        sent = body(more="of a newer node", checks=[{**CHECK, "colour": "blue"}])
        answer = await server.ask(path_of(boot), "POST", sent)
        assert (answer.status, answer.body) == (204, b"")
        (record,) = server.records()
        assert (record.kind, record.boot, record.machine, record.peer) == ("health", boot, "gpu-001", "127.0.0.1")
        assert record.report == HealthReport.model_validate_json(body())
        assert server.internals.counters.health == {"accepted": 1, "refused": 0, "limited": 0}
        assert server.internals.counters.events == {"accepted": 0, "refused": 0, "limited": 0}

    serve(tmp_path, use)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"", "Invalid JSON: EOF while parsing a value at line 1 column 0"),
        (b"[]", "Input should be an object"),
        (b"{}", "schema: Field required"),
        (body(schema=2), "schema: Input should be 1"),
        (body(checks=[]), "checks: Tuple should have at least 1 item after validation, not 0"),
        (body(checks=[CHECK, CHECK]), "checks: a check is here twice"),
        (body(checks=[{**CHECK, "name": f"a{at}"} for at in range(65)]), None),
        (body(checks=[{**CHECK, "status": "splendid"}]), None),
        (body(checks=[{**CHECK, "severity": "whatever"}]), None),
        (body(checks=[{**CHECK, "summary": "a\nb"}]), None),
        (body(checks=[{**CHECK, "summary": "\x1b[31m"}]), None),
        (body(checks=[{**CHECK, "facts": {"a": {"b": 1}}}]), None),
        (body(checks=[{**CHECK, "facts": {"a": ["x"] * 65}}]), None),
        (body(checks=[{**CHECK, "facts": {"a": 2**60}}]), None),
        (body(checks=[{**CHECK, "facts": {f"f{at}": 1 for at in range(17)}}]), None),
        (body(checks=[{**CHECK, "facts": {"A b": 1}}]), None),
        (body(checks=[{**CHECK, "facts": {"a": float("nan")}}]), None),
        (body(taken_ms=-1), None),
        (body(mac="x"), None),
        (b"\xff\xfe", None),
    ],
)
def test_what_is_no_report_is_refused_with_words(tmp_path: Path, sent: bytes, words: str | None) -> None:
    async def use(server: RunningBootServer) -> None:
        answer = await server.ask(path_of(server.boot_of("gpu-001")), "POST", sent)
        assert answer.status == 400
        if words is not None:
            assert answer.body.decode() == f"not a health report: {words}; correct the request\n"
        assert answer.body.startswith(b"not a health report: ")
        assert server.records() == []
        assert server.internals.counters.health == {"accepted": 0, "refused": 1, "limited": 0}

    serve(tmp_path, use)


def test_boots_that_do_not_exist_or_are_another_machines_are_not_found(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        mine = server.boot_of("gpu-001")
        for boot, said in (
            (mine, {"machine": "gpu-002"}),
            (mine, {"machine": "nobody"}),
            (mine, {"machine": None, "mac": MAC2}),
            (mine, {"machine": None, "mac": MAC_STRANGER}),
            (mine, {"machine": None}),
            (server.boot_of("gpu-002"), {}),
            ("00000000-0000-8000-8000-000000000000", {}),
            ("x", {}),
        ):
            answer = await server.ask(path_of(boot), "POST", body(**said))
            assert (answer.status, answer.body) == (404, b"no such boot of this machine; see `netboot boot list`\n")
        assert server.records() == []
        for said in ({"machine": "gpu-001"}, {"machine": None, "mac": MAC1}, {"machine": "unknown", "mac": MAC1}):
            assert (await server.ask(path_of(mine), "POST", body(**said))).status == 204
        assert (await server.ask(f"{path_of(mine)}/", "POST", body())).status == 404

    serve(tmp_path, use)


def test_a_body_that_is_too_long_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        target = path_of(server.boot_of("gpu-001"))
        answer = await server.send(f"POST {target} HTTP/1.1\r\nHost: x\r\nContent-Length: 32769\r\n\r\n".encode())
        assert (answer.status, answer.body) == (413, b"a health report has at most 32768 bytes: send less\n")
        assert (await server.ask(target, "POST", body().ljust(32768))).status == 204
        assert server.internals.counters.health == {"accepted": 1, "refused": 1, "limited": 0}
        answer = await server.ask(target, "PUT", body())
        assert (answer.status, answer.headers["allow"]) == (405, "GET, POST")

    serve(tmp_path, use)


def test_a_machine_is_told_what_it_should_have(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        boot = server.boot_of("gpu-001")
        answer = await server.ask(f"{path_of(boot)}?machine=gpu-001&mac=")
        said = json.loads(answer.body)
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        assert (said["schema"], said["expected"]) == (1, {})
        assert isinstance(said["now_ms"], int)

        expecting(server, Health(gpus=8, cpus=224, nic_firmware={"MT_1": "1.2.3"}), Health(cpus=112))
        await server.internals.live.refresh(force=True)
        wanted = {"gpus": 8, "cpus": 112, "nic_firmware": {"MT_1": "1.2.3"}}
        for query in ("machine=gpu-001", f"mac={MAC1}", "machine=gpu-001&mac=zz", f"machine=unknown&mac={MAC1}&more=1"):
            assert json.loads((await server.ask(f"{path_of(boot)}?{query}")).body)["expected"] == wanted
        for query in ("", "machine=gpu-002", "machine=gpu-001&machine=gpu-001", f"mac={MAC_STRANGER}"):
            answer = await server.ask(f"{path_of(boot)}?{query}")
            assert (answer.status, answer.body) == (404, b"no such boot of this machine; see `netboot boot list`\n")
        assert server.records() == []

    serve(tmp_path, use)


def test_a_machine_is_told_the_hardware_of_its_class(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        known = snapshot(server.port).inventory
        machines = tuple(
            one.model_copy(update={"class_name": "hgx"}) if one.name == "gpu-001" else one for one in known.machines
        )
        own = {"thresholds": {"nvme_used_percent": 80.0}, "skip_checks": ("bmc-log",)}
        classes = (Class(name="hgx", memory_gib=1.5, gpus=Gpus(count=8), **own),)
        server.publish(inventory=known.model_copy(update={"machines": machines, "classes": classes}))
        await server.internals.live.refresh(force=True)
        told = json.loads((await server.ask(f"{path_of(server.boot_of('gpu-001'))}?machine=gpu-001")).body)
        hardware = {"name": "hgx", "architecture": "amd64", "memory_bytes": 3 * 2**29, "gpus": {"count": 8}}
        judged = {"thresholds": {"nvme_used_percent": 80}, "skip_checks": ["bmc-log"]}
        assert told["class"] == {**hardware, **judged}
        other = json.loads((await server.ask(f"{path_of(server.boot_of('gpu-002'))}?machine=gpu-002")).body)
        assert sorted(other) == ["expected", "now_ms", "schema"]

    serve(tmp_path, use)


def test_before_anything_was_published_both_are_to_come_again(tmp_path: Path) -> None:
    async def use(server: RunningBootServer) -> None:
        target = path_of(server.boot_of("gpu-001"))
        for answer in (await server.ask(f"{target}?machine=gpu-001"), await server.ask(target, "POST", body())):
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")

    serve(tmp_path, use, published=False)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    sent=st.one_of(st.binary(max_size=300), st.binary(max_size=60).map(lambda piece: body().replace(b"2 CPUs", piece)))
)
def test_any_bytes_are_a_report_or_refused(sent: bytes) -> None:
    try:
        found = requests.parsed(sent, HealthReport, "a health report")
    except BadClaimError as error:
        assert str(error).startswith("not a health report: ")
    else:
        assert found.status in ("pass", "warn", "fail", "unknown")
        assert HealthReport.model_validate_json(found.model_dump_json(by_alias=True)) == found

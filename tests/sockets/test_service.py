"""`netboot serve`, whole: real processes, real sockets, the real command line; and what is killed under it."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests

from images.artifact.keyring import KeyRing
from images.store.store import Store
from lab.account import service_account
from netboot.config import load_config
from tests.processes import environment, runs, wait_for
from tests.sites import INVENTORY, TOKEN, add_image, free_ports, make_site
from tests.sockets.service import COMMAND, Service, serving

MAC1, MAC2 = "52:54:00:00:00:01", "52:54:00:00:00:02"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One service for the tests that leave it as it was."""
    root = tmp_path_factory.mktemp("site")
    config = make_site(root)
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, root / "netboot.yaml") as service:
        yield service


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Service]:
    """One for a test that kills it; its clients may be slow, and are not cut off."""
    make_site(tmp_path / "site")
    file = tmp_path / "site" / "netboot.yaml"
    file.write_text(file.read_text().replace("  workers:", "  idle_seconds: 300\n  body_seconds: 300\n  workers:"))
    config = load_config(file)
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, file) as service:
        yield service


def test_from_init_to_the_trace_of_a_boot(tmp_path: Path) -> None:
    """What `netboot init` writes serves; an image goes into the store, a channel to the image, a machine through it."""
    provisioning, management = free_ports()
    folder = tmp_path / "site"
    made = subprocess.run(
        [*COMMAND, "init", str(folder), "--url", f"http://127.0.0.1:{provisioning}"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    file = folder / "netboot.yaml"
    text = file.read_text().replace("127.0.0.1:8081", f"127.0.0.1:{management}")
    file.write_text(re.sub(r'listen: "\S+:8080"', f'listen: "127.0.0.1:{provisioning}"', text))
    [inventory] = (folder / "inventory").glob("*.yaml")
    machine = f'machines:\n- {{name: gpu-001, match: {{macs: ["{MAC1}"]}}, profile: default}}\n'
    inventory.write_text(inventory.read_text().replace("machines: []", machine))
    config = load_config(file)
    assert config.provisioning.listen.port == provisioning
    digest = add_image(config)
    with serving(config, file) as service:
        ipxe = requests.get(f"{config.provisioning.url}/ipxe/ipxe.efi", timeout=60)  # the package has a link to /boot
        assert (ipxe.status_code, ipxe.content[:2]) == (200, b"MZ")
        moved = service.netboot("channel", "set", "stable", "tiny")
        assert moved.returncode == 0, moved.stderr
        wait_for(lambda: service.netboot("explain", "gpu-001").returncode == 0)
        for _ in range(config.provisioning.workers * 2):  # each has its own copy of the snapshot
            service.machines.close()
            wait_for(lambda: service.outcome(MAC1) == "boot")
        boot = service.boot(MAC1)
        for phase in ("InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted"):
            assert service.post(boot, MAC1, phase, uptime_ms=2_000, detail=f"all of {phase}") == 204
        shown = wait_for(lambda: _when_reported(service, boot, 5))
        lines = [line.split() for line in shown.splitlines()]
        assert lines[0] == ["machine", "gpu-001", "boot", boot, "Booted"]
        assert lines[1] == ["image", digest[:12], "of", "channel", "stable,", "profile", "default"]
        assert " ".join(lines[2]) == "health no health report of its current boot"
        assert [line[:2] for line in lines[5:]] == [
            ["ScriptServed", "served"],
            ["InitrdStarted", "reported"],
            ["ImageFetched", "reported"],
            ["ImageVerified", "reported"],
            ["Switched", "reported"],
            ["Booted", "reported"],
        ]
        assert service.stop() == 0


def _when_reported(service: Service, boot: str, phases: int) -> str:
    """What `netboot boot show` prints, once it has so many reported phases; else nothing."""
    shown = service.netboot("boot", "show", boot).stdout
    return shown if shown.count("reported") == phases else ""


def test_it_says_where_it_listens_and_that_it_is_ready(shared: Service) -> None:
    listen, url = shared.config.provisioning.listen, shared.config.provisioning.url
    assert shared.out.read_text() == (
        f"provisioning (machines)   {listen}, reached as {url}\n"
        f"management (operators)    {shared.config.management.listen}, reached as {shared.management}\n"
        "ready\n"
    )
    said = wait_for(lambda: (found := shared.readyz())["degraded"] is False and found)
    assert {name: process["ready"] for name, process in said["details"]["processes"]["processes"].items()} == {
        "boot-0": True,
        "boot-1": True,
        "controllers": True,
        "management": True,
    }


def test_no_process_of_it_is_root_s_or_has_a_privilege_whoever_runs_the_tests(shared: Service) -> None:
    assert shared.process is not None
    account, nothing = service_account(), f"{0:016x}"
    uid = str(os.getuid() if account is None else account.uid)
    for pid in (shared.process.pid, *shared.pids()):
        said = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert [said[name] for name in ("Uid", "CapPrm", "CapEff")] == ["\t".join([uid] * 4), nothing, nothing]


def test_a_second_instance_on_the_same_data_is_refused(shared: Service) -> None:
    second = shared.refused()
    assert second.returncode == 1
    assert shared.process is not None
    pid, data = shared.process.pid, shared.config.data
    words = f"process {pid} already serves {data}; stop it first (`kill {pid}`), or give this instance another `data`"
    assert second.stderr.splitlines()[-1] == f"Error: {words}"
    wait_for(lambda: shared.readyz()["ready"])  # its probe of a boot server may have waited for long just now


@pytest.mark.parametrize("key", ["provisioning.listen", "management.listen"])
def test_a_port_that_is_taken_names_the_key(tmp_path: Path, key: str) -> None:
    config = make_site(tmp_path)
    address = config.provisioning.listen if key.startswith("prov") else config.management.listen
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(tuple(address))
        other.listen()
        ended = Service(config, tmp_path / "netboot.yaml").refused()
    assert ended.returncode == 1
    assert f"Error: {key}: cannot listen on {address}: the port is taken" in ended.stderr


def test_operators_commands_keep_the_outcomes_apart(shared: Service) -> None:
    def status(*arguments: str) -> int:
        return shared.netboot(*arguments).returncode

    assert status("explain", "gpu-001") == 0
    assert status("explain", "--mac", "5254.0000.0001") == 0
    assert status("explain", "nobody") == 3
    assert status("explain", "--mac", "52:54:00:00:00:99") == 3
    assert status("explain", "off-001") == 4
    ambiguous = shared.netboot("explain", "--mac", MAC1, "--serial", "S2")
    assert ambiguous.returncode == 4
    assert ambiguous.stdout.splitlines() == [
        "gpu-001 and gpu-002 may not boot: it is told why, and asks again (ambiguous)",
        f"  because MAC {MAC1} is machine gpu-001 (inventory)",
        "  because serial S2 is machine gpu-002 (inventory)",
        "  because one machine cannot be gpu-001 and gpu-002: correct the inventory, or the part that was moved",
    ]
    assert status("explain") == 2
    assert status("channel", "set", "stable", "nothing") == 3
    assert status("boot", "show", "nothing") == 3
    assert status("machine", "list", "--server", "http://127.0.0.1:1") == 5


def test_tables_and_json(shared: Service) -> None:
    channels = json.loads(shared.netboot("channel", "list", "--output", "json").stdout)["channels"]
    assert [one["name"] for one in channels] == ["stable"]
    table = shared.netboot("machine", "list").stdout.splitlines()
    assert table[0].split()[:4] == ["machine", "cluster", "profile", "state"]
    assert [line.split()[0] for line in table[1:]] == ["gpu-001", "gpu-002", "off-001"]


def test_watch_shows_what_happens_and_ends_cleanly(shared: Service) -> None:
    command = [*COMMAND, "boot", "watch", "--config", str(shared.file), "--machine", "gpu-002"]
    log = shared.file.parent / "watch"
    # Ctrl-C must mean what it means on a terminal, also where the tests run with it ignored
    program = (
        "import signal, runpy, sys; signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv[0] = 'netboot'; "
    )
    program += "from netboot.cli.main import main; main()"
    with log.open("w") as out, log.with_suffix(".err").open("w") as err:
        arguments = [sys.executable, "-u", "-c", program, *command[3:]]
        watching = subprocess.Popen(arguments, stdout=out, stderr=err, env=environment())

    def seen() -> str:
        boot = shared.boot(MAC2)
        shared.boot(MAC1)
        return boot if "ScriptServed" in log.read_text() else ""

    try:
        wait_for(seen)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(180) == 130
    finally:
        watching.kill()
        watching.wait()
    assert log.with_suffix(".err").read_text().strip() == "interrupted"
    assert "gpu-001" not in log.read_text()


def test_a_listing_goes_on_with_what_changes(shared: Service) -> None:
    command = [*COMMAND, "boot", "list", "--watch", "-o", "jsonpath=$.boot", "--field-selector", "name=gpu-002"]
    log = shared.file.parent / "listed"
    with log.open("w") as out:
        watching = subprocess.Popen([*command, "--config", str(shared.file)], stdout=out, env=environment())
    try:
        theirs, others = set[str](), set[str]()

        def seen() -> bool:
            theirs.add(shared.boot(MAC2))
            others.add(shared.boot(MAC1))
            return bool(theirs & set(log.read_text().split()))

        wait_for(seen)
        assert not others & set(log.read_text().split())
    finally:
        watching.kill()
        watching.wait()


def boot_servers(service: Service) -> list[Any]:
    """What the supervisor says of both."""
    processes = service.readyz()["details"]["processes"]["processes"]
    return [processes["boot-0"], processes["boot-1"]]


def test_a_boot_server_that_is_killed_is_replaced_and_nothing_acknowledged_is_lost(own: Service) -> None:
    boot = own.boot(MAC1)
    assert own.post(boot, MAC1, "InitrdStarted") == 204
    for process in boot_servers(own):
        os.kill(process["pid"], signal.SIGKILL)
    wait_for(lambda: [process["restarts"] for process in boot_servers(own)] == [1, 1])
    own.machines.close()
    wait_for(lambda: own.post(boot, MAC1, "Booted") == 204)
    expected = ["ScriptServed", "InitrdStarted", "Booted"]
    wait_for(lambda: [one["phase"] for one in own.api(f"/v1/boots/{boot}").get("reached", [])] == expected)
    assert "boot-0 ended: killed by SIGKILL; started again in" in own.log


def test_killed_under_a_thousand_posts_at_once_nothing_acknowledged_is_lost(own: Service) -> None:
    """A thousand machines, each with a boot, an address and a connection of its own, all of which wait for an answer
    when everything is killed."""
    macs = [f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(256, 1256)]
    more = "".join(f'  - {{name: m{n}, match: {{macs: ["{mac}"]}}, profile: compute}}\n' for n, mac in enumerate(macs))
    (own.config.inventory / "site.yaml").write_text(INVENTORY.replace("profiles:\n", more + "profiles:\n"))
    for _ in range(20):  # whichever of two boot servers is asked: each has its own copy of the snapshot
        own.machines.close()
        wait_for(lambda: own.outcome(macs[-1]) == "boot")
    boots = [own.boot(mac) for mac in macs]
    posts = asyncio.run(post_all_at_once(own, macs, boots))
    assert posts.waiting_at_the_kill == 1000
    assert len(posts.acknowledged) >= 3_000
    own.start()
    all_read = {"boot-0.db": 0, "boot-1.db": 0}
    wait_for(lambda: own.readyz()["details"]["journals"].get("lag_records") == all_read)
    traces = own.api("/v1/boots?limit=1000")["boots"]
    known = {(trace["boot"], failure["detail"]) for trace in traces for failure in trace["failures"]}
    assert len(posts.boots) == 1000
    assert posts.acknowledged - known == set()


@dataclass
class Posts:
    """What a thousand machines posted: pairs of a boot and a detail, their boots, and how many waited at the kill."""

    acknowledged: set[tuple[str, str]] = field(default_factory=set)
    boots: set[str] = field(default_factory=set)
    waiting: int = 0
    waiting_at_the_kill: int = 0


async def post_all_at_once(service: Service, macs: list[str], boots: list[str]) -> Posts:
    posts, all_there = Posts(), asyncio.Barrier(len(macs))
    host, port = service.config.provisioning.listen

    async def machine(number: int) -> None:
        address = f"127.77.{number >> 8}.{number & 255 or 1}"
        reader, writer = await asyncio.open_connection(host, port, local_addr=(address, 0))
        await all_there.wait()
        for post in range(30):  # as many failures as a trace keeps
            detail = f"number {post}"
            body = json.dumps({"mac": macs[number], "phase": "Failed", "detail": detail}).encode()
            head = f"POST /v1/boots/{boots[number]}/events HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            posts.waiting += 1
            try:
                writer.write(head.encode() + body)
                if len(posts.acknowledged) >= 3_000 and len(posts.boots) == 1000 and not posts.waiting_at_the_kill:
                    posts.waiting_at_the_kill = posts.waiting
                    service.kill()
                answer = await reader.readuntil(b"\r\n\r\n")
            except (OSError, asyncio.IncompleteReadError):
                writer.transport.abort()
                return  # not acknowledged: the machine would try again
            posts.waiting -= 1
            assert answer.startswith(b"HTTP/1.1 204 "), answer
            posts.acknowledged.add((boots[number], detail))
            posts.boots.add(boots[number])

    async with asyncio.TaskGroup() as group:
        for number in range(len(macs)):
            group.create_task(machine(number))
    return posts


def test_a_poisoned_row_of_a_journal_and_of_the_state_stop_nobody(own: Service) -> None:
    old, data = own.boot(MAC2), own.config.data
    assert own.post(old, MAC2, "Booted") == 204
    wait_for(lambda: own.api(f"/v1/boots/{old}").get("state") == "Booted")
    assert own.stop() == 0
    poison = '{"kind": "event", "phase": "Teleported"}'
    with closing(sqlite3.connect(data / "state.db")) as db, db:
        db.execute("UPDATE boots SET trace = ?", (poison,))
    for worker in (0, 1):
        with closing(sqlite3.connect(data / "journal" / f"boot-{worker}.db")) as db, db:
            db.execute("INSERT INTO records (at_ms, body) VALUES (1, ?)", (poison,))
    own.start()
    boot = own.boot(MAC1)
    assert own.post(boot, MAC1, "Booted") == 204
    wait_for(lambda: own.api(f"/v1/boots/{boot}").get("state") == "Booted")
    words = "rows were set aside: boot-0.db 1, boot-1.db 1, state.db 1"
    journals = wait_for(lambda: (found := own.readyz()["details"]["journals"])["message"] == words and found)
    assert (journals["ok"], "set_aside" in journals["remedy"]) == (False, True)
    wait_for(lambda: own.readyz()["ready"])
    assert 'netboot_projection_set_aside_total{origin="state.db"} 1.0' in own.text("/metrics")
    assert own.processes()["controllers"]["restarts"] == 0


def test_a_restored_journal_is_read_again_and_what_follows_is_not_passed_over(own: Service) -> None:
    journal, backup = own.config.data / "journal", own.config.data / "backup"
    own.boot(MAC1)
    assert own.stop() == 0
    shutil.copytree(journal, backup)
    own.start()
    for _ in range(5):
        own.boot(MAC1)
    wait_for(lambda: own.api("/v1/machines/gpu-001")["claims"]["served"] == 6)
    assert own.stop() == 0
    shutil.rmtree(journal)
    backup.rename(journal)
    own.start()
    boot = own.boot(MAC1)
    assert own.post(boot, MAC1, "Booted") == 204
    wait_for(lambda: own.api(f"/v1/boots/{boot}").get("state") == "Booted")
    served = wait_for(lambda: (claims := own.api("/v1/machines/gpu-001")["claims"])["served"] >= 7 and claims["served"])
    assert served == 7
    wait_for(lambda: "replaced by an older copy of itself" in own.readyz()["details"]["journals"]["message"])


def test_a_broken_edit_leaves_the_service_ready_and_says_so_everywhere(own: Service) -> None:
    file = own.config.inventory / "site.yaml"
    file.write_text(INVENTORY.replace("profile: compute}", "profile: copmute}", 1))
    faults = [f"{file}:2: machines[0].profile: no profile is named 'copmute'; did you mean 'compute'?"]

    def told() -> Any:
        """What is said once it is read whole: while it is written it may have another fault."""
        found = own.readyz()
        return found if found["details"]["inventory"].get("faults") == faults and found["ready"] else None

    assert wait_for(told)["degraded"] is True
    assert "netboot_inventory_valid 0.0" in requests.get(f"{own.management}/metrics", timeout=60).text
    assert "level=error process=controllers" in own.log
    own.boot(MAC1)
    file.write_text(INVENTORY.replace("52:54:00:00:00:02", "52:54:00:00:00:22"))
    wait_for(lambda: own.api("/v1/explain?mac=525400000022")["decision"]["outcome"] == "boot")
    wait_for(lambda: not own.readyz()["degraded"])
    wait_for(lambda: own.outcome("52-54-00-00-00-22") == "boot")


def test_a_fleet_goes_only_when_an_operator_says_so_also_after_a_power_cut(own: Service) -> None:
    head, tail = INVENTORY.split("machines:\n")[0], INVENTORY[INVENTORY.index("profiles:") :]
    (own.config.inventory / "site.yaml").write_text(f"{head}machines: []\n{tail}")
    wait_for(lambda: own.readyz()["details"]["inventory"].get("pending"))
    assert own.outcome(MAC1) == "boot"
    own.kill()
    own.start()
    assert wait_for(lambda: own.readyz()["details"]["inventory"].get("pending"))["removed"] == 3
    assert own.outcome(MAC1) == "boot"
    accepted = own.netboot("config", "accept", "--yes", "--output", "json")
    assert (accepted.returncode, json.loads(accepted.stdout)["removed"]) == (0, 3)
    wait_for(lambda: own.outcome(MAC1) == "unknown")
    wait_for(lambda: not (own.config.data / "accepted" / "inventory.json").exists())


def test_a_stop_cuts_no_request_and_leaves_nothing(own: Service) -> None:
    pids = own.pids()
    boot = own.boot(MAC1)
    with socket.create_connection((own.config.provisioning.listen.host, own.config.provisioning.listen.port)) as slow:
        body = json.dumps({"mac": MAC1, "phase": "InitrdStarted"}).encode()
        head = f"POST /v1/boots/{boot}/events HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        slow.sendall(head.encode() + body[:5])
        assert own.process is not None
        wait_for(lambda: requests.get(f"{own.provisioning}/readyz", timeout=60).status_code == 200)
        own.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "stopping" in own.log)
        slow.sendall(body[5:])
        assert slow.recv(100).startswith(b"HTTP/1.1 204")
    assert own.process.wait(180) == 0
    wait_for(lambda: not any(map(runs, pids)))
    assert "killed, for not ending" not in own.log


def test_no_secret_is_in_the_log_or_the_process_list(own: Service) -> None:
    own.netboot("machine", "list")
    requests.get(f"{own.management}/v1/machines", headers={"Authorization": "Bearer wrong-wrong-wrong"}, timeout=60)
    arguments = [Path(f"/proc/{pid}/cmdline").read_bytes().decode() for pid in own.pids()]
    private = (own.config.keys / f"{KeyRing(own.config.keys).infos()[0].id}.key").read_text().splitlines()[1]
    for text in (own.log, own.out.read_text(), *arguments):
        assert TOKEN not in text
        assert "wrong-wrong-wrong" not in text
        assert private not in text


def test_stalled_clients_do_not_keep_operators_out(own: Service) -> None:
    """More clients than the server has threads, who begin a request and never end it."""
    stalled: list[Any] = []
    try:
        for _ in range(48):
            one = socket.create_connection((own.config.management.listen.host, own.config.management.listen.port))
            one.sendall(b"GET /v1/machines HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            stalled.append(one)
        assert wait_for(lambda: requests.get(f"{own.management}/healthz", timeout=60).json()["healthy"])
        wait_for(lambda: "a client that kept us waiting for 5 s was let go" in own.log)
        assert [line for line in own.log.splitlines() if "Traceback" in line] == []
    finally:
        for one in stalled:
            one.close()

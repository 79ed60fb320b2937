"""`netboot.client` against the real application: a fleet, pages, what goes wrong, a watch that is cut."""

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from netboot.client import CannotTellError, Client, FailedError, NotAllowedError, Service, UnknownError, Watch, connect
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.roles import Role
from netboot.lifecycle.state import Batch
from tests.browser.world import LATE, World
from tests.records import event, script
from tests.sites import TOKEN
from tests.sockets.api import Api, given
from tests.sockets.served import served

PAGE = Path(__file__).parents[2] / "docs" / "python-client.md"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def address(world: World) -> Iterator[str]:
    with served(world.api) as address:
        yield address


def test_it_walks_a_fleet_and_acts(world: World, address: str) -> None:
    client = Client(Service(address, TOKEN))
    fleet = client.fleet.summary()
    late = next(each for each in fleet["first"] if each["name"] == LATE)
    assert (fleet["machines"], late["reason"]) == (50, "Stuck")
    shown = client.machines.get(LATE)
    assert (late["condition"], late["reason"]) in [(one["type"], one["reason"]) for one in shown["conditions"] or ()]
    boot = client.boots.get(shown["boots"][0]["boot"])
    assert (boot["machine"], boot["boot"]) == (LATE, late["boot"])
    assert [each["name"] for each in client.machines.each(limit=7)] == world.names
    held = client.intents.hold(LATE, {"reason": "its disk"})
    assert (held["did"], [each["mark"] for each in held["intents"]]) == ("put-on", ["Held"])
    record = client.audits.list(machine=LATE)["audit"][0]
    assert (record["act"], record["machine"], record["reason"]) == ("hold", LATE, "its disk")
    assert client.channels.move("stable", {"image": world.old, "force": True, "dry_run": True})["image"] == world.old
    assert client.metrics.metrics().startswith("# HELP ")
    assert client.readiness.readyz()["ready"] in (True, False)


def test_an_act_says_what_it_was_meant_for_and_a_refusal_when_to_ask_again(world: World, address: str) -> None:
    client = Client(Service(address, TOKEN))
    _, before = client.tagged(client.freeze.get)
    did, left = client.tagged(client.freeze.freeze, {"reason": "a trial"}, if_match=before)
    assert (did["did"], left == client.tagged(client.freeze.get)[1], left == before) == ("put-on", True, False)
    with pytest.raises(NotAllowedError) as refused:
        client.freeze.unfreeze({}, if_match=before)
    assert (refused.value.problem or did).code == "precondition-failed"  # type: ignore[union-attr]
    assert client.freeze.unfreeze({}, if_match=left)["did"] == "taken-off"
    places = [world.api.get("/v1/boots/watch") for _ in range(4)]
    with pytest.raises(CannotTellError) as full, client.watches.fleet_changes() as watch:
        next(watch)
    for each in places:
        each.close()
    assert full.value.retry_after == 5


def test_what_goes_wrong_is_one_of_three_or_a_failure(world: World, address: str) -> None:
    client = Client(Service(address, TOKEN))
    with pytest.raises(UnknownError) as unknown:
        client.machines.get("gpu-9999")
    problem = unknown.value.problem
    assert problem is not None
    assert (problem.status, problem.code, problem.field) == (404, "no-such-machine", None)
    assert re.fullmatch(r"[0-9a-f-]{8,}", problem.instance)
    assert unknown.value.remedy == problem.remedy == "see `netboot machine list`"
    looking = Client(Service(address, given(world.api, "wall", Role.VIEWER)))
    with pytest.raises(NotAllowedError) as refused:
        looking.intents.unhold(LATE, {"reason": "well"})
    assert refused.value.problem is not None
    assert refused.value.problem.code == "not-allowed"
    with pytest.raises(FailedError) as senseless:
        client.machines.list(limit=0)
    assert senseless.value.problem is not None
    assert senseless.value.problem.field == "limit"
    with pytest.raises(UnknownError, match=r"nothing has the name '\.\./tokens'"):
        client.machines.get("../tokens")
    with pytest.raises(NotAllowedError) as faulty:
        client.enrolments.import_("machine,ek_sha256\ngpu-9999,zz\n")
    assert faulty.value.problem is not None
    assert faulty.value.problem.faults == ("list:2: the inventory has no machine 'gpu-9999'; did you mean 'gpu-0049'?",)


def test_who_does_not_answer_cannot_be_told(world: World, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(CannotTellError) as late:
            Client(Service(where, TOKEN), seconds=0.1).channels.list()
    assert str(late.value) == (
        f"cannot reach the service at {where}: it does not answer in time\nRemedy: is `netboot serve` running?"
    )
    with trickling() as where, pytest.raises(CannotTellError, match="did not answer within 5 s"):
        Client(Service(where, TOKEN), seconds=5.0).channels.list()


@contextmanager
def trickling() -> Iterator[str]:
    """A service whose answer begins at once and has no end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
                gone = threading.Event()
                try:
                    while not gone.wait(0.02):
                        peer.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(60)


class Line:
    """What stands between client and service, and can be cut."""

    def __init__(self, address: str) -> None:
        to = urlsplit(address)
        assert to.hostname is not None
        assert to.port is not None
        self._to = (to.hostname, to.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connections = 0
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._take)

    def cut(self) -> None:
        """All that is open."""
        while self._open:
            with suppress(OSError):  # it has ended by itself
                self._open.pop().shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(60)
        self._listener.close()

    def _start(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _take(self) -> None:
        try:
            while True:
                client, _ = self._listener.accept()
                service = socket.create_connection(self._to)
                self.connections += 1
                self._open.append(client)
                self._start(pump, client, service)
                self._start(pump, service, client)
        except OSError:
            return


def pump(source: socket.socket, target: socket.socket) -> None:
    with source:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def test_a_watch_that_is_cut_goes_on(tmp_path: Path) -> None:
    api = Api(tmp_path, places=4)  # the place of what was cut is free again only once the server writes to it
    with served(api) as address, closing(Line(address)) as line:
        api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), script("gpu-002", 1)]))
        with Client(Service(line.address, TOKEN)).watch.watch(since=0) as watch:
            seen = events(watch, 2)
            assert [each["machine"] for each in seen] == ["gpu-001", "gpu-002"]
            line.cut()
            api.states.take(Batch("boot-0.db", 1, 3, [event("gpu-002", 1, Phase.BOOTED)]))
            (later,) = events(watch, 1)
            assert (later["machine"], later["phase"]) == ("gpu-002", "Booted")
            assert watch.last_id == str(later["id"])
        assert line.connections == 2
        api.stopping = True


def events(watch: Watch, count: int) -> list[dict[str, Any]]:
    """So many."""
    return list(islice((line["event"] for line in watch if "event" in line), count))


def test_the_example_of_the_page_does_what_it_says(
    world: World, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NETBOOT_SERVER", address)
    monkeypatch.setenv("NETBOOT_TOKEN_FILE", str(world.api.config.management.token_file))
    example, tagged = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(example, str(PAGE), "exec"), {})
    exec(compile(tagged, str(PAGE), "exec"), {"client": connect()})
    said = capsys.readouterr().out.splitlines()
    assert f"{LATE} Booted Stuck" in said
    assert said[-1].split()[0] in world.names
    intents = connect().intents.get("gpu-0001")["intents"]
    assert [(each["mark"], each["reason"]) for each in intents] == [("Held", "DIMM 4")]


def test_nothing_says_which_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SERVER", "TOKEN_FILE", "CONTEXT"):
        monkeypatch.delenv(f"NETBOOT_{name}", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(FailedError) as nowhere:
        connect()
    assert str(nowhere.value) == (
        "nothing says which service is meant\nRemedy: name its address and a token file, or a context"
    )


def test_it_brings_little_with_it() -> None:
    program = "import sys, netboot.client, netboot.client.models, netboot.client.contexts; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    large = {"flask", "gunicorn", "aiohttp", "kubernetes", "dxf", "click", "rich", "requests", "cryptography"}
    assert large & set(loaded) == set()
    ours = {each for each in loaded if each.startswith("netboot.") and not each.startswith("netboot.client")}
    assert ours == {"netboot.addresses"}

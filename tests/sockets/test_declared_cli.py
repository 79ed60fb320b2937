"""`netboot machine declare`, against the API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from images.values import strict
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.state import Batch
from netboot.stores.inventory import read_inventory
from tests.commands import Run
from tests.records import made_of, sighted
from tests.sockets.api import Api, of_alice
from tests.sockets.served import runner, served

MAC, UUID = "52:54:00:12:34:99", "86a9f546-d31b-4ba2-9bbb-303b61bcf8d1"
NAMED = ("--name", "gpu-009", "--profile", "compute")

BY = f"macs {MAC}, uuid {UUID}"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = of_alice(Api(tmp_path, writable=True))
    api.states.take(Batch("boot-0.db", 1, 1, [sighted(MAC).model_copy(update={"uuid": UUID, "architecture": "arm64"})]))
    return api


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with served(api) as address:
        yield runner(address, api, capsys, monkeypatch)


def test_declared_in_one_command(api: Api, run: Run) -> None:
    planned = run("machine", "declare", "5254.0012.3499", *NAMED, "--dry-run")
    assert planned.out == f"gpu-009 would be declared in machine-gpu-009.yaml: {BY}\n"
    assert not (api.config.inventory / "machine-gpu-009.yaml").exists()
    assert run("machine", "declare", MAC, *NAMED).out == f"gpu-009 is declared in machine-gpu-009.yaml: {BY}\n"
    (machine,) = [each for each in read_inventory(api.config).machines if each.name == "gpu-009"]
    assert (machine.match.macs, machine.match.uuid, machine.architecture) == ((MAC,), UUID, "arm64")
    again = run("machine", "declare", MAC, *NAMED)
    assert again.status == 4
    assert again.err == (
        "Error: gpu-009 is declared already: choose another name, or edit that machine\n"
        "Remedy: edit the inventory where its files are kept; `netboot inventory show` prints the YAML of what is "
        "declared, `netboot machine declare --print` that of a machine that asked, `netboot machine import --print` of "
        "a list\n"
    )


def test_and_no_more(api: Api, run: Run) -> None:
    run("machine", "declare", MAC, *NAMED)
    planned = run("machine", "undeclare", "gpu-009", "--dry-run")
    assert (planned.out, (api.config.inventory / "machine-gpu-009.yaml").exists()) == (
        "gpu-009 would be declared no more\n",
        True,
    )
    assert run("machine", "undeclare", "gpu-009", "--reason", "sold").out == "gpu-009 is declared no more\n"
    assert not (api.config.inventory / "machine-gpu-009.yaml").exists()
    assert run("machine", "undeclare", "gpu-009").status == 3
    refused = run("machine", "undeclare", "gpu-001")
    assert (refused.status, "in a file that a person wrote: edit it there" in refused.err) == (4, True)


def test_printed_for_an_inventory_in_git(api: Api, run: Run) -> None:
    (api.config.inventory / ".git").mkdir()
    refused = run("machine", "declare", MAC, *NAMED)
    assert (refused.status, "is kept in git: edit it in a clone of" in refused.err) == (4, True)
    printed = run("machine", "declare", MAC, *NAMED, "--rack", "r1", "--print").out
    assert strict.parse(printed, "out").value == {
        "machines": [
            {
                "name": "gpu-009",
                "match": {"macs": [MAC], "uuid": UUID},
                "profile": "compute",
                "rack": "r1",
                "architecture": "arm64",
            }
        ]
    }
    assert [path.name for path in api.config.inventory.glob("machine-*")] == []


def test_who_never_asked_is_unknown(run: Run) -> None:
    for more in ((), ("--print",)):
        ran = run("machine", "declare", "52:54:00:00:00:00", *NAMED, *more)
        assert (ran.status, "no machine with the MAC 52:54:00:00:00:00 asked" in ran.err) == (3, True)
    assert run("machine", "declare", "nothing", *NAMED).status == 2


def introduced(api: Api, mac: str, serial: str, port: str = "", *, peer: str = "192.0.2.9", number: int = 0) -> None:
    """A machine asked, and said what it is made of; `port`: of the switch, as that says."""
    neighbour = {"system": "leaf1", "port": port} if port else None
    card = {"name": "ens1", "mac": mac, "pci": "0000:01:00.0", "driver": "mlx5_core", "speed_mbps": 0, "link": True}
    firmware = {"vendor": "V", "product": "P", "serial": serial, "uuid": "", "bios": "1"}
    record = made_of(mac, api.clock.now_ms(), cards=[card | {"neighbour": neighbour}], firmware=firmware)
    records: list[AnyRecord] = [sighted(mac), record.model_copy(update={"peer": peer})]
    api.states.take(Batch(f"boot-{number or int(serial[1:])}.db", 1, 2, records))


def test_all_that_introduced_themselves_by_their_ports(api: Api, run: Run) -> None:
    """The machine that only asked is none of them."""
    ten, two, nowhere = (f"52:54:00:aa:00:0{number}" for number in (1, 2, 3))
    introduced(api, ten, "Z1", "Ethernet10")
    introduced(api, two, "Z2", "Ethernet2")
    introduced(api, nowhere, "Z3")
    order = ("machine", "declare", "--all", "--name", "gpu-%03d", "--first", "9", "--profile", "compute")
    planned = run(*order, "--dry-run", "-o", "name")
    assert planned.err == ""
    assert planned.out == "gpu-009\ngpu-010\ngpu-011\n"
    printed = strict.parse(run(*order, "--print").out, "out").value
    assert [(each["name"], each["match"]["macs"]) for each in printed["machines"]] == [
        ("gpu-009", [two]),
        ("gpu-010", [ten]),
        ("gpu-011", [nowhere]),
    ]
    assert run(*order).out.splitlines()[1].split() == ["gpu-009", "macs", f"{two},", "serial", "Z2"]
    inventory = {each.name: each.match.macs for each in read_inventory(api.config).machines}
    assert {name: macs for name, macs in inventory.items() if "gpu-008" < name < "h"} == {
        "gpu-009": (two,),
        "gpu-010": (ten,),
        "gpu-011": (nowhere,),
    }


def test_all_is_refused_where_one_is_said_by_two(api: Api, run: Run) -> None:
    order = ("machine", "declare", "--all", "--name", "gpu-%03d", "--profile", "compute")
    none = run(*order)
    assert none.status == 3
    assert none.err == (
        "Error: no machine introduced itself within the hour\n"
        "Remedy: see `netboot machine discovered`; machines do where `discovery` is configured: docs/discovery.md\n"
    )
    introduced(api, MAC, "Z1")
    introduced(api, MAC, "Z1", peer="192.0.2.66", number=2)
    refused = run(*order)
    assert refused.status == 4
    assert refused.err == (
        f"Error: more than one says to be the machine with the MAC {MAC}\n"
        "Remedy: find out which it is, and declare machines by their MACs, with --seen\n"
    )


def test_what_names_no_machine_or_more_than_all(api: Api, run: Run) -> None:
    del api
    for words, wrong in (
        (
            ("--all", "--name", "gpu", "--profile", "p"),
            "with --all it has one place for a number: write it like gpu-%03d",
        ),
        ((MAC, "--all", "--name", "gpu-%d", "--profile", "p"), "--all is of all machines: leave out MAC and --seen"),
        (("--name", "gpu-001", "--profile", "p"), "Invalid value for MAC: name one, or --all"),
    ):
        ran = run("machine", "declare", *words)
        assert (ran.status, wrong in ran.err) == (2, True), ran.err

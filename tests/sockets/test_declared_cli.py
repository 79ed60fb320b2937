"""`netboot machine declare`, against the API."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from images.values import strict
from netboot.lifecycle.state import Batch
from netboot.stores.inventory import read_inventory
from tests.commands import Run
from tests.records import sighted
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
        "Remedy: edit the inventory where its files are kept; `netboot machine declare --print` writes the YAML of a "
        "machine, `netboot machine import --print` that of a list\n"
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

"""`netboot machine declare`, against the API."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from images.values import strict
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.state import Batch
from netboot.stores.inventory import read_inventory
from tests.commands import Ran, Run
from tests.records import made_of, sighted
from tests.sites import INVENTORY
from tests.sockets.api import Api, of_alice
from tests.sockets.served import runner, served

MAC, UUID = "52:54:00:12:34:99", "86a9f546-d31b-4ba2-9bbb-303b61bcf8d1"
NAMED = ("--name", "gpu-009", "--profile", "compute")

BY = f"macs {MAC}, uuid {UUID}"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = of_alice(Api(tmp_path, writable=True, inventory=f"{INVENTORY}racks: [{{name: r1}}]\n"))
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
        f"Error: gpu-009 is declared already, at {api.config.inventory}/machine-gpu-009.yaml:2: choose another name, "
        "or edit that machine\n"
        "Remedy: `netboot inventory list machines` has those that are taken\n"
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


def test_written_into_a_file_that_was_not_there(api: Api, run: Run, tmp_path: Path) -> None:
    """Whole, or not at all: what was there stays where nobody says otherwise, also where the command fails."""
    file = tmp_path / "gpu-009.yaml"
    words = ("machine", "declare", MAC, *NAMED, "--out", str(file))
    failed = run("machine", "declare", "52:54:00:00:00:00", *NAMED, "--out", str(file))
    assert (failed.status, file.exists()) == (3, False)
    made = run(*words)
    judged = "`netboot config check` holds it against all else that is declared"
    assert made == (0, f"wrote {file}: 1 machine; {judged}\n", "")
    assert file.read_text() == run("machine", "declare", MAC, *NAMED, "--print").out
    file.write_text("mine\n")
    file.chmod(0o640)
    refused = run(*words)
    assert refused == (1, "", f"Error: {file} is there already: name another, or give --force to replace it\n")
    assert run("machine", "declare", "52:54:00:00:00:00", *NAMED, "--out", str(file), "--force").status == 3
    assert file.read_text() == "mine\n"
    assert run(*words, "--force", "-o", "name").out == "gpu-009\n"
    assert (file.read_text() != "mine\n", file.stat().st_mode & 0o777) == (True, 0o640)
    nowhere = run("machine", "declare", MAC, *NAMED, "--out", str(tmp_path / "none" / "gpu-009.yaml"))
    assert (nowhere.status, f"cannot write {tmp_path}/none/gpu-009.yaml: No such file" in nowhere.err) == (3, True)
    assert [path.name for path in api.config.inventory.glob("machine-*")] == []


def test_where_yaml_goes_is_said_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rack.csv").touch()
    no_name = "is no name of an inventory's file: give one that ends in .yaml"
    for more, wrong in (
        (("--print", "--out", "x.yaml"), "--print shows the YAML and --out writes it: leave one of them out"),
        (
            ("--force",),
            "--force replaces what --out names: give --out, too, or leave it out",
        ),
        (
            ("--out", "x.yaml", "--dry-run"),
            "--out writes a file: leave --dry-run out; --print shows the file",
        ),
        *((("--out", name), f"Invalid value for --out: '{name}' {no_name}") for name in ("/", "-", ".x.yaml", "x.yml")),
    ):
        for words in (("declare", MAC, *NAMED), ("import", "--csv", str(tmp_path / "rack.csv"))):
            ran = run("machine", *words, *more)
            assert (ran.status, wrong in ran.err) == (2, True), ran.err
    assert not (tmp_path / "x.yaml").exists()


@pytest.mark.parametrize("how", ["--print", "--out"])
def test_what_would_not_be_declared_is_not_made_either(run: Run, tmp_path: Path, how: str) -> None:
    """By the same words for a name, and by the same status, as where the service writes it."""
    more = (how,) if how == "--print" else (how, str(tmp_path / "gpu.yaml"))
    named = ("machine", "declare", MAC, "--name", "GPU 1", "--profile", "compute")
    refused = run(*named, *more)
    assert refused == run(*named)
    assert (refused.status, "'--name': must be lower-case letters, digits, '-' and '.'" in refused.err) == (2, True)
    wrong = ("machine", "declare", MAC, "--name", "gpu-9", "--profile", "compte", "--class", "h100", "--rack", "r2")
    refused = run(*wrong, *more)
    assert refused == (
        4,
        "",
        (
            "Error: gpu-9: profile: no profile is named 'compte'; did you mean 'compute'?\n"
            "gpu-9: class: no class is named 'h100'; no class is declared at all\n"
            "gpu-9: rack: no rack is named 'r2'; did you mean 'r1'?\n"
            "nothing was made\n"
            "Remedy: correct what is named\n"
        ),
    )
    assert run(*wrong).status == 4
    assert not (tmp_path / "gpu.yaml").exists()


def test_all_are_made_or_none(api: Api, run: Run, tmp_path: Path) -> None:
    introduced(api, MAC, "Z1")
    file, order = tmp_path / "all.yaml", ("machine", "declare", "--all", "--name", "new-%03d", "--profile")
    refused = run(*order, "compte", "--out", str(file))
    assert (refused.status, "new-001: profile: no profile is named 'compte'" in refused.err) == (4, True)
    assert not file.exists()
    assert run(*order, "compute", "--out", str(file)).out.startswith(f"wrote {file}: 1 machine; ")
    assert [each["name"] for each in strict.parse(file.read_text(), "out").value["machines"]] == ["new-001"]


def test_a_name_that_is_taken_or_was_another_s_is_refused_alike(api: Api, run: Run, tmp_path: Path) -> None:
    """Of a list by its line."""
    site = api.config.inventory / "site.yaml"
    site.write_text(site.read_text().replace("{name: gpu-001,", "{name: gpu-001, former_names: [old-001],"))
    (line,) = [number for number, each in enumerate(site.read_text().splitlines(), 1) if "name: gpu-001" in each]
    file, remedy = tmp_path / "new.yaml", "Remedy: `netboot inventory list machines` has those that are taken\n"
    for name, why in (
        ("gpu-001", f"gpu-001 is declared already, at {site}:{line}: choose another name, or edit that machine"),
        ("old-001", f"old-001 is a former name of gpu-001, which is declared at {site}:{line}: choose another name"),
    ):
        words = ("machine", "declare", MAC, "--name", name, "--profile", "compute")
        assert run(*words) == Ran(4, "", f"Error: {why}\n{remedy}")
        for more in (("--print",), ("--out", str(file))):
            assert run(*words, *more) == Ran(4, "", f"Error: {why}\nnothing was made\n{remedy}")
    assert not file.exists()
    listed = tmp_path / "l.csv"
    listed.write_text("name,macs\nold-001,52:54:00:00:00:77\n")
    ran = run("machine", "import", "--csv", listed, "--profile", "compute")
    wrong = f"Error: {listed}:2: name 'old-001': {why}\n1 fault; nothing was imported\n"
    assert ran == Ran(1, "", f"{wrong}Remedy: correct the list, and import it whole\n")


@pytest.mark.parametrize("more", [(), ("--print",)])
def test_what_was_shown_has_one_form(run: Run, more: tuple[str, ...]) -> None:
    ran = run("machine", "declare", MAC, *NAMED, "--seen", "soon", *more)
    said = "must be what `netboot machine discovered` shows under seen: 32 hexadecimal digits"
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: Invalid value for '--seen': {said}")


def test_taken_out_where_it_is_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """At a site whose inventory is its files alone: what there is not is unknown, and no folder has to be searched."""
    api = of_alice(Api(tmp_path, inventory=INVENTORY))
    with served(api) as address:
        run = runner(address, api, capsys, monkeypatch)
        unknown = run("machine", "undeclare", "gpu-077")
        refused = run("machine", "undeclare", "gpu-001")
    assert (unknown.status, "no machine of that name; did you mean" in unknown.err) == (3, True)
    (line,) = [number for number, each in enumerate(INVENTORY.splitlines(), 1) if "name: gpu-001" in each]
    at = f"{api.config.inventory / 'site.yaml'}:{line}"
    why = f"this site's inventory is its files alone: edit {api.config.inventory}, or set `inventory_writable: true`"
    assert refused == Ran(
        4,
        "",
        f"Error: gpu-001 is declared at {at}; {why}\nRemedy: take it out there, then `netboot config check`\n",
    )


def test_another_than_was_shown_is_refused_alike(run: Run) -> None:
    for more in ((), ("--print",)):
        ran = run("machine", "declare", MAC, *NAMED, "--seen", "0" * 32, *more)
        assert (ran.status, "says something else of itself" in ran.err) == (4, True), ran.err


def test_who_takes_accept_for_it_is_led_here(run: Run) -> None:
    ran = run("machine", "accept", MAC, "--name", "gpu-009")
    assert ran.status == 2
    assert ran.err.endswith(
        f"Error: Invalid value for 'MACHINE': {MAC} is a MAC address, and machines go by their names; "
        f"`netboot machine declare {MAC} --name NAME --profile PROFILE` takes one that is in no inventory\n"
    )
    assert "No such option '--name'" in run("machine", "accept", "gpu-009", "--name", "gpu-009").err


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

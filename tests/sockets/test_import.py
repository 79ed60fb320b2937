"""`netboot machine import`, against the API: all machines of a list, or none and every fault."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from images.values import strict
from netboot.lifecycle.roles import Role
from netboot.machines.imported import MOST
from netboot.stores.inventory import read_inventory
from netboot.web.roles import needed
from tests.commands import Run
from tests.sockets.api import Api, given, of_alice
from tests.sockets.served import runner, served

HEAD = """\
channels:
- {name: stable}
profiles:
- {name: compute, channel: stable}
racks:
- {name: r1}
machines:
- {name: old-001, match: {serial: CZ1}, profile: compute}
"""
MACHINES = 437
QUOTE = (
    'a quote (") is opened here, and none closes it before a comma or the end of a line: close it, or take it out; '
    "the lines after this one were not looked at"
)
SAY_PROFILE = "say --profile for all of them, or fill it in"
NO_MAC = "not a MAC address (twelve hexadecimal digits, with ':', '-' or nothing between)"
NO_NAME = "must be lower-case letters, digits, '-' and '.', at most 63, beginning and ending with a letter or digit"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return of_alice(Api(tmp_path, inventory=HEAD, writable=True))


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Run]:
    monkeypatch.chdir(tmp_path)
    with served(api) as address:
        yield runner(address, api, capsys, monkeypatch)


def row(number: int) -> str:
    return f"gpu-{number:03},52:54:00:00:{number >> 8:02x}:{number & 255:02x} 5254.0001.{number:04x},r1"


def rack(*lines: str, head: str = "name,macs,rack") -> None:
    Path("rack.csv").write_bytes("".join(f"{line}\r\n" for line in (head, *lines)).encode("utf-8-sig"))


def content(api: Api) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(api.config.inventory.glob("*")) if path.name != ".lock"}


def send(api: Api, machines: list[Any], **headers: str) -> Any:
    sent = api.authorised | {name.replace("_", "-"): value for name, value in headers.items()}
    return api.client.post("/v1/inventory/machines", json={"machines": machines}, headers=sent)


def test_437_machines_in_one_command(api: Api, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    rack(*map(row, range(MACHINES)))
    before = content(api)
    order = ("machine", "import", "--csv", "rack.csv", "--profile", "compute", "--reason", "rack 1")
    planned = run(*order, "--dry-run")
    assert (planned.err, content(api)) == ("", before)
    with caplog.at_level(logging.INFO, "netboot.audit"):
        ran = run(*order)
    (file,) = content(api).keys() - before.keys()
    assert (planned.out, ran.out) == (
        f"{MACHINES} machines would be declared in {file}\n",
        f"{MACHINES} machines are declared in {file}\n",
    )
    api.publisher.step(now=True)
    machines = api.live.view().snapshot.inventory.machines  # all, as soon as the files are looked at
    assert len(machines) == MACHINES + 1
    assert machines[0].match.macs == ("52:54:00:00:00:00", "52:54:00:01:00:00")
    assert [record.getMessage() for record in caplog.records if record.name == "netboot.audit"] == ["audit"]
    whole, *each = api.get(f"/v1/audit?limit={MACHINES + 1}").json["audit"]
    assert (whole["act"], whole["machine"], whole["reason"], whole["who"]) == ("declare", "", "rack 1", "alice")
    assert whole["facts"] == {"machines": MACHINES, "file": file}
    assert {one["machine"] for one in each} == {f"gpu-{number:03}" for number in range(MACHINES)}
    assert {(one["act"], one["before"], one["reason"]) for one in each} == {("declare", None, "rack 1")}
    assert each[-1]["after"] == {
        "name": "gpu-000",
        "match": {"macs": ["52:54:00:00:00:00", "5254.0001.0000"]},
        "profile": "compute",
        "rack": "r1",
    }


def test_every_wrong_line_is_named_at_once_and_nothing_is_imported(api: Api, run: Run) -> None:
    before, site = content(api), api.config.inventory / "site.yaml"
    rack(
        "gpu-001,52:54:00:00:00:01,r1,compute,,true",
        "GPU 2,52:54:00:00:00:02,r1,compute,,true",
        "gpu-003,52:54:00:00:00,r1,compute,,true",
        "",
        "gpu-004,52:54:00:00:00:04,r2,compute,,true",
        "gpu-005,52:54:00:00:00:05,r1,compte,,true",
        "gpu-006,52-54-00-00-00-01,r1,compute,,true",
        "gpu-001,52:54:00:00:00:07,r1,compute,,true",
        "old-001,52:54:00:00:00:08,r1,compute,,true",
        "gpu-009,,r1,compute,CZ1,true",
        "gpu-010,52:54:00:00:00:0a,r1,compute,,perhaps",
        "gpu-011,52:54:00:00:00:0b,r1,compute,,true,surplus",
        "gpu-012,,r1,compute,,true",
        head="name,macs,rack,profile,serial,enabled",
    )
    ran, of_two = run("machine", "import", "--csv", "rack.csv"), "is of two machines,"
    assert ran.err.splitlines() == [
        f"Error: rack.csv:3: name 'GPU 2': {NO_NAME}",
        f"rack.csv:4: macs '52:54:00:00:00': {NO_MAC}",
        "rack.csv:6: rack 'r2': no rack is named 'r2'; did you mean 'r1'?",
        "rack.csv:7: profile 'compte': no profile is named 'compte'; did you mean 'compute'?",
        f"rack.csv:8: macs '52-54-00-00-00-01': MAC 52:54:00:00:00:01 {of_two} 'gpu-006' and 'gpu-001' in rack.csv:2",
        "rack.csv:9: name 'gpu-001': machine 'gpu-001' is declared twice, first in rack.csv:2",
        f"rack.csv:10: name 'old-001': machine 'old-001' is declared twice, first in {site}:8",
        f"rack.csv:11: serial 'CZ1': serial CZ1 is of two machines, 'gpu-009' and 'old-001' in {site}:8",
        "rack.csv:12: enabled 'perhaps': write true or false; nothing is true",
        "rack.csv:13: more cells than columns: put what has a comma in it in double quotes",
        "rack.csv:14: match: needs at least one of macs, uuid and serial: nothing could be recognised by this",
        "11 faults; nothing was imported",
        "Remedy: correct the list, and import it whole",
    ]
    assert (ran.status, ran.out, content(api)) == (1, "", before)


def test_what_is_right_of_a_list_with_faults_is_not_imported_either(api: Api, run: Run) -> None:
    before = content(api)
    rack(row(1), f"{row(2)},surplus")
    said = run("machine", "import", "--csv", "rack.csv", "--profile", "compute").err.splitlines()
    assert said == [
        "Error: rack.csv:3: more cells than columns: put what has a comma in it in double quotes",
        "1 fault; nothing was imported",
        "Remedy: correct the list, and import it whole",
    ]
    assert content(api) == before


def test_an_edit_that_removes_much_is_let_in_first(api: Api) -> None:
    machines = [{"declared": {"name": f"m-{n}", "match": {"serial": f"S{n}"}, "profile": "compute"}} for n in range(9)]
    file = send(api, machines).json["file"]
    api.publisher.step(now=True)
    (api.config.inventory / file).unlink()
    refused = send(api, [{"declared": {"name": "gpu-001", "match": {"serial": "G1"}, "profile": "compute"}}])
    assert (refused.status_code, refused.json["code"]) == (409, "too-many-removed")


def test_of_more_faults_than_an_answer_has_the_number_is_said(run: Run) -> None:
    rack(*(f"M {number},r9" for number in range(400)), head="name,rack")
    assert run("machine", "import", "--csv", "rack.csv").err.startswith("Error: rack.csv:1: the first line names")
    rack(*(f"M {number},52:54,r9" for number in range(400)))
    said = run("machine", "import", "--csv", "rack.csv").err.splitlines()
    profile = f"profile: 400 machines say none, this one first: {SAY_PROFILE}"
    assert (len(said), said[0]) == (754, f"Error: rack.csv:2: {profile}")
    assert said[-3:-1] == ["and 450 more", "1201 faults; nothing was imported"]


def test_437_wrong_lines_are_437_faults(api: Api, run: Run) -> None:
    before = content(api)
    rack(*(row(number).replace("r1", "r9") for number in range(MACHINES)))
    said = run("machine", "import", "--csv", "rack.csv", "--profile", "compute").err.splitlines()
    assert [line.removeprefix("Error: ").partition(": ")[0] for line in said[:MACHINES]] == [
        f"rack.csv:{number + 2}" for number in range(MACHINES)
    ]
    assert said[MACHINES] == f"{MACHINES} faults; nothing was imported"
    assert content(api) == before


def test_of_437_lines_the_one_that_is_wrong_is_told(api: Api, run: Run) -> None:
    lines = [row(number) for number in range(1, MACHINES + 1)]
    order = ("machine", "import", "--csv", "rack.csv", "--profile", "compute")
    rack(*lines[:298], lines[298].replace(",52:54:00:00:01:2b", ",52:54:00:00:01:2x"), *lines[299:])
    wrong = "rack.csv:300: macs '52:54:00:00:01:2x 5254.0001.012b': "
    assert run(*order).err.splitlines()[:-1] == [f"Error: {wrong}{NO_MAC}", "1 fault; nothing was imported"]
    rack(*lines[:298], lines[298].replace(",52:54", ',"52:54'), *lines[299:])
    assert run(*order).err.splitlines()[:-1] == [
        f"Error: rack.csv:300: {QUOTE}",
        "1 fault; nothing was imported",
    ]


def test_a_profile_that_was_forgotten_is_one_fault(api: Api, run: Run) -> None:
    rack(*(row(number) for number in range(1, MACHINES + 1)))
    one = f"rack.csv:2: profile: 437 machines say none, this one first: {SAY_PROFILE}"
    said = [f"Error: {one}", "1 fault; nothing was imported", "Remedy: correct the list, and import it whole"]
    for order in ([], ["--print"]):
        assert run("machine", "import", "--csv", "rack.csv", *order).err.splitlines() == said


def test_what_came_together_is_changed_and_taken_out_singly(api: Api, run: Run) -> None:
    rack(row(1), row(2))
    order = ("machine", "import", "--csv", "rack.csv", "--profile", "compute")
    assert run(*order).status == 0
    (file,) = content(api).keys() - {"site.yaml"}
    shown = api.get("/v1/inventory/machines/gpu-001")
    assert (shown.json["read_only"], Path(shown.json["file"]).name) == ("", file)
    other = shown.json["declared"] | {"enabled": False}
    headers = api.authorised | {"If-Match": shown.headers["ETag"]}
    changed: Any = api.client.put("/v1/inventory/machines/gpu-001", json={"declared": other}, headers=headers)
    assert (changed.json["did"], changed.json["file"]) == ("replaced", file)
    assert {machine.name: machine.enabled for machine in read_inventory(api.config).machines} == {
        "gpu-001": False,
        "gpu-002": True,
        "old-001": True,
    }
    assert run("machine", "undeclare", "gpu-001").status == 0
    assert [machine.name for machine in read_inventory(api.config).machines] == ["gpu-002", "old-001"]
    path = api.config.inventory / file
    path.write_text(f"# mind the fan\n{path.read_text()}")
    assert "was edited by hand, and stays as it is" in run("machine", "undeclare", "gpu-002").err
    path.write_text(path.read_text().partition("\n")[2])
    assert run("machine", "undeclare", "gpu-002").status == 0
    assert list(content(api)) == ["site.yaml"]


def test_once_for_one_key(api: Api) -> None:
    machines = [{"declared": {"name": "gpu-001", "match": {"serial": "S1"}, "profile": "compute"}}]
    first = send(api, machines, Idempotency_Key='"k1"')
    again = send(api, machines, Idempotency_Key='"k1"')
    assert (first.json, again.headers["Idempotent-Replayed"]) == (again.json, "true")
    assert (first.json["machines"], len(api.get("/v1/audit").json["audit"])) == (["gpu-001"], 2)
    place = f"{api.config.inventory / first.json['file']}:2"
    words = f"machines[0]: name: machine 'gpu-001' is declared twice, first in {place}"
    assert send(api, machines).json["faults"] == [words]
    odd = send(api, ["x", {"name": "y"}, 7])
    assert odd.status_code == 400
    odd = send(api, [{"declared": "x"}, {"declared": {}, "place": "list, 2"}])
    assert [fault.partition(": ")[0] for fault in odd.json["faults"]] == ["machines[0]", *["list, 2"] * 3]
    assert send(api, machines, If_Match="*").status_code == 400


def test_a_file_that_cannot_be_written_leaves_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(api)

    def refused(_self: Path, _target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refused)
        answer = send(api, [{"declared": {"name": "gpu-001", "match": {"serial": "S1"}, "profile": "compute"}}])
    assert (answer.status_code, content(api)) == (503, before)
    assert api.get("/v1/audit").json["audit"][0]["result"] != "done"


def test_admins_alone(api: Api) -> None:
    assert needed("POST", "/v1/inventory/machines") == Role.ADMIN
    token = given(api, "olga", Role.OPERATOR)
    assert api.post("/v1/inventory/machines", {"machines": []}, token).status_code == 403


def test_a_site_in_git_gets_the_yaml(api: Api, run: Run) -> None:
    (api.config.inventory / ".git").mkdir()
    rack(row(1), row(2))
    order = ("machine", "import", "--csv", "rack.csv", "--profile", "compute")
    refused = run(*order)
    assert (refused.status, "is kept in git: edit it in a clone of" in refused.err) == (4, True)
    printed = run(*order, "--print")
    (api.config.inventory / "rack.yaml").write_text(printed.out)
    names = [machine.name for machine in read_inventory(api.config).machines]
    assert names == ["gpu-001", "gpu-002", "old-001"]
    assert list(strict.parse(printed.out, "out").value) == ["machines"]
    rack(row(1), row(1), "GPU,52:54:00:00:00:09,r1")
    wrong = run(*order, "--print")
    assert (wrong.out, wrong.status, wrong.err.splitlines()[-2]) == ("", 1, "2 faults; nothing was imported")


def test_faults_of_the_list_are_said_where_the_service_cannot_be_asked(
    api: Api, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETBOOT_SERVER", "http://127.0.0.1:1")
    rack("gpu-001,52:54:00:00:00:01,r1,surplus")
    said = run("machine", "import", "--csv", "rack.csv").err.splitlines()
    assert said[0].startswith("Error: what else is wrong cannot be told: cannot reach the service")
    assert said[1] == "rack.csv:2: more cells than columns: put what has a comma in it in double quotes"


def test_a_list_that_is_too_long_is_divided(api: Api, run: Run) -> None:
    rack(*(f"m-{number},S-{number}" for number in range(MOST + 1)), head="name,serial")
    ran = run("machine", "import", "--csv", "rack.csv", "--profile", "compute")
    assert ran.err == "Error: 2001 machines are more than 2000, which go at once\nRemedy: divide the list\n"
    machines = [{"declared": {"name": f"m-{number}"}} for number in range(MOST + 1)]
    assert send(api, machines).json["code"] == "bad-request"


def test_one_list_at_once(run: Run) -> None:
    rack(row(1))
    assert run("machine", "import").status == 2
    assert run("machine", "import", "--csv", "rack.csv", "--redfish-json", "rack.csv").status == 2

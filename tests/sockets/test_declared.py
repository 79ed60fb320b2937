"""Machines are declared by the API where the inventory's files are its to write: checked whole, one file each."""

import errno
import threading
from pathlib import Path
from typing import Any

import pytest

from images.values import files
from images.values.flock import exclusive
from netboot.lifecycle.events import HardwareRecord
from netboot.lifecycle.hardware import KEPT_MS
from netboot.lifecycle.roles import Role
from netboot.lifecycle.state import Batch
from netboot.machines.difference import digest_of
from netboot.machines.removals import Removals
from netboot.machines.written import text_of
from netboot.stores import inventory_files
from netboot.stores.inventory import read_inventory
from netboot.stores.removals import RemovalsFile
from netboot.web.roles import needed
from tests.records import made_of, sighted
from tests.sockets.api import PUBLISHER, Api, given, of_alice

HEAD = """\
channels:
- {name: stable}  # by hand
profiles:
- {name: compute, channel: stable}
racks:
- {name: r1}
machines:
- {name: old-001, match: {serial: CZ1}, profile: compute}
- {name: old-002, match: {serial: CZ2}, profile: compute}
"""
MAC = "52:54:00:12:34:99"
NEW = {"name": "gpu-009", "match": {"macs": [MAC]}, "profile": "compute", "rack": "r1"}
AT = "/v1/inventory/machines/gpu-009"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return of_alice(Api(tmp_path, inventory=HEAD, writable=True))


def ask(api: Api, method: str, path: str, body: Any = None, token: str | None = None, **headers: str) -> Any:
    sent = api.authorised | ({"Authorization": f"Bearer {token}"} if token is not None else {})
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    return api.client.open(path, method=method, json=body, headers=sent)


def create(api: Api, value: Any = NEW, **more: Any) -> Any:
    name = value["name"] if isinstance(value, dict) else "gpu-009"
    return ask(api, "PUT", f"/v1/inventory/machines/{name}", {"declared": value, **more}, If_None_Match="*")


def refused(answer: Any) -> tuple[int, str, str]:
    return answer.status_code, answer.json["code"], answer.json["detail"]


def content(api: Api) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(api.config.inventory.glob("*")) if path.name != ".lock"}


def seen(api: Api, uuid: str | None = None) -> None:
    """It asked, and may not boot."""
    record = sighted(MAC).model_copy(update={"uuid": uuid})
    api.states.take(Batch(f"boot-{uuid}.db", 1, 2, [record]))


def file(api: Api) -> Path:
    return api.config.inventory / "machine-gpu-009.yaml"


def test_from_nothing_to_nothing(api: Api) -> None:
    before = content(api)
    planned = create(api, dry_run=True)
    assert (planned.json["did"], content(api)) == ("created", before)
    made = create(api, reason="arrived")
    assert made.json == {
        "name": "gpu-009",
        "did": "created",
        "dry_run": False,
        "file": "machine-gpu-009.yaml",
        "declared": NEW,
    }
    assert file(api).read_text() == (
        "machines:\n- name: gpu-009\n  match:\n    macs:\n    - 52:54:00:12:34:99\n  profile: compute\n  rack: r1\n"
    )
    assert [machine.rack for machine in read_inventory(api.config).machines if machine.name == "gpu-009"] == ["r1"]
    shown = api.get(AT)
    assert shown.json == {"name": "gpu-009", "file": str(file(api)), "line": 2, "declared": NEW, "read_only": ""}
    file(api).chmod(0o640)
    other = NEW | {"enabled": False}
    replaced = ask(api, "PUT", AT, {"declared": other, "reason": "loud"}, If_Match=shown.headers["ETag"])
    assert (replaced.json["did"], api.get(AT).json["declared"]) == ("replaced", other)
    assert file(api).stat().st_mode & 0o777 == 0o640
    gone = ask(api, "DELETE", f"{AT}?reason=sold", If_Match=api.get(AT).headers["ETag"])
    assert (gone.json["did"], gone.json["declared"], content(api)) == ("removed", None, before)
    assert api.get(AT).status_code == 404
    rows = api.get("/v1/audit").json["audit"]
    assert [(each["act"], each["who"], each["machine"], each["reason"]) for each in rows] == [
        ("undeclare", "alice", "gpu-009", "sold"),
        ("declare", "alice", "gpu-009", "loud"),
        ("declare", "alice", "gpu-009", "arrived"),
    ]
    assert [(each["before"], each["after"]) for each in rows] == [(other, None), (NEW, other), (None, NEW)]


def test_what_would_not_be_taken_is_not_written_and_every_fault_is_named(api: Api) -> None:
    before, site = content(api), api.config.inventory / "site.yaml"
    answer = create(api, NEW | {"profile": "compte", "rack": "r2", "match": {"serial": "CZ1"}, "more": 1})
    assert refused(answer) == (422, "faults", "4 faults; nothing was changed")
    assert answer.json["faults"] == [
        f"{file(api)}:5: machines[0].profile: no profile is named 'compte'; did you mean 'compute'?",
        f"{file(api)}:6: machines[0].rack: no rack is named 'r2'; did you mean 'r1'?",
        f"{file(api)}:7: machines[0].more: unknown key; did you mean 'node'?",
        f"{site}:8: machines[0].match.serial: serial CZ1 is of two machines, 'old-001' and 'gpu-009' in {file(api)}:4",
    ]
    assert content(api) == before


def test_a_fault_elsewhere_keeps_it_out_too(api: Api) -> None:
    other = api.config.inventory / "other.yaml"
    other.write_text("machines: [{name: x}]\n")
    before = content(api)
    assert refused(create(api))[:2] == (422, "faults")
    assert content(api) == before
    listed = api.get("/v1/inventory/machines").json
    assert [each["name"] for each in listed["machines"]] == ["x", "old-001", "old-002"]
    other.write_text("machines: [")
    listed = api.get("/v1/inventory/machines").json
    assert [each["name"] for each in listed["machines"]] == ["old-001", "old-002"]
    assert [str(other) in each for each in listed["problems"]] == [True]
    other.write_text("machines:\n- {name: x, 1: 2}\n- {name: y, match: !!binary eA==}\n- {name: z}\n")
    listed = api.get("/v1/inventory/machines").json
    assert [each["name"] for each in listed["machines"]] == ["z", "old-001", "old-002"]
    words = "has values that JSON has no words for"
    assert listed["problems"] == [f"{other}:2: {words}", f"{other}:3: {words}"]


def test_who_acts_by_what_is_so_no_more_writes_nothing(api: Api) -> None:
    assert refused(ask(api, "PUT", AT, {"declared": NEW}))[1:] == (
        "bad-request",
        "If-Match: send If-Match with the ETag of what is there or If-None-Match: * where nothing is",
    )
    assert refused(ask(api, "DELETE", AT))[2] == "If-Match: send If-Match with the ETag of what is there"
    assert refused(ask(api, "DELETE", AT, If_Match="*"))[:2] == (404, "no-such-machine")
    create(api)
    seen = api.get(AT).headers["ETag"]
    assert refused(create(api)) == (412, "precondition-failed", "it is there already")
    assert ask(api, "PUT", AT, {"declared": NEW | {"enabled": False}}, If_Match=seen).json["did"] == "replaced"
    before = content(api)
    for method, body in (("PUT", {"declared": NEW}), ("DELETE", None)):
        assert ask(api, method, AT, body, If_Match=seen).status_code == 412
    assert refused(ask(api, "PUT", AT, {"declared": NEW}, If_None_Match='"x"'))[0] == 400
    assert content(api) == before


def test_what_a_person_wrote_stays_theirs(api: Api) -> None:
    path, site = "/v1/inventory/machines/old-001", api.config.inventory / "site.yaml"
    words = f"old-001 is declared at {site}:8, in a file that a person wrote: edit it there"
    shown = api.get(path)
    assert (shown.json["line"], shown.json["read_only"]) == (8, words)
    value = shown.json["declared"] | {"enabled": False}
    for method, body in (("PUT", {"declared": value}), ("DELETE", None)):
        assert refused(ask(api, method, path, body, If_Match="*")) == (409, "inventory-read-only", words)
    create(api)
    file(api).write_text(f"# mind the fan\n{file(api).read_text()}")
    before = content(api)
    edited = f"{file(api)} was edited by hand, and stays as it is: edit it there, at {file(api)}:3"
    assert api.get(AT).json["read_only"] == edited
    assert refused(ask(api, "DELETE", AT, If_Match="*")) == (409, "inventory-read-only", edited)
    assert content(api) == before and site.read_text() == HEAD


def test_a_name_that_is_taken_by_something_else(api: Api, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("machines: []\n")
    file(api).symlink_to(outside)
    words = f"{file(api)} is there already, and declares something else: edit it there"
    assert refused(create(api)) == (409, "inventory-read-only", words)
    assert (outside.read_text(), file(api).is_symlink()) == ("machines: []\n", True)
    file(api).unlink()
    file(api).write_text("machines: [{name: x, match: {serial: X}, profile: compute}]\n")
    before = content(api)
    assert (refused(create(api)), content(api)) == ((409, "inventory-read-only", words), before)
    file(api).unlink()
    for name in ("..%2Fx", "-x", "X", "a" * 64):
        path = f"/v1/inventory/machines/{name}"
        answer = ask(api, "PUT", path, {"declared": NEW | {"name": name}}, If_None_Match="*")
        assert answer.status_code in (400, 404), name
    assert list(content(api)) == ["site.yaml"]


def test_a_file_of_another_user_stays_theirs(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    create(api)
    before, owner = content(api), file(api).stat().st_uid
    monkeypatch.setattr("netboot.stores.inventory_files.os.geteuid", lambda: owner + 1)
    words = f"{file(api)} is of another user (uid {owner}), and stays so: edit it there"
    assert refused(ask(api, "DELETE", AT, If_Match="*")) == (409, "inventory-read-only", words)
    assert content(api) == before


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_kept_in_git_is_written_by_nobody_here(api: Api, kind: str) -> None:
    above = api.config.inventory.parent
    if kind == "folder":
        (above / ".git").mkdir()
    else:
        (above / ".git").write_text("gitdir: /elsewhere\n")
    before = content(api)
    words = f"{api.config.inventory} is kept in git: edit it in a clone of {above}, commit and push"
    assert refused(create(api)) == (409, "inventory-read-only", words)
    seen(api)
    found = ask(api, "POST", f"/v1/discovered/{MAC}/declare", {"name": "x", "profile": "compute"})
    assert refused(found) == (409, "inventory-read-only", words)
    assert api.get("/v1/inventory").json["read_only"] == words
    assert content(api) == before


def test_a_link_to_where_it_is_kept_in_git(api: Api, tmp_path: Path) -> None:
    kept = tmp_path / "clone" / "inventory"
    kept.parent.mkdir()
    api.config.inventory.rename(kept)
    api.config.inventory.symlink_to(kept)
    words = f"{api.config.inventory} is a symbolic link: edit the files where it leads"
    assert refused(create(api)) == (409, "inventory-read-only", words)


def test_nobody_writes_where_the_configuration_does_not_say_so(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=HEAD)
    words = f"this site's inventory is its files alone: edit {api.config.inventory}, or set `inventory_writable: true`"
    assert refused(create(api)) == (409, "inventory-read-only", words)
    assert sorted(path.name for path in api.config.inventory.iterdir()) == ["site.yaml"]
    assert api.get("/v1/inventory").json == {
        "folder": str(api.config.inventory),
        "read_only": words,
        "profiles": ["compute"],
        "classes": [],
        "racks": ["r1"],
    }


def test_removals_count_together_with_those_of_the_last_hour(api: Api) -> None:
    for number in range(20):
        value = {"name": f"m-{number}", "match": {"serial": f"S{number}"}, "profile": "compute"}
        assert create(api, value).status_code == 200
    api.publisher.step(now=True)
    assert len(api.live.view().snapshot.inventory.machines) == 22

    def remove(number: int) -> Any:
        return ask(api, "DELETE", f"/v1/inventory/machines/m-{number}", If_Match="*")

    assert [remove(number).status_code for number in range(5)] == [200] * 5
    words = "6 of 22 machines would be gone within an hour; 10 % of them may go, and 5 at least, and never all"
    assert refused(remove(5)) == (409, "too-many-removed", words)
    assert (api.config.inventory / "machine-m-5.yaml").exists()
    api.publisher.step(now=True)
    assert len(api.live.view().snapshot.inventory.machines) == 17
    status = api.publisher.status()
    assert status.inventory.lately == 5
    api.say(publisher=PUBLISHER.model_copy(update={"inventory": status.inventory}))
    assert refused(remove(5))[1:] == ("too-many-removed", words)


def test_machines_that_would_be_others_count_with_them(api: Api) -> None:
    values = [{"name": f"m-{number}", "match": {"serial": f"S{number}"}, "profile": "compute"} for number in range(20)]
    assert {create(api, value).status_code for value in values} == {200}
    api.publisher.step(now=True)

    def other(number: int) -> Any:
        path = f"/v1/inventory/machines/m-{number}"
        declared = {**values[number], "match": {"serial": f"T{number}"}}
        return ask(api, "PUT", path, {"declared": declared}, If_Match="*")

    assert [other(number).status_code for number in range(5)] == [200] * 5
    words = "6 of 22 machines would be gone or be others within an hour; 10 % of them may go, and 5 at least, and never"
    assert refused(other(5)) == (409, "too-many-removed", f"{words} all")


def test_machines_that_went_and_come_back_as_others_count_with_them(api: Api) -> None:
    values = [{"name": f"m-{number}", "match": {"serial": f"S{number}"}, "profile": "compute"} for number in range(20)]
    assert {create(api, value).status_code for value in values} == {200}
    api.publisher.step(now=True)

    def remove(number: int) -> Any:
        return ask(api, "DELETE", f"/v1/inventory/machines/m-{number}", If_Match="*")

    assert [remove(number).status_code for number in range(3)] == [200] * 3
    api.publisher.step(now=True)
    for number in range(3):
        assert create(api, {**values[number], "match": {"serial": f"T{number}"}}).status_code == 200
    assert [remove(number).status_code for number in (3, 4)] == [200] * 2
    words = "6 of 22 machines would be gone or be others within an hour; 10 % of them may go, and 5 at least, and never"
    assert refused(remove(5)) == (409, "too-many-removed", f"{words} all")
    api.publisher.step(now=True)
    words = "6 of 22 machines would be gone within an hour; 10 % of them may go, and 5 at least, and never all"
    assert refused(remove(5)) == (409, "too-many-removed", words)


OLD = {f"m-{number}" for number in range(64, 72)}


def test_machines_that_were_added_lift_the_bound_for_none_that_was_there(api: Api) -> None:
    for number in range(72):
        value = {"name": f"m-{number}", "match": {"serial": f"S{number}"}, "profile": "compute"}
        assert create(api, value).status_code == 200
    api.publisher.step(now=True)
    file = RemovalsFile(api.config.data)
    came = {name: at_ms for name, at_ms in file.read().came.items() if name not in OLD}
    file.write(Removals(came=came))

    def remove(number: int) -> Any:
        return ask(api, "DELETE", f"/v1/inventory/machines/m-{number}", If_Match="*")

    assert [remove(number).status_code for number in range(64, 69)] == [200] * 5
    words = (
        "6 of 10 machines that were there before this hour would be gone within an hour; 10 % of them may go, and 5 at"
    )
    assert refused(remove(69)) == (409, "too-many-removed", f"{words} least, and never all")
    assert remove(0).status_code == 200, "one that came"


def test_where_nobody_can_tell_who_went_nothing_that_may_be_another_is_declared(api: Api) -> None:
    api.publisher.step(now=True)
    file = RemovalsFile(api.config.data)
    file.write(Removals(untold_ms=1))
    words = (
        "which machines went within the last hour cannot be told: for an hour nothing that removes machines, adds some "
        "or changes by what they are known is taken"
    )
    assert refused(create(api)) == (503, "inventory-unread", words)
    file.write(Removals())
    assert create(api).status_code == 200


def test_the_last_machine_stays(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=HEAD.partition("- {name: old-001")[0].replace("machines:\n", ""), writable=True)
    create(api)
    api.publisher.step(now=True)
    answer = ask(api, "DELETE", AT, If_Match="*")
    assert refused(answer)[:2] == (409, "too-many-removed")


def test_what_is_removed_is_said_by_path_and_query_alone(api: Api) -> None:
    create(api)
    for path in (AT, "/v1/tokens/abcdef"):
        answer = ask(api, "DELETE", path, {"dry_run": True}, If_Match="*")
        assert refused(answer) == (
            400,
            "bad-request",
            "the body: there is none here; what is to be said stands in the query",
        )
    key = {"If_Match": "*", "Idempotency_Key": '"once"'}
    tried = ask(api, "DELETE", f"{AT}?dry_run=true", **key)
    assert (tried.json["did"], tried.json["dry_run"], file(api).exists()) == ("removed", True, True)
    assert ask(api, "DELETE", AT, **key).json["did"] == "removed"
    assert not file(api).exists()


def test_a_crash_leaves_the_old_file_and_its_rest_is_swept(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    create(api)
    before = content(api)

    class Killed(BaseException):
        pass

    def killed(_self: Path, _target: Path) -> None:
        raise Killed

    seen = api.get(AT).headers["ETag"]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", killed)
        patched.setattr(Path, "unlink", lambda *_, **__: None)  # as if nothing ran after
        with pytest.raises(Killed):
            ask(api, "PUT", AT, {"declared": NEW | {"enabled": False}}, If_Match=seen)
    assert len(content(api)) == len(before) + 1
    (api.config.inventory / (editors := ".machine-gpu-009.yaml.swp")).write_text("what somebody types")
    assert digest_of(read_inventory(api.config)) == digest_of(read_inventory(api.config))
    assert api.get(AT).json["declared"] == NEW
    assert ask(api, "PUT", AT, {"declared": NEW | {"enabled": False}}, If_Match=seen).json["did"] == "replaced"
    assert content(api).keys() == {*before, editors}


def test_writers_of_several_processes_come_one_after_the_other(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = api.config.inventory / ".lock"
    monkeypatch.setattr(inventory_files, "LOCK_SECONDS", 0.0)
    with exclusive(lock, "x"):
        answer = create(api)
        assert refused(answer)[:2] == (503, "busy")
    monkeypatch.setattr(inventory_files, "LOCK_SECONDS", 60.0)
    names = [f"w-{number}" for number in range(4)]
    values = [{"name": name, "match": {"serial": name}, "profile": "compute"} for name in names]
    answers: list[int] = []
    threads = [threading.Thread(target=lambda v=value: answers.append(create(api, v).status_code)) for value in values]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [200] * 4
    assert {machine.name for machine in read_inventory(api.config).machines} >= set(names)


def test_admins_alone_declare(api: Api) -> None:
    for method, path in (
        ("PUT", "/v1/inventory/machines/<name>"),
        ("DELETE", "/v1/inventory/machines/<name>"),
        ("POST", "/v1/discovered/<mac>/declare"),
    ):
        assert needed(method, path) == Role.ADMIN
    token = given(api, "olga", Role.OPERATOR)
    answer = ask(api, "PUT", AT, {"declared": NEW}, token, If_None_Match="*")
    assert (answer.status_code, set(content(api))) == (403, {"site.yaml"})


def test_who_asked_is_declared_as_they_were_seen(api: Api) -> None:
    path = f"/v1/discovered/{MAC.replace(':', '-')}/declare"
    body = {"name": "gpu-009", "profile": "compute", "rack": "r1"}
    assert refused(ask(api, "POST", path, body)) == (
        404,
        "no-such-machine",
        f"no machine with the MAC {MAC} asked and may not boot",
    )
    seen(api, uuid="00000000-0000-0000-0000-000000000000")
    planned = ask(api, "POST", path, body | {"dry_run": True}).json
    assert (planned["declared"], set(content(api))) == (NEW, {"site.yaml"})
    uuid = "86a9f546-d31b-4ba2-9bbb-303b61bcf8d1"
    seen(api, uuid=uuid)
    made = ask(api, "POST", path, body).json
    assert made["declared"]["match"] == {"macs": [MAC], "uuid": uuid}
    assert [machine.match.uuid for machine in read_inventory(api.config).machines if machine.rack] == [uuid]
    assert refused(ask(api, "POST", path, body))[2] == (
        f"gpu-009 is declared already, at {api.config.inventory}/machine-gpu-009.yaml:2: choose another name, or edit "
        "that machine"
    )
    assert refused(ask(api, "POST", path, body | {"name": "x"}))[:2] == (422, "faults")
    assert refused(ask(api, "POST", "/v1/discovered/nothing/declare", body))[0] == 400


def test_a_discovered_machine_is_declared_by_its_report_and_by_nothing_but_what_was_shown(api: Api) -> None:
    path, body = f"/v1/discovered/{MAC}/declare", {"name": "gpu-009", "profile": "compute"}
    now = api.clock.now_ms()
    seen(api)
    (bare,) = api.get("/v1/discovered").json["discovered"]
    assert (bare["hardware"], bare["suggested_class"], bare["taken_at"]) == (None, None, None)
    cards = [
        {"name": name, "mac": mac, "pci": pci, "driver": "mlx5_core", "speed_mbps": 0, "link": False}
        for name, mac, pci in (("eth0", MAC, "0000:01:00.0"), ("usb0", "52:54:00:00:00:77", ""))
    ]
    cards += [{**cards[0], "name": "eth1", "mac": "52:54:00:12:34:9a"}, {**cards[0], "name": "ib0", "mac": "80:00:02"}]
    tpm = {"ek_sha256": "ab" * 32, "certificate": None}
    told(api, made_of(MAC, now, cards=cards, tpm=tpm).model_copy(update={"peer": "192.0.2.66"}))
    (shown,) = api.get("/v1/discovered").json["discovered"]
    assert (shown["hardware"]["tpm"]["ek_sha256"], shown["hardware"]["memory_bytes"]) == ("ab" * 32, 1)
    assert (bare["told_from"], bare["match"]) == (None, {"macs": [MAC]})
    assert (shown["peer"], shown["told_from"]) == ("192.0.2.9", "192.0.2.66")
    words = (
        f"the machine with the MAC {MAC} says something else of itself by now ({shown['seen']}) than was shown "
        f"({bare['seen']}): look at it again, it may be another"
    )
    assert len(shown["seen"]) == 32, "half as many can be had twice by whoever makes up what is reported"
    assert refused(ask(api, "POST", path, {**body, "seen": bare["seen"]})) == (412, "precondition-failed", words)
    assert set(content(api)) == {"site.yaml"}
    api.states.take(Batch("boot-2.db", 1, 1, [sighted(MAC, now + 1)]))
    assert [each["seen"] for each in api.get("/v1/discovered").json["discovered"]] == [shown["seen"]]
    made = ask(api, "POST", path, {**body, "seen": shown["seen"]}).json
    match = {"macs": [MAC, "52:54:00:12:34:9a"], "serial": "LAB-0001", "ek_sha256": "ab" * 32}
    assert made["declared"]["match"] == shown["match"] == match
    (machine,) = [one for one in read_inventory(api.config).machines if one.name == "gpu-009"]
    assert machine.match.ek_sha256 == "ab" * 32


def test_a_report_is_shown_for_an_hour(api: Api) -> None:
    now = api.clock.now_ms()
    seen(api)
    for by_another_clock in (now + KEPT_MS + 60_000, now - KEPT_MS - 60_000):
        told(api, made_of(MAC, by_another_clock))
        assert api.get("/v1/discovered").json["discovered"][0]["hardware"] is None
    told(api, made_of(MAC, now))
    assert api.get("/v1/discovered").json["discovered"][0]["hardware"]["firmware"]["product"] == "Standard PC"


def told(api: Api, record: HardwareRecord) -> None:
    api.states.take(Batch("boot-1.db", 1, api.states.cursor("boot-1.db")[1] + 1, [record]))


def test_what_is_nested_too_deep_is_a_fault(api: Api) -> None:
    for depth, answer in ((60, (422, "faults")), (400, (400, "bad-request"))):
        deep: Any = []
        for _ in range(depth):
            deep = [deep]
        assert refused(create(api, NEW | {"node": deep}))[:2] == answer


def test_any_text_comes_back_as_it_was(api: Api) -> None:
    numbers = ("0123", "1:20", "52:54:00:12:34:56", "1e5", "0x1F", "1.5")
    for odd in (*numbers, "no", "~", "=", "<<", " a ", "#x", "é\u2028", "a\nb"):
        value = {"name": "x", "match": {"serial": odd}, "n": [True, None, 1, odd]}
        assert text_of("machine", value).startswith("machines:\n- name: x\n")


@pytest.mark.parametrize("act", ["declare", "undeclare", "import"])
def test_what_is_in_place_and_not_durable_is_done_in_part(act: str, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes the file and refuses the folder; the key remembers it, and the audit has the act."""
    if act == "undeclare":
        assert create(api).status_code == 200
    before, key = content(api), {"Idempotency_Key": '"5f2c-41d0"'}

    def broken(_folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    def asked() -> Any:
        if act == "declare":
            return ask(api, "PUT", AT, {"declared": NEW}, If_None_Match="*", **key)
        if act == "undeclare":
            return ask(api, "DELETE", AT, If_Match="*", **key)
        return ask(api, "POST", "/v1/inventory/machines", {"machines": [{"declared": NEW}]}, **key)

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_folder", broken)
        answer = asked()
    assert refused(answer) == (409, "done-in-part", "it is in place, and a power cut may undo it")
    assert asked().data == answer.data
    assert content(api) != before
    record = api.get("/v1/audit").json["audit"][0]
    stood = NEW if act == "undeclare" else None
    assert (record["act"], record["result"], record["before"]) == (
        "undeclare" if act == "undeclare" else "declare",
        "done-in-part",
        stood,
    )
    assert record["after"] == (NEW if act == "declare" else None)
    if act == "import":
        assert record["facts"]["machines"] == ["gpu-009"]

"""A machine is renamed: by a person's file, by the API's, and what is known of it goes with it."""

import errno
import os
from pathlib import Path

import pytest

from images.values import files
from netboot.config import load_config
from netboot.join.enrolment import Act, Import
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import Member
from netboot.lifecycle.rollout_store import Note
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.history import SqliteHistory
from netboot.stores.history_writer import HistoryFile
from netboot.stores.renamed import carry
from netboot.stores.rollouts import SqliteRollouts, make
from tests.processes import wait_for
from tests.rollouts import OLD, rollout
from tests.sites import add_image, make_site
from tests.sockets.api import NOW, Api, of_alice
from tests.sockets.served import runner, served
from tests.sockets.service import serving
from tests.sockets.test_declared import HEAD, NEW, ask, content, create, refused

EK, MAC = "e1" * 32, "52:54:00:00:00:01"
REMEDY = "Remedy: `netboot machine drain gpu-009`, then --yes, and reboot it\n"
AT = "/v1/inventory/machines/gpu-009/rename"


def line_of(text: str, name: str) -> int:
    """Where a machine is declared."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if f"name: {name}" in line)


def test_what_is_known_of_it_goes_with_it(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site", workers=1)
    file, inventory = tmp_path / "site" / "netboot.yaml", tmp_path / "site" / "inventory" / "site.yaml"
    image = add_image(config)
    with serving(load_config(file), file) as service:
        waited = wait_for(lambda: service.outcome(MAC) and service.api("/v1/machines/gpu-001")["claims"].get("waited"))
        assert waited["reason"] == "channel stable has no image yet: run `netboot channel set stable <image>`"
        assert service.netboot("channel", "set", "stable", image).returncode == 0
        wait_for(lambda: service.outcome(MAC) == "boot")
        boot = service.boot(MAC)
        assert service.post(boot, MAC, "InitrdStarted") == 204
        assert service.order("/v1/machines/gpu-001/hold", reason="DIMM 4").status_code == 200
        wait_for(lambda: service.api("/v1/machines/gpu-001")["current"])
        before = inventory.read_text()
        os.chown(inventory, os.getuid(), os.getgid())  # it is of who edits it, as where the package is installed
        tried = service.netboot("machine", "rename", "gpu-001", "r7-1", "--dry-run")
        assert (tried.stdout, tried.stderr) == (f"gpu-001 would be r7-1 in {inventory}\n", "")
        assert inventory.read_text() == before
        for name, status, words in (
            ("gpu-002", 4, f"gpu-002 is declared already, at {inventory}:{line_of(before, 'gpu-002')}: choose another"),
            ("GPU_2", 2, "Invalid value for NEW: must be lower-case letters, digits, '-' and '.', at most 63"),
        ):
            wrong = service.netboot("machine", "rename", "gpu-001", name)
            assert (wrong.returncode, words in wrong.stderr) == (status, True), wrong.stderr
        assert inventory.read_text() == before
        done = service.netboot("machine", "rename", "gpu-001", "r7-1", "--reason", "moved")
        assert (done.stdout, done.stderr) == (f"gpu-001 is r7-1 in {inventory}\n", "")
        assert inventory.read_text() == before.replace("name: gpu-001", "name: r7-1, former_names: [gpu-001]")
        kept = service.api("/v1/audit?limit=1")["audit"][0]
        assert (kept["act"], kept["role"], kept["machine"], kept["reason"]) == ("rename", "files", "gpu-001", "moved")
        assert kept["facts"] == {"file": inventory.name, "to": "r7-1"}
        assert [kept[name]["name"] for name in ("before", "after")] == ["gpu-001", "r7-1"]
        wait_for(lambda: service.api("/v1/machines/r7-1").get("current"))
        gone = service.api("/v1/machines/gpu-001")
        assert gone["detail"] == "the machine gpu-001 was renamed: it is r7-1 now"
        assert service.post(boot, MAC, "Switched") == 204
        assert service.post(boot, MAC, "Booted", machine="gpu-001") == 204
        wait_for(lambda: service.api("/v1/machines/r7-1")["current"]["state"] == "Booted")
        shown = service.api("/v1/machines/r7-1")
        assert [trace["boot"] for trace in shown["boots"]].count(boot) == 1
        assert shown["claims"]["waited"] == waited
        assert [each["reason"] for each in shown["intents"]] == ["DIMM 4"]
        assert service.api("/v1/machines/r7-1/intents")["history"][0]["machine"] == "r7-1"
        assert service.api(f"/v1/machines/r7-1/explain?boot={boot}")["machine"] == "r7-1"
        assert {each["boot"] for each in service.api("/v1/boots?machine=r7-1")["boots"]} >= {boot}
        again = service.boot(MAC)
        wait_for(lambda: again in {each["boot"] for each in service.api("/v1/boots?machine=r7-1")["boots"]})
        assert "cannot" not in service.log
        assert service.stop() == 0


def test_its_tpm_goes_with_it(tmp_path: Path) -> None:
    store, act = SqliteEnrolments(tmp_path / "enrolment.db"), Act("alice", "arrived")
    store.apply([("gpu-001", Import(EK, "{}"))], act, 1)
    store.alert("gpu-001", "other-key", "an earlier TPM", 2)
    for _ in range(2):
        carry(tmp_path, {"gpu-001": "r7-1"})
        assert (store.record("r7-1").ek_sha256, store.record("gpu-001").state) == (EK, "none")
        enrolled = store.by_ek(EK)
        assert enrolled is not None and (enrolled.machine, enrolled.state) == ("r7-1", "approved")
        assert [each.act for each in store.history("r7-1", 9)] == ["imported"]
        assert [each.said for each in store.alerts("r7-1")] == ["an earlier TPM"]


def test_its_place_in_a_rollout_and_its_history_go_with_it(tmp_path: Path) -> None:
    make(tmp_path / "rollouts.db").close()
    rollouts, history = SqliteRollouts(tmp_path / "rollouts.db"), HistoryFile(tmp_path / "history.db")
    members = {name: Member(machine=name, previous=OLD) for name in ("gpu-001", "gpu-002")}
    number = rollouts.start(rollout(), members, Note(1, "alice", "start", "")).number
    condition = MachineCondition.of(ConditionType.IN_SERVICE, Reason.IN_SERVICE, "said", NOW)
    history.note([(Judged(machine="gpu-001", conditions=(condition,), timers={}), NOW)])
    carry(tmp_path, {"gpu-001": "r7-1"})
    assert {name: each.machine for name, each in rollouts.members(number).items()} == {
        "r7-1": "r7-1",
        "gpu-002": "gpu-002",
    }
    (transition,) = SqliteHistory(tmp_path / "history.db").transitions("r7-1", None, 9)
    assert transition.machine == "r7-1"
    history.close()


def test_one_that_the_api_wrote(tmp_path: Path) -> None:
    api = of_alice(Api(tmp_path, inventory=HEAD, writable=True))
    create(api)
    before = content(api)
    planned = ask(api, "POST", AT, {"name": "r7-9", "dry_run": True})
    assert (planned.json["did"], content(api)) == ("renamed", before)
    done = ask(api, "POST", AT, {"name": "r7-9", "reason": "moved"})
    value = {**NEW, "name": "r7-9", "former_names": ["gpu-009"]}
    assert done.json == {
        "name": "r7-9",
        "did": "renamed",
        "dry_run": False,
        "file": "machine-r7-9.yaml",
        "declared": value,
    }
    assert content(api).keys() == {"machine-r7-9.yaml", "site.yaml"}
    (row,) = [each for each in api.get("/v1/audit").json["audit"] if each["act"] == "rename"]
    assert (row["machine"], row["reason"], row["before"], row["after"]) == ("gpu-009", "moved", NEW, value)
    back = ask(api, "POST", "/v1/inventory/machines/r7-9/rename", {"name": "gpu-009"})
    assert back.json["declared"] == {**NEW, "former_names": ["r7-9"]}
    assert content(api).keys() == {"machine-gpu-009.yaml", "site.yaml"}


def test_a_rename_that_is_refused_in_the_middle_leaves_no_machine_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file of the old name is of another user, or cannot be taken away; or nothing is durable."""
    api = of_alice(Api(tmp_path, inventory=HEAD, writable=True))
    create(api)
    before, old = content(api), api.config.inventory / "machine-gpu-009.yaml"
    unlink = Path.unlink

    def broken(path: Path, missing_ok: bool = False) -> None:
        if path in stuck:
            raise OSError(errno.EIO, "Input/output error")
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr("netboot.stores.inventory_files.os.geteuid", lambda: old.stat().st_uid + 1)
        assert refused(ask(api, "POST", AT, {"name": "r7-9"}))[:2] == (409, "inventory-read-only")
    assert content(api) == before
    stuck = {old}
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", broken)
        assert refused(ask(api, "POST", AT, {"name": "r7-9"}))[1] == "store"
        assert content(api) == before
        stuck = {old, old.with_name("machine-r7-9.yaml")}
        both = refused(ask(api, "POST", AT, {"name": "r7-9"}))
    assert both[:2] == (409, "done-in-part")
    assert both[2].startswith(
        "r7-9 is declared in machine-r7-9.yaml, and gpu-009 is still, of which one has to be taken"
    )
    (row, *_) = api.get("/v1/audit").json["audit"]
    assert (row["act"], row["result"], row["machine"]) == ("rename", "done-in-part", "gpu-009")
    old.with_name("machine-r7-9.yaml").unlink()

    def not_durable(_folder: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_folder", not_durable)
        assert refused(ask(api, "POST", AT, {"name": "r7-9"}))[:2] == (409, "done-in-part")
    assert content(api).keys() == {"machine-r7-9.yaml", "site.yaml"}


def test_one_of_a_list_that_the_api_wrote(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=HEAD, writable=True)
    ask(api, "POST", "/v1/inventory/machines", {"machines": [{"declared": NEW}]})
    (name,) = content(api).keys() - {"site.yaml"}
    assert ask(api, "POST", AT, {"name": "r7-9"}).json["file"] == name
    assert "r7-9" in content(api)[name]


def test_one_in_service_is_renamed_by_a_second_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(tmp_path, inventory=HEAD, writable=True)
    create(api)
    api.publisher.step(now=True)
    condition = MachineCondition.of(ConditionType.IN_SERVICE, Reason.IN_SERVICE, "said", NOW)
    api.kept.keep([Judged(machine="gpu-009", conditions=(condition,), timers={})], (), {})
    afterwards = (
        "Until it boots again it runs as node gpu-009, whose certificates are not renewed: they end within a day. Then "
        "it joins as node r7-9, and `kubectl delete node gpu-009` removes the old one.\n"
    )
    with served(api) as address:
        run = runner(address, api, capsys, monkeypatch)
        refused = run("machine", "rename", "gpu-009", "r7-9")
        assert (refused.status, refused.err) == (
            4,
            f"Error: gpu-009 is in service. {afterwards}{REMEDY}",
        )
        would = "gpu-009 would be r7-9 in machine-r7-9.yaml\n"
        assert run("machine", "rename", "gpu-009", "r7-9", "--dry-run").out == would + afterwards
        done = run("machine", "rename", "gpu-009", "r7-9", "--yes")
        assert done.out == f"gpu-009 is r7-9 in machine-r7-9.yaml\n{afterwards}"
        assert run("machine", "rename", "gpu-008", "r7-8").status == 3


def test_a_node_with_a_name_of_its_own_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(tmp_path, inventory=HEAD, writable=True)
    create(api, {**NEW, "node": {"name": "node-9"}})
    api.publisher.step(now=True)
    condition = MachineCondition.of(ConditionType.IN_SERVICE, Reason.IN_SERVICE, "said", NOW)
    api.kept.keep([Judged(machine="gpu-009", conditions=(condition,), timers={})], (), {})
    with served(api) as address:
        run = runner(address, api, capsys, monkeypatch)
        assert run("machine", "rename", "gpu-009", "r7-9").status == 4
        assert run("machine", "rename", "gpu-009", "r7-9", "--yes").out == (
            "gpu-009 is r7-9 in machine-r7-9.yaml\n"
            "Until it boots again it runs as node node-9, whose certificates are not renewed: they end within a day. "
            "Then it joins as that node again.\n"
        )


def test_what_is_refused(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=HEAD, writable=True)
    create(api)
    before = content(api)
    site = api.config.inventory / "site.yaml"
    theirs = f"old-001 is declared at {site}:8, in a file that a person wrote: edit it there"
    path = "/v1/inventory/machines/{}/rename"
    words = f"old-001 is declared already, at {site}:8: choose another name, or edit that machine"
    taken = ask(api, "POST", AT, {"name": "old-001"})
    assert refused(taken) == (409, "name-taken", words)
    assert taken.json["remedy"] == "`netboot inventory list machines` has those that are taken"
    assert refused(ask(api, "POST", path.format("old-001"), {"name": "r7-9"}))[2] == theirs
    assert refused(ask(api, "POST", path.format("gpu-010"), {"name": "r7-9"}))[:2] == (404, "no-such-machine")
    assert refused(ask(api, "POST", AT, {"name": "../r7"}))[0] == 400
    assert ask(api, "POST", AT, {"name": "gpu-009"}).json["did"] == ""
    assert content(api) == before

"""No accident with the inventory's files empties a fleet: on real files, through the API and the command line."""

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.cli.diagnosis import Diagnosis
from netboot.cli.doctor import diagnose
from netboot.controllers.inventory import InventoryInForce
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.machines.difference import digest_of
from netboot.machines.inventory import load_inventory
from netboot.machines.removals import REMEMBERED_MS
from netboot.status.controllers import InventoryStatus, PendingInventory
from netboot.stores.acceptance import Acceptance
from netboot.stores.snapshot import read_snapshot
from tests.commands import Run
from tests.sites import make_site
from tests.sockets.api import UP_MS, Api, Fixed
from tests.sockets.served import runner, served

HEAD = """\
channels:
- {name: stable}
profiles:
- {name: compute, channel: stable}
machines:
"""
FLEET = 1000
REMEDY = "look with `netboot config diff`; then `netboot config accept`, or put the files back"


def machines(first: int, last: int) -> str:
    return "".join(
        f"- {{name: gpu-{number:04}, match: {{serial: CZ{number}}}, profile: compute}}\n"
        for number in range(first, last + 1)
    )


class Site(Api):
    """A service of 1,000 machines whose publisher looks when it is told to."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, inventory=HEAD + machines(1, FLEET))
        self.file = self.config.inventory / "site.yaml"
        self.look()

    def look(self) -> InventoryStatus:
        self.publisher.step(now=True)
        fresh = {"at_ms": Fixed().now_ms(), "up_ms": UP_MS}
        self.say(publisher=self.publisher.status().model_copy(update=fresh))
        return self.publisher.status().inventory

    def writes(self, text: str) -> InventoryStatus:
        self.file.write_text(text)
        return self.look()

    def restarts(self) -> InventoryStatus:
        """The controllers; what they find is what is on the disk."""
        self.publisher = SnapshotPublisher(self.config, self.repository, self.repository, self.states, Fixed())
        return self.look()

    @property
    def boots(self) -> int:
        """Machines of the snapshot that boot servers read."""
        return len(read_snapshot(self.config.data / "snapshot.json").inventory.machines)

    @property
    def digest(self) -> str:
        return digest_of(load_inventory(self.config.inventory))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def run(site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with served(site) as address:
        yield runner(address, site, capsys, monkeypatch)


def says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def paused_writer(site: Site) -> InventoryStatus:
    """It wrote 200 lines so far: 195 machines, and YAML as good as any."""
    whole = (HEAD + machines(1, FLEET)).splitlines(keepends=True)
    return site.writes("".join(whole[:200]))


def test_a_writer_that_pauses_empties_no_fleet(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        status = paused_writer(site)
        site.look()
    goes = "removes 805 of 1000 machines (gpu-0196, gpu-0197, gpu-0198, …)"
    names = tuple(f"gpu-{number:04}" for number in range(196, 216))
    assert status == InventoryStatus(
        ok=False,
        valid=False,
        message=f"its files changed: it {goes}; the one before stays in force until an operator accepts it",
        remedy=REMEDY,
        pending=PendingInventory(digest=site.digest, removed=805, of=1000, lately=0, names=names),
    )
    assert site.boots == 1000
    kept = f"inventory: it {goes}; the one before stays in force until an operator accepts it"
    assert [record.getMessage() for record in caplog.records] == [kept]
    ready = site.get("/readyz").get_json()
    detail = ready["details"]["inventory"]
    assert (ready["ready"], ready["degraded"]) == (True, True)
    assert (detail["ok"], detail["message"], detail["remedy"]) == (False, status.message, REMEDY)
    assert (detail["pending"]["removed"], detail["pending"]["of"]) == (805, 1000)
    assert detail["pending"]["names"] == list(names)
    lines = site.get("/metrics").text.splitlines()
    assert "netboot_inventory_pending_removals 805.0" in lines
    assert "netboot_inventory_valid 0.0" in lines
    assert "netboot_machines 1000.0" in lines


def test_it_goes_on_and_all_is_well_without_anybody(site: Site) -> None:
    paused_writer(site)
    assert site.writes(HEAD + machines(1, FLEET + 1)) == InventoryStatus(ok=True, valid=True, message="in force")
    assert site.boots == 1001
    assert "netboot_inventory_pending_removals 0.0" in site.get("/metrics").text.splitlines()


def test_an_empty_file_is_a_fault_and_nothing_that_could_be_accepted(site: Site) -> None:
    status = site.writes("")
    fault = f"{site.file}: holds nothing: remove the file, or declare `machines: []`"
    assert (status.valid, status.faults, status.pending) == (False, (fault,), None)
    assert site.boots == 1000


def test_a_volume_that_is_not_mounted_and_a_folder_that_is_gone(site: Site) -> None:
    folder = site.config.inventory
    folder.rename(folder.with_name("volume"))
    absent = site.look()
    assert absent.faults == (f"{folder}: is not there: the inventory is a folder of *.yaml files",)
    folder.mkdir()
    empty = site.look()
    why = "has no *.yaml file: is a volume not mounted? A site without machines declares `machines: []`"
    assert empty.faults == (f"{folder}: {why}",)
    assert site.restarts().faults == empty.faults
    assert site.boots == 1000
    folder.rmdir()
    folder.with_name("volume").rename(folder)
    assert site.look().valid
    assert site.boots == 1000


def test_a_restart_forgets_no_bound(site: Site) -> None:
    before = paused_writer(site)
    assert site.restarts() == before
    assert site.boots == 1000


def test_the_bound_is_configured(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site", inventory=HEAD + machines(1, 40))
    limits = config.inventory_limits.model_copy(update={"removals_percent": 50, "removals_minimum": 1})
    inventory = InventoryInForce(config.model_copy(update={"inventory_limits": limits}), None)
    assert (inventory.step(now=True), inventory.valid) == (True, True)
    file = config.inventory / "site.yaml"
    file.write_text(HEAD + machines(1, 20))
    assert (inventory.step(now=True), inventory.valid) == (True, True)
    file.write_text(HEAD + machines(1, 8))
    assert (inventory.step(now=True), inventory.valid) == (True, False)


def test_the_first_inventory_is_taken_whatever_its_size_and_an_empty_folder_is_none(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site", inventory="")
    inventory = InventoryInForce(config, None)
    inventory.step(now=True)
    assert (inventory.value, inventory.valid) == (None, False)
    (config.inventory / "site.yaml").write_text(HEAD + machines(1, 1))
    inventory.step(now=True)
    assert inventory.valid
    (config.inventory / "site.yaml").write_text(HEAD + machines(1, FLEET))
    inventory.step(now=True)
    assert inventory.valid


def test_a_fleet_that_goes_in_small_steps_goes_no_further_than_at_once(tmp_path: Path) -> None:
    now = 0.0
    config = make_site(tmp_path / "site", inventory=HEAD + machines(1, 100))
    inventory = InventoryInForce(config, None, monotonic=lambda: now)
    inventory.step(now=True)
    held = []
    for last in (96, 92, 88):
        now += 60
        (config.inventory / "site.yaml").write_text(HEAD + machines(1, last))
        inventory.step(now=True)
        held.append(inventory.status(None).pending)
    assert held[:2] == [None, None]
    assert held[2] is not None
    assert (held[2].removed, held[2].of, held[2].lately) == (4, 92, 8)
    now += REMEMBERED_MS / 1000
    (config.inventory / "site.yaml").write_text(HEAD + machines(1, 87))
    inventory.step(now=True)
    assert inventory.valid


def test_what_was_accepted_is_in_force_and_counts_once(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    paused_writer(site)
    with caplog.at_level(logging.INFO):
        answer = site.post("/v1/inventory/accept", {"digest": site.digest, "reason": "sold"})
    assert (answer.status_code, answer.get_json()) == (
        200,
        {"accepted": site.digest, "dry_run": False, "removed": 805, "others": 0, "of": 1000},
    )
    audited = [record.fields for record in caplog.records if record.name == "netboot.audit"]  # type: ignore[attr-defined]
    facts = {"act": "accept-inventory", "digest": site.digest, "removed": 805, "of": 1000, "reason": "sold"}
    assert [{key: fields[key] for key in facts} for fields in audited] == [facts]
    [kept] = site.get("/v1/audit").json["audit"]
    in_force = kept["before"]["in_force"]
    assert (kept["before"]["accepted"], kept["after"]) == (None, {"in_force": in_force, "accepted": site.digest})
    assert site.look() == InventoryStatus(ok=True, valid=True, message="in force")
    assert site.boots == 195
    assert site.writes(HEAD + machines(1, FLEET)).valid
    assert not paused_writer(site).valid
    assert site.boots == 1000


def test_what_was_accepted_outlives_the_publisher(site: Site) -> None:
    paused_writer(site)
    site.post("/v1/inventory/accept", {"digest": site.digest})
    assert site.restarts().valid
    assert site.boots == 195
    assert Acceptance(site.config.data).read() is None


def test_a_word_that_a_torn_file_holds_is_none(site: Site) -> None:
    paused_writer(site)
    site.post("/v1/inventory/accept", {"digest": site.digest})
    file = site.config.data / "accepted" / "inventory.json"
    file.write_bytes(file.read_bytes()[:20])
    assert not site.restarts().valid
    assert site.boots == 1000


def test_a_later_edit_needs_a_word_of_its_own(site: Site) -> None:
    paused_writer(site)
    shown = site.digest
    site.writes(HEAD + machines(1, 190))
    late = site.post("/v1/inventory/accept", {"digest": shown})
    assert (late.status_code, late.get_json()) == (
        409,
        {
            "type": "tag:netboot.dev,2026:problem/inventory-changed",
            "title": "what waits is another inventory",
            "instance": late.headers["X-Request-ID"],
            "status": 409,
            "code": "inventory-changed",
            "detail": f"what waits is inventory {site.digest[:12]}, not {shown[:12]}: what is declared changed since",
            "remedy": "look with `netboot config diff`",
        },
    )
    site.post("/v1/inventory/accept", {"digest": site.digest})
    assert not site.writes(HEAD + machines(1, 180)).valid  # accepted, and edited before it was taken
    assert site.boots == 1000


def test_nothing_waits_and_nobody_asks(site: Site) -> None:
    none = site.post("/v1/inventory/accept", {"digest": site.digest})
    assert (none.status_code, none.get_json()["detail"]) == (409, "no inventory waits to be accepted")
    assert site.post("/v1/inventory/accept", {"digest": "a"}).status_code == 400
    assert site.post("/v1/inventory/accept", {"digest": site.digest}, None).status_code == 401
    assert site.get("/v1/inventory/diff", None).status_code == 401


def test_faults_of_the_files_are_said_in_place_of_a_difference(site: Site) -> None:
    site.writes("machines: [")
    answer = site.get("/v1/inventory/diff")
    error = answer.get_json()
    assert (answer.status_code, error["code"], len(error["faults"])) == (422, "faults", 1)
    assert error["remedy"] == "correct what is declared; the inventory in force stays so meanwhile"


def test_the_difference_on_the_command_line(site: Site, run: Run) -> None:
    assert run("config", "diff") == (
        0,
        f"no difference\ninventory {site.digest[:12]}: what is declared is in force\n",
        "",
    )
    edited = HEAD.replace("stable}\nm", "stable, kernel_arguments: [quiet]}\nm") + machines(2, FLEET + 1)
    site.file.write_text(edited)
    done = run("config", "diff")
    assert (done.status, [line.split() for line in done.out.splitlines()]) == (
        0,
        [
            ["change", "kind", "name", "what"],
            ["+", "machine", "gpu-1001"],
            ["-", "machine", "gpu-0001"],
            ["~", "profile", "compute", "kernel_arguments:", "[]", "→", '["quiet"]'],
            ["machines:", "1", "added,", "0", "changed,", "1", "removed"],
            ["profiles:", "0", "added,", "1", "changed,", "0", "removed"],
            f"inventory {site.digest[:12]}: the service has yet to read it".split(),
        ],
    )
    site.look()
    paused_writer(site)
    found = json.loads(run("config", "diff", "--output", "json").out)
    assert (found["state"], found["digest"]) == ("waits", site.digest)
    assert (found["machines_in_force"], found["machines_then"], len(found["machines"]["removed"])) == (1000, 195, 806)


def test_accepting_on_the_command_line(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = "nothing waits to be accepted: what is declared is in force\n"
    assert run("config", "accept", "--yes") == (0, nothing, "")
    assert run("config", "accept", "--dry-run", "-o", "json").json["dry_run"] is True
    paused_writer(site)
    for answer, status in (("n\n", 130), ("", 2)):
        says(monkeypatch, answer)
        assert run("config", "accept").status == status
        assert Acceptance(site.config.data).read() is None
    says(monkeypatch, "y\n")
    done = run("config", "accept")
    lines = done.out.splitlines()
    assert (done.status, lines[0], lines[20]) == (0, "- gpu-0196", "… and 785 more: `netboot config diff`")
    assert lines[21:] == [
        "machines: 0 added, 0 changed, 805 removed",
        f"inventory {site.digest[:12]}: waits until an operator accepts it: `netboot config accept`",
        "Remove these 805 of 1000 machines? [y/N]: accepted: 805 machines go; in force within a second",
    ]
    assert site.look().valid
    assert site.boots == 195


def test_accepting_by_a_program(site: Site, run: Run) -> None:
    paused_writer(site)
    tried = run("config", "accept", "--dry-run")
    last = "would be accepted: 805 machines would go; nothing was changed"
    assert (tried.status, tried.out.splitlines()[-1], site.look().valid) == (0, last, False)
    done = run("config", "accept", "--yes", "--output", "json")
    expected = {"accepted": site.digest, "dry_run": False, "removed": 805, "others": 0, "of": 1000}
    assert (done.status, json.loads(done.out)) == (0, expected)
    assert site.look().valid


def test_a_fleet_of_others_by_the_same_names_waits_too(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slip in a template, or somebody who would have all machines be theirs."""
    others = (HEAD + machines(1, FLEET)).replace("serial: CZ", "serial: XZ")
    status = site.writes(others.replace("- {name: gpu-1000, match: {serial: XZ1000}, profile: compute}\n", ""))
    what = "changes by what 999 of 1000 machines are recognised or prove themselves (gpu-0001, gpu-0002, gpu-0003, …)"
    assert f"it removes 1 of 1000 machines (gpu-1000) and {what}; the one before stays" in status.message
    assert "netboot_inventory_pending_others 999.0" in site.get("/metrics").text.splitlines()
    says(monkeypatch, "y\n")
    done = run("config", "accept")
    lines = done.out.splitlines()
    assert (done.status, lines[:2], lines[20]) == (
        0,
        ["- gpu-1000", "~ gpu-0001: match"],
        "… and 980 more: `netboot config diff`",
    )
    assert lines[-1] == (
        "Remove 1 of 1000 machines, and recognise 999 of them by something else, or let them in by another proof? "
        "[y/N]: accepted: 1 machines go, 999 become others; in force within a second"
    )
    assert site.look().valid
    assert site.boots == 999


def test_who_left_and_came_back_as_another_is_told(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that leave a machine out and bring it back."""
    assert site.writes(HEAD + machines(61, FLEET)).valid
    others = machines(1, 101).replace("serial: CZ", "serial: XZ")
    site.file.write_text(HEAD + others + machines(102, FLEET))
    told = "went within the last hour, and is recognised or let in by something else now"
    lines = [" ".join(line.split()) for line in run("config", "diff").out.splitlines()]
    assert lines[1] == f"+ machine gpu-0001 {told}"
    found = json.loads(run("config", "diff", "-o", "json").out)
    assert (len(found["others"]), len(found["again"]), found["untold"]) == (101, 60, False)
    assert "it changes by what 101 of 940 machines are recognised or prove themselves" in site.look().message
    assert not site.restarts().valid
    says(monkeypatch, "y\n")
    lines = run("config", "accept").out.splitlines()
    assert lines[0] == f"~ gpu-0001: {told}"
    assert site.look().valid
    assert site.boots == 1000


def test_who_gets_a_name_that_a_renamed_machine_gave_up_is_told(
    site: Site, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a whole fleet, in two edits."""
    renamed = machines(1, FLEET).replace("name: gpu-", "name: n-")
    assert site.writes(HEAD + with_former(renamed)).valid
    assert site.writes(HEAD + renamed).valid
    site.file.write_text(HEAD + renamed + machines(1, FLEET).replace("serial: CZ", "serial: XZ"))
    told = "a machine had one of its names that is recognised or let in by something else"
    lines = [" ".join(line.split()) for line in run("config", "diff").out.splitlines()]
    assert lines[1] == f"+ machine gpu-0001 {told}"
    assert "it changes by what 1000 of 1000 machines are recognised or prove themselves" in site.look().message
    says(monkeypatch, "y\n")
    assert run("config", "accept").out.splitlines()[0] == f"~ gpu-0001: {told}"
    assert site.look().valid


def with_former(text: str) -> str:
    """Machines `n-…` that were `gpu-…`."""
    return re.sub(r"name: n-(\d+),", r"name: n-\1, former_names: [gpu-\1],", text)


def test_where_it_cannot_be_told_who_went_that_is_told(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (site.config.data / "removals.json").write_bytes(b"{")
    refused = run("config", "diff")
    assert (refused.status, "removals.json is not what this version writes" in refused.err) == (5, True)
    site.restarts()
    assert not site.writes(HEAD + machines(1, FLEET + 1)).valid
    says(monkeypatch, "y\n")
    lines = run("config", "accept").out.splitlines()
    assert lines[0] == "~ gpu-1001: new, or one that went within the last hour: that cannot be told"
    assert site.look().valid


def test_interrupted_at_the_question_nothing_is_accepted(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(io.TextIOBase):
        def readline(self, *_: object) -> str:  # type: ignore[override] # typeshed: bytes
            raise KeyboardInterrupt

    paused_writer(site)
    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert run("config", "accept").status == 130
    assert Acceptance(site.config.data).read() is None
    assert not site.restarts().valid
    assert site.boots == 1000


def test_doctor_says_what_waits(site: Site) -> None:
    status = paused_writer(site)
    file = site.config.inventory.parent / "netboot.yaml"
    with served(site) as address:
        file.write_text(f"{file.read_text()}  url: {address}\n")
        diagnoses = diagnose(file)
    found = [diagnosis for diagnosis in diagnoses if diagnosis.name == "inventory"]
    assert found == [Diagnosis("service", "inventory", "warn", status.message, REMEDY)]


def test_who_became_another_by_its_former_names_alone_has_left(site: Site) -> None:
    lines = machines(1, FLEET).splitlines(keepends=True)
    for number in range(7):
        former = ", ".join(f"gpu-{101 + 16 * number + each:04}" for each in range(16))
        lines[number] = lines[number].replace("match:", f"former_names: [{former}], match:")
    pending = site.writes(HEAD + "".join(lines[:100] + lines[212:])).pending
    assert (pending and pending.removed, site.boots) == (112, FLEET)

"""What rollouts, channels and drift say where something cannot be, or cannot be told: against the API."""

from pathlib import Path

import pytest

from netboot.controllers.assignments import Assignments
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.drains import DrainsStatus, State
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import Member, MemberState, Rollout
from netboot.lifecycle.rollout_store import Members, Note
from netboot.lifecycle.state import Batch
from netboot.stores import conditions
from netboot.stores.commits import Commits
from netboot.stores.conditions import SqliteConditions
from netboot.web import fleet
from tests.commands import Run
from tests.drains import drain
from tests.records import event
from tests.rollouts import rollout
from tests.sites import KUBELET, add_image
from tests.sockets.api import NOW, Api, Fixed

_STABLE = "/v1/channels/stable"
NOTE = Note(1, "alice", "start")


class Site(Api):
    """Two images; the channel is the first."""

    def __init__(self, root: Path, *, clusters: bool = True) -> None:
        super().__init__(root, clusters=clusters)
        self.old, self.new = add_image(self.config), add_image(self.config, name="next", salt="2", documents=KUBELET)
        self.store.set_channel("stable", self.old)
        assert self.publisher.step()


@pytest.fixture
def api(tmp_path: Path) -> Site:
    return Site(tmp_path)


def begun(api: Site, *, state: MemberState = MemberState.WAITING, previous: str = "") -> None:
    """A rollout of one machine."""
    member = Member(machine="gpu-001", previous=previous or api.old, state=state)
    api.rollouts.start(rollout().model_copy(update={"image": api.new, "base": api.old}), {"gpu-001": member}, NOTE)


def test_a_channel_that_is_set_by_force_says_where_assignments_stay(api: Site, run: Run) -> None:
    assert run("channel", "set", "stable", "next", "-o", "json").json["assignments_kept"] is False
    path = api.config.data / "rollouts.db"
    path.rename(path.with_name("aside.db"))
    assert run("channel", "set", "stable", "tiny").status == 5, "without --force it is not set"
    ran = run("channel", "set", "stable", "tiny", "--force")
    assert ran.status == 5
    assert ran.err.splitlines()[-2:] == [
        "Error: the rollouts of channel stable cannot be read: whom one assigned an image boots that still",
        "Remedy: see `netboot doctor`; once they can be read, run `netboot channel set stable` again",
    ]
    image = api.store.channel("stable")
    assert image is not None
    assert image.image == api.old, "it is set all the same"


@pytest.mark.parametrize("unreadable", ["under_way", "release"])
def test_a_file_that_cannot_be_read_for_a_moment_is_enough_for_that(
    api: Site, monkeypatch: pytest.MonkeyPatch, unreadable: str
) -> None:
    def cannot(*_: object) -> None:
        raise StateUnavailableError

    monkeypatch.setattr(api.rollouts, unreadable, cannot)
    answer = api.put("/v1/channels/stable", {"image": "next", "force": True})
    assert (answer.status_code, answer.json["assignments_kept"]) == (200, True)


def test_who_is_disabled_or_retired_is_not_counted_among_those_that_boot_it(api: Site, run: Run) -> None:
    def machines() -> list[int]:
        return [one["machines"] for one in (api.get("/v1/channels").json["channels"][0], api.get(_STABLE).json)]

    assert machines() == [2, 2], "off-001 is disabled"
    retired = MachineCondition.of(ConditionType.IN_SERVICE, Reason.RETIRED, "it is retired", NOW)
    api.kept.keep([Judged(machine="gpu-002", conditions=(retired,), timers={})], (), {})
    assert machines() == [1, 1]
    counted = "1 machine of channel stable boots it from the next boot on"
    assert run("channel", "set", "stable", "next").out.splitlines()[-1] == counted
    assert api.get(f"/v1/images/{api.new}/uses").json["boots"] == ["gpu-001"]
    api.kept.close()
    (api.config.data / "conditions.db").unlink()
    unknown = "2 machines of channel stable boot it from the next boot on"
    assert run("channel", "set", "stable", "tiny").out.splitlines()[-1] == unknown


def test_channels_look_at_no_machine_of_which_nothing_else_was_found_since(
    api: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thousands it costs a tenth of a second of a processor, and the page asks again every few seconds."""
    retired = MachineCondition.of(ConditionType.IN_SERVICE, Reason.RETIRED, "it is retired", NOW)
    api.kept.keep([Judged(machine="gpu-002", conditions=(retired,), timers={})], (), {})
    before = api.get("/v1/channels").json
    looked = list[object]()
    monkeypatch.setattr(conditions, "summary_of", looked.append)
    monkeypatch.setattr(SqliteConditions, "judged", lambda *_: looked.append("all"))
    monkeypatch.setattr(fleet, "users_of", lambda *_: looked.append("inventory"))
    assert api.get("/v1/channels").json == before
    assert [each["machines"] for each in before["channels"]] == [1]
    assert looked == []


def test_nothing_is_undone_to_an_image_that_cannot_be_used(api: Site, run: Run) -> None:
    begun(api, previous="d" * 64)
    ran = run("rollout", "undo", "stable")
    words = (
        f"Error: machines would have to go back to image dddddddddddd, which cannot be used: no image {'d' * 64} in "
        f"{api.store.root}; `netboot channel set stable IMAGE --force` gives all of them another one"
    )
    assert (ran.status, ran.err.splitlines()[0]) == (4, words)
    assert not api.rollouts.rollout(1).undoing


def test_a_rollout_is_begun_once_and_what_follows_from_it_does_not_fail_it(
    api: Site, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = ("rollout", "start", "stable", "next", "--on-next-boot")

    def cannot() -> set[str]:
        raise StateUnavailableError

    monkeypatch.setattr(api.rollouts, "images", cannot)
    assert run(*start).status == 0, "it has begun: the controllers keep its images in a moment"
    ran = run(*start, "--dry-run")
    assert (ran.status, ran.err.splitlines()[0]) == (
        4,
        "Error: rollout 1 of channel stable is running: one at a time; let it end, or undo it",
    )


def refused(run: Run) -> str:
    ran = run("rollout", "start", "stable", "next")
    assert ran.status == 4
    return ran.err.splitlines()[0]


def test_where_nobody_could_drain_a_rollout_is_refused_and_says_why(api: Site, run: Run) -> None:
    somebody = "with `--on-next-boot` machines are assigned the image, a few at a time, and somebody has to reboot them"
    cannot = "Error: machines cannot be drained now"
    assert refused(run) == f"{cannot}: nodes-default has not said for a while how far it is; {somebody}"
    lacks = "the account may not: create pods/eviction: apply deploy/kubernetes"
    api.say(**{"drains-default": DrainsStatus(at_ms=NOW, lacks=lacks)})
    assert refused(run) == f"{cannot}: cluster default: {lacks}; {somebody}"
    api.say(**{"drains-default": DrainsStatus(at_ms=NOW)})
    said = run("rollout", "start", "stable", "next", "--allow-local-data")
    how_far = "`netboot rollout status stable` says how far they are"
    assert said.status == 0
    assert said.out.splitlines()[-1] == f"each machine is drained and rebooted when its turn comes: {how_far}"
    begun = api.rollouts.rollout(1)
    assert (begun.on_next_boot, begun.strategy.allow_local_data, begun.strategy.allow_bare) == (False, True, False)


def test_who_joins_no_cluster_is_named(tmp_path: Path) -> None:
    answer = Site(tmp_path, clusters=False).post("/v1/rollouts", {"channel": "stable", "image": "next"})
    words = ": they join no cluster, and nobody there takes an order to reboot; with `--on-next-boot` machines are "
    assert (answer.status_code, words in answer.json["detail"]) == (409, True)


def test_a_status_says_who_is_drained_by_whom_and_what_is_waited_for(api: Site, run: Run) -> None:
    names = [f"gpu-00{number}" for number in range(1, 6)]
    states = [MemberState.ASSIGNED, MemberState.ASSIGNED, MemberState.ASSIGNED, MemberState.OUT, MemberState.OUT]
    members = {
        name: Member(machine=name, previous=api.old, state=state) for name, state in zip(names, states, strict=True)
    }
    named = {"image": api.new, "base": api.old, "on_next_boot": False}
    api.rollouts.start(rollout().model_copy(update=named), members, NOTE)
    own = {"owner": "rollout/1", "who": "rollout 1 of channel stable"}
    api.drains.order(drain("gpu-001", "a", "reboot", **own))
    api.drains.order(drain("gpu-002", "b", "reboot"))
    api.drains.order(drain("gpu-004", "c", "reboot", **own))
    said = {
        "gpu-001": State(id="a", state="draining", words="default/db are left", since_ms=NOW),
        "gpu-004": State(id="c", state="ordered", words="it is on its way", since_ms=NOW),
    }
    api.say(**{"drains-default": DrainsStatus(at_ms=NOW, drains=said)})
    ran = run("rollout", "status", "stable")
    assert (ran.status, [line.split(maxsplit=2)[-1].rstrip() for line in ran.out.splitlines()[-5:]]) == (
        0,
        [
            "draining: default/db are left",
            "nobody has said yet how far it is (reboot by alice)",
            "waits to be drained",
            "rebooting: it is on its way",
            "is awaited",
        ],
    )
    (api.config.data / "intents.db").unlink()
    assert run("rollout", "status", "stable").out.splitlines()[-5].rstrip().endswith("waits to be drained")


def test_whom_boot_servers_do_not_know_of_is_not_to_be_rebooted(api: Site) -> None:
    begun(api, state=MemberState.ASSIGNED)
    assert api.get("/v1/rollouts/1").json["to_reboot"] == []


def test_a_list_says_of_a_rollout_what_the_rollout_itself_says(api: Site) -> None:
    assigned, kept, left = MemberState.ASSIGNED, MemberState.KEPT, MemberState.LEFT
    those = [
        Member(machine="gpu-001", rack="r1", domain="d1", previous=api.old, state=assigned),
        Member(machine="gpu-002", rack="r2", domain="d1", previous=api.new, state=assigned),
        Member(machine="gpu-003", rack="r2", domain="d1", previous=api.old, state=left),
        Member(machine="gpu-004", rack="r3", named=True, previous=api.old),
        Member(machine="gpu-005", rack="r4", previous=api.old, state=kept),
    ]
    going = rollout(unproven=True, max_unavailable="3").model_copy(update={"image": api.new, "base": api.old})
    number = api.rollouts.start(going, {each.machine: each for each in those}, NOTE).number
    assignments = Assignments(Commits(api.config.data / "rollouts.db"), api.rollouts)
    SnapshotPublisher(api.config, api.repository, api.repository, api.states, Fixed(), assignments=assignments).step()

    def undone(begun: Rollout, all_: Members) -> tuple[Rollout, Members]:
        return begun.model_copy(update={"undoing": True}), all_

    for undoing in (False, True):
        if undoing:
            api.rollouts.change(number, undone, lambda *_: None)
        (listed,) = api.get("/v1/rollouts").json["rollouts"]
        shown = api.get(f"/v1/rollouts/{number}").json
        assert listed == {name: value for name, value in shown.items() if name not in ("by_rack", "history", "members")}
        assert listed["to_reboot"] == (["gpu-002"] if undoing else ["gpu-001", "gpu-002"])
    said = (listed["of"], listed["racks"], listed["domains"], listed["control_plane"], listed["most"])
    assert said == (4, 3, {"d1": 3}, {"named": ["gpu-004"], "kept": ["gpu-005"]}, 2)
    assert {state: count for state, count in listed["machines"].items() if count} == {
        "assigned": 2,
        "left": 1,
        "waiting": 1,
        "kept": 1,
    }


def test_a_number_that_no_rollout_can_have(api: Site) -> None:
    for number in (2**63, 10**20):
        answer = api.get(f"/v1/rollouts/{number}")
        assert (answer.status_code, answer.json["code"]) == (404, "not-found")


@pytest.mark.parametrize("reason", ["a\nb", "a\x1b[2Jb", "a\u202eb"])
def test_what_a_terminal_obeys_is_no_reason(api: Site, reason: str) -> None:
    begun(api)
    for path in ("/v1/machines/gpu-001/hold", "/v1/machines/gpu-001/readmit", "/v1/freeze", "/v1/rollouts/1/pause"):
        answer = api.post(path, {"reason": reason})
        said = answer.json["detail"]
        assert (answer.status_code, said) == (400, "reason: must be one line of printable text"), path


def test_drift_that_cannot_be_told_is_not_none(api: Site, run: Run) -> None:
    ran = run("drift")
    assert (ran.status, ran.out) == (5, "no drift: 0 machines run what they would boot now\n")
    assert ran.err.startswith("no boot is known of: gpu-001, gpu-002")
    api.states.take(Batch("boot-0.db", 1, 3, [event("gpu-001", 1, Phase.BOOTED)]))
    ran = run("drift")
    assert ran.status == 5
    assert ran.err.startswith(
        "what these boots were served is not known (any more): gpu-001\nno boot is known of: gpu-0"
    )


@pytest.mark.parametrize("said", [("--bake", "8d"), ("--bake", "169h"), ("--deadline", "59s"), ("--deadline", "-5m")])
def test_a_time_that_no_strategy_may_have_is_wrong_usage(run: Run, said: tuple[str, str]) -> None:
    ran = run("rollout", "start", "stable", "next", *said)
    assert (ran.status, f"Invalid value for '{said[0]}'" in ran.err) == (2, True)

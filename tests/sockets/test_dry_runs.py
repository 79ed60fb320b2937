"""`--dry-run` of acts on machines' enrolments, rollouts, remedies and channels: what would happen is said, and nothing
is changed, nor audited."""

import json
import logging
import re
from pathlib import Path

import pytest

from netboot.lifecycle.rollout import Member, MemberState, RolloutState
from netboot.lifecycle.rollout_store import Note
from tests.commands import Run, said
from tests.rollouts import rollout
from tests.sites import add_image
from tests.sockets.api import Api, of_alice

A = "a1" * 32


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """Its channel is the older of two images."""
    api = of_alice(Api(tmp_path))
    api.store.set_channel("stable", add_image(api.config))
    add_image(api.config, name="next", salt="2")
    assert api.publisher.step()
    return api


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is audited."""
    caplog.set_level(logging.INFO)
    return caplog


def audited(told: pytest.LogCaptureFixture) -> list[str]:
    lines = [record for record in told.records if record.name == "netboot.audit"]
    return [getattr(line, "fields", {}).get("act", line.getMessage()) for line in lines]


def imported(api: Api) -> None:
    api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{A}\n")


@pytest.mark.parametrize(
    ("act", "would", "did"),
    [
        (
            ("release",),
            "gpu-001 would be released (generation 1)\n",
            "gpu-001 is released (generation 1)\n",
        ),
        (
            ("replace", "--part", "tpm", "--window", "90s"),
            "the old TPM would be refused; gpu-001 could enrol another until 2023-11-14 22:16:30Z\n",
            "the old TPM is refused; gpu-001 may enrol another until 2023-11-14 22:16:30Z\n",
        ),
        (
            ("retire",),
            "gpu-001 would be retired: no new tokens, no renewals\n",
            "gpu-001 is retired: no new tokens, no renewals\n",
        ),
    ],
)
def test_enrolments(
    api: Api, run: Run, told: pytest.LogCaptureFixture, act: tuple[str, ...], would: str, did: str
) -> None:
    imported(api)
    before, history = api.enrolments.record("gpu-001"), api.enrolments.history("gpu-001", 10)
    told.clear()
    name, *options = act
    order = ("machine", name, "gpu-001", *options)
    assert said(run, *order, "--dry-run") == would
    assert (api.enrolments.record("gpu-001"), api.enrolments.history("gpu-001", 10)) == (before, history)
    assert audited(told) == []
    assert said(run, *order) == did
    assert audited(told) == [name]
    assert api.enrolments.record("gpu-001") != before


def test_what_is_so_already_and_what_is_refused_are_as_without(api: Api, run: Run) -> None:
    imported(api)
    said(run, "machine", "retire", "gpu-001")
    already = "gpu-001 is retired already: no new tokens, no renewals\n"
    assert said(run, "machine", "retire", "gpu-001", "--dry-run") == already
    assert said(run, "machine", "retire", "gpu-001") == already
    for options in ((), ("--dry-run",)):
        ran = run("machine", "replace", "gpu-001", "--part", "tpm", *options)
        assert (ran.status, ran.err.splitlines()[0]) == (
            4,
            "Error: gpu-001 is retired; `netboot machine approve gpu-001` brings it back first",
        )
        assert run("machine", "retire", "nobody", *options).status == 3
    answer = api.post("/v1/machines/gpu-001/retire", {"dry_run": True}).json
    assert (answer["did"], answer["dry_run"], answer["enrolment"]["state"]) == (False, True, "retired")


def test_a_window_and_an_approval(api: Api, run: Run, told: pytest.LogCaptureFixture) -> None:
    """Nothing is asked of whoever only tries."""
    enroll = ("machine", "enroll", "gpu-001", "--window", "90s")
    assert said(run, *enroll, "--dry-run") == (
        "gpu-001 could enrol its TPM until 2023-11-14 22:16:30Z; nothing was changed\n"
    )
    assert (api.enrolments.record("gpu-001").revision, audited(told)) == (0, [])
    said(run, *enroll)
    api.register.propose("gpu-001", A, "", api.clock.now_ms())
    before = api.enrolments.record("gpu-001")
    assert before.state == "pending"
    told.clear()
    would = said(run, "machine", "approve", "gpu-001", "--dry-run").splitlines()
    assert would[-1] == f"gpu-001 could join with EK {A}"
    assert (api.enrolments.record("gpu-001"), audited(told)) == (before, [])
    assert said(run, "machine", "approve", "gpu-001", "--ek", A[:8]) == f"gpu-001 may join with EK {A}\n"
    said(run, "machine", "retire", "gpu-001")
    back = said(run, "machine", "approve", "gpu-001", "--dry-run").splitlines()[-1]
    assert (back, api.enrolments.record("gpu-001").state) == (f"gpu-001 could join with EK {A}", "retired")


def begun(api: Api) -> None:
    base, image = (api.store.channel("stable").image, "b" * 64)  # type: ignore[union-attr]
    members = {"gpu-001": Member(machine="gpu-001", previous=base)}
    api.rollouts.start(rollout().model_copy(update={"image": image, "base": base}), members, Note(1, "alice", "start"))


def test_rollouts(api: Api, run: Run, told: pytest.LogCaptureFixture) -> None:
    begun(api)
    which = "rollout 1 of channel stable"
    of = (("rollout", act, "stable") for act in ("pause", "resume", "undo"))
    pause, resume, undo = of
    before = (api.rollouts.rollout(1), api.rollouts.members(1), api.rollouts.history(1, 10))
    waits = "machines that were not rebooted yet boot what they had"
    assert said(run, *pause, "--dry-run") == f"{which} would be paused: {waits}; nothing was changed\n"
    assert said(run, *resume, "--dry-run") == f"{which} is running already: it goes on; nothing was changed\n"
    assert said(run, *undo, "--dry-run") == (
        f"{which} would be running: every machine boots what it had; nothing was changed\n"
    )
    assert (api.rollouts.rollout(1), api.rollouts.members(1), api.rollouts.history(1, 10)) == before
    assert audited(told) == []
    assert said(run, *pause) == f"{which} is paused: {waits}\n"
    assert said(run, *pause) == f"{which} is paused already: {waits}\n"
    assert said(run, *resume, "--dry-run") == f"{which} would be running: it goes on; nothing was changed\n"
    assert audited(told) == ["rollout-pause", "rollout-pause"]
    answer = api.post("/v1/rollouts/1/undo", {"dry_run": True}).json
    assert (answer["act"], answer["did"], answer["dry_run"], answer["undoing"]) == ("undo", True, True, True)
    assert not api.rollouts.rollout(1).undoing


def test_a_dry_run_that_is_refused_is_in_no_audit(api: Api) -> None:
    said = [
        api.post("/v1/machines/gpu-001/approve", {"ek_sha256": A, "revision": 0, "dry_run": dry_run}).status_code
        for dry_run in (True, False)
    ]
    said += [
        api.post("/v1/machines/gpu-001/replace", {"part": "tpm", "dry_run": dry_run}).status_code
        for dry_run in (True, False)
    ]
    assert said == [409, 409, 403, 403]
    acts = [each["act"].rpartition("/")[2] for each in api.get("/v1/audit").json["audit"]]
    assert acts == ["replace", "approve"], "of those that were no dry runs"


def test_an_undo_that_would_be_refused_is(api: Api, run: Run) -> None:
    members = {"gpu-001": Member(machine="gpu-001", previous="d" * 64)}
    api.rollouts.start(rollout(), members, Note(1, "alice", "start"))
    ran = run("rollout", "undo", "stable", "--dry-run")
    assert (ran.status, ran.err.splitlines()[0][:80]) == (
        4,
        "Error: machines would have to go back to image dddddddddddd, which cannot be use",
    )


def test_remedies(api: Api, run: Run, told: pytest.LogCaptureFixture) -> None:
    pause, resume = (("remedies", act, "--reason", "power work") for act in ("pause", "resume"))
    since = "since 2023-11-14 22:15:00Z by alice: power work"
    assert said(run, *pause, "--dry-run") == f"remedies would be paused: {since}\n"
    assert said(run, *resume, "--dry-run") == "remedies are not paused\n"
    assert (api.remedies.books(0).pause, audited(told)) == (None, [])
    assert said(run, *pause) == f"remedies are paused: {since}\n"
    assert said(run, *pause, "--dry-run") == f"remedies are paused already: {since}\n"
    assert said(run, *resume, "--dry-run") == "remedies could begin again\n"
    found = api.remedies.books(0).pause
    assert found is not None
    assert found.stands
    assert audited(told) == ["remedies-pause"]
    assert said(run, *resume) == "remedies may begin again\n"


def test_a_channel(api: Api, run: Run, told: pytest.LogCaptureFixture) -> None:
    begun(api)
    base = api.store.channel("stable").image  # type: ignore[union-attr]
    new = next(image.digest for image in api.repository.images() if image.name == "next")
    order = ("channel", "set", "stable", "next", "--dry-run")
    refused = run(*order)
    assert (refused.status, "rollout 1 of channel stable is running: let it end or undo it" in refused.err) == (4, True)
    ran = run(*order, "--force")
    assert (ran.status, ran.out.splitlines()) == (
        0,
        [
            f"channel stable would be image next {new[:12]}; nothing was changed",
            "rollout 1 would be cancelled: it assigns nothing any more",
            "2 machines of channel stable would boot it from the next boot on",
        ],
    )
    assert api.store.channel("stable").image == base  # type: ignore[union-attr]
    assert (api.rollouts.rollout(1).under_way, audited(told)) == (True, [])
    shown = run(*order, "--force", "-o", "json").json
    assert (shown["image"], shown["image_name"], shown["dry_run"], shown["in_force"]) == (new, "next", True, base)
    assert run("channel", "set", "stable", "nothing", "--dry-run").status == 3
    assert run("channel", "set", "stable", "next", "--force").out.splitlines()[-2:] == [
        "rollout 1 is cancelled: it assigns nothing any more",
        "2 machines of channel stable boot it from the next boot on",
    ]
    assert audited(told) == ["channel-set"]


def test_what_rollouts_that_ended_assigned_stays(api: Api, run: Run) -> None:
    base = api.store.channel("stable").image  # type: ignore[union-attr]
    failed = {"gpu-001": Member(machine="gpu-001", previous=base, state=MemberState.FAILED)}
    api.rollouts.start(rollout().model_copy(update={"base": base}), failed, Note(1, "alice", "start"))
    complete = {"state": RolloutState.COMPLETE, "ended_ms": 2}
    api.rollouts.change(1, lambda was, members: (was.model_copy(update=complete), members), lambda *_: None)
    assigned = api.rollouts.assigned()
    assert [(name, each.image) for name, each in assigned.items()] == [("gpu-001", base)]
    assert run("channel", "set", "stable", "next", "--dry-run").status == 0
    assert api.rollouts.assigned() == assigned
    assert run("channel", "set", "stable", "next").status == 0
    assert api.rollouts.assigned() == {}


def test_of_the_client_the_request_is_shown_and_not_sent(api: Api, run: Run, told: pytest.LogCaptureFixture) -> None:
    imported(api)
    before = api.enrolments.record("gpu-001")
    told.clear()
    shown = said(run, "machine", "release", "--dry-run=client", "gpu-001")
    server = re.search(r"http://127\.0\.0\.1:\d+", shown)
    assert server is not None
    assert shown == f'body:\n  reason: ""\nmethod: POST\nurl: "{server[0]}/v1/machines/gpu-001/release"\n'
    order = ("machine", "hold", "gpu-001", "--reason", "fan 3", "--dry-run=client", "-o", "json")
    assert json.loads(said(run, *order)) == {
        "method": "POST",
        "url": f"{server[0]}/v1/machines/gpu-001/hold",
        "body": {"reason": "fan 3"},
    }
    assert audited(told) == []
    assert api.enrolments.record("gpu-001") == before
    assert api.get("/v1/machines/gpu-001").json["intents"] == []


def test_its_value_is_no_next_word(api: Api, run: Run) -> None:
    imported(api)
    would = "gpu-001 would be retired: no new tokens, no renewals\n"
    assert said(run, "machine", "retire", "--dry-run", "gpu-001") == would
    assert said(run, "machine", "retire", "--dry-run=server", "gpu-001") == would
    wrong = run("machine", "retire", "gpu-001", "--dry-run=none")
    assert (wrong.status, wrong.err.splitlines()[-1]) == (
        2,
        "Error: Invalid value for '--dry-run': 'none' is not one of 'client', 'server'.",
    )

"""`ETag`, `If-None-Match` and `If-Match` of the management API: who acts by what they saw is told where it is so no
more."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.rollout import Member
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.state import Batch
from netboot.web import preconditions
from netboot.web.app import ROUTES
from netboot.web.binding import signature
from netboot.web.preconditions import Tag
from tests.commands import Ran, Run
from tests.records import event, script
from tests.rollouts import rollout
from tests.sites import add_image
from tests.sockets.api import Api

HOLD = {"reason": "a fan"}
NEW_TOKEN = {"machine": "gpu-001"}
MACHINE = "/v1/machines/gpu-001"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def tag(api: Api, path: str) -> str:
    """Of what is there now."""
    answer = api.get(path)
    assert (answer.status_code, answer.headers["Cache-Control"]) == (200, "no-store"), answer.text
    return str(answer.headers["ETag"])


def act(api: Api, method: str, path: str, body: Any, **headers: str) -> Any:
    sent = api.authorised | {name.replace("_", "-"): value for name, value in headers.items()}
    return api.client.open(path, method=method, json=body, headers=sent)


def test_who_looks_again_at_what_is_the_same_gets_no_content(api: Api) -> None:
    now = tag(api, MACHINE)
    for sent in (now, f"W/{now}", f'"other", {now}', "*"):
        again = act(api, "GET", MACHINE, None, If_None_Match=sent)
        assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", now)
        assert "Content-Type" not in again.headers
    assert act(api, "GET", MACHINE, None, If_None_Match='"other"').json["name"] == "gpu-001"
    assert now != tag(api, "/v1/machines/gpu-002")


def test_what_moves_by_itself_is_not_in_a_tag_and_what_somebody_did_is(api: Api) -> None:
    before = tag(api, MACHINE)
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), event("gpu-001", 1, Phase.FAILED)]))
    assert api.get(MACHINE).json["boots"]
    assert tag(api, MACHINE) == before
    assert act(api, "POST", f"{MACHINE}/hold", HOLD).json["did"] == "put-on"
    held = tag(api, MACHINE)
    assert held != before
    assert act(api, "POST", f"{MACHINE}/hold", HOLD).json["did"] == ""
    assert tag(api, MACHINE) == held
    assert act(api, "POST", f"{MACHINE}/retire", {}).json["did"]
    assert tag(api, MACHINE) != held


def test_an_act_by_what_was_seen(api: Api) -> None:
    for path in (MACHINE, f"{MACHINE}/intents"):
        seen = tag(api, path)
        assert act(api, "POST", f"{MACHINE}/hold", HOLD, If_Match=seen).json["did"] == "put-on"
        answer = act(api, "POST", f"{MACHINE}/unhold", {}, If_Match=seen)
        said = answer.json
        assert (answer.status_code, said["code"], said["detail"], said["remedy"]) == (
            412,
            "precondition-failed",
            f"it is not (any more) what {seen} was given for",
            "look at it again, and send the ETag of that answer if it is still meant",
        )
        assert [each["mark"] for each in api.get(f"{MACHINE}/intents").json["intents"]] == ["Held"]
        assert act(api, "POST", f"{MACHINE}/unhold", {}, If_Match=f'"x", {tag(api, path)}').json["did"] == "taken-off"
    acts = [(each["act"], each["result"]) for each in api.get("/v1/audit").json["audit"]]
    assert acts[:2] == [("unhold", "done"), ("POST /v1/machines/<name>/unhold", "precondition-failed")]


def test_a_weak_tag_is_none_to_act_by_and_a_star_is_any(api: Api) -> None:
    assert act(api, "POST", f"{MACHINE}/hold", HOLD, If_Match=f"W/{tag(api, MACHINE)}").status_code == 412
    assert act(api, "POST", f"{MACHINE}/hold", HOLD, If_Match="*").json["did"] == "put-on"
    assert act(api, "POST", "/v1/machines/gpu-999/hold", HOLD, If_Match="*").status_code == 404


def test_a_channel_that_somebody_moved_meanwhile_stays_there(api: Api) -> None:
    first, second = add_image(api.config), add_image(api.config, salt="2")
    seen = tag(api, "/v1/channels/stable")
    assert act(api, "PUT", "/v1/channels/stable", {"image": first}, If_Match=seen).status_code == 200
    assert act(api, "PUT", "/v1/channels/stable", {"image": second}, If_Match=seen).status_code == 412
    was = tag(api, "/v1/channels/stable")
    api.publisher.step()
    assert api.get("/v1/channels/stable").json["in_force"] == first
    assert tag(api, "/v1/channels/stable") == was


def test_a_rollout_that_somebody_paused_meanwhile_is_undone_by_nobody(api: Api) -> None:
    api.rollouts.start(rollout(), {"gpu-001": Member(machine="gpu-001", previous="d" * 64)}, Note(1, "alice", "start"))
    path = "/v1/rollouts/1"
    seen = tag(api, path)
    assert act(api, "POST", f"{path}/pause", {}, If_Match=seen).json["did"] is True
    assert act(api, "POST", f"{path}/undo", {}, If_Match=seen).status_code == 412
    assert (api.get(path).json["state"], api.get(path).json["undoing"]) == ("paused", False)


def test_a_rollout_of_a_channel_that_somebody_moved_meanwhile_is_not_begun(api: Api) -> None:
    first, second = add_image(api.config), add_image(api.config, salt="2")
    channel = "/v1/channels/stable"
    start = {"channel": "stable", "image": second, "on_next_boot": True, "any_kubelet": True}
    assert act(api, "PUT", channel, {"image": first}).status_code == 200
    seen = tag(api, channel)
    planned = act(api, "POST", "/v1/rollouts", start | {"dry_run": True}, If_Match=seen)
    assert (planned.status_code, planned.headers["ETag"]) == (200, seen)
    assert act(api, "PUT", channel, {"image": second}).status_code == 200
    moved = tag(api, channel)
    assert act(api, "POST", "/v1/rollouts", start | {"image": first}, If_Match=seen).json["code"] == (
        "precondition-failed"
    )
    assert api.get("/v1/rollouts").json["rollouts"] == []
    begun = act(api, "POST", "/v1/rollouts", start | {"image": first}, If_Match=moved)
    assert (begun.status_code, begun.headers["ETag"]) == (200, moved), "its machines get the image, not the channel"
    unknown = act(api, "POST", "/v1/rollouts", start | {"channel": "none"}, If_Match=moved)
    assert unknown.json["code"] == "no-such-channel"


def test_the_command_line_begins_none_where_the_channel_was_moved_after_its_look(
    api: Api, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = add_image(api.config), add_image(api.config, salt="2")
    assert act(api, "PUT", "/v1/channels/stable", {"image": first}).status_code == 200

    def meanwhile(*_: Any, **__: Any) -> None:
        assert act(api, "PUT", "/v1/channels/stable", {"image": second}).status_code == 200

    monkeypatch.setattr("netboot.cli.rollout.preflight", meanwhile)
    assert run("rollout", "start", "stable", first, "--on-next-boot", "--any-kubelet") == Ran(
        4, "", "Error: channel stable was moved just now\nRemedy: run it again; nothing was changed\n"
    )
    assert run("rollout", "start", "stable", first, "--on-next-boot", "--any-kubelet").status == 0


def test_an_act_answers_with_the_tag_of_what_it_left(api: Api) -> None:
    held = act(api, "POST", f"{MACHINE}/hold", HOLD)
    assert held.headers["ETag"] == tag(api, MACHINE)
    freed = act(api, "POST", f"{MACHINE}/unhold", {}, If_Match=held.headers["ETag"])
    assert (freed.status_code, freed.headers["ETag"]) == (200, tag(api, MACHINE))
    by_part = act(api, "POST", f"{MACHINE}/hold", HOLD, If_Match=tag(api, f"{MACHINE}/intents"))
    assert by_part.headers["ETag"] == tag(api, f"{MACHINE}/intents"), "of what its tag was given for"
    image = add_image(api.config)
    moved = act(api, "PUT", "/v1/channels/stable", {"image": image})
    assert moved.headers["ETag"] == tag(api, "/v1/channels/stable")
    assert "ETag" not in act(api, "POST", f"{MACHINE}/hold", HOLD, If_Match='"x"').headers
    again = [act(api, "POST", f"{MACHINE}/retire", {}, Idempotency_Key='"k"') for _ in range(2)]
    assert [("ETag" in each.headers, each.status_code) for each in again] == [(True, 200), (False, 200)]


def test_an_act_whose_tag_cannot_be_told_is_done(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    order = api.intents.order

    def last(*arguments: Any) -> Any:
        done = order(*arguments)
        monkeypatch.setattr(api.states, "machines", gone)
        return done

    def gone(*_: Any) -> Any:
        raise StateUnavailableError("it is away")

    monkeypatch.setattr(api.intents, "order", last)
    held = act(api, "POST", f"{MACHINE}/hold", HOLD)
    assert (held.status_code, held.json["did"], "ETag" in held.headers) == (200, "put-on", False)


@pytest.mark.parametrize(
    ("look", "changing", "other"),
    [
        ("/v1/freeze", "/v1/freeze", "/v1/unfreeze"),
        ("/v1/remedies/pause", "/v1/remedies/pause", "/v1/remedies/resume"),
        (f"{MACHINE}/enrolment", f"{MACHINE}/retire", f"{MACHINE}/release"),
    ],
)
def test_so_it_is_with_all_else_that_is_changed(api: Api, look: str, changing: str, other: str) -> None:
    seen, body = tag(api, look), {"reason": "x"}
    assert act(api, "POST", changing, body, If_Match=seen).status_code == 200
    assert act(api, "POST", other, body, If_Match=seen).status_code == 412
    assert act(api, "POST", other, body, If_Match=tag(api, look)).status_code == 200


def test_what_is_no_tag_is_refused_as_is_one_where_there_is_none(api: Api) -> None:
    for bad in ("", "abc", '"a" "b"', '"a",', '"ä"', '*, "a"', "w/" + '"a"', '"' + "a" * 1000 + '"'):
        looked = act(api, "GET", MACHINE, None, If_None_Match=bad)
        acted = act(api, "POST", f"{MACHINE}/hold", HOLD, If_Match=bad)
        assert [(each.status_code, each.json["field"]) for each in (looked, acted)] == [
            (400, "If-None-Match"),
            (400, "If-Match"),
        ], bad
    assert act(api, "POST", "/v1/tokens", NEW_TOKEN, If_Match="*").json["detail"] == (
        "If-Match: nothing that this acts on has a tag: send it without"
    )
    assert act(api, "POST", f"{MACHINE}/hold", HOLD, If_None_Match="*").json["detail"] == (
        "If-None-Match: is for looking: an act takes If-Match"
    )
    assert api.get(f"{MACHINE}/intents").json["intents"] == []


@pytest.fixture
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for another's act does so on a busy machine, too."""
    monkeypatch.setattr(preconditions, "WAIT_SECONDS", 60)


@pytest.mark.usefixtures("_patient")
def test_of_two_who_act_at_once_by_what_both_saw_one_does(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, both, statuses = tag(api, MACHINE), threading.Barrier(2), []
    order = api.intents.order

    def late(*arguments: Any) -> Any:
        with suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # the other comes no further than to where this one goes first
        return order(*arguments)

    monkeypatch.setattr(api.intents, "order", late)

    def hold(reason: str) -> None:
        statuses.append(act(api, "POST", f"{MACHINE}/hold", {"reason": reason}, If_Match=seen).status_code)

    threads = [threading.Thread(target=hold, args=(reason,)) for reason in ("one", "two")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(statuses) == [200, 412]


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/enrolments", f"machine,ek_sha256\ngpu-002,{'cd' * 32}\ngpu-001,{'ab' * 32}\n"), ("/v1/tokens", NEW_TOKEN)],
)
def test_what_names_a_machine_in_its_body_does_not_come_between(
    api: Api, monkeypatch: pytest.MonkeyPatch, path: str, body: Any
) -> None:
    seen, statuses = tag(api, f"{MACHINE}/enrolment"), list[int]()
    apply, done = api.register.apply, threading.Event()

    def other() -> None:
        statuses.append(api.post(path, body).status_code)
        done.set()

    threads = [threading.Thread(target=other)]

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(api.register, "apply", apply)
        threads[0].start()
        assert not done.wait(0.3)  # it comes no further than to where this one goes first
        return apply(*arguments)

    monkeypatch.setattr(api.register, "apply", late)
    retired = act(api, "POST", f"{MACHINE}/retire", {"reason": "by what I saw"}, If_Match=seen)
    threads[0].join()
    assert (retired.status_code, [each["act"] for each in retired.json["history"]]) == (200, ["retired"])
    assert statuses != [503]


def test_what_names_a_channel_in_its_body_waits_for_it(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preconditions, "WAIT_SECONDS", 0.1)
    body = {"channel": "stable", "image": "tiny"}
    with preconditions.alone([(preconditions.OF_CHANNEL, "stable")]):
        assert act(api, "POST", "/v1/rollouts", body).json["detail"] == "another act on it is under way"
    assert act(api, "POST", "/v1/rollouts", body).json["code"] == "no-such-image"


@pytest.mark.usefixtures("_patient")
def test_who_wants_many_and_who_wants_one_do_not_wait_for_each_other_for_ever() -> None:
    things = [(preconditions.OF_MACHINE, f"gpu-{number:03}") for number in range(300)]
    rounds = 200

    def take(mine: list[tuple[str, str]]) -> None:
        for _ in range(rounds):
            with preconditions.alone(mine):
                pass

    with ThreadPoolExecutor(4) as threads:  # a place that is not given back is an OverloadedError
        list(threads.map(take, [things, things[::-1], things[7:8], things[:2]]))


def test_what_counts_is_named_as_the_answers_name_it(api: Api) -> None:
    """A name that is not there would count silently."""
    tags: list[Tag] = [each.tag for each in ROUTES if each.tag is not None]
    fields = {each.kind: _fields(each) for each in tags}
    for each in tags:
        named = {*each.only, *each.without, *each.within}
        assert named <= fields[each.kind], each.kind


def _fields(tag: Tag) -> set[str]:
    (model,) = signature(tag.view).answers
    return set(model.model_fields)

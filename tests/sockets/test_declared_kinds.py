"""Profiles, channels, classes, racks and windows are declared by the API as machines are, by the same rules."""

from pathlib import Path
from typing import Any, get_args

import pytest

from netboot.config_outside import InKubernetes
from netboot.lifecycle.roles import Role
from netboot.machines.declared import KINDS
from netboot.stores.inventory import read_inventory
from netboot.web.inventory import Kind
from tests.sockets.api import Api, given, of_alice
from tests.sockets.test_declared import ask, content, refused

HEAD = """\
# the site's own
channels:
- {name: stable}
profiles:
- {name: compute, channel: stable}  # all of them
classes:
- {name: dgx}
racks:
- {name: r1}
machines:
- {name: old-001, match: {serial: CZ1}, profile: compute, class: dgx, rack: r1}
"""
NEW: dict[str, dict[str, Any]] = {
    "profiles": {"name": "new", "channel": "stable", "kernel_arguments": ["quiet"]},
    "channels": {"name": "new", "description": "first: # of all"},
    "classes": {"name": "new", "memory_gib": 2048, "gpus": {"count": 8, "model": "H100"}},
    "racks": {"name": "new", "origins": ["http://192.0.2.7:8080"]},
    "maintenance": {"name": "new", "start": "22:00", "end": "05:00", "time_zone": "Europe/Berlin"},
}
OTHER: dict[str, dict[str, Any]] = {
    "profiles": {"name": "new", "channel": "stable"},
    "channels": {"name": "new"},
    "classes": {"name": "new", "architecture": "arm64"},
    "racks": {"name": "new", "topology": {"zone": "a"}},
    "maintenance": {"name": "new", "start": "20:00", "end": "05:00"},
}
kinds = pytest.mark.parametrize("kind", NEW)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return of_alice(Api(tmp_path, inventory=HEAD, writable=True))


def create(api: Api, kind: str, value: Any = None, **more: Any) -> Any:
    value = value if value is not None else NEW[kind]
    return ask(api, "PUT", f"/v1/inventory/{kind}/{value['name']}", {"declared": value, **more}, If_None_Match="*")


def test_each_kind_of_the_inventory_is_one_of_the_api() -> None:
    assert [*get_args(Kind)] == [*NEW] == [kind for kind in KINDS if kind != "machines"]


@kinds
def test_from_nothing_to_nothing(api: Api, kind: str) -> None:
    before, at, file = content(api), f"/v1/inventory/{kind}/new", f"{KINDS[kind]}-new.yaml"
    assert refused(api.get(at)) == (404, "not-declared", f"the inventory's files declare no {KINDS[kind]} 'new'")
    planned = create(api, kind, dry_run=True)
    assert (planned.json["did"], planned.json["dry_run"], content(api)) == ("created", True, before)
    made = create(api, kind, reason="arrived")
    assert made.json == {"name": "new", "did": "created", "dry_run": False, "file": file, "declared": NEW[kind]}
    shown = api.get(at)
    path = api.config.inventory / file
    assert shown.json == {"name": "new", "file": str(path), "line": 2, "declared": NEW[kind], "read_only": ""}
    assert made.headers["ETag"] == shown.headers["ETag"]
    assert [each.name for each in getattr(read_inventory(api.config), kind)].count("new") == 1
    assert ask(api, "PUT", at, {"declared": NEW[kind]}, If_Match="*").json["did"] == ""
    replaced = ask(api, "PUT", at, {"declared": OTHER[kind]}, If_Match=shown.headers["ETag"])
    assert (replaced.json["did"], api.get(at).json["declared"]) == ("replaced", OTHER[kind])
    late = ask(api, "DELETE", at, If_Match=shown.headers["ETag"])
    assert refused(late)[:2] == (412, "precondition-failed")
    gone = ask(api, "DELETE", f"{at}?reason=sold", If_Match=replaced.headers["ETag"])
    assert (gone.json["did"], gone.json["declared"], content(api)) == ("removed", None, before)
    rows = [each for each in api.get("/v1/audit").json["audit"] if each["act"] in ("declare", "undeclare")]
    facts = {"file": file, "kind": kind, "name": "new"}
    assert [(each["act"], each["who"], each["reason"], each["machine"], each["facts"]) for each in rows] == [
        ("undeclare", "alice", "sold", "", facts),
        ("declare", "alice", "", "", facts),
        ("declare", "alice", "", "", facts),
        ("declare", "alice", "arrived", "", facts),
    ]
    assert [(each["result"], each["before"], each["after"]) for each in rows] == [
        ("done", OTHER[kind], None),
        ("done", NEW[kind], OTHER[kind]),
        ("unchanged", NEW[kind], NEW[kind]),
        ("done", None, NEW[kind]),
    ]


@pytest.mark.parametrize(
    ("kind", "user", "place"),
    [
        ("profiles", {"profile": "new"}, "machines[0].profile: no profile is named 'new'; declared profiles: compute"),
        ("classes", {"class": "new"}, "machines[0].class: no class is named 'new'; declared classes: dgx"),
        ("racks", {"rack": "new"}, "machines[0].rack: no rack is named 'new'; declared racks: r1"),
    ],
)
def test_what_a_machine_names_stays(api: Api, kind: str, user: dict[str, str], place: str) -> None:
    assert create(api, kind).status_code == 200
    machine = {"name": "gpu-009", "match": {"serial": "CZ9"}, "profile": "compute", **user}
    assert (
        ask(api, "PUT", "/v1/inventory/machines/gpu-009", {"declared": machine}, If_None_Match="*").status_code == 200
    )
    before = content(api)
    for dry_run in ("true", "false"):
        answer = ask(api, "DELETE", f"/v1/inventory/{kind}/new?dry_run={dry_run}", If_Match="*")
        assert refused(answer) == (422, "faults", "1 fault; nothing was changed")
        line = before["machine-gpu-009.yaml"].splitlines().index(f"  {next(iter(user))}: new") + 1
        assert answer.json["faults"] == [f"{api.config.inventory}/machine-gpu-009.yaml:{line}: {place}"]
    assert content(api) == before


def test_a_channel_stays_that_a_profile_names_and_goes_after_it(api: Api) -> None:
    create(api, "channels")
    create(api, "profiles", NEW["profiles"] | {"channel": "new"})
    answer = ask(api, "DELETE", "/v1/inventory/channels/new", If_Match="*")
    words = "profiles[0].channel: no channel is named 'new'; declared channels: stable"
    assert answer.json["faults"] == [f"{api.config.inventory}/profile-new.yaml:3: {words}"]
    for kind in ("profiles", "channels"):
        assert ask(api, "DELETE", f"/v1/inventory/{kind}/new", If_Match="*").json["did"] == "removed"


def test_every_fault_is_named_and_nothing_written(api: Api) -> None:
    before, file = content(api), api.config.inventory / "profile-new.yaml"
    answer = create(api, "profiles", {"name": "new", "channel": "stabel", "deadlines": 7, "more": 1})
    assert refused(answer) == (422, "faults", "3 faults; nothing was changed")
    assert [each.partition(": ")[2] for each in answer.json["faults"]] == [
        "profiles[0].channel: no channel is named 'stabel'; did you mean 'stable'?",
        "profiles[0].deadlines: must be keys with values",
        "profiles[0].more: unknown key; did you mean 'name'?",
    ]
    assert all(each.startswith(f"{file}:") for each in answer.json["faults"])
    twice = create(api, "racks", {"name": "r1"})
    assert refused(twice)[:2] == (412, "precondition-failed")
    assert content(api) == before


@kinds
def test_what_a_person_wrote_stays_theirs(api: Api, kind: str) -> None:
    create(api, kind)
    file = api.config.inventory / f"{KINDS[kind]}-new.yaml"
    file.write_text(f"# mind this\n{file.read_text()}")
    by_hand = "maintenance:  # nights\n- {name: hand, start: '22:00', end: '23:00'}\n"
    (api.config.inventory / "by-hand.yaml").write_text(by_hand)
    before = content(api)
    names = {"profiles": "compute", "channels": "stable", "classes": "dgx", "racks": "r1", "maintenance": "hand"}
    for name, words in ((names[kind], "in a file that a person wrote"), ("new", "was edited by hand")):
        at = f"/v1/inventory/{kind}/{name}"
        shown = api.get(at).json
        assert words in shown["read_only"]
        for method, body in (("PUT", {"declared": shown["declared"]}), ("DELETE", None)):
            assert refused(ask(api, method, at, body, If_Match="*")) == (409, "inventory-read-only", shown["read_only"])
    assert content(api) == before


def test_a_file_of_theirs_that_is_called_as_ours_of_a_list(api: Api) -> None:
    """Written just as a list that was imported would be."""
    file = api.config.inventory / "import-0123456789ab.yaml"
    file.write_text("racks:\n- name: r8\n- name: r9\n")
    assert ask(api, "DELETE", "/v1/inventory/racks/r9", If_Match="*").json["did"] == "removed"
    assert file.read_text() == "racks:\n- name: r8\n"


@kinds
def test_read_only_where_files_are_in_git(api: Api, kind: str) -> None:
    create(api, kind)
    (api.config.inventory.parent / ".git").mkdir()
    before, at = content(api), f"/v1/inventory/{kind}/new"
    words = (
        f"{api.config.inventory} is kept in git: edit it in a clone of {api.config.inventory.parent}, commit and push"
    )
    assert api.get(at).json["read_only"] == words
    assert [each["name"] for each in api.get(f"/v1/inventory/{kind}").json["items"]].count("new") == 1
    for dry_run in (False, True):
        changed = ask(api, "PUT", at, {"declared": OTHER[kind], "dry_run": dry_run}, If_Match="*")
        assert refused(changed) == (409, "inventory-read-only", words)
    assert refused(ask(api, "DELETE", at, If_Match="*")) == (409, "inventory-read-only", words)
    assert content(api) == before


def test_nobody_writes_where_the_configuration_does_not_say_so(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=HEAD)
    words = f"this site's inventory is its files alone: edit {api.config.inventory}, or set `inventory_writable: true`"
    assert refused(create(api, "racks")) == (409, "inventory-read-only", words)
    assert api.get("/v1/inventory/racks/r1").json["read_only"] == words


def test_custom_resources_are_read_and_not_written(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=HEAD, writable=True, kubernetes=InKubernetes(kubeconfig=tmp_path / "kubeconfig"))
    shown = api.get("/v1/inventory/profiles/compute").json
    assert (shown["file"], shown["line"], shown["declared"]["channel"]) == ("profile/compute", 0, "stable")
    assert shown["read_only"].startswith("this site's inventory is custom resources of namespace netboot")
    for answer in (create(api, "racks"), ask(api, "DELETE", "/v1/inventory/racks/r1", If_Match="*")):
        assert refused(answer) == (409, "inventory-read-only", shown["read_only"])


def test_a_list_in_pages_with_what_cannot_be_read(api: Api) -> None:
    for name in ("a", "b"):
        create(api, "racks", {"name": name})
    (api.config.inventory / "broken.yaml").write_text("racks: [")
    (api.config.inventory / "odd.yaml").write_text("racks:\n- {name: odd, 1: 2}\n")
    names, after = list[str](), ""
    while True:
        part = api.get(f"/v1/inventory/racks?limit=2{after}").json
        names += [each["name"] for each in part["items"]]
        assert [each.partition(".yaml")[0].rpartition("/")[2] for each in part["problems"]] == ["broken", "odd"]
        if part["continue"] is None:
            break
        after = f"&continue={part['continue']}"
    assert names == ["a", "b", "r1"]
    assert refused(create(api, "racks", {"name": "c"}))[:2] == (422, "faults")


def test_what_cannot_be(api: Api) -> None:
    before = content(api)
    body = {"declared": {"name": "x"}}
    for method, path, sent, headers in (
        ("GET", "/v1/inventory/pods", None, {}),
        ("GET", "/v1/inventory/pods/x", None, {}),
        ("PUT", "/v1/inventory/pods/x", body, {"If_None_Match": "*"}),
        ("DELETE", "/v1/inventory/pods/x", None, {"If_Match": "*"}),
    ):
        assert refused(ask(api, method, path, sent, **headers))[:2] == (404, "not-found"), (method, path)
    at = "/v1/inventory/racks/x"
    values: tuple[Any, ...] = ({"name": "y"}, {}, [], "x", None)
    for value in values:
        answer = ask(api, "PUT", at, {"declared": value}, If_None_Match="*")
        assert refused(answer) == (400, "bad-request", "declared: must be a rack, of the name that the path has")
    for name in ("..%2Fx", "-x", "X", "a" * 64):
        sent = {"declared": {"name": name.replace("%2F", "/")}}
        assert ask(api, "PUT", f"/v1/inventory/racks/{name}", sent, If_None_Match="*").status_code in (400, 404), name
    assert refused(ask(api, "PUT", at, body))[0] == 400
    large = {"declared": {"name": "x", "topology": {"zone": "z" * 70_000}}}
    assert ask(api, "PUT", at, large, If_None_Match="*").status_code == 413
    deep: Any = "z"
    for _ in range(200):
        deep = [deep]
    assert ask(api, "PUT", at, {"declared": {"name": "x", "topology": deep}}, If_None_Match="*").status_code == 400
    assert content(api) == before


def test_who_may_not_is_written_down_with_what_it_was_to_concern(api: Api) -> None:
    operator = given(api, "carol", Role.OPERATOR)
    for method, body in (("PUT", {"declared": NEW["racks"]}), ("DELETE", None)):
        answer = ask(api, method, "/v1/inventory/racks/r1", body, operator, If_Match="*")
        assert refused(answer)[:2] == (403, "not-allowed")
        record = api.get("/v1/audit").json["audit"][0]
        assert (record["who"], record["facts"]) == ("carol", {"kind": "racks", "name": "r1"})
    assert ask(api, "GET", "/v1/inventory/racks/r1", None, given(api, "wall", Role.VIEWER)).status_code == 200


def test_machines_as_they_are_declared_are_selected(api: Api) -> None:
    """By their files, before the publisher has read them; what has faults is not selected."""
    create(api, "classes", OTHER["classes"])
    for name, more in (("a-1", {"class": "new"}), ("a-2", {"rack": "r1", "node": {"labels": {"gpu": "h100"}}})):
        machine = {"name": name, "match": {"serial": name}, "profile": "compute", **more}
        at = f"/v1/inventory/machines/{name}"
        assert ask(api, "PUT", at, {"declared": machine}, If_None_Match="*").status_code == 200
    (api.config.inventory / "odd.yaml").write_text("machines: [{name: odd, class: [new], rack: r1}]\n")

    def names(query: str) -> list[str]:
        return [each["name"] for each in api.get(f"/v1/inventory/machines?{query}").json["machines"]]

    assert names("") == ["a-1", "a-2", "odd", "old-001"]
    assert names("fieldSelector=architecture%3Darm64") == ["a-1"]
    assert names("fieldSelector=rack%3Dr1") == ["a-2", "old-001"]
    assert names("selector=gpu%3Dh100") == ["a-2"]
    assert names("selector=!gpu&fieldSelector=rack%3Dr1") == ["old-001"]
    assert refused(api.get("/v1/inventory/machines?fieldSelector=x%3D1"))[0] == 400

"""`netboot inventory`, against the API."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from netboot.cli import inventory
from netboot.cli.client import Client
from netboot.stores.inventory import read_inventory
from tests.commands import Run
from tests.sockets.api import Api, of_alice
from tests.sockets.served import runner, served
from tests.sockets.test_declared_kinds import HEAD

RACK = "# as it arrived\nracks:\n- name: r7\n  origins: ['http://192.0.2.7:8080']  # near\n"
OURS: dict[str, dict[str, object]] = {"racks": {"origins": ["http://192.0.2.7:8080"]}, "machines": {"rack": "r1"}}
THEIRS: dict[str, dict[str, object]] = {
    "racks": {"origins": ["http://192.0.2.8:8080"]},
    "machines": {"position": 3, "rack": "r1"},
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return of_alice(Api(tmp_path, inventory=HEAD, writable=True))


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with served(api) as address:
        yield runner(address, api, capsys, monkeypatch)


def test_declared_shown_changed_and_removed(api: Api, run: Run, tmp_path: Path) -> None:
    given, ours = tmp_path / "r7.yaml", api.config.inventory / "rack-r7.yaml"
    given.write_text(RACK)
    assert run("inventory", "set", given, "--dry-run").out == "rack r7 would be declared in rack-r7.yaml\n"
    sent = run("inventory", "set", given, "--dry-run=client").out
    assert ("method: PUT\n" in sent, "/v1/inventory/racks/r7" in sent, ours.exists()) == (True, True, False)
    assert run("inventory", "set", given, "--reason", "new").out == "rack r7 is declared in rack-r7.yaml\n"
    assert [rack.name for rack in read_inventory(api.config).racks] == ["r7", "r1"]
    assert run("inventory", "set", given).out == "rack r7 is declared, as it was, in rack-r7.yaml\n"
    shown = run("inventory", "show", "racks", "r7").out
    assert shown == f"# {ours}:2\nracks:\n- name: r7\n  origins:\n  - http://192.0.2.7:8080\n"
    given.write_text(shown.replace("192.0.2.7", "192.0.2.8"))
    done = json.loads(run("inventory", "set", given, "--output", "json").out)
    assert (done["did"], done["declared"]["origins"]) == ("replaced", ["http://192.0.2.8:8080"])
    listed = run("inventory", "list", "racks")
    assert [line.split() for line in listed.out.splitlines()] == [
        ["name", "where"],
        ["r7", f"{ours}:2"],
        ["r1", f"{api.config.inventory}/site.yaml:9"],
    ]
    assert run("inventory", "list", "racks", "-o", "name").out == "r7\nr1\n"
    assert json.loads(run("inventory", "show", "racks", "r7", "-o", "json").out)["read_only"] == ""
    assert run("inventory", "remove", "racks", "r7", "--dry-run").out == "rack r7 would be declared no more\n"
    assert run("inventory", "remove", "racks", "r7", "--reason", "sold").out == "rack r7 is declared no more\n"
    assert not ours.exists()
    gone = run("inventory", "remove", "racks", "r7")
    remedy = "Remedy: see what is declared of that kind, for example by `netboot inventory list racks`\n"
    assert (gone.status, gone.err) == (3, f"Error: the inventory's files declare no rack 'r7'\n{remedy}")


def test_machines_are_no_exception(api: Api, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"machines: [{name: gpu-009, match: {serial: CZ9}, profile: compute}]"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert run("inventory", "set", "-").out == "machine gpu-009 is declared in machine-gpu-009.yaml\n"
    assert run("inventory", "list", "machines", "-o", "name").out == "gpu-009\nold-001\n"
    assert run("inventory", "show", "machines", "gpu-009").out.endswith(
        "machines:\n- name: gpu-009\n  match:\n    serial: CZ9\n  profile: compute\n"
    )
    assert run("inventory", "remove", "machines", "gpu-009").status == 0
    assert not (api.config.inventory / "machine-gpu-009.yaml").exists()


@pytest.mark.parametrize("kind", ["racks", "machines"])
def test_what_somebody_else_declares_at_that_moment_stays(
    api: Api, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    more: dict[str, object] = {"match": {"serial": "CZ9"}, "profile": "compute"} if kind == "machines" else {}
    new, path = {"name": "r7", **more}, f"/v1/inventory/{kind}/r7"
    ours, theirs, given = new | OURS[kind], new | THEIRS[kind], tmp_path / "r7.yaml"
    first = api.client.put(path, json={"declared": new}, headers=api.authorised | {"If-None-Match": "*"})
    assert first.status_code == 200
    given.write_text(json.dumps({kind: [ours]}))
    real = inventory._get

    def between(client: Client, of: str, name: str) -> object:
        """After the command looked, and before it declares."""
        found = real(client, of, name)
        headers = api.authorised | {"If-Match": "*"}
        assert api.client.put(path, json={"declared": theirs}, headers=headers).status_code == 200
        return found

    with monkeypatch.context() as patched:
        patched.setattr(inventory, "_get", between)
        refused = run("inventory", "set", given)
    said = f"Error: {kind.removesuffix('s')} r7 was changed by somebody else just now\n"
    remedy = f"Remedy: look at it again, `netboot inventory show {kind} r7`: nothing was changed\n"
    assert (refused.status, refused.err) == (4, said + remedy)
    assert api.get(path).json["declared"] == theirs
    assert run("inventory", "set", given).status == 0
    assert api.get(path).json["declared"] == ours


@pytest.mark.parametrize("kind", ["racks", "machines"])
def test_what_somebody_else_changes_at_that_moment_is_not_removed(
    api: Api, run: Run, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    more: dict[str, object] = {"match": {"serial": "CZ9"}, "profile": "compute"} if kind == "machines" else {}
    new, path = {"name": "r7", **more}, f"/v1/inventory/{kind}/r7"
    first = api.client.put(path, json={"declared": new}, headers=api.authorised | {"If-None-Match": "*"})
    assert first.status_code == 200
    theirs, real = new | THEIRS[kind], inventory._get

    def between(client: Client, of: str, name: str) -> object:
        """After the command looked, and before it removes."""
        found = real(client, of, name)
        headers = api.authorised | {"If-Match": "*"}
        assert api.client.put(path, json={"declared": theirs}, headers=headers).status_code == 200
        return found

    with monkeypatch.context() as patched:
        patched.setattr(inventory, "_get", between)
        refused = run("inventory", "remove", kind, "r7")
    said = f"Error: {kind.removesuffix('s')} r7 was changed by somebody else just now\n"
    remedy = f"Remedy: look at it again, `netboot inventory show {kind} r7`: nothing was changed\n"
    assert (refused.status, refused.err) == (4, said + remedy)
    assert api.get(path).json["declared"] == theirs
    assert run("inventory", "remove", kind, "r7").status == 0
    assert api.get(path).status_code == 404


def test_what_is_refused_says_where_and_why(api: Api, run: Run, tmp_path: Path) -> None:
    site, given = api.config.inventory / "site.yaml", tmp_path / "given.yaml"
    named = run("inventory", "remove", "racks", "r1")
    words = f"r1 is declared at {site}:9, in a file that a person wrote: edit it there"
    assert (named.status, named.err.splitlines()[0]) == (4, f"Error: {words}")
    assert run("inventory", "show", "racks", "r1").out == (
        f"# {site}:9\n# not the service's to write: {words}\nracks:\n- name: r1\n"
    )
    given.write_text("profiles: [{name: p, channel: stabel}]")
    refused = run("inventory", "set", given)
    assert refused.status == 4
    assert "profiles[0].channel: no channel is named 'stabel'; did you mean 'stable'?" in refused.err
    given.write_text("classes: [{name: c}]\nprofiles: [{name: p, channel: stable, class: c}]")
    (api.config.inventory / "broken.yaml").write_text("racks: [")
    listed = run("inventory", "list", "racks")
    assert (listed.status, "broken.yaml" in listed.err) == (0, True)


def test_what_a_file_is_called_obeys_no_terminal(api: Api, run: Run) -> None:
    for name, text in (("\x1b[2Ja.yaml", "racks: [{name: r8}]"), ("\x1b[2Jb.yaml", "racks: [")):
        (api.config.inventory / name).write_text(text)
    for words in (("list", "racks"), ("show", "racks", "r8"), ("remove", "racks", "r8")):
        ran = run("inventory", *words)
        assert "\x1b" not in ran.out + ran.err
        assert words[0] == "remove" or "?[2J" in ran.out


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("racks: [{name: a}, {name: b}]", 4, "one thing, and nothing else, and declares rack a, rack b\n"),
        ("racks: [{name: a}]\nmachines: []", 4, "one thing, and nothing else, and declares rack a\n"),
        ("{}", 4, "one thing, and nothing else, and declares none that has a name\n"),
        ("- a", 4, "one thing, and nothing else, and declares none that has a name\n"),
        ("racks: [{name: a, origins: !!binary eA==}]", 4, "has values that JSON has no words for"),
        ("racks: [", 1, "not valid YAML"),
        ("racks: [{name: a}]" + " " * 70_000, 1, "it has more than 64 KiB: divide it"),
        ("racks: [{name: ../x}]", 3, "nothing has the name '../x'"),
        ("racks: [{name: ''}]", 3, "nothing has the name ''"),
    ],
)
def test_what_declares_no_one_thing(api: Api, run: Run, tmp_path: Path, text: str, status: int, words: str) -> None:
    given = tmp_path / "given.yaml"
    given.write_text(text)
    before = sorted(api.config.inventory.iterdir())
    ran = run("inventory", "set", given)
    assert (ran.status, words in ran.err) == (status, True), ran.err
    assert [path for path in sorted(api.config.inventory.iterdir()) if path.name != ".lock"] == before

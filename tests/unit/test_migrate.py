"""The move of a site's disk into objects and back, where no API server is asked: what is compared, and by what; what
may be interrupted; that nothing is lost on its way."""

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from images.store.store import Store
from images.values import strict
from netboot.cli.cluster_objects import require_all, sources_of, text_of
from netboot.cli.export import contents_of
from netboot.cli.migrate_next import Done, how_far, show_end
from netboot.cli.outcomes import ApiError
from netboot.cli.site_objects import site_of
from netboot.cli.written_objects import read
from netboot.clock import rfc3339
from netboot.config import Config, load_config
from netboot.join.enrolment import Act, Alert, Import, Record, Replace
from netboot.join.enrolments_moved import document, spec_of, status_of
from netboot.join.errors import ClusterUnavailableError, ConflictError, InvalidError, RefusedError
from netboot.kube import exported
from netboot.kube.admin_objects import contains
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.moved import difference, plan
from netboot.kube.resources.definitions import definitions
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.rollout import Member, MemberState, RolloutState
from netboot.lifecycle.rollout_objects import Said
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.transitions import Mark
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.intents import SqliteIntents, make
from netboot.stores.lock import sole_instance
from netboot.stores.rollouts import SqliteRollouts
from netboot.stores.rollouts import make as make_rollouts
from tests.commands import Run
from tests.custom_resources import BASE, MACHINES, TAKEN, Item, faults, items
from tests.rollouts import rollout
from tests.sites import add_image, make_site

A, B, C = "a1" * 32, "b2" * 32, "c3" * 32
HOUR = 3_600_000


def hold(name: str, **more: Any) -> dict[str, Any]:
    spec = {"machine": name, "reason": "DIMM 4", **more}
    return {"apiVersion": "netboot.dev/v1alpha1", "kind": "Hold", "metadata": {"name": name}, "spec": spec}


def enrolment(name: str, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = {"apiVersion": "netboot.dev/v1alpha1", "kind": "Enrolment", "metadata": {"name": name}, "spec": spec}
    return made | ({"status": status} if status else {})


PROPOSED = {"proposed": {"ek_sha256": A, "window": "moved", "since": "2026-11-24T08:00:00Z"}, "proposals": 1}


def machine(name: str, **more: Any) -> dict[str, Any]:
    made = Item("machines", {"name": name, "match": {"serial": "CZ1"}, "profile": "default", **more})
    return made.custom_resource


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (hold("a"), hold("a"), ""),
        (hold("a", until="2099-01-01T00:00:00.000Z"), hold("a", until="2099-01-01T00:00:00.000Z"), ""),
        (hold("a"), hold("a", reason="fan 3"), "spec.reason says another thing there"),
        (hold("a"), hold("a") | {"metadata": {"name": "a", "deletionTimestamp": "now"}}, "is being deleted"),
        (hold("a"), hold("a", by=""), "spec.by: String should have at least 1 character"),
        (hold("a"), hold("a") | {"spec": None}, "spec: Input should be a valid dictionary or instance of Hold"),
        (machine("a"), machine("a", enabled=True), ""),
        (machine("a"), machine("a", **{"class": "hgx"}), "spec.class says another thing there"),
        (enrolment("a", ek_sha256=A), enrolment("a", ek_sha256=A, replaced=[]), ""),
        (enrolment("a", PROPOSED), enrolment("a"), ""),
        (enrolment("a"), enrolment("a", PROPOSED), ""),
        (enrolment("a", PROPOSED), enrolment("a", copy.deepcopy(PROPOSED)), ""),
        (
            enrolment("a", PROPOSED),
            enrolment("a", {"proposed": PROPOSED["proposed"], "proposals": 2}),
            "status.proposals says another thing there",
        ),
        (enrolment("a", PROPOSED), enrolment("a", {"proposals": -1}), "status.proposals: Input should be greater"),
    ],
)
def test_what_says_another_thing(ours: dict[str, Any], theirs: dict[str, Any], said: str) -> None:
    """By what the reader takes it for."""
    assert difference(ours, theirs).startswith(said)
    assert bool(difference(ours, theirs)) == bool(said)


NEITHER = "neither could join"


def test_rollouts_of_two_channels_have_two_numbers() -> None:
    ours = [{"kind": "Rollout", "metadata": {"name": "a"}, "spec": {"image": A, "rollout": {"number": 3}}}]
    theirs: dict[str, dict[str, Any]] = {
        "b": {"spec": {"rollout": {"number": 3}}},
        "c": {"spec": {"rollout": {"number": 4}}},
        "d": {"spec": {}},
    }
    assert plan(ours, {"Rollout": theirs}).faults == (
        "rollout/a and rollout/b: spec.rollout.number: both would be rollout 3: move those of one host alone",
    )


def test_what_is_to_be_made() -> None:
    documents = [machine("m1"), hold("h1"), enrolment("e1", PROPOSED), enrolment("e2", ek_sha256=B), enrolment("e3")]
    there = {
        "Machine": {"m1": machine("m1"), "m2": machine("m2")},
        "Hold": {"h2": hold("h2")},
        "Enrolment": {"e1": enrolment("e1"), "e4": enrolment("e4", ek_sha256=B), "e3": enrolment("e3", retired=True)},
    }
    found = plan(documents, there, frozenset({"Machine"}))
    assert found.missing == (documents[1], documents[3])
    assert found.there == (documents[0], documents[2])
    assert found.statuses == ((documents[2], there["Enrolment"]["e1"]),)
    assert found.faults == (
        "enrolment/e3: spec.retired says another thing there",
        "machine/m2: is there, and is declared by no file",
        f"enrolment/e2 and enrolment/e4: spec.ek_sha256: the TPM {B[:16]}... would be approved for both, and {NEITHER}",
    )
    assert plan(documents, there).faults == (found.faults[0], found.faults[2]), "an inventory that is not moved"


def test_definitions_of_this_version_may_have_more_and_not_less() -> None:
    for ours in definitions():
        there = copy.deepcopy(ours)
        assert contains(there, ours)
        there["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x"] = True
        assert contains(there, ours), "as an API server fills in"
        del there["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert not contains(there, ours)
    assert not contains([1, 2], [1])
    assert not contains(1, {"a": 1})
    assert not contains(1, [1])


@pytest.mark.parametrize(
    ("error", "said", "status"),
    [
        (InvalidError("422 Invalid: no"), "422 Invalid: no", 4),
        (ConflictError("409 AlreadyExists: made"), "409 AlreadyExists: made", 4),
        (ClusterUnavailableError("away: try again"), "away: try again", 5),
    ],
)
def test_what_ends_it_on_the_way_says_how_far_it_came(error: Exception, said: str, status: int) -> None:
    made = Counter({"Machine": 2, "Hold": 1})
    with pytest.raises(ApiError) as told, how_far(made, 7):
        raise error
    assert told.value.exit_code == status
    assert told.value.message == (
        f"3 of 7 objects were made, and then none: {said}\nRemedy: put right what is named, then give the same command "
        "again: what is there is passed over"
    )


def test_whoever_interrupts_it_is_told_that_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), how_far(Counter({"Machine": 2}), 7):
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "2 of 7 objects were made; the same command goes on from there\n"


def test_what_a_backup_lacks_is_not_passed_over() -> None:
    require_all({}, "it")
    for errors, status in (
        ({"Machine": ClusterRefusedError("no right: give it")}, 4),
        ({"Machine": ClusterRefusedError("no right: give it"), "Enrolment": ClusterUnavailableError("away")}, 5),
    ):
        with pytest.raises(ApiError) as told:
            require_all(errors, "it")
        assert told.value.exit_code == status
        assert told.value.message.startswith(
            f"it is made, and lacks objects of the kinds {', '.join(errors)}: no right"
        )


def back_from(folder: Path, tried: list[Item]) -> list[Item]:
    """What files have that are exported of objects of these."""
    config = load_config(folder / "netboot.yaml")
    documents: dict[str, list[Any]] = {}
    for item in tried:
        thing = item.custom_resource
        documents.setdefault(thing["kind"], []).append(thing)
    contents, wrong = contents_of(config, documents)
    assert (wrong, set(contents) & {"left-out.yaml"}) == ((), set())
    return [item for text in contents.values() for item in items(text)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("migrate") / "site"
    make_site(root)
    (root / "base").mkdir()
    return root


def spelt(item: Item) -> dict[str, Any]:
    """`none` of files and of objects is one thing."""
    return item.value | ({"pcrs": {"none": []}} if item.value.get("pcrs") == "none" else {})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(MACHINES)
def test_a_machine_of_any_kind_comes_back_as_it_was(site: Path, item: Item) -> None:
    """What the service takes of files, through objects, and back into files."""
    if faults(site / "base", item):
        return
    base = items(BASE)
    found = back_from(site, [*base, item])
    assert [each.value for each in found if each.key == "machines"] == [spelt(item)]
    assert sorted(each.key for each in found) == sorted(each.key for each in [*base, item])


@pytest.mark.parametrize("name", TAKEN)
def test_each_item_comes_back_as_it_was(site: Path, name: str) -> None:
    item = TAKEN[name]
    if faults(site / "base", item):
        pytest.fail("the service takes it")
    assert spelt(item) in [each.value for each in back_from(site, [*items(BASE), item]) if each.key == item.key]


EKS = st.sampled_from([A, B, C])
RECORDS = st.builds(
    Record,
    machine=st.just("gpu-001"),
    ek_sha256=EKS,
    state=st.sampled_from(["pending", "approved"]),
    source=st.just("first-use"),
    generation=st.integers(0, 9),
    details=st.sampled_from(["", '{"serial": "S1"}', "no JSON"]),
    since_ms=st.integers(0, 2**41),
) | st.builds(
    Record,
    machine=st.just("gpu-001"),
    generation=st.integers(0, 9),
    window=st.sampled_from(["enrol", "boot"]),
    window_id=st.just("w1"),
    window_until_ms=st.integers(1, 2**41),
)


@given(RECORDS, st.booleans(), st.sets(st.sampled_from(["d4" * 32, "e5" * 32])))
def test_a_record_of_any_state_comes_back_as_it_was(record: Record, retired: bool, gone: set[str]) -> None:
    if retired and record.window is None:
        record = record.model_copy(update={"state": "retired", "retired_from": record.state})
    alert = Alert(machine="gpu-001", kind="other-key", first_ms=1, last_ms=2, count=3, said="a thief")
    written = document("gpu-001", "netboot", spec_of(record, tuple(gone)), status_of(record, [alert]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("netboot.cli.written_objects.files.look", lambda path: path.name == "enrolments.yaml" or None)
        patched.setattr("images.values.strict.text_at", lambda _: text_of([written]))
        back = read(Path("x"), 7)
    (ours,) = back.records or [Record(machine="gpu-001")]
    assert (ours.enrolment(), ours.retired_from) == (record.enrolment(), record.retired_from)
    assert {name: set(eks) for name, eks in back.replaced.items()} == ({"gpu-001": gone} if gone else {})


def test_what_is_on_record_becomes_what_the_file_says_and_nothing_else(tmp_path: Path) -> None:
    store = SqliteEnrolments(tmp_path / "enrolment.db")
    for name, order in (("a", Import(A)), ("b", Import(B)), ("c", Import(C)), ("c", Replace("w", HOUR))):
        store.apply([(name, order)], Act("alice"), 1)
    store.alert("a", "other-key", "a thief", 1)
    kept = store.record("a")
    moved = Record(machine="d", ek_sha256=B, state="pending", source="first-use", generation=2, since_ms=5)
    alert = Alert(machine="d", kind="counters", first_ms=1, last_ms=2, count=3, said="cleared?")
    store.have([kept, moved], {"d": [C]}, [alert], Act("bob", "back"), 9)
    assert store.records() == [kept, moved.model_copy(update={"revision": 1})]
    assert (store.replaced(), store.alerts("a"), store.alerts("d")) == ({"d": (C,)}, [], [alert])
    assert (store.owner(A), store.owner(B), store.owner(C)) == (("a", False), ("d", False), ("d", True))
    lines = [(one.machine, one.act, one.operator, one.reason, one.said) for one in store.history(None, 4)]
    assert sorted(lines) == [
        ("b", "migrated", "bob", "back", "nothing is on record any more"),
        ("c", "migrated", "bob", "back", "not taken out of it any more"),
        ("c", "migrated", "bob", "back", "nothing is on record any more"),
        ("d", "migrated", "bob", "back", "none, generation 0 → pending, generation 2"),
    ]
    two = [kept, moved.model_copy(update={"ek_sha256": A})]
    with pytest.raises(RefusedError, match=r"EK a1a1a1a1a1a1a1a1\.\.\. is of a and d: an EK belongs to one machine"):
        store.have(two, {}, [], Act(), 10)
    assert store.owner(B) == ("d", False), "and nothing was done"


def test_a_revision_that_was_shown_is_of_no_other_record(tmp_path: Path) -> None:
    """Who approves by it would approve another TPM."""
    store = SqliteEnrolments(tmp_path / "enrolment.db")
    store.apply([("a", Import(A))], Act(), 1)
    before = store.record("a").revision
    store.have(
        [Record(machine="a", ek_sha256=B, state="pending", source="first-use", revision=before)], {}, [], Act(), 2
    )
    assert store.record("a").revision == before + 1


def test_what_is_given_wrongly(site: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    (site / "given").write_text("x")
    for words, status, said in (
        (("migrate", "--to", "kubernetes"), 2, "--to kubernetes takes --admin-kubeconfig, and no folder"),
        (("migrate", "--to", "files"), 2, "--to files takes --from, and nothing of a cluster"),
        (("migrate", "--to", "files", "--from", "base", "--namespace", "x"), 2, "--to files takes --from, and nothing"),
        (("migrate", "--to", "files", "--from", "keys"), 1, "keys has neither enrolments.yaml nor holds.yaml"),
        (
            ("migrate", "--to", "kubernetes", "--admin-kubeconfig", "given", "--namespace", "A"),
            2,
            "'A' is no namespace",
        ),
        (("export", "--to", "x"), 2, "by the configuration nothing is in objects"),
        (("export", "--to", "x", "--namespace", "y"), 2, "the accounts of the configuration read its namespaces"),
        (("export", "--to", "base", "--kubeconfig", "given"), 1, "base is there already"),
    ):
        ran = run(*words)
        assert (ran.status, ran.out, said in ran.err) == (status, "", True), ran.err


def test_a_file_that_is_no_export_changes_nothing(site: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(site)
    folder = site / "exported"
    folder.mkdir()
    (folder / "enrolments.yaml").write_text(text_of([enrolment("gpu-001", ek_sha256=A, replaced=[A])]))
    ran = run("migrate", "--to", "files", "--from", "exported")
    assert (ran.status, ran.out) == (1, "")
    assert "a TPM that was taken out of the machine is not let in: take it out of replaced first" in ran.err
    assert not (site / "data").exists()


def put_on(config: Config, *orders: tuple[str, PutOn]) -> SqliteIntents:
    config.data.mkdir(exist_ok=True)
    make(config.data / "intents.db").close()
    store = SqliteIntents(config.data / "intents.db")
    for name, order in orders:
        store.order(name, order, "alice", 1)
    return store


def test_holds_are_put_on_where_they_do_not_stand(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """By people, or by the very object; one that has ended is none."""
    config = make_site(tmp_path / "site")
    monkeypatch.chdir(tmp_path / "site")
    fan = PutOn(Mark.HELD, "DIMM 4", owner="kubernetes/netboot/gpu-003")
    store = put_on(config, ("gpu-002", PutOn(Mark.HELD, "DIMM 4")), ("gpu-003", fan))
    folder = tmp_path / "exported"
    folder.mkdir()
    names = ("gpu-001", "gpu-002", "gpu-003")
    over = hold("gpu-004", until="2020-01-01T00:00:00Z")
    (folder / "holds.yaml").write_text(text_of([*(hold(name) for name in names), hold("gpu-005", by="bob"), over]))
    with sole_instance(config.data / "lock"):
        running = run("migrate", "--to", "files", "--from", folder)
        assert (running.status, "already serves" in running.err) == (1, True)
    assert run("migrate", "--to", "files", "--from", folder, "-o", "json").json == {
        "dry_run": False,
        "enrolments": None,
        "holds": {"changed": 2, "same": 2},
        "read_of_objects": [],
    }
    assert [(one.machine, one.owner, one.who) for one in store.all(2)] == [
        ("gpu-001", "operator", "hold/gpu-001"),
        ("gpu-002", "operator", "alice"),
        ("gpu-003", "kubernetes/netboot/gpu-003", "alice"),
        ("gpu-005", "operator", "bob"),
    ]


def test_who_is_in_no_file_is_named_and_no_file_takes_all_away(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = make_site(tmp_path / "site")
    monkeypatch.chdir(tmp_path / "site")
    config.data.mkdir()
    store = SqliteEnrolments(config.data / "enrolment.db")
    store.apply([("a", Import(A)), ("b", Import(B))], Act(), 1)
    folder = tmp_path / "exported"
    folder.mkdir()
    for none in ([], [enrolment("a")]):
        (folder / "enrolments.yaml").write_text(text_of(none))
        empty = run("migrate", "--to", "files", "--from", folder)
        assert (empty.status, empty.out) == (1, "")
        assert "enrolments.yaml says nothing of any machine, and 2 are on record" in empty.err
    (folder / "enrolments.yaml").write_text(text_of([enrolment("b", ek_sha256=C, source="imported")]))
    would = run("migrate", "--to", "files", "--from", folder, "--dry-run")
    assert would.out.endswith("\non record no more, for no Enrolment is in the file: a\n\nNothing was written.\n")
    assert [one.ek_sha256 for one in store.records()] == [A, B]
    done = run("migrate", "--to", "files", "--from", folder, "-o", "json")
    assert done.json["enrolments"] == {
        "changed": 1,
        "same": 0,
        "gone": ["a"],
        "machines": {
            "a": [f"ek_sha256: {A} → none", "state: approved → none", "source: imported → none"],
            "b": [f"ek_sha256: {B} → {C}"],
        },
    }
    assert [(one.machine, one.ek_sha256) for one in store.records()] == [("b", C)]


def test_what_is_moved_of_a_site(tmp_path: Path) -> None:
    """What the configuration has as objects is not, nor what others than people hold."""
    config = make_site(tmp_path / "site")
    never = site_of(config, "netboot")
    assert (never.enrolled, never.holds, len(never.documents)) == (None, [], 5)
    put_on(
        config,
        ("gpu-001", PutOn(Mark.HELD, "DIMM 4", 4_070_908_800_000)),
        ("gpu-001", PutOn(Mark.HELD, "a remedy's", owner="remedy")),
        ("gpu-002", PutOn(Mark.QUARANTINED, "unknown device")),
    )
    with pytest.raises(StateUnavailableError):
        (config.data / "intents.db").rename(config.data / "state.db")
        site_of(config, "netboot")
    (config.data / "state.db").rename(config.data / "intents.db")
    SqliteEnrolments(config.data / "enrolment.db").apply([("gpu-009", Import(A))], Act(), 1)
    moved = site_of(config, "netboot")
    assert (len(moved.documents), moved.enrolled) == (10, ("gpu-001", "gpu-002", "gpu-009", "off-001"))
    assert [each["spec"] for each in moved.documents if each["kind"] == "Hold"] == [
        {"machine": "gpu-001", "reason": "DIMM 4", "by": "alice", "until": "2099-01-01T00:00:00.000Z"}
    ]
    file = config.data.parent / "netboot.yaml"
    before = file.read_text()
    for key, kinds in (("inventory", {"Hold", "Enrolment"}), ("enrolments", {*KINDS_OF_FILES, "Hold"})):
        file.write_text(f"{before}{key}_kubernetes: {{}}\n")
        assert {each["kind"] for each in site_of(load_config(file), "netboot").documents} == kinds


KINDS_OF_FILES = {"Machine", "Profile", "Channel"}


def test_where_channels_point_is_moved_with_the_last_rollout_of_each(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    old, new = add_image(config), add_image(config, name="next", salt="2")
    store = Store(config.store)
    store.set_channel("stable", old)
    never = site_of(config, "netboot", rollouts=True)
    assert never.pointing == {"stable": Said(old, "tiny", "netboot migrate", store.channels()["stable"].at * 1000)}
    assert [each["spec"]["image"] for each in never.documents if each["kind"] == "Rollout"] == [old]
    put_on(config)
    with pytest.raises(StateUnavailableError, match=r"rollouts\.db cannot be used: it is not there"):
        site_of(config, "netboot", rollouts=True)
    make_rollouts(config.data / "rollouts.db").close()
    disk = SqliteRollouts(config.data / "rollouts.db")
    those = {"gpu-001": Member(machine="gpu-001", previous=old, state=MemberState.FAILED)}
    for _ in range(2):
        update = {"image": new, "base": old, "image_name": "next"}
        begun = disk.start(rollout().model_copy(update=update), those, Note(1, "alice", "start"))
        disk.change(
            begun.number,
            lambda was, all_: (was.model_copy(update={"state": RolloutState.UNDONE}), all_),
            lambda *_: None,
        )
    disk.release("stable")
    moved = site_of(config, "netboot", rollouts=True)
    last = moved.pointing["stable"].rollout
    assert last is not None
    assert (last.rollout, last.members, last.released) == (disk.rollout(2), those, True)
    assert last.notes == (Note(1, "alice", "start"),)
    assert site_of(config, "netboot").pointing == {}


def test_what_is_said_at_the_end_where_rollouts_were_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = make_site(tmp_path / "site")
    for namespace, key in (("netboot", "{kubernetes: {}}"), ("site", "{kubernetes: {namespace: site}}")):
        done = Done(Counter(Rollout=1), Counter(), inventory=True, enrolments=False, rollouts=True, dry_run=False)
        show_end("table", config, namespace, [], done, Path("admin.kubeconfig"))
        assert (
            capsys.readouterr().out.partition("its own:\n")[2]
            == f"""\
  boots, conditions and their history: data/state.db, data/conditions.db, data/history.db
  quarantine, acceptances, freezes, drains, remedies; holds of others than people: data/intents.db
  the history of enrolments and of holds; the audit: data/enrolment.db, data/intents.db, data/audit.db

Next, into netboot.yaml:
  state: {key}
then:
  netboot cluster manifests --inventory | kubectl apply -f -
  netboot cluster kubeconfigs --inventory --admin-kubeconfig admin.kubeconfig
  netboot cluster manifests --enrolments | kubectl apply -f -
  netboot cluster kubeconfigs --enrolments --admin-kubeconfig admin.kubeconfig
  netboot cluster manifests --keys | kubectl apply -f -
  netboot cluster kubeconfigs --keys --admin-kubeconfig admin.kubeconfig
  netboot cluster keys push --admin-kubeconfig admin.kubeconfig
  netboot config check
  systemctl start netboot
"""
        )


def test_a_backup_has_what_replicas_share(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    file = config.data.parent / "netboot.yaml"
    before = file.read_text()
    file.write_text(f"{before}state: {{kubernetes: {{}}}}\n")
    found = {source.kubeconfig.name: source.kinds for source in sources_of(load_config(file))}
    assert found["orders.kubeconfig"] == ("Rollout", "Order")
    file.write_text(f"{before}inventory_kubernetes: {{}}\n")
    assert [source.kubeconfig.name for source in sources_of(load_config(file))] == ["inventory.kubeconfig"]


def test_a_window_that_was_used_is_in_no_file() -> None:
    window = {"kind": "boot", "id": "w1", "until": "2099-01-01T00:00:00Z"}
    opened = enrolment("a", window=window, retired=False)
    assert exported._without_used(opened, {("a", "w1")}) == enrolment("a", retired=False)
    assert exported._without_used(opened, {("a", "w2"), ("b", "w1")}) == opened


def test_a_list_is_what_its_text_says() -> None:
    """YAML 1.1 and 1.2 read some texts differently."""
    odd = hold("a", reason="no", by="12e4", until=rfc3339(HOUR))
    assert strict.parse(text_of([odd]), "x").value == {"apiVersion": "v1", "kind": "List", "items": [odd]}

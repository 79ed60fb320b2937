"""Custom resources of the inventory before a real API server: it takes what the service takes, and refuses what it
refuses, as far as one object says it."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from hypothesis import HealthCheck, given, settings

from lab.kube.accounts import Admin
from netboot.kube.resources.definitions import definitions
from netboot.kube.resources.kinds import GROUP, KINDS, VERSION
from tests.custom_resources import (
    BY_THE_API_SERVER_ALONE,
    BY_THE_SERVICE_ALONE,
    MACHINES,
    REFUSED,
    TAKEN,
    Item,
    Value,
    faults,
    items,
    match,
    odd_ones,
)
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OBJECTS = f"/apis/{GROUP}/{VERSION}/namespaces/default"
SCHEMAS, MACHINE = f"/openapi/v3/apis/{GROUP}/{VERSION}", "dev.netboot.v1alpha1.Machine"
PLURALS = {kind.kind: kind.plural for kind in KINDS.values()}


@pytest.fixture(scope="module")
def established(as_admin: Admin) -> Iterator[list[Value]]:
    """The definitions, as the API server has them once it serves their kinds."""
    made = definitions()
    for definition in made:
        answer = as_admin("POST", DEFINITIONS, definition)
        assert answer.status_code == 201, answer.text
        assert "Warning" not in answer.headers
    paths = [f"{DEFINITIONS}/{definition['metadata']['name']}" for definition in made]
    wait_for(lambda: all(conditions(as_admin, path).get("Established") == "True" for path in paths))
    wait_for(lambda: all(post(as_admin, item.custom_resource).status_code != 404 for item in TAKEN.values()))
    # What there is, and what its schemas are, is published beside that.
    plurals = {definition["spec"]["names"]["plural"] for definition in made}
    wait_for(lambda: {each["name"] for each in served_kinds(as_admin)} >= plurals)
    wait_for(lambda: MACHINE in served_schemas(as_admin))
    yield [as_admin("GET", path).json() for path in paths]
    for path in paths:
        as_admin("DELETE", path)


def served_kinds(admin: Admin) -> list[Value]:
    found = admin("GET", f"/apis/{GROUP}/{VERSION}")
    return list(found.json()["resources"]) if found.ok else []


def served_schemas(admin: Admin) -> Value:
    found = admin("GET", SCHEMAS)
    return dict(found.json()["components"]["schemas"]) if found.ok else {}


def conditions(admin: Admin, path: str) -> dict[str, str]:
    status = admin("GET", path).json().get("status", {})
    return {each["type"]: each["status"] for each in status.get("conditions", ())}


def post(admin: Admin, custom_resource: Value) -> requests.Response:
    """Try it: checked whole, and not kept."""
    plural = PLURALS[custom_resource["kind"]]
    return admin("POST", f"{OBJECTS}/{plural}?dryRun=All&fieldValidation=Strict", custom_resource)


def taken(admin: Admin, item: Item) -> None:
    tried = item.custom_resource
    answer = post(admin, tried)
    assert answer.status_code == 201, answer.text
    assert answer.json()["spec"] == tried["spec"]
    assert "Warning" not in answer.headers


def test_the_schemas_are_structural_and_served(established: list[Value]) -> None:
    for definition in established:
        found = {each["type"]: each["status"] for each in definition["status"]["conditions"]}
        assert found == {"NamesAccepted": "True", "Established": "True"}, definition["metadata"]["name"]


def test_they_are_as_they_were_made(established: list[Value]) -> None:
    """Nothing was pruned, nor filled in but what every definition has."""
    for definition, made in zip(established, definitions(), strict=True):
        assert definition["spec"]["versions"] == made["spec"]["versions"]
        assert definition["spec"]["names"] == made["spec"]["names"]


@pytest.mark.usefixtures("established")
@pytest.mark.parametrize("name", TAKEN)
def test_what_the_service_takes_is_taken_and_given_back(as_admin: Admin, name: str) -> None:
    taken(as_admin, TAKEN[name])


@pytest.mark.usefixtures("established")
@pytest.mark.parametrize("name", REFUSED | BY_THE_API_SERVER_ALONE)
def test_what_the_service_refuses_is_refused(as_admin: Admin, name: str) -> None:
    answer = post(as_admin, (REFUSED | BY_THE_API_SERVER_ALONE)[name].custom_resource)
    assert answer.status_code in (400, 422), answer.text


@pytest.mark.usefixtures("established")
@pytest.mark.parametrize("name", BY_THE_SERVICE_ALONE)
def test_what_only_the_service_sees(as_admin: Admin, name: str) -> None:
    taken(as_admin, BY_THE_SERVICE_ALONE[name])


NAMES = re.compile(r"no \w+ is named|no such time zone")
LAX = re.compile(r"must be of type (integer|number|boolean)|spec\.pcrs in body should have at least 1 properties")


@pytest.mark.usefixtures("established")
def test_both_judge_alike_whatever_stands_where(as_admin: Admin, tmp_path: Path) -> None:
    """But for what the page lists: null that is left out, names, types that files convert."""
    apart = []
    for where, item in odd_ones():
        said, answer = faults(tmp_path, item), post(as_admin, item.custom_resource)
        if (answer.status_code == 201) != (not said):
            known = where.endswith(": None") or all(NAMES.match(each) for each in said)
            if not (known if said else LAX.search(answer.json()["message"])):
                apart.append((where, said or answer.json()["message"]))
    assert apart == []


@pytest.mark.usefixtures("established")
def test_null_where_nothing_may_be_null_is_left_out(as_admin: Admin, tmp_path: Path) -> None:
    item = match(macs=None, serial="CZ1")
    assert faults(tmp_path, item) == ["must be a list"]
    assert post(as_admin, item.custom_resource).json()["spec"]["match"] == {"serial": "CZ1"}


@pytest.mark.usefixtures("established")
@pytest.mark.parametrize("file", ["docs/inventory.md", "netboot/cli/templates/inventory.yaml"])
def test_inventories_that_we_show_are_taken(as_admin: Admin, file: str) -> None:
    text = (ROOT / file).read_text()
    shown = items(text.split("```yaml\n")[1].split("```")[0] if file.endswith(".md") else text)
    assert shown
    for item in shown:
        if item.value.get("image") == "3f1c…":
            item.value["image"] = "3f1c" * 16
        taken(as_admin, item)


@pytest.mark.usefixtures("established")
@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],  # a busy machine is no defect
    deadline=None,
)
@given(MACHINES)
def test_machines_of_any_kind_are_taken(as_admin: Admin, item: Item) -> None:
    taken(as_admin, item)


@pytest.mark.usefixtures("established")
def test_explanations_are_served(as_admin: Admin) -> None:
    """What `kubectl explain machine.spec.match` prints."""
    spec = served_schemas(as_admin)[MACHINE]["properties"]["spec"]["properties"]
    assert spec["match"]["description"] == (
        "How a machine is recognised. Any one of them suffices; two machines may not share any."
    )
    assert spec["identity"]["enum"] == ["tpm", "nonce", "address"]


@pytest.mark.usefixtures("established")
def test_kinds_are_found_by_their_short_names_and_all_together(as_admin: Admin) -> None:
    resources = served_kinds(as_admin)
    assert {each["name"]: (each.get("shortNames"), each.get("categories")) for each in resources} == {
        "machines": (["nbm"], ["netboot"]),
        "machines/status": (None, None),
        "profiles": (["nbp"], ["netboot"]),
        "channels": (["nbch"], ["netboot"]),
        "machineclasses": (["nbcl"], ["netboot"]),
        "racks": (["nbr"], ["netboot"]),
        "maintenancewindows": (["nbmw"], ["netboot"]),
        "holds": (["nbh"], ["netboot"]),
        "orders": (["nbo"], ["netboot"]),
        "rollouts": (["nbro"], ["netboot"]),
        "enrolments": (["nbe"], ["netboot"]),
        "enrolments/status": (None, None),
        "holds/status": (None, None),
        "orders/status": (None, None),
    }


@pytest.mark.usefixtures("established")
def test_a_status_is_written_apart(as_admin: Admin) -> None:
    """Who writes the object writes no status, and who writes the status no spec."""
    made = TAKEN["whatever was measured"].custom_resource
    condition = {"type": "InService", "status": "True", "reason": "Ready", "message": "it takes work"}
    status = {"conditions": [{**condition, "lastTransitionTime": "2026-11-27T16:00:00Z"}]}
    path = f"{OBJECTS}/machines"
    created = as_admin("POST", path, {**made, "status": status}).json()
    try:
        assert "status" not in created
        changed = {**created, "status": status, "spec": {**created["spec"], "enabled": False}}
        written = as_admin("PUT", f"{path}/tried/status", changed).json()
        assert (written["status"], written["spec"]) == (status, made["spec"])
        twice = {**written, "status": {"conditions": status["conditions"] * 2}}
        assert as_admin("PUT", f"{path}/tried/status", twice).status_code == 422
    finally:
        as_admin("DELETE", f"{path}/tried")

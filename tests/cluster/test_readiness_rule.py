"""The rule for the Node Readiness Controller before a real apiserver that has its schema, as it is published. The
controller itself no test runs: its module is not to be had (docs/gate.md)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.kube.accounts import Admin
from netboot.kube.manifests import readiness_rule
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
SCHEMA = Path(__file__).with_name("nodereadinessrules.yaml")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RULES = "/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules"
TRIED = f"{RULES}?dryRun=All&fieldValidation=Strict"


@pytest.fixture(scope="module")
def schema(as_admin: Admin) -> Iterator[None]:
    """The apiserver knows the rule's kind."""
    definition = yaml.safe_load(SCHEMA.read_text())
    assert as_admin("POST", DEFINITIONS, definition).status_code == 201
    wait_for(lambda: as_admin("GET", RULES).status_code == 200)
    wait_for(lambda: as_admin("POST", TRIED, yaml.safe_load(readiness_rule())).status_code != 404)
    yield
    as_admin("DELETE", f"{DEFINITIONS}/{definition['metadata']['name']}")


@pytest.mark.usefixtures("schema")
def test_the_apiserver_takes_the_rule_as_it_is_shipped(as_admin: Admin) -> None:
    rule = yaml.safe_load(readiness_rule())
    answer = as_admin("POST", TRIED, rule)
    assert (answer.status_code, answer.json()["spec"]) == (201, rule["spec"]), answer.text
    assert "Warning" not in answer.headers


@pytest.mark.usefixtures("schema")
@pytest.mark.parametrize(
    ("spoil", "status", "why"),
    [
        (lambda spec: spec.update(enforcement="continuous"), 400, 'unknown field "spec.enforcement"'),
        (lambda spec: spec.update(enforcementMode="always"), 422, "spec.enforcementMode: Unsupported value"),
        (lambda spec: spec.pop("nodeSelector"), 422, "spec.nodeSelector: Required value"),
        (lambda spec: spec["taint"].update(key="netboot.dev/x"), 422, "must start with 'readiness.k8s.io/'"),
        (lambda spec: spec["taint"].update(effect="Never"), 422, "taint effect must be one of"),
        (lambda spec: spec["conditions"][0].update(requiredStatus="Yes"), 422, "requiredStatus: Unsupported value"),
    ],
    ids=["unknown", "mode", "selector", "taint", "effect", "status"],
)
def test_that_schema_refuses_what_is_wrong(
    as_admin: Admin, spoil: Callable[[dict[str, Any]], object], status: int, why: str
) -> None:
    rule = yaml.safe_load(readiness_rule())
    spoil(rule["spec"])
    answer = as_admin("POST", TRIED, rule)
    assert (answer.status_code, why in answer.json()["message"]) == (status, True), answer.text

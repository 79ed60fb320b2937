"""What of an admission policy counts as changed: everything, but for what the apiserver fills in by itself."""

from copy import deepcopy
from typing import Any

import pytest

from netboot.join.rights import POLICIES
from netboot.kube.manifests import manifests
from netboot.kube.preconditions import difference

SPECS = {
    (document["kind"], document["metadata"]["name"]): document["spec"]
    for document in manifests()
    if document["kind"].startswith("ValidatingAdmissionPolicy")
}
FILLED_IN: dict[str, Any] = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


def live(spec: dict[str, Any]) -> dict[str, Any]:
    """As the apiserver gives back what was applied."""
    spec = deepcopy(spec)
    if "matchConstraints" in spec:
        spec["matchConstraints"] |= FILLED_IN
        for rule in spec["matchConstraints"]["resourceRules"]:
            rule["scope"] = "*"
    return spec


def leaves(value: Any, at: str) -> list[tuple[list[Any], str]]:
    """Where each value that is no object or list is: the keys to it, and the field's name."""
    if isinstance(value, dict):
        below = [(key, f"{at}.{key}", one) for key, one in value.items()]
    elif isinstance(value, list):
        below = [(index, f"{at}[{index}]", one) for index, one in enumerate(value)]
    else:
        return [([], at)]
    return [([key, *keys], name) for key, field, one in below for keys, name in leaves(one, field)]


def test_each_policy_and_its_binding_is_compared() -> None:
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    assert set(SPECS) == {(kind, name) for kind in kinds for name in POLICIES}


@pytest.mark.parametrize("which", SPECS, ids=str)
def test_what_the_apiserver_fills_in_is_no_difference(which: tuple[str, str]) -> None:
    assert difference(SPECS[which], live(SPECS[which]), "spec") is None


@pytest.mark.parametrize("which", SPECS, ids=str)
def test_every_value_that_is_changed_or_gone_is_found_and_named(which: tuple[str, str]) -> None:
    for keys, name in leaves(SPECS[which], "spec"):
        changed, gone = live(SPECS[which]), live(SPECS[which])
        inside, outside = changed, gone
        for key in keys[:-1]:
            inside, outside = inside[key], outside[key]
        inside[keys[-1]] = "another"
        del outside[keys[-1]]
        assert difference(SPECS[which], changed, "spec") == name
        assert difference(SPECS[which], gone, "spec") is not None, name


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"matchConstraints": {"objectSelector": {"matchLabels": {"a": "b"}}}}, "spec.matchConstraints.objectSelector"),
        ({"matchConstraints": {"matchPolicy": "Exact"}}, "spec.matchConstraints.matchPolicy"),
        ({"matchConstraints": {"excludeResourceRules": [{}]}}, "spec.matchConstraints.excludeResourceRules"),
        ({"auditAnnotations": [{}]}, "spec.auditAnnotations"),
        ({"matchConditions": [{"name": "exempt", "expression": "false"}]}, "spec.matchConditions"),
    ],
)
def test_what_was_added_is_found_and_named(change: dict[str, Any], field: str) -> None:
    shipped = SPECS["ValidatingAdmissionPolicy", "netboot-tokens"]
    changed = live(shipped)
    for key, value in change.items():
        changed[key] = changed[key] | value if isinstance(value, dict) else [*changed.get(key, []), *value]
    assert difference(shipped, changed, "spec") == field

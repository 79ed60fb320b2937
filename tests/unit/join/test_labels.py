"""Labels of a Node: which its kubelet registers with, and which the service writes."""

from typing import Any

import pytest
from pydantic import ValidationError

from netboot.config_nodes import NodeLabels
from netboot.join.labels import differ, of_kubelets, registered, written
from netboot.join.ports import MARK, NodeView
from netboot.machines.topology import NOWHERE, Topology
from netboot.machines.values import Machine

KEYS = NodeLabels()
RACK = Topology(zone="hall-2", region="eu-1", tiers=("leaf-7", "spine-1"), accelerator_domain="nvl-3")


def machine(labels: dict[str, str] | None = None, **said: Any) -> Machine:
    value = {"name": "gpu-001", "match": {"serial": "SN-1"}, "profile": "p", "node": {"labels": labels or {}}}
    return Machine.model_validate(value | said)


@pytest.mark.parametrize(
    ("key", "may"),
    [
        ("pool", True),
        ("example.com/pool", True),
        ("fabric.topograph.run/tier-0", True),
        ("nvidia.com/gpu.deploy.driver", True),
        ("topology.kubernetes.io/zone", True),
        ("topology.kubernetes.io/rack", False),
        ("node-role.kubernetes.io/worker", False),
        ("kubernetes.io/os", True),
        ("kubernetes.io/other", False),
        ("node.kubernetes.io/pool", True),
        ("x.kubelet.kubernetes.io/pool", True),
        ("node-restriction.kubernetes.io/pool", False),
        ("x.node-restriction.kubernetes.io/pool", False),
        ("k8s.io/pool", False),
        ("x-k8s.io/pool", True),
        ("notkubernetes.io/pool", True),
    ],
)
def test_what_a_kubelet_may_write(key: str, may: bool) -> None:
    assert of_kubelets(key) is may
    one = machine({key: "x"})
    assert registered(one) == MARK | ({key: "x"} if may else {})
    assert written(one, NOWHERE, KEYS) == ({} if may else {key: "x"})


def test_a_machine_stands_where_its_rack_does_and_where_it_says_otherwise() -> None:
    everywhere = {
        "topology.kubernetes.io/zone": "hall-2",
        "topology.kubernetes.io/region": "eu-1",
        "fabric.topograph.run/tier-0": "leaf-7",
        "fabric.topograph.run/tier-1": "spine-1",
        "accelerator.topograph.run/domain": "nvl-3",
    }
    assert written(machine(), RACK, KEYS) == everywhere
    own = machine(topology={"tiers": ["leaf-8"], "accelerator_domain": "nvl-4"})
    assert written(own, RACK, KEYS) == {
        "topology.kubernetes.io/zone": "hall-2",
        "topology.kubernetes.io/region": "eu-1",
        "fabric.topograph.run/tier-0": "leaf-8",
        "accelerator.topograph.run/domain": "nvl-4",
    }
    assert written(machine(), NOWHERE, KEYS) == {}
    assert Machine.model_validate_json(own.model_dump_json()) == own, "as a snapshot has it"
    assert written(Machine.model_validate_json(own.model_dump_json()), RACK, KEYS) == written(own, RACK, KEYS)
    assert "topology" not in machine().model_dump_json()


def test_what_is_declared_as_a_label_is_over_a_place_of_that_key() -> None:
    """A kubelet would write its own zone again and again."""
    one = machine({"topology.kubernetes.io/zone": "hall-9"})
    assert "topology.kubernetes.io/zone" not in written(one, RACK, KEYS)
    assert registered(one)["topology.kubernetes.io/zone"] == "hall-9"
    keys = NodeLabels(zone="node-restriction.kubernetes.io/hall")
    assert written(machine({"node-restriction.kubernetes.io/hall": "9"}), RACK, keys)[
        "node-restriction.kubernetes.io/hall"
    ] == ("9")


def test_keys_are_the_site_s_and_none_is_no_label() -> None:
    keys = NodeLabels(zone=None, region="example.com/site", tier="example.com/switch.{n}", accelerator_domain=None)
    assert written(machine(), RACK, keys) == {
        "example.com/site": "eu-1",
        "example.com/switch.0": "leaf-7",
        "example.com/switch.1": "spine-1",
    }
    assert written(machine(), RACK, NodeLabels(tier=None, zone=None, region=None)) == {
        "accelerator.topograph.run/domain": "nvl-3"
    }


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"zone": "netboot.dev/zone"}, "must not be under netboot.dev/: those are netboot's own"),
        ({"zone": "Example.com/zone"}, "must be the key of a label: before the / stands the name of a domain"),
        ({"zone": "a/b/c"}, "must be the key of a label: before the / stands the name of a domain"),
        ({"zone": "example.com/"}, "must be the key of a label, like topology.kubernetes.io/zone"),
        ({"tier": "example.com/tier"}, "must have {n} once, where the number of the tier is to stand"),
        ({"zone": "example.com/a", "region": "example.com/a"}, "two of them have the same key"),
        ({"zone": "fabric.topograph.run/tier-3"}, "two of them have the same key"),
    ],
)
def test_keys_that_are_none(said: dict[str, str], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        NodeLabels.model_validate(said)
    assert words in str(caught.value)


def test_when_there_is_anything_to_write() -> None:
    node = NodeView("n", "u", True, "", 1, labels={"a": "1", "b": "2"}, written=("a",))
    assert not differ(node, {"a": "1"})
    assert differ(node, {"a": "2"})
    assert differ(node, {"a": "1", "b": "2"}), "it is there, and nobody would take it off again"
    assert differ(node, {})
    assert not differ(node._replace(written=()), {})

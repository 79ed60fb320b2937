"""Machines of control planes: which those are, and whether one may go out of service now (rule L14). Pure.

A machine is of its cluster's control plane if the inventory, or its Node as the cluster shows it, has LABEL. Where a
cluster cannot be seen, the inventory alone says which they are, and none of them may go.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.budget import BY_ITSELF, fills_a_place
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.values import Machine

LABEL = "node-role.kubernetes.io/control-plane"
"""No kubelet may write it (NodeRestriction).
Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#node-role-kubernetes-io-control-plane"""
LEFT_ALONE = "it is of a control plane, whose machines remedies leave alone"


class ControlNode(Strict):
    """A Node of a control plane. `etcd`: whether the Pod of its etcd is Ready; None: none was found."""

    ready: bool
    etcd: bool | None = None


class ControlPlaneStatus(Strict):
    """The Nodes of a cluster's control plane, by name, whoever boots them. `problem`: why they cannot be told now."""

    at_ms: int
    problem: str = ""
    nodes: Mapping[str, ControlNode] = Field(default_factory=dict)


class ControlPlanes(Protocol):
    """What clusters show of their control planes."""

    def seen(self, cluster: str) -> Mapping[str, ControlNode]:
        """Its Nodes, by name.

        Raises:
            CannotTellError.
        """
        ...


def of_control_planes(machines: Iterable[Machine], clusters: ControlPlanes) -> list[Machine]:
    """Those of these machines that are of one."""
    nodes: dict[str, Collection[str]] = {}
    found = []
    for machine in machines:
        if machine.cluster not in nodes:
            nodes[machine.cluster] = _nodes(clusters, machine.cluster)
        if machine.enabled and (LABEL in machine.node.labels or machine.node_name in nodes[machine.cluster]):
            found.append(machine)
    return found


def names_of(snapshot: Snapshot | None, clusters: ControlPlanes) -> set[str]:
    """Of the machines of a snapshot those that are of one."""
    machines = snapshot.inventory.machines if snapshot is not None else ()
    return {each.name for each in of_control_planes(machines, clusters)}


def _nodes(clusters: ControlPlanes, cluster: str) -> Collection[str]:
    try:
        return clusters.seen(cluster).keys()
    except CannotTellError:
        return ()


def hindrances(
    names: Collection[str],
    machines: Iterable[Machine],
    clusters: ControlPlanes,
    judged: Callable[[Sequence[str]], Mapping[str, Judged]],
    by: Mapping[str, str],
) -> dict[str, str]:
    """Of `names` each that is of a control plane, and why it may not go out of service now; "": it may. `machines`: of
    the whole inventory; `judged(names)`: what was found of these; `by`: by whose word machines are out."""
    found = of_control_planes(machines, clusters)
    wanted = [each for each in found if each.name in names]
    known = judged([each.name for each in found]) if wanted else {}
    out = {each.name: why for each in found if (why := _out(each.name, known, by))}
    return {each.name: _hindrance(each, found, clusters, out) for each in wanted}


def _out(name: str, judged: Mapping[str, Judged], by: Mapping[str, str]) -> str:
    if name in by:
        return f"is out of service ({by[name]})"
    if name not in judged:
        return "was not looked at yet"
    return f"is out of service ({BY_ITSELF})" if fills_a_place(judged[name]) else ""


def _hindrance(machine: Machine, found: Iterable[Machine], clusters: ControlPlanes, out: Mapping[str, str]) -> str:
    others = [each for each in found if each.cluster == machine.cluster and each.name != machine.name]
    for other in others:
        if other.name in out:
            return f"{other.name}, of the same control plane, {out[other.name]}"
    try:
        seen = clusters.seen(machine.cluster)
    except CannotTellError as error:
        return f"how its control plane is cannot be told: {error}"
    if (without := machine.node_name) not in seen:
        return f"its Node {without} is not among those that the cluster shows of its control plane"
    declared = {each.node_name for each in others}
    ready = {name: name in seen and seen[name].ready for name in seen.keys() | declared}
    etcd = {name: each.etcd is True for name, each in seen.items() if each.etcd is not None or name == without}
    stacked = any(each.etcd is not None for each in seen.values())
    return _short("of its control plane's Nodes", ready, without) or (
        _short("of its etcd's Pods", etcd, without) if stacked else ""
    )


def _short(what: str, ready: Mapping[str, bool], without: str) -> str:
    """Why the others would be no majority; "": they are one."""
    there, majority = sum(well for name, well in ready.items() if name != without), len(ready) // 2 + 1
    if there >= majority:
        return ""
    return f"without it {there} {what} would be Ready, and {majority} of {len(ready)} are a majority"

"""The kinds of custom resources `netboot.dev/v1alpha1`, and how `kubectl get` shows them."""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel

from netboot.join.enrolment_documents import EnrolmentSpec, EnrolmentStatus
from netboot.kube.resources import order_rules
from netboot.kube.resources.cel import Schema, rule
from netboot.lifecycle import holds, order_objects, rollout_objects
from netboot.lifecycle.object_status import ObjectStatus
from netboot.lifecycle.order_objects import OrderSpec, OrderStatus
from netboot.lifecycle.rollout_specs import RolloutSpec
from netboot.machines.classes import Class
from netboot.machines.maintenance import Window
from netboot.machines.values import Channel, Machine, Profile, Rack

GROUP, VERSION = "netboot.dev", "v1alpha1"


class Kind(NamedTuple):
    """A kind of object. `columns`: heading → where it is, and its type, as `kubectl get` shows them; `wide`: those that
    it shows with `-o wide` alone; `status`: the model of what is written of it apart, None: nothing is; `selectable`:
    by which an API server finds objects (`--field-selector`); `rules`: of the object, as it was and as it is to be."""

    kind: str
    plural: str
    short: str
    model: type[BaseModel]
    columns: Mapping[str, tuple[str, str]]
    wide: Mapping[str, tuple[str, str]] = {}
    status: type[BaseModel] | None = None
    selectable: tuple[str, ...] = ()
    rules: tuple[Schema, ...] = ()


KINDS: Mapping[str, Kind] = {
    "machine": Kind(
        "Machine",
        "machines",
        "nbm",
        Machine,
        {
            "Phase": (".status.phase", "string"),
            "In Service": ('.status.conditions[?(@.type=="InService")].status', "string"),
            "Reason": (".status.reason", "string"),
            "Image": (".status.image.short", "string"),
            "Profile": (".spec.profile", "string"),
        },
        {
            "Node": (".status.node", "string"),
            "Rack": (".spec.rack", "string"),
            "Class": (".spec.class", "string"),
            "Cluster": (".spec.cluster", "string"),
            "Enabled": (".spec.enabled", "boolean"),
            "Last Boot": (".status.boots[0].started", "date"),
        },
        ObjectStatus,
    ),
    "profile": Kind("Profile", "profiles", "nbp", Profile, {"Channel": (".spec.channel", "string")}),
    "channel": Kind(
        "Channel",
        "channels",
        "nbch",
        Channel,
        {"Image": (".spec.image", "string"), "Description": (".spec.description", "string")},
    ),
    "class": Kind(
        "MachineClass",
        "machineclasses",
        "nbcl",
        Class,
        {
            "Architecture": (".spec.architecture", "string"),
            "Memory GiB": (".spec.memory_gib", "number"),
            "GPUs": (".spec.gpus.count", "integer"),
            "GPU": (".spec.gpus.model", "string"),
        },
    ),
    "rack": Kind(
        "Rack",
        "racks",
        "nbr",
        Rack,
        {"Zone": (".spec.topology.zone", "string"), "Domain": (".spec.topology.accelerator_domain", "string")},
    ),
    "window": Kind(
        "MaintenanceWindow",
        "maintenancewindows",
        "nbmw",
        Window,
        {
            "Start": (".spec.start", "string"),
            "End": (".spec.end", "string"),
            "Time Zone": (".spec.time_zone", "string"),
        },
    ),
}
"""By what an item of the inventory's files is called (`netboot.machines.declared.KINDS`)."""
HOLD = Kind(
    "Hold",
    "holds",
    "nbh",
    holds.Hold,
    {
        "Machine": (".spec.machine", "string"),
        "In Force": ('.status.conditions[?(@.type=="InForce")].status', "string"),
        "By": (".spec.by", "string"),
        "Until": (".spec.until", "string"),
        "Reason": (".spec.reason", "string"),
    },
    {"Why": ('.status.conditions[?(@.type=="InForce")].message', "string")},
    holds.HoldStatus,
)
"""Not declared by files: what people want of one machine."""
ENROLMENT = Kind(
    "Enrolment",
    "enrolments",
    "nbe",
    EnrolmentSpec,
    {
        "Approved": (".spec.ek_sha256", "string"),
        "Proposed": (".status.proposed.ek_sha256", "string"),
        "Since": (".status.proposed.since", "date"),
        "Retired": (".spec.retired", "boolean"),
        "Window": (".spec.window.kind", "string"),
        "Until": (".spec.window.until", "string"),
    },
    {
        "Serial": (".status.proposed.details.serial", "string"),
        "Generation": (".spec.generation", "integer"),
        "Alert": (".status.alerts[0].said", "string"),
    },
    EnrolmentStatus,
    (".spec.ek_sha256", ".spec.retired", ".spec.window.kind", ".status.proposed.ek_sha256"),
    (
        rule(
            "!has(oldSelf.spec.generation) || "
            "(has(self.spec.generation) && self.spec.generation >= oldSelf.spec.generation)",
            "spec.generation never falls: what a Lease of an older one says would bind again",
        ),
    ),
)
"""By its machine's name. Read where it is needed and by nobody who follows the inventory."""
ORDER = Kind(
    "Order",
    "orders",
    "nbo",
    OrderSpec,
    {
        "What": (".spec.what", "string"),
        "State": (".status.state", "string"),
        "By": (".spec.who", "string"),
        "Deadline": (".spec.deadline", "string"),
        "End": (".spec.end.how", "string"),
        "Reason": (".spec.reason", "string"),
    },
    {"Boot": (".spec.boot", "string"), "Why": (".status.message", "string")},
    OrderStatus,
    rules=order_rules.ALL,
)
"""By its machine's name: the last order to drain or reboot it. netboot writes it."""
ROLLOUT = Kind(
    "Rollout",
    "rollouts",
    "nbro",
    RolloutSpec,
    {
        "Image": (".spec.image_name", "string"),
        "Set By": (".spec.who", "string"),
        "Rollout": (".spec.rollout.number", "integer"),
        "State": (".spec.rollout.state", "string"),
        "To": (".spec.rollout.image_name", "string"),
        "Done": (".spec.rollout.done", "integer"),
        "Of": (".spec.rollout.of", "integer"),
        "By": (".spec.rollout.operator", "string"),
    },
    {"Why": (".spec.rollout.why", "string"), "Digest": (".spec.image", "string")},
    rules=(
        rule(
            "!has(self.spec.rollout) || self.spec.rollout.channel == self.metadata.name",
            "spec.rollout.channel is the name of the object: a copy is none",
        ),
    ),
)
"""By its channel's name: where that points, and its last rollout. netboot writes it."""
_ACTS: Mapping[str, Kind] = {holds.KIND: HOLD, order_objects.KIND: ORDER, rollout_objects.KIND: ROLLOUT}
ALL: Mapping[str, Kind] = {**KINDS, **_ACTS}
TIED = frozenset(_ACTS)
"""Of ALL those that are acts, each of one object."""

"""The sections of `netboot.yaml` about several services that look after the same clusters, and about where state is."""

import socket
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError, model_validator

from images.values.strict import Strict
from images.values.types import Matching
from netboot.config_outside import Namespace

ReplicaName = Annotated[
    str,
    Matching(
        r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?",
        "must be a name of letters, digits, '.', '_' and '-', at most 63, as a host's is",
    ),
]


class Replicas(Strict):
    """Each is the whole service on its own disk; of each kind of process that acts in a cluster one leads."""

    name: ReplicaName | None = None
    """Of this one, for people; None: the host's name. No two have the same by this: each start has a number of its
    own beside it."""
    count: Annotated[int, Field(ge=1, le=25)] = 3
    """How many there are, or may be at most: by so many what all of them write to an API server is divided."""
    lease_seconds: Annotated[int, Field(ge=2, le=300)] = 15
    """How long the others wait after the leader's last renewal; the same for all replicas."""
    renew_seconds: Annotated[float, Field(ge=1, le=240)] = 10
    """How long a leader acts after its last renewal."""
    retry_seconds: Annotated[float, Field(ge=0.1, le=60)] = 2
    """Between two renewals, or two looks."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.renew_seconds > 0.8 * self.lease_seconds:
            raise ValueError("renew_seconds must be at most four fifths of lease_seconds, for clocks do not go alike")
        if 2 * self.retry_seconds > self.renew_seconds:
            raise ValueError(
                "retry_seconds must be at most half of renew_seconds: one renewal that fails is not the end"
            )
        return self

    @property
    def called(self) -> str:
        """The name of this replica."""
        return self.name if self.name is not None else socket.gethostname()[:63]


LONGEST_NAMESPACE = 63
"""Characters (RFC 1123)."""


def elections_of(namespace: str) -> str:
    """The namespace of the Leases of elections, beside that of the service's other Leases."""
    return f"{namespace}-leaders"


class InCluster(Strict):
    """State in an API server, for any number of replicas."""

    namespace: Namespace = "netboot"
    """Of all its objects."""
    kubeconfigs: Annotated[str, StringConstraints(min_length=1)] = "secrets"
    """What their paths begin with: the folder of the accounts' files, by the names that `netboot cluster kubeconfigs`
    gives them."""


class StateHome(Strict):
    """What `state` may say but `embedded`."""

    kubernetes: InCluster
    """`{}` will do."""


def _home(value: object) -> object:
    match value:
        case "embedded":
            return None
        case str():
            raise ValueError("must be `embedded`, or `{kubernetes: {}}`")
    return value


State = Annotated[StateHome | None, BeforeValidator(_home)]


def with_state(given: Any) -> Any:
    """A configuration as it was given, with the sections that its `state` stands for: those that it has count as they
    are, key by key. What is wrong with it is for others to say."""
    home = given.get("state") if isinstance(given, dict) else None
    place = home.get("kubernetes") if isinstance(home, dict) else None
    try:
        where = InCluster.model_validate(place)
    except ValidationError:
        return given
    names: Mapping[str, Mapping[str, str]] = {
        "inventory_kubernetes": {"kubeconfig": "inventory", "shipper": "shipper", "orders": "orders"},
        "enrolments_kubernetes": {"join": "enrolments-join", "reader": "enrolments-reader"},
        "keys_kubernetes": {"kubeconfig": "keys"},
    }
    sections: dict[str, dict[str, Any]] = {"replicas": {}}
    for section, files in names.items():
        paths = {key: f"{where.kubeconfigs}/{name}.kubeconfig" for key, name in files.items()}
        sections[section] = {"namespace": where.namespace, **paths}
    sections["inventory_kubernetes"]["holds"] = True
    own = {name: given[name] for name in sections if isinstance(given.get(name), dict)}
    return {**sections, **given, **{name: {**sections[name], **section} for name, section in own.items()}}

"""What the operator declares: machines, profiles, channels, classes; validated, frozen, normalised."""

import ipaddress
from operator import not_
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from images.values.kernel_arguments import ProfileArgument
from images.values.strict import Strict
from images.values.types import Architecture, Matching, Name, Sha256
from netboot.addresses import MachineUrl
from netboot.machines.boot_limit import BootLimit, Boots, limit_in_force
from netboot.machines.classes import Class
from netboot.machines.deadlines import Deadline, Deadlines, in_force
from netboot.machines.health import Health
from netboot.machines.identity import parse_mac, parse_serial, parse_uuid
from netboot.machines.maintenance import Window
from netboot.machines.strategy import Strategy
from netboot.machines.topology import NOWHERE, Topology

AssuranceLevel = Literal["tpm", "nonce", "address"]
"""How a machine proves itself, the strongest first: a TPM's quote, the nonce of a boot window, its address alone."""
Mac = Annotated[str, BeforeValidator(parse_mac)]
"""Lower-case with colons, however it was spelt."""
Uuid = Annotated[str, BeforeValidator(parse_uuid)]
Serial = Annotated[str, BeforeValidator(parse_serial)]


def _ip_address(value: str) -> str:
    return str(ipaddress.ip_address(value))


IpAddress = Annotated[str, AfterValidator(_ip_address)]
"""IPv4 or IPv6, in its usual spelling."""


HIGHEST = 100
"""Units of a rack: as many as NetBox lets one have."""


class Match(Strict):
    """How a machine is recognised. Any one of them suffices; two machines may not share any."""

    macs: tuple[Mac, ...] = ()
    """Addresses of its network cards, in whatever spelling."""
    uuid: Uuid | None = None
    """As its firmware says it (SMBIOS)."""
    serial: Serial | None = None
    """Likewise, of its case or board."""
    ek_sha256: Sha256 | None = None
    """Hex SHA-256 of the DER SubjectPublicKeyInfo of its TPM's endorsement key: pins it as if it had been approved."""

    @model_validator(mode="after")
    def _recognisable(self) -> Self:
        if not self.macs and self.uuid is None and self.serial is None:
            raise ValueError("needs at least one of macs, uuid and serial: nothing could be recognised by this")
        return self


Label = Annotated[
    str,
    Matching(
        r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?",
        "is no key of a label: a name of letters, digits and -_., behind a domain and / where it is yours",
    ),
]
LabelValue = Annotated[
    str,
    Matching(
        r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?",
        "is no value of a label: at most 63 letters, digits and -_., beginning and ending with a letter or digit",
    ),
]
Taint = Annotated[
    str,
    Matching(
        r"[A-Za-z0-9][A-Za-z0-9._/-]{0,251}(=[A-Za-z0-9._-]{0,63})?:(NoSchedule|PreferNoSchedule|NoExecute)",
        "must be a taint like gpu=true:NoSchedule or gpu:NoSchedule; also PreferNoSchedule, NoExecute",
    ),
]
"""`key=value:Effect` or `key:Effect`, as kubectl writes it."""
UNCHECKED, UNATTESTED = "netboot.dev/unchecked", "netboot.dev/unattested"
"""Keys of the taints that join adds: to each node, and to one that proved itself by less than a TPM."""
OURS = "netboot.dev/"
"""What keys of labels, taints, annotations and conditions of Nodes begin with that are netboot's own."""
HELD = "netboot.dev/held"
"""Key of the taint of a Node whose machine is kept from work."""
NodeName = Annotated[
    str,
    Matching(
        r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?",
        "must be lower-case letters, digits, '-' and '.', at most 253, beginning and ending with a letter or digit",
    ),
]
PcrIndex = Annotated[str, Matching(r"[0-9]|1[0-9]|2[0-3]", "must be the number of a PCR, 0 to 23, or none")]


def _policy(value: object) -> object:
    return {} if value in ("none", {"none": []}) else value


PcrPolicy = Annotated[dict[PcrIndex, tuple[Sha256, ...]], BeforeValidator(_policy)]
"""SHA-256 PCRs and the values that are allowed in each; `none`, which is empty: whatever was measured will do. Objects
of Kubernetes, whose keys have one type each, say `{none: []}`."""


class Node(Strict):
    """What Kubernetes is to see of a machine. `name` None: the machine's own."""

    name: NodeName | None = None
    """Left out: the machine's own."""
    labels: dict[Label, LabelValue] = Field(default_factory=dict)
    """With which its Node is labelled. `node-role.kubernetes.io/control-plane` with an empty value: it is of a control
    plane."""
    taints: tuple[Taint, ...] = ()
    """With which its Node registers, besides those that join adds."""
    addresses: tuple[IpAddress, ...] = ()
    """Addresses that its serving certificate may name; the levels `address` and `nonce` also ask for one of them."""


class Machine(Strict):
    """A machine as the inventory declares it: how it is recognised, what it boots, where it joins."""

    model_config = ConfigDict(serialize_by_alias=True)
    name: Name
    """Its host name, too."""
    former_names: Annotated[tuple[Name, ...], Field(max_length=16)] = Field((), exclude_if=not_)
    """That it had before, the latest first: what is known by those is its own. Not written where there are none, as
    `class_name`."""
    cluster: Name = "default"
    """To which of the clusters of the configuration it belongs."""
    match: Match
    profile: Name
    """A declared profile, which says what it boots."""
    class_name: Name | None = Field(None, alias="class", exclude_if=not_)
    """The class whose hardware it has. Not written where there is none: versions before classes read that."""
    rack: Name | None = Field(None, exclude_if=not_)
    """A declared rack, whose origins it tries first. Not written where there is none, as `class_name`."""
    position: Annotated[int, Field(ge=1, le=HIGHEST, strict=True)] | None = Field(None, exclude_if=not_)
    """The unit of its rack in which it is, the lowest of several, counted from the floor. Not written where it is not
    said, as `class_name`."""
    topology: Topology | None = Field(None, exclude_if=not_)
    """Where it stands, over what its rack says. Not written where there is none, as `class_name`."""
    architecture: Architecture = "amd64"
    """Left out: its class's."""
    enabled: bool = True
    """False: the machine is told, on its console, that it may not boot."""
    node: Node = Node()
    identity: AssuranceLevel = "tpm"
    """The lowest assurance on which it may prove itself. One with a TPM on record never falls below `tpm`."""
    pcrs: PcrPolicy = Field(default_factory=dict)
    """Left out: its profile's. Where machines join, one of the two says it, if only `none`."""
    health: Health = Health()
    """What it should have, where that is not what its profile says."""

    @property
    def node_name(self) -> str:
        """The name under which it joins."""
        return self.node.name or self.name


class Profile(Strict):
    """How a kind of machine boots: the channel that names its image, and arguments of its kernel."""

    name: Name
    """By which machines name it."""
    channel: Name
    """A declared channel, which says which image its machines boot."""
    kernel_arguments: Annotated[tuple[ProfileArgument, ...], Field(max_length=32)] = ()
    """After the image's own, and in the place of those of the same names."""
    health: Health = Health()
    """What its machines should have."""
    pcrs: PcrPolicy | None = None
    """Of those of its machines that say nothing of their own."""
    deadlines: Deadlines = Field(default_factory=dict, exclude_if=not_)
    """How long boots of its machines may stay at a phase, over what their class says. Not written where none is."""
    boot_limit: Boots | None = Field(None, exclude_if=lambda said: said is None)
    """How many boots may come before one is Ready, over what their class says. Not written where none is."""


class Channel(Strict):
    """A name that points to an image. With `image` it is pinned here; without, `netboot channel set` moves it."""

    name: Name
    """By which profiles name it."""
    description: str = ""
    """For people."""
    image: Sha256 | None = None
    """The image's digest, to which it is pinned. Left out: `netboot channel set` moves it."""
    strategy: Strategy | None = Field(None, exclude_if=lambda strategy: strategy is None)
    """How its rollouts go where an operator does not say otherwise. Not written where there is none."""


class Rack(Strict):
    """What machines of one rack have in common: where they stand; file servers and caches near them, tried before the
    site's."""

    name: Name
    """By which machines name it."""
    origins: Annotated[tuple[MachineUrl, ...], Field(max_length=8)] = ()
    """File servers and caches, plain HTTP, tried in this order."""
    topology: Topology = Field(NOWHERE, exclude_if=lambda topology: topology == NOWHERE)
    """Not written where nothing is said: versions before it read that."""


class Inventory(Strict):
    """All that is declared, from all files together; cross-references have been checked."""

    machines: tuple[Machine, ...] = ()
    profiles: tuple[Profile, ...] = ()
    channels: tuple[Channel, ...] = ()
    classes: tuple[Class, ...] = Field((), exclude_if=lambda classes: not classes)
    """Not written where there are none, as `Machine.class_name`."""
    racks: tuple[Rack, ...] = Field((), exclude_if=lambda racks: not racks)
    """Not written where there are none, as `Machine.class_name`."""
    maintenance: tuple[Window, ...] = Field((), exclude_if=lambda windows: not windows)
    """When what acts by itself may begin something. Not written where there are none."""


def deadlines_of(profile: Profile, hardware: Class | None) -> dict[str, Deadline]:
    """How long a boot may stay at each phase: by default, over that by its class, over that by its profile."""
    by_class = (f"class {hardware.name}", hardware.deadlines) if hardware is not None else ("", {})
    return in_force(by_class, (f"profile {profile.name}", profile.deadlines))


def boot_limit_of(profile: Profile, hardware: Class | None) -> BootLimit:
    """How many boots its machine may begin before one is Ready."""
    by_class = (f"class {hardware.name}", hardware.boot_limit) if hardware is not None else ("", None)
    return limit_in_force(by_class, (f"profile {profile.name}", profile.boot_limit))


def weaker(level: AssuranceLevel, than: AssuranceLevel) -> bool:
    """Whether `level` proves less than `than`: the one order of assurance levels."""
    strongest_first = get_args(AssuranceLevel)
    return strongest_first.index(level) > strongest_first.index(than)

"""What the API is sent and answers, as JSON has it. Made from the API's document by `make client`: alter
nothing here."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

ConditionType = Literal["Booted", "Joined", "Healthy", "InService", "UpToDate", "Reachable"]
"""What is judged of a machine; True is good. In the order in which they are shown."""

Detail = dict[str, Any]


Exemption = Literal["Accepted"]
"""What is let pass of a machine. None of these is a mark: they keep it from nothing."""

MachineStatus = Literal["late", "ill", "held", "coming", "in-service", "off", "unknown"]
"""In the order in which they want to be seen."""

Mark = Literal["Retired", "Quarantined", "Held", "Draining"]
"""What is on a machine, whatever boots; the gravest first."""

MemberState = Literal["waiting", "assigned", "out", "done", "failed", "skipped", "kept", "left"]
"""Where a machine is on its way to the image that the rollout is bringing it to."""

Phase = Literal[
    "ScriptServed",
    "KernelFetched",
    "InitrdFetched",
    "InitrdStarted",
    "ImageFetched",
    "ImageVerified",
    "Switched",
    "Booted",
    "Joining",
    "Attested",
    "TokenIssued",
    "CSRApproved",
    "NodeRegistered",
    "Ready",
    "Failed",
]
"""Phases in the order in which a boot goes through them; FAILED may come from anywhere."""

Reason = Literal[
    "Booted",
    "Joined",
    "InService",
    "UpToDate",
    "Booting",
    "Joining",
    "Stuck",
    "BootLoop",
    "Failed",
    "Lost",
    "NeverBooted",
    "Disabled",
    "NoCluster",
    "ChecksPassed",
    "ChecksWarn",
    "ChecksFailed",
    "ChecksUnknown",
    "NoReport",
    "ReportStale",
    "HealthGated",
    "Cordoned",
    "NotJoined",
    "NodeReady",
    "NodeNotReady",
    "NodeNotSeen",
    "Retired",
    "Quarantined",
    "Held",
    "Draining",
    "OtherImage",
    "ImageUnknown",
    "NoImage",
    "HeardFrom",
    "Silent",
]
"""In CamelCase, as Kubernetes has them; the same word means the same in every condition."""

Role = Literal["viewer", "operator", "admin"]
"""`viewer` looks; `operator` acts on machines and images; `admin` decides who may join, and what is in
force."""

RolloutState = Literal["running", "paused", "complete", "undone", "cancelled"]
"""RUNNING and PAUSED ones are under way; the others have ended for good."""

Source = Literal["served", "reported", "observed"]
"""How we know. What we handed out, what the machine told us and what we saw are different facts and never
mixed."""


class Accept(TypedDict):
    """The body of a POST. `digest`: of the inventory that was shown."""

    digest: str
    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class Accepted(TypedDict):
    """`removed`: how many machines of `of` are; `others`: how many are recognised by something else, or let in
    by another proof; `dry_run`: as it would be."""

    accepted: str
    dry_run: bool
    removed: int
    others: int
    of: int


class Accepting(TypedDict):
    """The body of `accept`, which has an end."""

    reason: str
    seconds: NotRequired[int | None]
    until: NotRequired[str | None]
    dry_run: NotRequired[bool]


class Active(TypedDict):
    """For the tests that load a machine before it takes work, where its profile asks for them: docs/health.md."""

    skip: NotRequired[list[str]]
    floors: NotRequired[dict[str, Any]]


class Alert(TypedDict):
    """What may be an attack on a machine, all of one kind together: when first and last, how often, the latest
    words. `kind`: an AlertKind; `earlier` for those of an older version."""

    machine: str
    kind: str
    first_at: str
    last_at: str
    count: int
    said: str


class Approval(TypedDict):
    """The body of `approve`: what the operator was shown."""

    reason: NotRequired[str]
    ek_sha256: str | None
    revision: NotRequired[int | None]
    dry_run: NotRequired[bool]


class Artifact(TypedDict):
    """One blob of an image: its digest and size in bytes; the root image also has the digest of each chunk."""

    sha256: str
    size: int
    chunks: NotRequired[list[str]]


Audit = TypedDict("Audit", {"continue": "str | None", "audit": "list[RecordShown]"})
"""The newest first."""


class Boot(TypedDict):
    """The machine is known and may boot this image."""

    outcome: NotRequired[Literal["boot"]]
    machine: Machine
    profile: Profile
    channel: str
    image: ImageFacts
    kernel_arguments: list[str]
    origins: list[list[str]]
    because: list[str]


class BootShown(TypedDict):
    """One boot whole. `console`: null: it sent none. `in_service_at`: when it was first seen in service; null
    where it was not, or that cannot be read. `goes_on`: what follows `spans` and has no end yet; null where
    the boot is over or another one counts, or that cannot be told."""

    boot: str
    machine: str
    script: Script | None
    reached: list[Reached]
    failures: list[Failure]
    certificates: list[Certificate]
    found_crashes: int
    console_at: str | None
    claim: bool
    standing: str
    state: Phase
    reason: str
    started_at: str
    last_at: str
    last_served: Phase | None
    last_reported: Phase | None
    last_observed: Phase | None
    kernel_at: str | None
    seconds_to_ready: float | None
    crashes: list[CrashShown]
    console: ConsoleShown | None
    checked: CheckedReport | None
    in_service_at: str | None
    spans: list[SpanShown]
    goes_on: GoesOnShown | None


Boots = TypedDict("Boots", {"continue": "str | None", "boots": "list[TraceShown]"})
"""The newest first."""


class Card(TypedDict):
    """A network card's port. `pci`: "" where it is on another bus; `speed_mbps`: 0 without a link."""

    name: str
    mac: str
    pci: str
    driver: str
    speed_mbps: int
    link: bool
    neighbour: NotRequired[Neighbour | None]


class CaseShown(TypedDict):
    """`machines`: how many are late or ill for the same cause, `racks`: in how many racks, none being one of
    them; `first`: the one that wants to be seen first."""

    cause: str
    machines: int
    racks: int
    first: MachineEntry


class Certificate(TypedDict):
    """A client certificate of the boot: `at` when the approver saw it, by our clock; `until`: when it ends."""

    at: str
    sha256: str
    until: str


class Certified(TypedDict):
    """What is known of an EK's certificate. `verdict`: `absent` where the machine sent none, `unchecked` where
    the site names no roots."""

    verdict: Literal["good", "bad", "absent", "unchecked"]
    words: str
    subject: NotRequired[str]
    issuer: NotRequired[str]
    tpm: NotRequired[str]


class Channel(TypedDict):
    """A name that points to an image. With `image` it is pinned here; without, `netboot channel set` moves it."""

    name: str
    description: NotRequired[str]
    image: NotRequired[str | None]
    strategy: NotRequired[Strategy | None]


class ChannelState(TypedDict):
    """Where a channel points. `image`: what is set; `in_force`: what machines get; `unusable`: why not the
    former."""

    name: str
    description: NotRequired[str]
    pinned: NotRequired[bool]
    image: NotRequired[str | None]
    image_name: NotRequired[str | None]
    in_force: NotRequired[str | None]
    unusable: NotRequired[str | None]
    machines: NotRequired[int]
    source: NotRequired[Literal["inventory", "store"]]


Channels = TypedDict("Channels", {"continue": "str | None", "channels": "list[ChannelState]"})
"""In the order of the inventory."""


class CheckResult(TypedDict):
    """What one check found."""

    name: str
    status: Literal["pass", "warn", "fail", "unknown", "absent"]
    severity: Literal["critical", "major", "minor"]
    summary: NotRequired[str]
    remedy: NotRequired[str]
    ms: NotRequired[int]
    facts: NotRequired[dict[str, Any]]


class CheckedBrief(TypedDict):
    """How the checks turned out. `stale`: that is too old to tell anything of now."""

    status: Literal["pass", "warn", "fail", "unknown"]
    at: str
    stale: bool


class CheckedReport(TypedDict):
    """The latest health report of a boot. `stale`: it is too old to tell anything of now."""

    boot: str
    at: str
    source: str
    peer: str
    status: Literal["pass", "warn", "fail", "unknown"]
    stale: bool
    report: HealthReport


class Claim(TypedDict):
    """What somebody on the wire says of itself, after the allow-list: hints, never identity. `ignored` says,
    field by field, what was left out and why (a placeholder serial, a malformed UUID)."""

    mac: NotRequired[str | None]
    uuid: NotRequired[str | None]
    serial: NotRequired[str | None]
    architecture: NotRequired[Literal["amd64", "arm64"] | None]
    platform: NotRequired[Literal["pcbios", "efi"] | None]
    ignored: NotRequired[list[str]]


class ClaimExplained(TypedDict):
    """`claim`: as it was read."""

    claim: Claim
    decision: Boot | Unknown | Refused | Unavailable


class Claims(TypedDict):
    """Scripts that were served in a machine's name, to whomever: how many in all, and when last. `waited`: the
    last time that there was none to serve; None: never."""

    served: NotRequired[int]
    last_at: NotRequired[str | None]
    waited: NotRequired[Waited | None]


class Class(TypedDict):
    """Hardware that many machines have. What is left out is not known, and judged by nobody."""

    name: str
    architecture: NotRequired[Literal["amd64", "arm64"]]
    memory_gib: NotRequired[float | None]
    gpus: NotRequired[Gpus | None]
    nics: NotRequired[list[Nics]]
    disks: NotRequired[list[Disks]]
    firmware: NotRequired[dict[str, Any]]
    origins: NotRequired[list[str]]
    kernel_arguments: NotRequired[list[str]]
    active: NotRequired[Active | None]
    thresholds: NotRequired[dict[str, Any]]
    skip_checks: NotRequired[list[str]]
    deadlines: NotRequired[dict[str, int]]
    gate: NotRequired[Gate]
    boot_limit: NotRequired[int | None]
    vetoes: NotRequired[Vetoes | None]
    remedies: NotRequired[RemediesSent]


class Compared(TypedDict):
    """What is declared against what is in force. `state`: `in-force`, `waits` (to be accepted), or `new`: the
    publisher has yet to read it. `others`: machines that would be recognised by something else, or let in
    by another proof; `again`: those of them that went within the last hour; `untold`: which did cannot be
    told, and who is new may be one of them, so is among `others`."""

    digest: str
    state: Literal["in-force", "waits", "new"]
    machines_in_force: int
    machines_then: int
    others: list[str]
    again: list[str]
    untold: bool
    machines: DifferenceDifference
    profiles: DifferenceDifference
    channels: DifferenceDifference
    classes: DifferenceDifference
    racks: DifferenceDifference
    maintenance: DifferenceDifference


class ConditionShown(TypedDict):
    """As Kubernetes has conditions, by the names that it gives these fields. `said`: the machine's own words
    in `message`, as it said them; left out where there are none."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: Reason
    message: str
    said: NotRequired[str]
    lastTransitionTime: str


class ConsoleShown(TypedDict):
    """The last lines of the console that a boot sent, its own word. `uptime_ms`: since its kernel started;
    `text`: null where it cannot be read, or is longer ago than is kept."""

    at: str
    uptime_ms: int
    peer: str
    text: str | None


class ControlPlaneMachines(TypedDict):
    """Machines of a control plane: those that go, and those that are kept as they are."""

    named: list[str]
    kept: list[str]


class Cpu(TypedDict):
    """Processors, as the kernel counts them: threads."""

    model: str
    count: int


class CrashShown(TypedDict):
    """A crash. `boot`: the one that crashed, null where that cannot be told; `text`: the end of its log, null
    where it cannot be read (any more)."""

    at: str
    crashed_at: str
    peer: str
    text: str | None
    boot: str | None
    found_by: str


class Decided(TypedDict):
    """`digest`: of its inputs, as records have it; `inputs`: what it was made of → SHA-256 of that."""

    digest: str
    machine: str
    profile: str
    channel: str
    image: str
    image_name: str
    kernel_arguments: list[str]
    origins: list[list[str]]
    because: list[str]
    inputs: dict[str, str]


class DeclaredActed(TypedDict):
    """`did`: empty where it was so already; `declared`: null where it is not (any more); `dry_run`: as it
    would be."""

    name: str
    did: Literal["created", "replaced", "removed", "renamed", ""]
    dry_run: bool
    file: str
    declared: dict[str, Any] | None


class DeclaredBy(TypedDict):
    """The object of Kubernetes that wants it. `of`: of which namespace and definition it is, by their uids;
    `uid`: its own; `machine`: the one that it names, whatever that is called now."""

    of: str
    uid: str
    machine: str


DeclaredItems = TypedDict(
    "DeclaredItems", {"continue": "str | None", "items": "list[DeclaredListed]", "problems": "list[str]"}
)
"""In the order of the files. `problems`: files that cannot be read, whose items are not in there."""


class DeclaredListed(TypedDict):
    """An item as its file has it, from `line` on."""

    name: str
    file: str
    line: int
    declared: dict[str, Any]


DeclaredMachines = TypedDict(
    "DeclaredMachines", {"continue": "str | None", "machines": "list[DeclaredListed]", "problems": "list[str]"}
)
"""In the order of the files. `problems`: files that cannot be read, whose machines are not in there."""


class DeclaredMany(TypedDict):
    """`machines`: their names, in the order in which they were sent; `dry_run`: as it would be."""

    dry_run: bool
    file: str
    machines: list[str]


class DeclaredShown(TypedDict):
    """`read_only`: why the API does not write it, empty: it does."""

    name: str
    file: str
    line: int
    declared: dict[str, Any]
    read_only: str


class Declaring(TypedDict):
    """The body of PUT: the machine as a file of the inventory has it."""

    declared: dict[str, Any]
    reason: NotRequired[str]
    dry_run: NotRequired[bool]


DeclaringFound = TypedDict(
    "DeclaringFound",
    {
        "name": "str",
        "profile": "str",
        "class": "NotRequired[str | None]",
        "rack": "NotRequired[str | None]",
        "seen": "NotRequired[str]",
        "reason": "NotRequired[str]",
        "dry_run": "NotRequired[bool]",
    },
)
"""The body of `declare`: what it is to be called and to boot. How it is recognised is what was seen of it."""


class DeclaringItem(TypedDict):
    """The body of PUT: the item as a file of the inventory has it."""

    declared: Profile | Channel | Class | RackSent | MaintenanceWindow
    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class DeclaringMany(TypedDict):
    """The body of `POST`: machines that nobody declares yet."""

    machines: list[MachineSent]
    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class Deleted(TypedDict):
    """`did`: empty where there is no Node; `held`: it was cordoned, and the machine is held for that."""

    machine: str
    node: str
    did: Literal["deleted", ""]
    held: bool
    dry_run: bool


class Deleting(TypedDict):
    """The body."""

    reason: str
    dry_run: NotRequired[bool]


class Details(TypedDict):
    """What the machine said of itself when it showed its EK: for the operator who approves, never identity."""

    ek_certificate: NotRequired[str | None]
    ek_public: NotRequired[str | None]
    uuid: NotRequired[str | None]
    serial: NotRequired[str | None]
    macs: NotRequired[list[str]]
    peer: NotRequired[str]
    said: NotRequired[str]


class DifferenceDifference(TypedDict):
    """Of one kind. `changed`: name → key → value before and after, as JSON has them."""

    added: list[str]
    changed: dict[str, dict[str, list[Any]]]
    removed: list[str]


DiscoveredMachines = TypedDict("DiscoveredMachines", {"continue": "str | None", "discovered": "list[Sighting]"})
"""The latest seen first."""


class Disk(TypedDict):
    """A disk. `path`: its name in /dev/disk/by-path."""

    name: str
    model: str
    size_bytes: int
    path: str


class Disks(TypedDict):
    """Disks of one kind."""

    count: int
    size_gb: NotRequired[float | None]
    model: NotRequired[str | None]


class DrainActed(TypedDict):
    """`did`: empty where it is so already; `out`: null where that cannot be told; `control_plane`: why a
    machine of one may not go now, empty where it may, null where it is of none."""

    machine: str
    act: str
    did: Literal["ordered", "replaced", "taken-off", ""]
    dry_run: bool
    out: Out | None
    control_plane: str | None
    drain: DrainShown | None


class DrainShown(TypedDict):
    """With how far it is: null where that is not known, or it has ended."""

    id: str
    machine: str
    what: Literal["drain", "reboot"]
    boot: str
    who: str
    reason: str
    since: str
    deadline: str
    bare: NotRequired[bool]
    local: NotRequired[bool]
    owner: NotRequired[str]
    end: NotRequired[Literal["taken-off", "replaced", "undone", "rebooted", "withdrawn"] | None]
    ended_at: NotRequired[str | None]
    words: NotRequired[str]
    state: State | None


Drains = TypedDict("Drains", {"continue": "str | None", "drains": "list[DrainShown]", "problems": "list[str]"})
"""What stands, by machine; `problems`: what keeps it from being carried out."""


class DrainsOf(TypedDict):
    """Of one machine: what stands and what ended, the latest first."""

    machine: str
    drains: list[DrainShown]


class DrainsOrdering(TypedDict):
    """The body of `drain` and `reboot`. `seconds`: by when it has to be drained, from now."""

    reason: str
    seconds: NotRequired[int]
    bare: NotRequired[bool]
    local: NotRequired[bool]
    dry_run: NotRequired[bool]


class Drift(TypedDict):
    """One thing in which a machine is not as it is declared. `since`: since when it is known to be another, or
    when the boot began that is so."""

    machine: str
    what: Literal["image", "arguments", "profile", "class"]
    runs: str
    wanted: str
    why: str
    boot: str
    since: str


Drifts = TypedDict(
    "Drifts",
    {
        "continue": "str | None",
        "machines": "int",
        "drift": "list[Drift]",
        "untold": "list[str]",
        "unknown": "list[str]",
    },
)
"""`machines`: how many were looked at; `untold`: of these what their boot was served is not known;
`unknown`: those that may boot and of which no boot is known. These names are in each page, whole."""


class EnrolmentActed(TypedDict):
    """After an order. `did`: false where it was so already; `dry_run`: as it would be; `no_window`: why
    `replace` opens none, with what to do about it."""

    enrolment: EnrolmentView
    match: Match | None
    identity: Literal["tpm", "nonce", "address"] | None
    pcr_policy: str
    history: list[EnrolmentEntry]
    did: bool
    dry_run: bool
    no_window: NotRequired[str]


class EnrolmentEntry(TypedDict):
    """One line of the history."""

    id: NotRequired[int]
    at: str
    machine: str
    act: str
    operator: NotRequired[str]
    reason: NotRequired[str]
    ek_sha256: NotRequired[str | None]
    said: NotRequired[str]


class EnrolmentShown(TypedDict):
    """One machine's. `match`, `identity`: as the inventory has them; null where it is not in there."""

    enrolment: EnrolmentView
    match: Match | None
    identity: Literal["tpm", "nonce", "address"] | None
    pcr_policy: str
    history: list[EnrolmentEntry]


class EnrolmentView(TypedDict):
    """All about a machine's enrolment, for operators."""

    machine: str
    ek_sha256: str | None
    state: str
    retired_from: str
    source: str
    generation: int
    revision: int
    since: str | None
    window: Literal["enrol", "boot"] | None
    window_id: str
    window_until: str | None
    conflict: NotRequired[str]
    details: NotRequired[Details]
    certificate: NotRequired[Certified | None]


Enrolments = TypedDict("Enrolments", {"continue": "str | None", "enrolments": "list[EnrolmentView]"})
"""By machine."""


class EnrolmentsWindow(TypedDict):
    """The body of `enroll`."""

    reason: NotRequired[str]
    window_seconds: NotRequired[int]
    dry_run: NotRequired[bool]


class Event(TypedDict):
    """`what` of that `kind`: `phase`, `crash`, `condition`, `enrolment`, `alert`; `gap`: something may be
    missing before this. A phase or crash has `boot` and, where its machine said it, `uptime_ms`; a
    condition `status` and `reason`; an alert `count`."""

    at: str
    kind: str
    what: str
    said_by: str
    detail: str
    boot: NotRequired[str]
    uptime_ms: NotRequired[int | None]
    status: NotRequired[str]
    reason: NotRequired[str]
    count: NotRequired[int]


Events = TypedDict(
    "Events", {"continue": "str | None", "events": "list[Event]", "since": "str", "problems": "list[str]"}
)
"""The latest, in order; `continue`: for those before them. `since`: from where to watch without a gap;
`problems`: what cannot be read now, so that it is not in there."""


class Explained(TypedDict):
    """What a machine gets, and how far its boot is."""

    pcr_policy: str
    alerts: list[Alert]
    enrolment: EnrolmentView | None
    enrolment_problem: str | None
    decision: Boot | Unknown | Refused | Unavailable
    remedies: RemediesOf | None
    hardware: NotRequired[dict[str, Any] | None]
    current: TraceShown | None
    pending: TraceShown | None
    checked: CheckedReport | None


class ExplainedInPart(TypedDict):
    """What a machine gets, where its boots cannot be told."""

    pcr_policy: str
    alerts: list[Alert]
    enrolment: EnrolmentView | None
    enrolment_problem: str | None
    decision: Boot | Unknown | Refused | Unavailable
    remedies: RemediesOf | None
    hardware: NotRequired[dict[str, Any] | None]


class FactShown(TypedDict):
    """A phase that was reached: when, and what was said of it."""

    at: str
    detail: str
    peer: str


class Failure(TypedDict):
    """The machine said that something failed; it goes on trying."""

    at: str
    uptime_ms: NotRequired[int | None]
    detail: NotRequired[str]
    peer: NotRequired[str]


class Firmware(TypedDict):
    """What SMBIOS says of the machine."""

    vendor: str
    product: str
    serial: str
    uuid: str
    bios: str


class Fleet(TypedDict):
    """How many machines are how, have which reason of which condition, are at which phase. `first`: late and
    ill ones; `cases`: all of these by their causes, no machine in two, the twenty that want to be seen
    first; `rollouts`: those under way, null where that cannot be told; `problem`: why this may not be so
    any more, empty while machines are looked at."""

    at: str
    machines: int
    statuses: dict[str, int]
    reasons: dict[str, dict[str, int]]
    steps: dict[str, int]
    images: list[ImageRun]
    racks: list[Rack]
    first: list[MachineEntry]
    cases: list[CaseShown]
    rollouts: list[RolloutStatus] | None
    problem: str


FleetMachines = TypedDict(
    "FleetMachines",
    {
        "continue": "str | None",
        "at": "str",
        "machines": "list[MachineEntry]",
        "of": "int",
        "offset": "int",
        "problem": "str",
    },
)
"""A page of those that fit, from `offset` on, by their number: their order is another one a moment later;
`of`: how many fit; `problem`: as the fleet has it."""


class Freeze(TypedDict):
    """Nothing that acts by itself begins anything. `until` None: until somebody ends it."""

    who: str
    reason: str
    since: str
    until: NotRequired[str | None]


class FreezeShown(TypedDict):
    """`did`: of an act, `put-on`, `extended` or `taken-off`, empty where it was so already; `concerned`: the
    freeze that this is about; `signal`: null where nobody is asked."""

    did: str
    dry_run: bool
    concerned: Freeze | None
    may_act: MayAct
    signal: SignalShown | None
    windows: list[WindowShown]


class Gate(TypedDict):
    """When nodes of a class may take work: docs/gate.md."""

    required: NotRequired[list[str]]
    on_failure: NotRequired[Literal["taint", "report"]]


class GateShown(TypedDict):
    """When the boot was first in service; and how the gate is now, where it is its machine's current one."""

    in_service_at: str | None
    now: ConditionShown | None


class GoesOnShown(TypedDict):
    """What a boot is in now. `deadline`: when it is late, unless deadlines stood still meanwhile; null: never.
    `late`: it is; `now_at`: this moment."""

    step: str
    begin_at: str
    deadline: str | None
    late: bool
    now_at: str


class Gpu(TypedDict):
    """A display or 3D controller; `id`: vendor and device, as `10de:2330`."""

    pci: str
    id: str


class Gpus(TypedDict):
    """All GPUs of a machine."""

    count: int
    model: NotRequired[str | None]


class HardwareReport(TypedDict):
    """The body that a machine posts to `/v1/boots/<id>/discovery`. `mac`: of the card that it booted from."""

    schema: Literal[1]
    mac: str
    cpu: Cpu
    memory_bytes: int
    cards: list[Card]
    disks: list[Disk]
    gpus: list[Gpu]
    tpm: Tpm | None
    firmware: Firmware


class Health(TypedDict):
    """Expectations; what is left out (None, empty) is not judged. docs/health.md says which check uses which."""

    gpus: NotRequired[int | None]
    gpu_model: NotRequired[str | None]
    nvlinks: NotRequired[int | None]
    nvswitches: NotRequired[int | None]
    ib_ports: NotRequired[int | None]
    ib_rate_gbps: NotRequired[float | None]
    roce_ports: NotRequired[int | None]
    nic_firmware: NotRequired[dict[str, Any]]
    nvme: NotRequired[int | None]
    memory_gib: NotRequired[float | None]
    cpus: NotRequired[int | None]
    pcie_width: NotRequired[int | None]
    pcie_gts: NotRequired[float | None]
    hugepages_2m: NotRequired[int | None]
    hugepages_1g: NotRequired[int | None]
    ports: NotRequired[list[str]]
    thresholds: NotRequired[dict[str, Any]]
    clock_ms: NotRequired[int | None]


class HealthReport(TypedDict):
    """The body that a machine posts to `/v1/boots/<id>/health`."""

    schema: Literal[1]
    machine: NotRequired[str | None]
    mac: NotRequired[str | None]
    taken_at: str
    uptime_ms: NotRequired[int]
    expected: NotRequired[list[str]]
    checks: list[CheckResult]


class Healthy(TypedDict):
    """That it answers at all."""

    healthy: Literal[True]


class ImageFacts(TypedDict):
    """What the boot server must know of an image. Only images whose signature was verified get here."""

    digest: str
    name: str
    architecture: Literal["amd64", "arm64"]
    epoch: int
    kernel: Artifact
    initrd: Artifact
    kernel_arguments: NotRequired[list[str]]
    ram_mib: int


class ImageListed(TypedDict):
    """One of the store. `added_at`: when it came there; nothing about it has been verified."""

    image: str
    name: str
    added_at: str
    revoked: bool


class ImageRun(TypedDict):
    """How many run an image. `name`: null where it is not known here."""

    image: str
    name: str | None
    machines: int


class ImageShown(TypedDict):
    """An image. `created_at`: of its newest source; `ram_mib`: the least memory of a machine that boots it;
    `bytes`: of each of its parts; `problem`: why it cannot be booted here, null where it can."""

    image: str
    name: str
    distribution: str
    suite: str
    architecture: Literal["amd64", "arm64"]
    kernel_version: str
    created_at: str
    ram_mib: int
    epoch: int
    bytes: dict[str, int]
    container_images: list[str]
    revoked: bool
    problem: str | None


Images = TypedDict("Images", {"continue": "str | None", "images": "list[ImageListed]"})
"""The newest first."""

ImagesDifference = TypedDict(
    "ImagesDifference",
    {
        "image": "str",
        "with": "str",
        "facts": "dict[str, list[str]]",
        "sizes": "dict[str, list[int | None]]",
        "added": "dict[str, str]",
        "removed": "dict[str, str]",
        "changed": "dict[str, list[str]]",
    },
)
"""What is otherwise in `image` than in `with`. Facts and sizes (bytes; null: no such part) from what it
was to what it is; packages by `name:architecture`."""


class Imported(TypedDict):
    """`machines`: how many are in the list; `enrolled`: those that were not before; `dry_run`: as it would be."""

    machines: int
    enrolled: list[str]
    dry_run: bool


class Intent(TypedDict):
    """One mark on one machine, or one exemption, by one owner. `who`: in the owner's words, such as the
    operator's name; `until` None: until it is taken off; `object` None: none declares it, or it is not
    known which."""

    machine: str
    mark: Mark | Exemption
    owner: str
    who: str
    reason: str
    since: str
    until: NotRequired[str | None]
    object: NotRequired[DeclaredBy | None]


class IntentActed(TypedDict):
    """`did`: `put-on`, `extended` or `taken-off`, empty where it is so already; `concerned`: what that is
    about; `intents`: what stands then."""

    machine: str
    act: str
    did: str
    dry_run: bool
    concerned: list[Intent]
    consequence: str
    intents: list[Intent]


Intents = TypedDict("Intents", {"continue": "str | None", "intents": "list[Intent]"})
"""By machine."""


class IntentsEntry(TypedDict):
    """One line of a machine's history. `act`: put-on, extended, altered, taken-off or ended."""

    id: NotRequired[int]
    at: str
    machine: str
    mark: Mark | Exemption
    act: str
    owner: str
    who: str
    reason: str
    until: NotRequired[str | None]


class IntentsOf(TypedDict):
    """What stands of one machine, and what was ordered of it, the latest first."""

    machine: str
    intents: list[Intent]
    history: list[IntentsEntry]


class InventoryDescribed(TypedDict):
    """`read_only`: why the API writes nothing there, empty: it does. And names of what machines may refer to."""

    folder: str
    read_only: str
    profiles: list[str]
    classes: list[str]
    racks: list[str]


class Known(TypedDict):
    """Who asks. `issuer`: who vouches for them, null for this site; `token`: eight digits of its hash;
    `expires_at`: null where nobody says."""

    name: str
    role: Role
    issuer: str | None
    token: str
    expires_at: str | None


class LoginOffered(TypedDict):
    """`oidc`: null where no issuer is configured."""

    oidc: OidcOffered | None


Machine = TypedDict(
    "Machine",
    {
        "name": "str",
        "former_names": "NotRequired[list[str]]",
        "cluster": "NotRequired[str]",
        "match": "Match",
        "profile": "str",
        "class": "NotRequired[str | None]",
        "rack": "NotRequired[str | None]",
        "position": "NotRequired[int | None]",
        "topology": "NotRequired[Topology | None]",
        "architecture": "NotRequired[Literal['amd64', 'arm64']]",
        "enabled": "NotRequired[bool]",
        "node": "NotRequired[Node]",
        "identity": "NotRequired[Literal['tpm', 'nonce', 'address']]",
        "pcrs": "NotRequired[dict[str, Any]]",
        "health": "NotRequired[Health]",
    },
)
"""A machine as the inventory declares it: how it is recognised, what it boots, where it joins."""

MachineEntry = TypedDict(
    "MachineEntry",
    {
        "name": "str",
        "rack": "str | None",
        "position": "int | None",
        "class": "str | None",
        "profile": "str",
        "status": "MachineStatus",
        "condition": "str",
        "reason": "str",
        "message": "str",
        "since": "str | None",
        "step": "str",
        "boot": "str",
        "image": "str",
        "said": "str",
        "cause": "str",
    },
)
"""A machine, and of the condition that says how it is `condition`, `reason`, `message`, `since`, and
`said`: the machine's own words in `message`, as it said them; `step`, `boot`, `image` of the boot that
counts. Empty, or null: not known. `cause`: of the case in which it is, empty of one that is neither
late nor ill."""


class MachineHealth(TypedDict):
    """`expected`: what the inventory says now (docs/health.md)."""

    machine: str
    expected: dict[str, Any]
    checked: CheckedReport | None


MachineListed = TypedDict(
    "MachineListed",
    {
        "name": "str",
        "former_names": "NotRequired[list[str]]",
        "cluster": "NotRequired[str]",
        "match": "Match",
        "profile": "str",
        "class": "NotRequired[str | None]",
        "rack": "NotRequired[str | None]",
        "position": "NotRequired[int | None]",
        "topology": "NotRequired[Topology | None]",
        "architecture": "NotRequired[Literal['amd64', 'arm64']]",
        "enabled": "NotRequired[bool]",
        "node": "NotRequired[Node]",
        "identity": "NotRequired[Literal['tpm', 'nonce', 'address']]",
        "pcrs": "NotRequired[dict[str, Any]]",
        "health": "NotRequired[Health]",
        "current": "TraceShown | None",
        "pending": "TraceShown | None",
        "claims": "Claims",
        "checked": "CheckedBrief | None",
        "conditions": "list[ConditionShown] | None",
    },
)
"""A machine with its boots. `conditions`: none where it was not judged yet, null where they cannot be
told."""


class MachineSent(TypedDict):
    """One of a list: the machine as a file of the inventory has it, and where it stands in the list, as faults
    are to say it; empty: by its number."""

    declared: dict[str, Any]
    place: NotRequired[str]


MachineShown = TypedDict(
    "MachineShown",
    {
        "pcr_policy": "str",
        "alerts": "list[Alert]",
        "enrolment": "EnrolmentView | None",
        "enrolment_problem": "str | None",
        "name": "str",
        "former_names": "NotRequired[list[str]]",
        "cluster": "NotRequired[str]",
        "match": "Match",
        "profile": "str",
        "class": "NotRequired[str | None]",
        "rack": "NotRequired[str | None]",
        "position": "NotRequired[int | None]",
        "topology": "NotRequired[Topology | None]",
        "architecture": "NotRequired[Literal['amd64', 'arm64']]",
        "enabled": "NotRequired[bool]",
        "node": "NotRequired[Node]",
        "identity": "NotRequired[Literal['tpm', 'nonce', 'address']]",
        "pcrs": "NotRequired[dict[str, Any]]",
        "health": "NotRequired[Health]",
        "accelerator_domain": "str | None",
        "current": "TraceShown | None",
        "pending": "TraceShown | None",
        "claims": "Claims",
        "decision": "Boot | Unknown | Refused | Unavailable",
        "boots": "list[TraceShown]",
        "checked": "CheckedReport | None",
        "conditions": "list[ConditionShown] | None",
        "deadlines": "dict[str, SaidSeconds]",
        "intents": "list[Intent] | None",
        "drains": "list[DrainShown] | None",
        "boot_limit": "SaidBoots",
        "hardware": "NotRequired[dict[str, Any] | None]",
    },
)
"""One machine. What is null where it could be a list cannot be told now; `hardware`: the document of its
class, where it names one."""

Machines = TypedDict("Machines", {"continue": "str | None", "machines": "list[MachineListed]"})
"""In the order of the inventory."""


class MaintenanceWindow(TypedDict):
    """Open on these days from `start` to `end`, by the clocks of `time_zone`. One whose end is not after its
    start ends on the next day. An hour that clocks leave out is taken as the next one, of one that they
    repeat the first counts. Where the time zone is not known (any more) it is shut."""

    name: str
    days: NotRequired[list[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]]]
    start: str
    end: str
    time_zone: NotRequired[str]


class Match(TypedDict):
    """How a machine is recognised. Any one of them suffices; two machines may not share any."""

    macs: NotRequired[list[str]]
    uuid: NotRequired[str | None]
    serial: NotRequired[str | None]
    ek_sha256: NotRequired[str | None]


class MayAct(TypedDict):
    """Whether what acts by itself may begin anything; `until`: until when it is so, null where that is open."""

    may: bool
    reason: str
    until: str | None


class MemberShown(TypedDict):
    """`order`: the drain that stands of it; `since_clock_ms`: what the rollout's clock showed when its state
    changed."""

    machine: str
    rack: NotRequired[str]
    position: NotRequired[int | None]
    domain: NotRequired[str]
    class_name: NotRequired[str]
    named: NotRequired[bool]
    previous: str
    state: NotRequired[MemberState]
    canary: NotRequired[bool]
    tries: NotRequired[int]
    since_clock_ms: NotRequired[int]
    boot: NotRequired[str]
    why: NotRequired[str]
    served: NotRequired[str]
    again: NotRequired[int]
    proved: NotRequired[bool]
    undone: NotRequired[bool]
    accepted: NotRequired[bool]
    order: DrainShown | None


class Move(TypedDict):
    """The body of a PUT. `image`: a digest, the beginning of one, or the name of an image (its newest).
    `force`: also where machines of the channel are of another architecture, or a rollout is under way."""

    image: str
    reason: NotRequired[str]
    force: NotRequired[bool]
    dry_run: NotRequired[bool]


class Moved(TypedDict):
    """The channel as it is then. `ended_rollouts`: their numbers; `assignments_kept`: machines boot what a
    rollout assigned to them, for that cannot be read, or changed; `alone`: it is so at this replica, and
    others could not be told; `dry_run`: nothing was changed."""

    name: str
    description: NotRequired[str]
    pinned: NotRequired[bool]
    image: NotRequired[str | None]
    image_name: NotRequired[str | None]
    in_force: NotRequired[str | None]
    unusable: NotRequired[str | None]
    machines: NotRequired[int]
    source: NotRequired[Literal["inventory", "store"]]
    ended_rollouts: list[int]
    assignments_kept: bool
    alone: bool
    dry_run: bool


class Neighbour(TypedDict):
    """What the switch at the other end of a card's cable says by LLDP."""

    system: str
    port: str


class NewToken(TypedDict):
    """The body of a POST. `spki`: base64 of the DER SubjectPublicKeyInfo of the key that the machine will join
    with."""

    machine: str
    spki: NotRequired[str | None]
    lifetime_seconds: NotRequired[int]
    window_seconds: NotRequired[int]
    reason: NotRequired[str]


class Nics(TypedDict):
    """Network cards of one model: so many ports, each of this speed."""

    model: str
    count: int
    speed_gbps: float
    name: NotRequired[str | None]


class Node(TypedDict):
    """What Kubernetes is to see of a machine. `name` None: the machine's own."""

    name: NotRequired[str | None]
    labels: NotRequired[dict[str, Any]]
    taints: NotRequired[list[str]]
    addresses: NotRequired[list[str]]


class OidcOffered(TypedDict):
    """An issuer of OpenID Connect, and how `netboot login` asks it."""

    issuer: str
    client_id: str
    scopes: list[str]
    audience: str | None


class Order(TypedDict):
    """The body of `pause`, `resume` and `undo`."""

    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class Out(TypedDict):
    """Who else is out of service: of its rack, machine → by whose word; and how many of all are by somebody's."""

    rack: str | None
    of_rack: dict[str, str]
    of_all: int


class PackageShown(TypedDict):
    """A package, as dpkg has it."""

    name: str
    version: str
    architecture: str


PackagesShown = TypedDict("PackagesShown", {"continue": "str | None", "image": "str", "packages": "list[PackageShown]"})
"""In the order of their names."""


class PastExplained(TypedDict):
    """What was decided for a boot. `decided`: null where `decided_problem` says why."""

    boot: str
    machine: str
    standing: str
    script: Script | None
    decided: Decided | None
    decided_problem: str | None
    attested: FactShown | None
    token: FactShown | None
    approval: FactShown | None
    gate: GateShown


class Pause(TypedDict):
    """Whether nothing may begin, by whose word and why. `stands` False: it was resumed, then."""

    stands: bool
    who: str
    reason: str
    since: str


class PauseActed(TypedDict):
    """`did`: false where it was so already; `pause`: what stands then."""

    act: str
    did: bool
    dry_run: bool
    pause: Pause | None


class Paused(TypedDict):
    """`pause`: null where nobody ever paused."""

    pause: Pause | None


class Plain(TypedDict):
    """The body of `release` and `retire`."""

    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class Problem(TypedDict):
    """Why a request was not answered as asked (RFC 9457). `title`: of all with that `code`; `detail`: of this
    one; `instance`: the request's id, as in `X-Request-ID` and in the log; `remedy`: what to do; `field`:
    the value of the request that is to blame; `faults`: of a list, every one."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    remedy: str
    field: NotRequired[str | None]
    faults: NotRequired[list[str] | None]


class Profile(TypedDict):
    """How a kind of machine boots: the channel that names its image, and arguments of its kernel."""

    name: str
    channel: str
    kernel_arguments: NotRequired[list[str]]
    health: NotRequired[Health]
    pcrs: NotRequired[dict[str, Any] | None]
    deadlines: NotRequired[dict[str, int]]
    boot_limit: NotRequired[int | None]


class PuttingOn(TypedDict):
    """The body of `hold` and `quarantine`. With `seconds`, from now, or `until` it ends by itself."""

    reason: str
    seconds: NotRequired[int | None]
    until: NotRequired[str | None]
    dry_run: NotRequired[bool]


class Rack(TypedDict):
    """A rack, "" for none, with its machines as they stand: the highest unit first, those that say none after
    them by name."""

    rack: str
    machines: int
    runs: list[Run]


class RackRuns(TypedDict):
    """`machines`: how many of this rack the rollout has, those that left and are kept too; `runs`: all of
    them."""

    rack: str
    machines: int
    runs: list[RolloutRun]


class RackSent(TypedDict):
    """What machines of one rack have in common: where they stand; file servers and caches near them, tried
    before the site's."""

    name: str
    origins: NotRequired[list[str]]
    topology: NotRequired[Topology]


class Reached(TypedDict):
    """A phase was reached: `at` by our clock, `uptime_ms` by the machine's; `sha256`: of what proves it."""

    at: str
    phase: Phase
    source: Source
    uptime_ms: NotRequired[int | None]
    detail: NotRequired[str]
    peer: NotRequired[str]
    sha256: NotRequired[str]


class Readiness(TypedDict):
    """The answer of the management listener's `/readyz`. `ready`: machines can boot now; `degraded`: they can
    or not, something wants attention. `site`: a mark of the key of boot ids, the same for all who have
    that; "": it is not there, or cannot be read."""

    ready: bool
    degraded: bool
    site: NotRequired[str]
    details: dict[str, Detail]


class Readmitting(TypedDict):
    """The body of `readmit`."""

    reason: str
    dry_run: NotRequired[bool]


class RecordShown(TypedDict):
    """`result`: `done`, `unchanged`, or the `code` of the refusal."""

    at: str
    who: str
    role: str
    token: str
    peer: str
    request_id: str
    act: str
    machine: NotRequired[str]
    reason: NotRequired[str]
    before: NotRequired[dict[str, Any] | None]
    after: NotRequired[dict[str, Any] | None]
    result: NotRequired[str]
    facts: NotRequired[dict[str, Any]]
    id: int


class Refused(TypedDict):
    """Not allowed: the machine says why on its console and asks again, slowly."""

    outcome: NotRequired[Literal["refused"]]
    reason: Literal["ambiguous", "disabled", "architecture", "command-line"]
    machines: list[str]
    because: list[str]


Remedies = TypedDict(
    "Remedies",
    {
        "continue": "str | None",
        "pause": "Pause | None",
        "problem": "str",
        "machines": "list[Standing]",
        "ailing": "int",
        "withheld": "int",
        "under": "int",
        "remedies": "list[Remedy]",
    },
)
"""`pause`: null where nobody ever paused; `problem`: why this may not be how it is; `machines`: who is not
well, of `ailing`; `under`: how many are under a remedy."""


class RemediesOf(TypedDict):
    """Of one machine. `now`: null where it is well; `problem`: why this may not be how it is."""

    now: Standing | None
    problem: str
    latest: list[Remedy]


class RemediesOrdering(TypedDict):
    """The body of `pause` and `resume`."""

    reason: str
    dry_run: NotRequired[bool]


class RemediesSent(TypedDict):
    """What is done about one that is not well: docs/remedies.md."""

    act: NotRequired[bool]
    wait: NotRequired[int]
    actions: NotRequired[list[Literal["reboot", "quarantine"]]]
    per_rack: NotRequired[int]
    fleet: NotRequired[str]


class Remedy(TypedDict):
    """One that was taken, or was due and withheld. `reason`, `boot`, `since`, `message`: what was wrong, as in
    `Ailment`; `words`: why it was withheld; `drain`: the order to reboot; `end` None: the machine is under
    it still."""

    id: NotRequired[int]
    at: str
    machine: str
    what: Literal["reboot", "quarantine"]
    outcome: Literal["taken", "withheld"]
    reason: Reason
    boot: str
    since: str
    message: str
    words: NotRequired[str]
    drain: NotRequired[str]
    end: NotRequired[Literal["back", "taken-off", "replaced", "undone", "withdrawn", "readmitted", "gone"] | None]
    ended_at: NotRequired[str | None]


class RemedyShown(TypedDict):
    """`evidence`: what was at hand of the machine's boot."""

    id: NotRequired[int]
    at: str
    machine: str
    what: Literal["reboot", "quarantine"]
    outcome: Literal["taken", "withheld"]
    reason: Reason
    boot: str
    since: str
    message: str
    words: NotRequired[str]
    drain: NotRequired[str]
    end: NotRequired[Literal["back", "taken-off", "replaced", "undone", "withdrawn", "readmitted", "gone"] | None]
    ended_at: NotRequired[str | None]
    evidence: dict[str, Any] | None


class Renaming(TypedDict):
    """`name`: the new one."""

    name: str
    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class Replacement(TypedDict):
    """The body of `replace`."""

    reason: NotRequired[str]
    dry_run: NotRequired[bool]
    window_seconds: NotRequired[int]
    part: Literal["tpm"]


class RolloutActed(TypedDict):
    """`did`: false where it was so already; `dry_run`: as it would be."""

    number: int
    channel: str
    image: str
    image_name: str
    base: str
    strategy: Strategy
    on_next_boot: bool
    unproven: bool
    state: NotRequired[RolloutState]
    undoing: NotRequired[bool]
    rolling: NotRequired[bool]
    why: NotRequired[str]
    clock_ms: NotRequired[int]
    blocked_clock_ms: NotRequired[int | None]
    operator: str
    reason: NotRequired[str]
    verdict: NotRequired[str]
    started_at: str
    ended_at: NotRequired[str | None]
    machines: dict[str, int]
    of: int
    racks: int
    domains: dict[str, int]
    control_plane: ControlPlaneMachines
    most: int
    to_reboot: list[str]
    act: str
    did: bool
    dry_run: bool


class RolloutDetail(TypedDict):
    """With its machines and what was done to it, the latest last. `by_rack`: all machines, as they stand;
    `members`: empty where nobody asked for them."""

    number: int
    channel: str
    image: str
    image_name: str
    base: str
    strategy: Strategy
    on_next_boot: bool
    unproven: bool
    state: NotRequired[RolloutState]
    undoing: NotRequired[bool]
    rolling: NotRequired[bool]
    why: NotRequired[str]
    clock_ms: NotRequired[int]
    blocked_clock_ms: NotRequired[int | None]
    operator: str
    reason: NotRequired[str]
    verdict: NotRequired[str]
    started_at: str
    ended_at: NotRequired[str | None]
    machines: dict[str, int]
    of: int
    racks: int
    domains: dict[str, int]
    control_plane: ControlPlaneMachines
    most: int
    to_reboot: list[str]
    by_rack: list[RackRuns]
    members: list[MemberShown]
    history: list[RolloutStoreEntry]


RolloutMembers = TypedDict("RolloutMembers", {"continue": "str | None", "members": "list[MemberShown]"})
"""Machines of a rollout, by name, or state by state and by name."""


class RolloutPlanned(TypedDict):
    """It would be so. `up`: how many of its machines are in service now."""

    number: int
    channel: str
    image: str
    image_name: str
    base: str
    strategy: Strategy
    on_next_boot: bool
    unproven: bool
    state: NotRequired[RolloutState]
    undoing: NotRequired[bool]
    rolling: NotRequired[bool]
    why: NotRequired[str]
    clock_ms: NotRequired[int]
    blocked_clock_ms: NotRequired[int | None]
    operator: str
    reason: NotRequired[str]
    verdict: NotRequired[str]
    started_at: str
    ended_at: NotRequired[str | None]
    machines: dict[str, int]
    of: int
    racks: int
    domains: dict[str, int]
    control_plane: ControlPlaneMachines
    most: int
    to_reboot: list[str]
    dry_run: bool
    up: int


class RolloutRun(TypedDict):
    """Machines of a rack that stand beside each other and are in one state. `first`: the first of them,
    `position`: its unit; `gap`: units are free before it."""

    state: MemberState
    first: str
    count: int
    position: NotRequired[int | None]
    gap: NotRequired[bool]


class RolloutShown(TypedDict):
    """With what follows from it. `machines`: state → how many; `most`: how many may be out of service at once;
    `domains`: accelerator domain → how many machines of it go together; `of`, and what is counted by it,
    are without machines that are kept; `to_reboot`: names."""

    number: int
    channel: str
    image: str
    image_name: str
    base: str
    strategy: Strategy
    on_next_boot: bool
    unproven: bool
    state: NotRequired[RolloutState]
    undoing: NotRequired[bool]
    rolling: NotRequired[bool]
    why: NotRequired[str]
    clock_ms: NotRequired[int]
    blocked_clock_ms: NotRequired[int | None]
    operator: str
    reason: NotRequired[str]
    verdict: NotRequired[str]
    started_at: str
    ended_at: NotRequired[str | None]
    machines: dict[str, int]
    of: int
    racks: int
    domains: dict[str, int]
    control_plane: ControlPlaneMachines
    most: int
    to_reboot: list[str]


class RolloutStarted(TypedDict):
    """It has begun."""

    number: int
    channel: str
    image: str
    image_name: str
    base: str
    strategy: Strategy
    on_next_boot: bool
    unproven: bool
    state: NotRequired[RolloutState]
    undoing: NotRequired[bool]
    rolling: NotRequired[bool]
    why: NotRequired[str]
    clock_ms: NotRequired[int]
    blocked_clock_ms: NotRequired[int | None]
    operator: str
    reason: NotRequired[str]
    verdict: NotRequired[str]
    started_at: str
    ended_at: NotRequired[str | None]
    machines: dict[str, int]
    of: int
    racks: int
    domains: dict[str, int]
    control_plane: ControlPlaneMachines
    most: int
    to_reboot: list[str]
    dry_run: bool


class RolloutStatus(TypedDict):
    """A rollout that is under way. `machines`: by their state in it."""

    number: int
    channel: str
    state: str
    undoing: bool
    machines: dict[str, int]


class RolloutStoreEntry(TypedDict):
    """The same, as it is read."""

    at: str
    rollout: int
    who: str
    act: str
    said: str


Rollouts = TypedDict("Rollouts", {"continue": "str | None", "rollouts": "list[RolloutShown]"})
"""The newest first."""


class Run(TypedDict):
    """So many that stand beside each other and are alike, and the first of them, with its unit. `gap`: units
    are free before it."""

    status: MachineStatus
    first: str
    count: int
    position: int | None
    gap: bool


class SaidBoots(TypedDict):
    """The same of a number of boots; 0 for no limit."""

    boots: int
    said_by: str


class SaidSeconds(TypedDict):
    """`said_by`: whose word it is; empty for a default."""

    seconds: int
    said_by: str


class Script(TypedDict):
    """What was decided when the script was served. `decision`, `script`: digests, as its record has them; ""
    where an older netboot kept none."""

    at: str
    cluster: str
    image: str
    profile: str
    channel: str
    peer: str
    decision: NotRequired[str]
    script: NotRequired[str]
    class_name: NotRequired[str | None]
    arguments: NotRequired[str | None]


class Sighting(TypedDict):
    """A machine that asked and may not boot. `key`: the first of MAC, UUID, serial and address that it has;
    `hardware`: what it said of itself at `taken_at`, null where it was not discovered within the last hour;
    `suggested_class`: of the inventory's classes one whose hardware that is; `told_from`: the address that
    said so, which need not be that of who asked; `told_otherwise_from`: another that said within the hour
    that it is this machine, or the same with another TPM; `match`: by what it would be declared, empty
    where it has no MAC; `seen`: a digest of that."""

    key: str
    outcome: Literal["unknown", "refused"]
    mac: str | None
    uuid: str | None
    serial: str | None
    architecture: str | None
    reason: str
    peer: str
    first_at: str
    last_at: str
    hardware: HardwareReport | None
    taken_at: str | None
    suggested_class: str | None
    told_from: str | None
    told_otherwise_from: str | None
    match: dict[str, Any]
    seen: str


class SignalShown(TypedDict):
    """What somebody outside says; `age_seconds`: null where it is not known."""

    may: bool
    reason: str
    age_seconds: float | None


class SignedProof(TypedDict):
    """`proof`: the record, in the one form in which documents are signed; `signature`: signify's, over these
    bytes."""

    proof: str
    signature: str


class SpanShown(TypedDict):
    """A part of a boot, milliseconds since 1970. `missing`: steps within it that were never heard of."""

    step: str
    until: str
    begin_at: str
    end_at: str
    missing: list[str]


class Standing(TypedDict):
    """A machine that is not well, as it is shown. `what`: the next remedy, "": none; `left_seconds`: of its
    wait; `words`: what withholds it, or is done already."""

    machine: str
    reason: Reason
    since: str
    message: str
    what: str
    left_seconds: int
    words: str


class Start(TypedDict):
    """The body of a POST. `image`: as `Move` has it; `strategy`: over the channel's, key by key;
    `on_next_boot`: machines are assigned the image, and somebody else reboots them, else the service does;
    `any_kubelet`: also an image whose kubelet a cluster does not take; `force`: whoever asks passed over
    what he found himself, which is noted; `control_plane`: machines of one that are to go too."""

    channel: str
    image: str
    strategy: NotRequired[dict[str, Any]]
    on_next_boot: NotRequired[bool]
    any_kubelet: NotRequired[bool]
    force: NotRequired[bool]
    control_plane: NotRequired[list[str]]
    dry_run: NotRequired[bool]
    reason: NotRequired[str]


class State(TypedDict):
    """How far an order is, as who carries it out says. `state`: waiting, draining, drained, ordered (to
    reboot), or the end that it has come to; `words`: why, for people."""

    id: str
    state: Literal["waiting", "draining", "drained", "ordered", "undone", "rebooted"]
    words: str
    since: str


class Strategy(TypedDict):
    """`canary`: how many machines try the image first; `bake`: seconds for which all of them have to be in
    service with it; `max_unavailable`, `per_rack`: how many may be out of service at once, in all and of
    one rack (None: as many); `deadline`: seconds for which one may be drained, and from when it leaves
    service until it is back; `allow_bare`, `allow_local_data`: Pods without a controller, and those with an
    emptyDir, may be evicted, and are lost; `split_domains`: machines of one accelerator domain need not go
    together; `auto_undo`: where too many fail with the image, in two racks at least, everybody is brought
    back to what it had, and nobody is waited for (as Nomad's `auto_revert`:
    https://developer.hashicorp.com/nomad/docs/job-specification/update)."""

    canary: NotRequired[int]
    max_unavailable: NotRequired[str]
    per_rack: NotRequired[int | None]
    bake: NotRequired[int]
    deadline: NotRequired[int]
    allow_bare: NotRequired[bool]
    allow_local_data: NotRequired[bool]
    split_domains: NotRequired[bool]
    auto_undo: NotRequired[bool]


class TokenCreated(TypedDict):
    """The token, here and nowhere else, with what its machine joins by."""

    token: str
    expires_at: str
    node_name: str
    cluster: str
    apiservers: list[str]
    authorities: str
    labels: dict[str, str]
    taints: list[str]
    now_at: str
    id: str
    machine: str


class TokenRevoked(TypedDict):
    """Whose it was."""

    revoked: str
    machine: str
    cluster: str


class TokenShown(TypedDict):
    """A token without its secret, as its machine's Lease has it."""

    id: str | None
    machine: str
    node: str
    cluster: str
    assurance: Literal["tpm", "nonce", "address"]
    boot: str
    holder: str
    issued_at: str
    expires_at: str
    expired: bool


TokensShown = TypedDict(
    "TokensShown", {"continue": "str | None", "tokens": "list[TokenShown]", "problems": "dict[str, str]"}
)
"""The newest first. `problems`: cluster → why it cannot tell."""


class Topology(TypedDict):
    """What is left out is not known, and no label. Not written either."""

    zone: NotRequired[str | None]
    region: NotRequired[str | None]
    tiers: NotRequired[list[str]]
    accelerator_domain: NotRequired[str | None]


class Tpm(TypedDict):
    """A TPM 2.0. `ek_sha256`: of its endorsement key, as the inventory names it; `certificate`: base64 of its
    DER."""

    ek_sha256: str
    certificate: NotRequired[str | None]


class TraceShown(TypedDict):
    """A boot with what follows from what is known of it: times in milliseconds since 1970."""

    boot: str
    machine: str
    script: Script | None
    reached: list[Reached]
    failures: list[Failure]
    certificates: list[Certificate]
    found_crashes: int
    console_at: str | None
    claim: bool
    standing: str
    state: Phase
    reason: str
    started_at: str
    last_at: str
    last_served: Phase | None
    last_reported: Phase | None
    last_observed: Phase | None
    kernel_at: str | None
    seconds_to_ready: float | None


class Unavailable(TypedDict):
    """Cannot tell right now: the machine tries again, with jitter. `machines`: which it is, where that is
    known."""

    outcome: NotRequired[Literal["unavailable"]]
    reason: Literal["no-inventory", "no-image", "image-unusable", "journal", "busy"]
    machines: NotRequired[list[str]]
    because: list[str]


class Undraining(TypedDict):
    """The body of `undrain`."""

    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class Unholding(TypedDict):
    """The body of `unhold` and `unaccept`."""

    reason: NotRequired[str]
    dry_run: NotRequired[bool]


class Unknown(TypedDict):
    """No machine of the inventory matches: it waits, is listed as discovered, and asks again."""

    outcome: NotRequired[Literal["unknown"]]
    because: list[str]


class UsedChannel(TypedDict):
    """A channel that gives the image to machines. `image`: what it points to; `pinned`: by the inventory;
    `assigned`: machines to which a rollout assigned it."""

    name: str
    image: str
    pinned: bool
    assigned: int


class Uses(TypedDict):
    """Who has to do with an image. `boots`: machines that boot it next, and are neither disabled nor retired;
    `runs`: those that boot or run it now."""

    image: str
    channels: list[UsedChannel]
    boots: list[str]
    runs: list[str]


class Vetoes(TypedDict):
    """Which Pods may keep a node of a class from being drained, and for how long at most: docs/drain.md."""

    namespaces: list[str]
    max_wait: int


class Waited(TypedDict):
    """Whoever asked in a machine's name was told to wait, for want of a usable image: the last time, from
    `first_at` until `last_at`. `reason`, `peer`: what was told last, and to which address."""

    reason: str
    peer: str
    first_at: str
    last_at: str


class WindowOpen(TypedDict):
    """In which the machine may boot and prove itself."""

    kind: Literal["boot"]
    until: str


class WindowOpened(TypedDict):
    """Without a key: the machine gets its token by itself, within that time."""

    machine: str
    window: WindowOpen


class WindowShown(TypedDict):
    """`closes_at`: while it is open; `opens_at`: when it does next, null where that cannot be told."""

    name: str
    days: NotRequired[list[Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]]]
    start: str
    end: str
    time_zone: NotRequired[str]
    closes_at: str | None
    opens_at: str | None

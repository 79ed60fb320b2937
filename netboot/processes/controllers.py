"""The process `controllers`: the publisher (inventory, channels and images → snapshot), the projection (journals →
state), the lifecycle (state and clocks → conditions), rollouts (conditions → assignments) and remedies (conditions →
orders). One process, for each but the last two is the only writer of its file."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial

from netboot.clock import SystemClock
from netboot.config import Config
from netboot.controllers import decisions
from netboot.controllers.acts import RecordedActs
from netboot.controllers.assignments import Assignments
from netboot.controllers.boot_records import BootRecords
from netboot.controllers.cordons import AndCordons
from netboot.controllers.declared import Published
from netboot.controllers.drains import AndDrains
from netboot.controllers.elector import Elector
from netboot.controllers.evidence import Evidence
from netboot.controllers.heard import absent, cordoned, said
from netboot.controllers.helping import AndRemedies
from netboot.controllers.holds import holding
from netboot.controllers.judging import AndRecords
from netboot.controllers.led_rollouts import LedRollouts
from netboot.controllers.lifecycle import LifecycleController
from netboot.controllers.loop import Beats, Controllers
from netboot.controllers.needless import NeedlessOrders
from netboot.controllers.noticed import Noticed
from netboot.controllers.projection import ProjectionController
from netboot.controllers.proofs import Proofs, Prover
from netboot.controllers.remedies import RemedyController, Surveyed
from netboot.controllers.renewals import OrderedRenewals
from netboot.controllers.rollouts import RolloutController
from netboot.controllers.shared_acts import sharing
from netboot.controllers.sight import Eyes
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.join.register import boot_windows
from netboot.lifecycle.control_planes import names_of
from netboot.lifecycle.drains import DrainsStatus
from netboot.lifecycle.errors import CannotTellError, NotReadyError
from netboot.lifecycle.publish import fault_of
from netboot.lifecycle.rollout_facts import left
from netboot.lifecycle.rollout_store import in_hand
from netboot.lifecycle.snapshot import BootWindow
from netboot.machines.maintenance import Window
from netboot.machines.values import Inventory
from netboot.process import ProcessSpec
from netboot.processes.shared import (
    completing,
    drained,
    drains_of,
    led_here,
    rollouts_of,
    shares_orders,
)
from netboot.status import up_ms
from netboot.stores import proofkey
from netboot.stores.commits import Commits
from netboot.stores.conditions import JudgedFile, SqliteConditions
from netboot.stores.control_planes import SaidControlPlanes
from netboot.stores.freezes import SqliteFreezes
from netboot.stores.history_writer import HistoryFile
from netboot.stores.image_repository import open_image_repository
from netboot.stores.intents import SqliteIntents
from netboot.stores.remedies import SqliteRemedies
from netboot.stores.said_enrolments import changes_of, recorded
from netboot.stores.shared_rollouts import SharedRollouts
from netboot.stores.signal import SaidSignal
from netboot.stores.state import SqliteStates
from netboot.stores.state_writer import SqliteProjection
from netboot.stores.status import StatusFile, StatusFolder


def run(spec: ProcessSpec) -> None:
    """Until told to stop; what is journalled by then is taken over."""
    config, clock = spec.config, SystemClock()
    repository, states = open_image_repository(config), SqliteStates(config.data / "state.db")
    windows = partial(_boot_windows, config) if config.join is not None else None
    upstream = partial(absent, config.data / "status") if config.upstream is not None else None
    elector = _elector_of(config)
    acting = elector.acting if elector is not None else nullcontext
    store = rollouts_of(config, repository, acting)
    publisher = SnapshotPublisher(
        config,
        repository,
        repository,
        states,
        clock,
        windows=windows,
        in_background=True,
        upstream=upstream,
        assignments=Assignments(Commits(config.rollouts), store),
    )
    projection = SqliteProjection(config.data / "state.db")
    kept, history = JudgedFile(config.data / "conditions.db"), HistoryFile(config.data / "history.db")
    for make in (lambda: projection.cursor(""), kept.names, history.has_proofs):
        with suppress(CannotTellError):
            make()  # the file, for the management server to find; what fails here is told soon enough
    noticed, status = Noticed(kept, clock), StatusFolder(config.data / "status")
    wanted = config.data / "intents.db"
    intents, drains, freezes = SqliteIntents(wanted), drains_of(config), SqliteFreezes(wanted)
    lifecycle = LifecycleController(
        states,
        noticed,
        Published(lambda: publisher.published, config.clusters, replicas=config.replicas is not None).declared,
        RecordedActs(recorded(config), intents, drains, clock.now_ms, changes_of(config), Commits(wanted)).acts,
        Eyes(config, status, lambda: controller.caught_up()).look,
        clock,
        up_ms,
    )
    key = partial(proofkey.signing_key, config.proof_key, history.has_proofs)
    records = BootRecords(
        states,
        noticed,
        history,
        decisions.Snapshots(lambda: publisher.published),
        Proofs(Prover(config.site, key, states.health, clock), history),
        lambda: controller.caught_up(),
        clock,
    )
    judging = AndRecords(lifecycle, records)
    controller = ProjectionController(
        config.data / "journal",
        projection,
        owned=journals(config),
        inventory=publisher.inventory,
        told=judging.told,
        long_seconds=config.watchdog.controller_seconds / 4,
    )
    judged = SqliteConditions(config.data / "conditions.db").judged

    def joins(machine: str) -> bool:
        inventory = publisher.published.inventory.machines if publisher.published is not None else ()
        return any(each.name == machine and each.cluster in config.clusters for each in inventory)

    def carried_out() -> list[DrainsStatus]:
        return list(drained(config, status, clock.now_ms).values())

    def departed(machines: Sequence[str]) -> Mapping[str, str]:
        if (published := publisher.published) is None:
            return {}
        led = led_here(config, status, clock.now_ms)
        return left(published, config.clusters.keys(), machines, judged(machines), led)

    unusable = partial(
        fault_of,
        repository=repository,
        minimum_epoch=config.minimum_epoch,
        revoked=lambda: publisher.published.revocations.images if publisher.published is not None else (),
        fetched=config.upstream is not None,
    )
    control = SaidControlPlanes(status, clock.now_ms)
    rollouts = RolloutController(
        store,
        judged,
        lambda: publisher.published,
        partial(said, status),
        store.channel if isinstance(store, SharedRollouts) else repository.channel,
        completing(store, repository),
        freezes,
        SaidSignal(config, up_ms),
        clock,
        up_ms,
        OrderedRenewals(drains_of(config, acting), intents, carried_out, states.machines, joins, clock),
        lifecycle.out,
        unusable,
        lambda: remedies.cause(),
        control,
        states.numbers,
    )
    remedies = RemedyController(
        SqliteRemedies(wanted),
        Surveyed(
            lifecycle.ailing,
            lifecycle.declared,
            judged,
            partial(said, status),
            partial(in_hand, store),
            partial(_windows, publisher),
            Evidence(states, judged).of,
            lifecycle.out,
            lambda: names_of(publisher.published, control),
        ),
        freezes,
        SaidSignal(config, up_ms),
        clock,
        up_ms,
        StatusFile(config.data / "status", "remedies").write,
    )
    needless = NeedlessOrders(intents, judged, lifecycle.declared, partial(said, status), clock, up_ms)
    driving = LedRollouts(rollouts, elector, _long_seconds(config)) if elector is not None else rollouts
    cordoning = AndCordons(
        AndDrains(driving, drains, carried_out, departed, needless.of, clock),
        intents,
        states,
        partial(cordoned, config, status),
        controller.joins_read_to,
        clock,
    )
    following = sharing(config, holding(config, cordoning, intents, publisher, clock), drains, store)
    settling = AndRemedies(following, remedies)
    beats = Beats(
        spec.heartbeat("publisher"), spec.heartbeat(), spec.heartbeat("lifecycle"), spec.heartbeat("rollouts")
    )
    files = {name: StatusFile(config.data / "status", name) for name in Beats._fields}
    loops = Controllers(publisher, controller, judging, settling, lambda name, status: files[name].write(status), clock)
    if elector is not None:
        elector.start()
    loops.run(spec.say_ready, beats)
    if elector is not None:
        elector.stop()
    for each in (projection, kept, history):
        each.close()


def _elector_of(config: Config) -> Elector | None:
    """Which has one replica drive rollouts, where they are shared; None: this one does."""
    if config.replicas is None or not shares_orders(config):
        return None
    from netboot.processes.leading import leading  # the client of Kubernetes is large: only with clusters

    return leading(config, "rollouts", "").elector


def _long_seconds(config: Config) -> float:
    """For how long nobody may lead before that is something to see to."""
    return 2.0 * config.replicas.lease_seconds if config.replicas is not None else 0.0


def journals(config: Config) -> frozenset[str]:
    """Names of the journals that processes of this configuration write; any other has no owner any more."""
    names = [f"boot-{index}" for index in range(config.provisioning.workers)]
    names += [f"join-{index}" for index in range(config.join.workers if config.join is not None else 0)]
    names += [f"{kind}-{cluster}" for kind in ("approver", "nodes") for cluster in config.clusters]
    return frozenset(f"{name}.db" for name in (*names, *(["shipper"] if config.shares_facts else [])))


def _windows(publisher: SnapshotPublisher) -> Sequence[Window]:
    """When what acts by itself may begin something."""
    if publisher.published is None:
        raise NotReadyError("nothing has been published yet")
    return publisher.published.inventory.maintenance


def _boot_windows(config: Config, inventory: Inventory, now_ms: int) -> Mapping[str, BootWindow]:
    return boot_windows(inventory, recorded(config).records(), now_ms)

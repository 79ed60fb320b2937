"""The process `traces`, with `traces`: each boot that has ended, to a collector of OpenTelemetry's (docs/traces.md)."""

import logging

from netboot.clock import SystemClock
from netboot.controllers import runner
from netboot.controllers.traces import Position, TracesController
from netboot.lifecycle.errors import CannotTellError
from netboot.process import ProcessSpec
from netboot.stores.boots_ended import EndedBoots
from netboot.stores.drains import SqliteDrains
from netboot.stores.history import SqliteHistory
from netboot.stores.otlp import OtlpCollector
from netboot.stores.state import SqliteStates
from netboot.stores.status import StatusFile, StatusFolder

log = logging.getLogger(__name__)


def run(spec: ProcessSpec) -> None:
    """Export until told to stop."""
    config, clock = spec.config, SystemClock()
    assert config.traces is not None
    states, history = SqliteStates(config.data / "state.db"), SqliteHistory(config.data / "history.db")
    boots = EndedBoots(states, history, SqliteDrains(config.data / "intents.db"), clock)
    folder = config.data / "traces"
    try:
        kept = StatusFolder(folder).read("position", Position)
    except CannotTellError as error:
        log.warning("boots that were under way are not exported: %s", error)
        kept = None
    collector, keep = OtlpCollector(config.traces, config.site), StatusFile(folder, "position").write
    controller = TracesController(boots, collector, kept, keep, clock)
    runner.run(controller, StatusFile(config.data / "status", spec.name).write, spec.say_ready, spec.heartbeat())

"""The process `pause`, with `pause`: who outside lets what acts by itself begin anything (docs/acts.md)."""

from netboot.clock import SystemClock
from netboot.controllers import runner
from netboot.controllers.pause import PauseController
from netboot.process import ProcessSpec
from netboot.stores import signal
from netboot.stores.pause_asker import Asker
from netboot.stores.status import StatusFile


def run(spec: ProcessSpec) -> None:
    """Ask until told to stop."""
    config, place = spec.config, spec.config.pause
    assert place is not None
    lasts = 2 * place.every_seconds + place.deadline_seconds
    controller = PauseController(Asker(place), place.every_seconds, lasts, SystemClock())
    word, shown = StatusFile(config.data / signal.FOLDER, signal.NAME), StatusFile(config.data / "status", spec.name)
    runner.run(controller, lambda said: (word.write(said), shown.write(said)), spec.say_ready, spec.heartbeat())

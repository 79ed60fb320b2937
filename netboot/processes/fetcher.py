"""The process `fetcher`, with `upstream`: images of channels that are not in the store (docs/registry.md)."""

from netboot.clock import SystemClock
from netboot.controllers import runner
from netboot.controllers.fetcher import Fetcher
from netboot.lifecycle.upstream import missing
from netboot.process import ProcessSpec
from netboot.stores.image_repository import open_image_repository
from netboot.stores.live import LiveView
from netboot.stores.status import StatusFile
from netboot.stores.upstream import StoreUpstream


def run(spec: ProcessSpec) -> None:
    """Fetch images that are missing until told to stop."""
    config = spec.config
    live, repository = LiveView(config.data / "snapshot.json"), open_image_repository(config)
    fetcher: Fetcher
    upstream = StoreUpstream(config, lambda seconds: fetcher.pause(seconds))
    fetcher = Fetcher(upstream, lambda: missing(live.view().snapshot, repository), SystemClock())
    runner.run(fetcher, StatusFile(config.data / "status", spec.name).write, spec.say_ready, spec.heartbeat())

"""Where channels of a site point, and their rollouts, on its disk and as objects that replicas share."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.lifecycle.rollout_objects import Said

_MOVED_BY = "netboot migrate"


def channels_here(config: "Config", *, ran: bool) -> "dict[str, Said]":
    """Where channels point that were ever set, and the last rollout of each. `ran`: the service ever ran here.

    Raises:
        StateUnavailableError, images.errors.ImageError: it cannot be told.
    """
    from images.store.store import Store
    from netboot.lifecycle.rollout_objects import Said
    from netboot.stores.image_repository import open_image_repository
    from netboot.stores.rollouts import SqliteRollouts

    names = {each.digest: each.name for each in open_image_repository(config).images()}
    store, file = Store(config.store), config.data / "rollouts.db"
    rollouts = SqliteRollouts(file) if file.exists() or ran else None
    return {
        name: Said(
            image=state.image,
            image_name=names.get(state.image, ""),
            who=_MOVED_BY,
            since_ms=state.at * 1000,
            rollout=rollouts.last(name) if rollouts is not None else None,
        )
        for name, state in store.channels().items()
    }


def rollout_object(channel: str, said: "Said", namespace: str) -> dict[str, Any]:
    """Of a channel, by its name."""
    from netboot.kube.resources.kinds import GROUP, ROLLOUT, VERSION
    from netboot.lifecycle.rollout_objects import spec_of

    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": ROLLOUT.kind,
        "metadata": {"name": channel, "namespace": namespace},
        "spec": spec_of(said).model_dump(mode="json", exclude_none=True),
    }

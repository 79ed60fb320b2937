"""Whether what profiles and classes say of the network is what a machine's initrd can do: a machine that has no network
cannot say that it did not understand."""

from collections.abc import Iterator

from images.values.kernel_arguments import replaced
from images.values.network_arguments import fault
from images.values.strict import Fault
from netboot.machines.declared import Declared

_KEY = "kernel_arguments"


def misunderstood(items: list[Declared]) -> Iterator[Fault]:
    """Of each profile and class by itself, then of each profile with each class that a machine has both of."""
    named = {(item.kind, item.name): item for item in items if item.kind in ("profile", "class")}
    alone = {key: fault(_said(item)) for key, item in named.items()}
    yield from (named[key].fault(why, _KEY) for key, why in alone.items() if why is not None)
    seen = set()
    for item in items:
        profile, hardware = (named.get((kind, str(item.value.get(kind)))) for kind in ("profile", "class"))
        if item.kind != "machine" or profile is None or hardware is None or (profile.name, hardware.name) in seen:
            continue
        seen.add((profile.name, hardware.name))
        if alone["profile", profile.name] is None and alone["class", hardware.name] is None:
            why = fault(replaced(_said(hardware), _said(profile)))
            if why is not None:
                yield item.fault(f"of its class {hardware.name!r} under its profile {profile.name!r}: {why}", "class")


def _said(item: Declared) -> list[str]:
    """Its arguments, as far as they are words; what is of another form has its own fault."""
    said = item.value.get(_KEY)
    return [word for word in said if isinstance(word, str)] if isinstance(said, list) else []

"""Models of network cards by name. Source: pci.ids (pci-ids.ucw.cz)."""

import re

MODELS: dict[str, tuple[str, ...]] = {
    "connectx-4": ("15b3:1013",),
    "connectx-4 lx": ("15b3:1015",),
    "connectx-5": ("15b3:1017", "15b3:1019"),
    "connectx-6": ("15b3:101b",),
    "connectx-6 dx": ("15b3:101d",),
    "connectx-6 lx": ("15b3:101f",),
    "connectx-7": ("15b3:1021",),
    "connectx-8": ("15b3:1023",),
    "bluefield-2": ("15b3:a2d6",),
    "bluefield-3": ("15b3:a2dc",),
    "e810": ("8086:1592", "8086:1593", "8086:159b"),
    "x710": ("8086:1572",),
    "x550": ("8086:1563",),
    "i350": ("8086:1521",),
    "bcm57414": ("14e4:16d7",),
    "bcm57508": ("14e4:1750",),
}
"""Name in small letters -> ids on the PCI bus. Of all others the class says the id itself: `15b3:1021`."""
_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}", re.ASCII)


def ids_of(model: str) -> tuple[str, ...]:
    """Its ids on the PCI bus, `15b3:1021`; none: nobody here knows it."""
    name = model.lower()
    return MODELS.get(name, (name,) * bool(_ID.fullmatch(name)))

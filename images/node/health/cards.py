"""Network cards that are known by name: their ids on the PCI bus, and the kernel module that drives them.

Sources: pci.ids (pci-ids.ucw.cz); Linux, the tables of ids of drivers/net/ethernet.
"""

import re
from dataclasses import dataclass

_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Card:
    """`ids`: vendor and device, as `lspci -n` has them."""

    driver: str
    ids: tuple[str, ...]


CARDS = {
    "connectx-4": Card("mlx5_core", ("15b3:1013",)),
    "connectx-4 lx": Card("mlx5_core", ("15b3:1015",)),
    "connectx-5": Card("mlx5_core", ("15b3:1017", "15b3:1019")),
    "connectx-6": Card("mlx5_core", ("15b3:101b",)),
    "connectx-6 dx": Card("mlx5_core", ("15b3:101d",)),
    "connectx-6 lx": Card("mlx5_core", ("15b3:101f",)),
    "connectx-7": Card("mlx5_core", ("15b3:1021",)),
    "connectx-8": Card("mlx5_core", ("15b3:1023",)),
    "bluefield-2": Card("mlx5_core", ("15b3:a2d6",)),
    "bluefield-3": Card("mlx5_core", ("15b3:a2dc",)),
    "e810": Card("ice", ("8086:1592", "8086:1593", "8086:159b")),
    "x710": Card("i40e", ("8086:1572",)),
    "x550": Card("ixgbe", ("8086:1563",)),
    "i350": Card("igb", ("8086:1521",)),
    "bcm57414": Card("bnxt_en", ("14e4:16d7",)),
    "bcm57508": Card("bnxt_en", ("14e4:1750",)),
}
"""By name in small letters. Of all others the class says the id itself: `15b3:1021`."""


def ids_of(model: str) -> tuple[str, ...]:
    """The ids of a model, or the id that it is; none: nobody knows it. Never raises."""
    name = model.lower()
    return CARDS[name].ids if name in CARDS else (name,) * bool(_ID.fullmatch(name))


def driver_of(model: str) -> str | None:
    """The module for a model, by its name or its id; None: nobody knows it. Never raises."""
    ids = ids_of(model)
    return next((card.driver for card in CARDS.values() if set(ids) & set(card.ids)), None)

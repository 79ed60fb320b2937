"""Where a site's inventory is declared: what files and custom resources have in common for whoever reads it."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from images.values.strict import Document, Fault
from netboot.machines.joining import Joining
from netboot.machines.values import Inventory


class Judged(NamedTuple):
    """An inventory, and what is wrong with that which was left out of it. `absent`: lists of an inventory, but
    for machines, of which nothing at all is declared, where that may be an accident."""

    inventory: Inventory
    left_out: tuple[Fault, ...] = ()
    absent: frozenset[str] = frozenset()


class Declarations(Protocol):
    """A place, as it is now."""

    where: str
    """What messages call it."""
    called: str
    """What there is there, as messages call it: files, or objects."""

    def paths(self) -> Iterable[Path]:
        """Files that are another, or others, when what is declared changes."""
        ...

    @property
    def by_content(self) -> bool:
        """Whether they have to be compared by content: they may be written in place."""
        ...

    def documents(self) -> tuple[list[Document], list[Fault]]:
        """What is declared, as it is written, and why some of it cannot be told."""
        ...

    def judged(self, joining: Joining | None) -> Judged:
        """What is declared. `joining`: what is asked of machines that join clusters; None: none do.

        Raises:
            images.values.strict.FaultsError: it cannot be an inventory; nothing of it counts.
        """
        ...

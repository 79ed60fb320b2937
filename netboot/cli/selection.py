"""`-l` and `--field-selector`: which machines a listing is about. The service selects, by the inventory."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypedDict

import click

from netboot.cli.client import Client

if TYPE_CHECKING:
    from netboot.client.models import MachineListed


class Asked(TypedDict):
    """Parameters of a list."""

    selector: str | None
    field_selector: str | None


@dataclass(frozen=True, slots=True)
class Selection:
    """What the options say; both None: every machine."""

    selector: str | None
    field_selector: str | None

    def __bool__(self) -> bool:
        return bool(self.selector or self.field_selector)

    @property
    def asked(self) -> Asked:
        """As the client takes it."""
        return {"selector": self.selector or None, "field_selector": self.field_selector or None}

    def machines(self, client: Client) -> "Iterator[MachineListed]":
        """Those that fit. Raises ClientError."""
        return client.machines.each(**self.asked)

    def names(self, client: Client) -> frozenset[str] | None:
        """Of those; None: whoever asked did not select. Raises ClientError."""
        return frozenset(machine["name"] for machine in self.machines(client)) if self else None


def selected(things: Iterable[Mapping[str, Any]]) -> list[str]:
    """Whose machines' they are, each once: for `-o name`."""
    return list(dict.fromkeys(str(each["machine"]) for each in things))


def selection_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add `-l` and `--field-selector`; the command gets a `selection`."""

    @wraps(function)
    def command(*arguments: Any, selector: str | None, field_selector: str | None, **others: Any) -> None:
        function(*arguments, selection=Selection(selector, field_selector), **others)

    for option in (
        click.option(
            "--field-selector", help="Machines whose rack, class, profile and the like fit: rack=r1,class!=dgx."
        ),
        click.option(
            "-l", "--selector", help="Machines whose Nodes' labels fit: gpu=h100,tier!=test,zone in (a,b),!spare."
        ),
    ):
        command = option(command)
    return command

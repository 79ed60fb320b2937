"""Lists about machines: of those whose labels and fields fit, as kubectl has selectors (docs/http-management.md)."""

from collections.abc import Callable, Sequence
from typing import Annotated, Protocol, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from netboot.machines import selectors
from netboot.machines.selectors import Requirement
from netboot.machines.values import Machine
from netboot.web.dependencies import dependencies
from netboot.web.pages import PageAsked, page

_TEXT = WithJsonSchema({"type": "string", "maxLength": selectors.LONGEST})


class OfMachine(Protocol):
    """Of which machine it is."""

    @property
    def machine(self) -> str:
        """Its name."""
        ...


T = TypeVar("T", bound=OfMachine)


class SelectAsked(PageAsked):
    """`selector`: of labels, `fieldSelector`: of fields, as kubectl has them."""

    labels: Annotated[tuple[Requirement, ...], BeforeValidator(selectors.parse), _TEXT] | None = Field(
        None, alias="selector"
    )
    fields: Annotated[tuple[Requirement, ...], BeforeValidator(selectors.parse_fields), _TEXT] | None = Field(
        None, alias="fieldSelector"
    )


def selected(query: SelectAsked) -> Sequence[Machine]:
    """Machines of the inventory that fit; all, where nothing is asked for. Raises NotReadyError."""
    machines: Sequence[Machine] = dependencies().live.view().snapshot.inventory.machines
    labels, fields = query.labels or (), query.fields or ()
    if not (labels or fields):
        return machines
    return [each for each in machines if selectors.fits(each, labels, fields)]


def part(query: SelectAsked, whole: Sequence[T], name_of: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """The page that was asked for, of things of machines that fit; where nothing is asked for, of all, also of who is
    not in the inventory any more. Names are unique.

    Raises:
        BadClaimError: as `page`. NotReadyError.
    """
    if query.labels or query.fields:
        fit = {each.name for each in selected(query)}
        whole = [each for each in whole if each.machine in fit]
    return page(query, whole, name_of)

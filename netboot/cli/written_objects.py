"""Enrolments and Holds in files, as `netboot export` writes them and `netboot backup` has them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import click
from pydantic import Field

from images.values import files, strict
from images.values.strict import Fault, FaultsError, Strict
from images.values.types import Name
from netboot.join.enrolment import Alert, Record
from netboot.join.enrolment_documents import EnrolmentSpec, EnrolmentStatus
from netboot.join.enrolment_objects import EnrolmentObject, record_of
from netboot.join.object_alerts import alerts_of
from netboot.lifecycle.holds import Hold

ENROLMENTS, HOLDS = "enrolments.yaml", "holds.yaml"


class Metadata(Strict):
    """Of an object in a file."""

    name: Name
    namespace: str = ""
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)


class _Object(Strict):
    apiVersion: Literal["netboot.dev/v1alpha1"]  # noqa: N815 - Kubernetes' own spelling
    metadata: Metadata


class EnrolmentWritten(_Object):
    """An Enrolment in a file."""

    kind: Literal["Enrolment"]
    spec: EnrolmentSpec = EnrolmentSpec()
    status: EnrolmentStatus = EnrolmentStatus()


class HoldWritten(_Object):
    """A Hold in a file."""

    kind: Literal["Hold"]
    spec: Hold


class _List(Strict):
    apiVersion: Literal["v1"]  # noqa: N815 - Kubernetes' own spelling
    kind: Literal["List"]


class Enrolments(_List):
    """The file of all."""

    items: tuple[EnrolmentWritten, ...]


class Holds(_List):
    """The file of all."""

    items: tuple[HoldWritten, ...]


M = TypeVar("M", Enrolments, Holds)


class Back(NamedTuple):
    """What files say: records, None where there is no file of enrolments; TPMs that were taken out of machines; alerts;
    and holds that have not ended."""

    records: Sequence[Record] | None
    replaced: Mapping[str, Sequence[str]]
    alerts: Sequence[Alert]
    holds: Sequence[HoldWritten]


def read(folder: Path, now_ms: int) -> Back:
    """What the files say.

    Raises:
        click.ClickException: there are none. images.values.strict.FaultsError: of the files; a machine is there twice.
    """
    enrolments, holds = _file(folder / ENROLMENTS, Enrolments), _file(folder / HOLDS, Holds)
    if enrolments is None and holds is None:
        raise click.ClickException(
            f"{folder} has neither {ENROLMENTS} nor {HOLDS}: name a folder that `netboot export` wrote"
        )
    items = enrolments.items if enrolments is not None else ()
    _refuse_twice(folder / ENROLMENTS, items)
    objects = [_object(each, now_ms) for each in items]
    held = holds.items if holds is not None else ()
    return Back(
        [record_of(each.name, each) for each in objects] if enrolments is not None else None,
        {each.name: each.spec.replaced for each in objects if each.spec.replaced},
        [alert for each in objects for alert in alerts_of(each)],
        [each for each in held if each.spec.until_ms is None or now_ms < each.spec.until_ms],
    )


def _file(path: Path, model: type[M]) -> M | None:
    return strict.load(path, model) if files.look(path) is not None else None


def _refuse_twice(file: Path, items: Sequence[EnrolmentWritten]) -> None:
    """Which of two counts would be left to their order."""
    first: dict[str, int] = {}
    faults = [
        Fault(
            str(file), 0, f"items[{number}].metadata.name", f"{name} is that of items[{first[name]}], too: take one out"
        )
        for number, name in enumerate(each.metadata.name for each in items)
        if first.setdefault(name, number) != number
    ]
    if faults:
        raise FaultsError(faults)


def _object(written: EnrolmentWritten, now_ms: int) -> EnrolmentObject:
    return EnrolmentObject(written.metadata.name, "", "", 0, now_ms, written.spec, written.status)

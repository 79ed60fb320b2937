"""`netboot migrate --to files`: what `netboot export` wrote of enrolments and holds is on record on this host again."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import click
from pydantic import Field

from images.values import files, strict
from images.values.strict import Strict
from images.values.types import Name
from netboot.cli.ends import failed
from netboot.cli.export import ENROLMENTS, HOLDS
from netboot.cli.file_acts import record
from netboot.cli.output import say, show
from netboot.join.enrolment import Act, Record
from netboot.join.enrolment_documents import EnrolmentSpec, EnrolmentStatus
from netboot.join.enrolment_objects import EnrolmentObject, record_of
from netboot.join.errors import RefusedError
from netboot.join.object_alerts import alerts_of
from netboot.lifecycle.holds import Hold, is_object, shown
from netboot.lifecycle.intents import Intent, PutOn
from netboot.lifecycle.transitions import Mark
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.intents import SqliteIntents
from netboot.stores.lock import AlreadyRunningError, sole_instance

if TYPE_CHECKING:
    from netboot.config import Config


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
    """What files say: records that say anything, TPMs that were taken out of machines, the objects for their alerts,
    and holds that have not ended."""

    records: Sequence[Record] | None
    replaced: Mapping[str, Sequence[str]]
    objects: Sequence[EnrolmentObject]
    holds: Sequence[HoldWritten]


def to_files(settings: "Config", folder: Path, output: str, *, dry_run: bool) -> None:
    """Have on record what the files of `folder` say: of enrolments this and nothing else, of holds what does not stand
    yet.

    Raises:
        click.ClickException: the folder has neither, the service runs, or what was written is read otherwise.
        images.values.strict.FaultsError: of the files. StateUnavailableError.
    """
    now_ms = round(time() * 1000)
    back = read(folder, now_ms)
    lock = sole_instance(settings.data / "lock") if settings.data.is_dir() and not dry_run else nullcontext()
    try:
        with lock:
            enrolled = _enrolments(settings, back, now_ms, dry_run=dry_run)
            held = _holds(settings, back, now_ms, dry_run=dry_run)
    except (AlreadyRunningError, RefusedError) as error:
        raise failed(error) from None
    value: dict[str, Any] = {"dry_run": dry_run, "enrolments": enrolled, "holds": held}
    rows = [(name, counts["changed"], counts["same"]) for name, counts in value.items() if isinstance(counts, dict)]
    show(output, value, ("what", "would be changed" if dry_run else "changed", "the same already"), rows)
    if output == "table":
        if enrolled and enrolled["gone"]:
            say(f"\non record no more, for no Enrolment is in the file: {', '.join(enrolled['gone'])}")
        say("\nNothing was written." if dry_run else f"\nVerified: on record is what {folder} says.")


def read(folder: Path, now_ms: int) -> Back:
    """What the files say.

    Raises:
        click.ClickException: there are none. images.values.strict.FaultsError.
    """
    enrolments, holds = _file(folder / ENROLMENTS, Enrolments), _file(folder / HOLDS, Holds)
    if enrolments is None and holds is None:
        raise click.ClickException(
            f"{folder} has neither {ENROLMENTS} nor {HOLDS}: name a folder that `netboot export` wrote"
        )
    objects = [_object(each, now_ms) for each in (enrolments.items if enrolments is not None else ())]
    held = holds.items if holds is not None else ()
    return Back(
        [*filter(_says, (record_of(each.name, each) for each in objects))] if enrolments is not None else None,
        {each.name: each.spec.replaced for each in objects if each.spec.replaced},
        objects,
        [each for each in held if each.spec.until_ms is None or now_ms < each.spec.until_ms],
    )


def _file(path: Path, model: type[M]) -> M | None:
    return strict.load(path, model) if files.look(path) is not None else None


def _object(written: EnrolmentWritten, now_ms: int) -> EnrolmentObject:
    return EnrolmentObject(written.metadata.name, "", "", 0, now_ms, written.spec, written.status)


def _says(record: Record) -> bool:
    return record.enrolment() != Record(machine=record.machine).enrolment()


def _enrolments(settings: "Config", back: Back, now_ms: int, *, dry_run: bool) -> dict[str, Any] | None:
    """Raises click.ClickException: nothing at all would be on record any more: more likely an accident than meant."""
    if back.records is None:
        return None
    file = settings.data / "enrolment.db"
    store = SqliteEnrolments(file)
    before = {one.machine: one.enrolment() for one in store.records()} if file.exists() else {}
    ours = {one.machine: one.enrolment() for one in back.records}
    changed = [name for name in sorted(ours) if before.get(name) != ours[name]]
    gone = sorted(before.keys() - ours.keys())
    if gone and not ours:
        raise click.ClickException(
            f"{ENROLMENTS} says nothing of any machine, and {len(gone)} are on record: give another folder, or take "
            "that file out of this one"
        )
    if not dry_run:
        alerts = [alert for each in back.objects for alert in alerts_of(each)]
        store.have(back.records, back.replaced, alerts, Act("files"), now_ms)
        after = {one.machine: one.enrolment() for one in store.records()}
        if wrong := [name for name in sorted({*after, *ours}) if after.get(name) != ours.get(name)]:
            raise click.ClickException(f"what is read of {file} is another thing of {', '.join(wrong)}: give it again")
        record(
            settings.data,
            "migrate-to-files",
            {"enrolments": len(ours)},
            before={},
            after={"changed": changed, "gone": gone},
        )
    return {"changed": len(changed), "same": len(ours) - len(changed), "gone": gone}


def _holds(settings: "Config", back: Back, now_ms: int, *, dry_run: bool) -> dict[str, int] | None:
    """A machine that an object held is held still: what it held stands on each disk that followed it."""
    if not back.holds:
        return None
    store = SqliteIntents(settings.data / "intents.db")
    standing = [one for one in store.all(now_ms) if one.mark is Mark.HELD]
    missing = [each for each in back.holds if not any(_is(one, each) for one in standing)]
    for each in () if dry_run else missing:
        order = PutOn(Mark.HELD, each.spec.reason, each.spec.until_ms)
        store.order(each.spec.machine, order, each.spec.by or shown(each.metadata.name), now_ms)
    machines = [each.spec.machine for each in missing]
    if machines and not dry_run:
        record(settings.data, "migrate-to-files", {"holds": len(machines)}, before={}, after={"held": machines})
    return {"changed": len(missing), "same": len(back.holds) - len(missing)}


def _is(standing: Intent, written: HoldWritten) -> bool:
    """Whether it is held so: by that object, or by people who want the same."""
    if is_object(standing):
        return standing.owner.rpartition("/")[2] == written.metadata.name
    same = (standing.machine, standing.reason, standing.until_ms)
    return same == (written.spec.machine, written.spec.reason, written.spec.until_ms)

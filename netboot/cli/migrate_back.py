"""`netboot migrate --to files`: what `netboot export` wrote of enrolments and holds is on record on this host again."""

import pwd
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import click

from netboot.cli import ownership
from netboot.cli.ends import failed
from netboot.cli.file_acts import record
from netboot.cli.outcomes import NOT_ALLOWED, ApiError, cannot
from netboot.cli.output import say, show
from netboot.cli.site_objects import ran
from netboot.cli.written_holds import HoldOrders, is_held_so, orders, who_of
from netboot.cli.written_objects import ENROLMENTS, HOLDS, Back, read
from netboot.join.enrolment import Act
from netboot.join.errors import RefusedError
from netboot.join.on_record import NOTHING, OnRecord, differences, on_record
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intents import Intent
from netboot.lifecycle.transitions import Mark
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.intents import SqliteIntents, make
from netboot.stores.lock import AlreadyRunningError, sole_instance

if TYPE_CHECKING:
    from netboot.config import Config

_YES = (
    "see that this is meant, and that {} is no older than what is on record here; then give the command again with "
    "--yes, or correct the file"
)
_AGAIN = "look at what else writes there, then give the same command again"


def to_files(
    settings: "Config", folder: Path, output: str, *, dry_run: bool, yes: bool, owner: pwd.struct_passwd | None
) -> None:
    """Have on record what the files of `folder` say: of enrolments this and nothing else, of holds what does not stand
    yet. `yes`: also where something is undone by it that is not made again by itself; `owner`: of the site's state.

    Raises:
        click.ClickException: the folder has neither, the service runs, or what was written is read otherwise.
        images.values.strict.FaultsError: of the files. StateUnavailableError.
    """
    now_ms = round(time() * 1000)
    back = read(folder, now_ms)
    try:
        if not dry_run:
            _make_folder(settings, owner)
        with nullcontext() if dry_run else sole_instance(settings.data / "lock"):
            enrolled, held = _moved(settings, folder, back, now_ms, dry_run=dry_run, yes=yes)
    except (AlreadyRunningError, RefusedError) as error:
        raise failed(error) from None
    _show(settings, folder, output, enrolled, held, dry_run=dry_run)


def _make_folder(settings: "Config", owner: pwd.struct_passwd | None) -> None:
    try:
        if owner is not None:
            ownership.make_state(settings, owner)
        settings.data.mkdir(mode=0o750, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot(f"cannot make {error.filename}", error) from None


def _moved(
    settings: "Config", folder: Path, back: Back, now_ms: int, *, dry_run: bool, yes: bool
) -> tuple[dict[str, Any] | None, dict[str, int] | None]:
    """First all is looked at: what is refused, or cannot be read, leaves both as they are."""
    intents = SqliteIntents(settings.data / "intents.db")
    standing = _standing(settings, intents, back, now_ms)
    ordered = orders(back.holds, standing or (), now_ms)
    before = _stands(settings.data / "enrolment.db", now_ms)
    if back.records is not None:
        _require_meant(folder, before, _wanted(back, now_ms), yes=yes)
    if not dry_run and standing is None:
        make(settings.data / "intents.db").close()
    enrolled = _enrolments(settings, back, before, now_ms, dry_run=dry_run)
    if not back.holds:
        return enrolled, None
    if not dry_run:
        _put_on(settings, intents, back, ordered, now_ms)
    return enrolled, {"changed": len(ordered.missing), "same": ordered.same}


def _show(
    settings: "Config",
    folder: Path,
    output: str,
    enrolled: dict[str, Any] | None,
    held: dict[str, int] | None,
    *,
    dry_run: bool,
) -> None:
    keys = [*_read_of_objects(settings, enrolled, held)]
    value: dict[str, Any] = {"dry_run": dry_run, "enrolments": enrolled, "holds": held, "read_of_objects": keys}
    rows = [(name, counts["changed"], counts["same"]) for name, counts in value.items() if isinstance(counts, dict)]
    show(output, value, ("what", "would be changed" if dry_run else "changed", "the same already"), rows)
    if output == "table":
        for name, words in (enrolled["machines"] if enrolled else {}).items():
            say(f"  {name}: {'; '.join(words)}")
        if enrolled and enrolled["gone"]:
            say(f"\non record no more, for no Enrolment is in the file: {', '.join(enrolled['gone'])}")
        say("\nNothing was written." if dry_run else f"\nVerified: on record is what {folder} says.")
    for key in keys:
        say(f"WARNING: with {key} in netboot.yaml the service reads objects, and not this: take it out", err=True)


def _read_of_objects(settings: "Config", enrolled: object, held: object) -> Iterator[str]:
    """Keys of the configuration by which what is on record here does not count."""
    if settings.state is not None:
        yield "state"
        return
    if enrolled is not None and settings.enrolments_kubernetes is not None:
        yield "enrolments_kubernetes"
    if held is not None and settings.inventory_kubernetes is not None and settings.inventory_kubernetes.holds:
        yield "inventory_kubernetes.holds"


def _wanted(back: Back, now_ms: int) -> OnRecord:
    return on_record(back.records or (), back.replaced, back.alerts, now_ms)


def _stands(file: Path, now_ms: int) -> OnRecord:
    if not file.exists():
        return NOTHING
    store = SqliteEnrolments(file)
    return on_record(store.records(), store.replaced(), store.all_alerts(), now_ms)


def _require_meant(folder: Path, before: OnRecord, wanted: OnRecord, *, yes: bool) -> None:
    """Raises click.ClickException: nothing at all would be on record any more, more likely an accident than meant; or
    something would be undone, and nobody said that this is wanted."""
    if before.machines and not wanted.machines:
        raise click.ClickException(
            f"{ENROLMENTS} says nothing of any machine, and {len(before.machines)} are on record: give another folder, "
            "or take that file out of this one"
        )
    undone = [
        f"{name}: {'; '.join(words)}"
        for name, each in differences(before, wanted).items()
        if (words := [one.words for one in each if one.loses])
    ]
    if undone and not yes:
        told = "\n".join(("nothing was written, for this would be undone:", *undone))
        raise ApiError(told, _YES.format(folder / ENROLMENTS), NOT_ALLOWED)


def _enrolments(
    settings: "Config", back: Back, before: OnRecord, now_ms: int, *, dry_run: bool
) -> dict[str, Any] | None:
    """Raises click.ClickException: what is read afterwards is another thing."""
    if back.records is None:
        return None
    file, wanted = settings.data / "enrolment.db", _wanted(back, now_ms)
    apart = {name: [one.words for one in each] for name, each in differences(before, wanted).items()}
    gone = sorted(before.machines - wanted.machines)
    changed = [name for name in apart if name not in gone]
    if not dry_run:
        SqliteEnrolments(file).have([*wanted.records.values()], back.replaced, back.alerts, Act("files"), now_ms)
        if wrong := differences(wanted, _stands(file, now_ms)):
            raise ApiError(f"what is read of {file} is another thing of {', '.join(wrong)}", _AGAIN, 1)
        record(
            settings.data,
            "migrate-to-files",
            {"enrolments": len(wanted.machines)},
            before={},
            after={"changed": changed, "gone": gone, "machines": apart},
        )
    return {"changed": len(changed), "same": len(wanted.machines) - len(changed), "gone": gone, "machines": apart}


def _standing(settings: "Config", store: SqliteIntents, back: Back, now_ms: int) -> list[Intent] | None:
    """What holds machines; None: of a host that never ran nothing does, and the file is to be made.

    Raises:
        StateUnavailableError: it cannot be told.
    """
    if not ran(settings):
        return None
    if not back.holds:
        return []
    try:
        return [one for one in store.all(now_ms) if one.mark is Mark.HELD]
    except StateUnavailableError as error:
        if (settings.data / "intents.db").exists():
            raise
        raise StateUnavailableError(
            f"nothing was written: {error}: put that file of a backup there, or start the service once, which makes one"
        ) from None


def _put_on(settings: "Config", store: SqliteIntents, back: Back, ordered: HoldOrders, now_ms: int) -> None:
    """Raises ApiError: a machine is not held so afterwards."""
    for each, order in ordered.missing:
        store.order(each.spec.machine, order, who_of(each), now_ms)
    standing = [one for one in store.all(now_ms) if one.mark is Mark.HELD]
    wrong = sorted({each.spec.machine for each in back.holds if not any(is_held_so(one, each) for one in standing)})
    if wrong:
        raise ApiError(f"{HOLDS} holds machines that are not held so now: {', '.join(wrong)}", _AGAIN, 1)
    if machines := [each.spec.machine for each, _ in ordered.missing]:
        record(settings.data, "migrate-to-files", {"holds": len(machines)}, before={}, after={"held": machines})

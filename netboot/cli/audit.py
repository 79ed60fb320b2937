"""`netboot image audit`: known vulnerabilities of an image, by what its distribution has published; offline."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from images.artifact import advisories
from images.artifact.advisories import Advisory, BadDataError
from images.artifact.audit import Source, State, Verdict, pairs, sources, verdicts
from images.artifact.data_date import UNKNOWN, By, DataDate
from images.artifact.manifest import Manifest
from images.artifact.measure import blocks
from images.errors import NotFoundError
from images.store.lookup import resolve
from images.store.store import Store
from images.values.debian_versions import earlier
from netboot.cli import complete
from netboot.cli.given_files import NamedFile
from netboot.cli.outcomes import CANNOT_TELL, VERDICT
from netboot.cli.output import output_option, progress, show
from netboot.cli.paths import Paths, paths_options

FIXABLE, UNFIXED = VERDICT, VERDICT + 1
_STATES: tuple[State, ...] = ("affected", "unknown", "fixed", "not-affected")
_BY: dict[By, str] = {
    "newest record": ", its newest record",
    "file": ", the file's own date: the tracker has none in it",
    "unknown": "",
}
_SHOWN = frozenset({"affected", "unknown"})


@click.command("audit")
@click.argument("image", shell_complete=complete.images)
@click.option(
    "--data",
    "data",
    type=NamedFile(),
    required=True,
    multiple=True,
    help="File of Debian's security tracker (JSON) or of OSV records (JSON, zip, tar); again for more.",
)
@click.option("--all", "whole", is_flag=True, help="Rows of what is fixed or not affected, too.")
@paths_options(keys=False)
@output_option
def audit(image: str, data: tuple[Path, ...], whole: bool, paths: Paths, output: str) -> None:
    """Compare the packages of IMAGE with what is known of vulnerabilities. Nothing is fetched and nothing changed.

    Source packages are looked up by the image's bill of materials, compiled drivers' too; versions are compared by
    dpkg. Where to get the files, and what is not told by them: docs/audit.md.

    \b
      affected      the version in the image is; `fixed in`: the version that is not, where there is one
      unknown       the data does not know
      fixed         the version in the image has the fix
      not-affected  no version of this release was, or this one is older than the fault

    \b
    Exit status: 0 nothing is affected or unknown, 1 failed, 2 wrong usage,
    5 cannot tell: something is unknown and nothing affected, or packages are not the distribution's,
    6 affected, and a fix is published: build the image again, 7 affected, and no fix is published for any of it.

    \b
    Example:
      netboot image audit debian-12-cpu --data tracker.json
      netboot image audit ubuntu-24.04-cpu --data osv.tar.xz --output json | jq .summary
    """
    opened = Store(paths.store)
    digest = resolve(opened, image)
    manifest = opened.manifest(digest)
    every = _sources(opened, manifest, digest)
    found = tuple(source for source in every if source.publisher == manifest.distribution)
    others = tuple(source for source in every if source.publisher != manifest.distribution)
    dates = {path: DataDate(datetime.now(UTC)) for path in data}
    known = _known(dates, manifest, {source.name for source in found})
    warnings = [_stale(path, date) for path, date in dates.items() if date.stale]
    rows = _judged(found, known)
    counted = Counter(row.state for row in rows)
    summary = {state: counted[state] for state in _STATES}
    value = {
        "image": digest,
        "name": manifest.name,
        "data": [{"file": str(path), "as_of": str(date), "by": date.by} for path, date in dates.items()],
        "data_as_of": _oldest(dates.values()),
        "warnings": warnings,
        "sources": len(found),
        "with_entries": len({row.package for row in rows}),
        "summary": summary,
        "vulnerabilities": [dataclasses.asdict(row) for row in rows],
        "not_looked_up": [dataclasses.asdict(source) for source in others],
    }
    shown = [row for row in rows if whole or row.state in _SHOWN]
    columns = ("vulnerability", "source package", "version", "state", "fixed in", "urgency")
    cells = [(row.id, row.package, row.version, row.state, row.fixed, row.urgency) for row in shown]
    show(output, value, columns, cells, "nothing is affected or unknown")
    if output == "table":
        _tell(value["name"], summary, len(found), others)
        for path, date in dates.items():
            click.echo(f"data of {path}: as of {date}{_BY[date.by]}")
    for warning in warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)
    status = _exit(rows, others)
    if status:
        raise click.exceptions.Exit(status)


def _sources(store: Store, manifest: Manifest, digest: str) -> tuple[Source, ...]:
    bill = manifest.artifacts.sbom
    if bill is None:
        raise NotFoundError(
            f"image {digest[:12]} has no bill of materials: the netboot that built it made none; build it again"
        )
    return sources(b"".join(blocks(store.blob_path(bill.sha256))))


def _oldest(dates: Iterable[DataDate]) -> str:
    """Of several files the oldest: nothing after it is known of all. Unknown where one is."""
    known = {date.as_of: str(date) for date in dates}
    return UNKNOWN if None in known else known[min(one for one in known if one is not None)]


def _stale(path: Path, date: DataDate) -> str:
    assert date.as_of is not None
    days = (date.now - date.as_of).days
    return f"{path} is as of {date}, {days} days ago: what was published since is not in it; fetch it again"


def _known(data: Mapping[Path, DataDate], manifest: Manifest, wanted: set[str]) -> Mapping[str, list[Advisory]]:
    """What the files say of these source packages.

    Raises:
        BadDataError: one says nothing of the image's release.
    """
    known: dict[str, list[Advisory]] = {}
    for path, date in data.items():
        of_release = 0
        with progress(f"reading {path.name}", path.stat().st_size) as done:
            for advisory in advisories.read(path, manifest.distribution, manifest.suite, done, date):
                of_release += 1
                if advisory.package in wanted:
                    known.setdefault(advisory.package, []).append(advisory)
        if not of_release:
            raise BadDataError(
                f"{path} says nothing of {manifest.distribution} {manifest.suite}, which the image is of: "
                "no answer can be had from it (docs/audit.md says which files there are)"
            )
    return known


def _judged(found: tuple[Source, ...], known: Mapping[str, list[Advisory]]) -> tuple[Verdict, ...]:
    wanted = set(pairs(found, known))
    with progress("comparing versions", len(wanted), in_bytes=False) as done:
        return verdicts(found, known, earlier(wanted, done))


def _exit(rows: tuple[Verdict, ...], others: tuple[Source, ...]) -> int:
    affected = [row for row in rows if row.state == "affected"]
    if affected:
        return FIXABLE if any(row.fixed for row in affected) else UNFIXED
    return CANNOT_TELL if others or any(row.state == "unknown" for row in rows) else 0


def _tell(name: object, summary: Mapping[State, int], looked_up: int, others: tuple[Source, ...]) -> None:
    counts = ", ".join(f"{count} {state}" for state, count in summary.items())
    click.echo(f"\n{name}: {looked_up} source packages looked up; {counts}")
    if others:
        named = ", ".join(sorted({f"{source.name} ({source.publisher})" for source in others}))
        click.echo(f"not looked up, for they are not the distribution's: {named}")

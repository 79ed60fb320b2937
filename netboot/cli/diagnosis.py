"""What `netboot doctor` says of one thing that it looked at, as it is printed; and its look at the store."""

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import click

from images.store import modes
from netboot.cli.tls import pair_fault
from netboot.config import Config
from netboot.confine.access import exposed, strays
from netboot.confine.enter import shortcomings
from netboot.dhcp.binaries import lacking
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.values import Inventory
from netboot.stores import leftovers, proofkey


class Diagnosis(NamedTuple):
    """One thing that was looked at. `where`: site, service, or a cluster by its name; `outcome`: `unknown`: somebody
    asked for it, and it cannot be told."""

    where: str
    name: str
    outcome: Literal["ok", "warn", "refuse", "advice", "unknown"]
    words: str
    remedy: str = ""


_MARKS = {"ok": "ok", "advice": "note", "unknown": "?", "warn": "WARN", "refuse": "FAIL"}
_COLOURS = {"unknown": "yellow", "warn": "yellow", "refuse": "red"}


def show(diagnosis: Diagnosis) -> None:
    """For people."""
    mark = click.style(f"{_MARKS[diagnosis.outcome]:4}", fg=_COLOURS.get(diagnosis.outcome))
    click.echo(f"{mark}  {diagnosis.where}: {diagnosis.name}: {diagnosis.words}")
    if diagnosis.remedy:
        click.echo(f"      → {diagnosis.remedy}")


def sum_up(diagnoses: Sequence[Diagnosis]) -> None:
    """How many there are of each."""
    wrong = sum(diagnosis.outcome == "refuse" for diagnosis in diagnoses)
    doubtful = sum(diagnosis.outcome == "warn" for diagnosis in diagnoses)
    unknown = sum(diagnosis.outcome == "unknown" for diagnosis in diagnoses)
    warned = f"{doubtful} warning{'' if doubtful == 1 else 's'}"
    more = f", {unknown} that cannot be told" if unknown else ""
    click.echo(f"\n{len(diagnoses)} looked at: {wrong} wrong, {warned}{more}")


def ipxe(config: Config, inventory: Inventory | None) -> Iterator[Diagnosis]:
    """What machines will ask for below `/ipxe/`, or of a TFTP server that is filled from here, in vain."""
    machines = inventory.machines if inventory is not None else ()
    lacks = lacking(config.provisioning.ipxe, arm64=any(one.architecture == "arm64" for one in machines))
    if lacks:
        yield Diagnosis("service", "ipxe", "warn", lacks, "then restart the service; see docs/dhcp.md")


def confinement(config: Config) -> Iterator[Diagnosis]:
    """Whether the kernel of this machine, and where this site's files are, keep the service's processes apart."""
    lacks = shortcomings()
    for lack in lacks:
        remedy = "a newer kernel, or Landlock among its `lsm=`; see docs/operations.md"
        yield Diagnosis("service", "confinement", "warn", f"this kernel cannot enforce {lack}", remedy)
    problems = [*exposed(config), *strays(config)]
    for problem in problems:
        yield Diagnosis("service", "confinement", "warn", problem)
    if not lacks and not problems:
        yield Diagnosis("service", "confinement", "ok", "this kernel keeps each process to what it needs")


def store(config: Config) -> Iterator[Diagnosis]:
    """Whether the account whose `data` is can write the store, and a file server's read it."""
    try:
        ours = config.data.stat()
        closed, unread = modes.unwritable(config.store, ours.st_uid, ours.st_gid), modes.unreadable(config.store)
    except FileNotFoundError:  # the first start makes them
        return
    except OSError as error:
        yield Diagnosis(
            "service", "store", "warn", f"cannot be told: {error.filename}: {error.strerror}", "ask as root"
        )
        return
    user = modes.name_of(ours.st_uid)
    if closed:
        remedy = f"`chown -R {user}: {config.store}`; what root puts there later is {user}'s by itself (docs/store.md)"
        yield Diagnosis("service", "store", "warn", f"{user} cannot write to {_some(closed)}", remedy)
    if unread:
        words = f"another account, a file server's for one, cannot look into {_some(unread)}"
        yield Diagnosis("service", "store", "warn", words, f"`chmod -R a+rX {config.store}`, if one shall")
    if not closed and not unread:
        yield Diagnosis("service", "store", "ok", f"{user} can write to it, and everybody read")


def blocks(config: Config) -> Iterator[Diagnosis]:
    """Whether the file system of `data` could kill a process as it fills up: SQLite maps files into which it wrote one
    byte a page, and of smaller blocks a page has more than one (docs/operations.md#disk-full)."""
    page = mmap.PAGESIZE
    with suppress(OSError):  # the first start makes it, and says why it cannot
        block = os.statvfs(config.data).f_frsize
        if block < page:
            words = f"the file system of {config.data} has blocks of {block} bytes, less than a page ({page})"
            remedy = (
                "full, this one may end a process: after `netboot backup`, make one with blocks of a page on a new, "
                "empty disk (`mkfs.ext4 -b 4096` erases what it is given), and restore there"
            )
            yield Diagnosis("service", "data", "warn", words, remedy)


def join(config: Config) -> Iterator[Diagnosis]:
    """Its certificate, and that there is something to be joined."""
    settings = config.join
    if settings is None:
        if config.clusters:
            message = "there are clusters, and no `join`: no machine can prove itself here"
            yield Diagnosis("join", "configured", "refuse", message, "add `join` to the configuration")
        return
    fault = pair_fault(settings.url, settings.certificate, settings.key, settings.authorities)
    remedy = "issue a certificate for the host of join.url by one of join.authorities; see docs/configuration.md"
    if fault:
        yield Diagnosis("join", "certificate", "refuse", fault, remedy)
    else:
        yield Diagnosis("join", "certificate", "ok", f"{settings.certificate}, for {settings.url}")
    if not config.clusters:
        message = "there is `join`, and no cluster to be joined"
        yield Diagnosis("join", "configured", "refuse", message, "add `clusters` to the configuration")


def proofs(config: Config) -> Iterator[Diagnosis]:
    """What keeps boots from being proven, where they are to be."""
    try:
        proofkey.signing_key(config.proof_key, lambda: any(proofkey.folder_of(config).glob("*.pub")))
    except CannotTellError as error:
        yield Diagnosis("join", "proof_key", "warn", str(error), "see docs/proof.md#keys; boots are proven later")


def left_over(folders: Iterable[Path]) -> Iterator[Diagnosis]:
    """Temporary files with secrets that nobody removes: a backup elsewhere is found by the next one there."""
    for path in sorted({each for folder in folders for each in leftovers.left(folder)}):
        words = f"{path} has secrets in it, left by a backup, or its restoring, that was killed"
        yield Diagnosis("site", "leftovers", "warn", words, f"`rm -r {path}`, as root or as who owns it")


def _some(paths: tuple[Path, ...]) -> str:
    return f"{paths[0]}" + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")

"""`netboot migrate`: what a site has on its disk becomes objects of Kubernetes."""

import pwd
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from netboot.cli import init_options, read_back
from netboot.cli.dry_run import local_dry_run_option
from netboot.cli.file_acts import Stood, record, recorded
from netboot.cli.given_files import NamedFile, NamedFolder
from netboot.cli.migrate_next import Done, how_far, show_end
from netboot.cli.outcomes import NOT_ALLOWED, ApiError
from netboot.cli.output import output_option, progress
from netboot.cli.paths import config_option, find_config
from netboot.cli.site_objects import Site, namespace_of, site_of

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.kube.admin_objects import AdminObjects
    from netboot.kube.connection import Connection
    from netboot.kube.moved import Plan

_ASIDE = (
    "look at each with `kubectl get -o yaml`; change it, or the file, until both say the same, or delete it where it "
    "is not meant, then give the command again"
)
_REFUSED = "put that right where it is declared, then give the command again"


@click.command()
@click.option(
    "--to", type=click.Choice(("kubernetes", "files")), required=True, help="Objects of an API server, or back."
)
@click.option(
    "--admin-kubeconfig",
    type=NamedFile(),
    help="To kubernetes: of who may read definitions and make objects of netboot.dev; used now, and not kept.",
)
@click.option("--rollouts", is_flag=True, help="To kubernetes: where channels point, and rollouts, for replicas, too.")
@click.option("--from", "folder", type=NamedFolder(), help="To files: the folder that `netboot export` wrote.")
@click.option("--yes", is_flag=True, help="To files: also where a retirement, a TPM taken out or the like is undone.")
@click.option(
    "--owner", callback=init_options.account, help="To files, as root: account of the service; it gets data and store."
)
@click.option("--namespace", help="Of the objects.  [default: that of the configuration, else netboot]")
@local_dry_run_option
@config_option
@output_option
def command(
    to: str,
    admin_kubeconfig: Path | None,
    rollouts: bool,
    folder: Path | None,
    yes: bool,
    owner: pwd.struct_passwd | None,
    namespace: str | None,
    dry_run: bool,
    config: Path | None,
    output: str,
) -> None:
    """Make objects of Kubernetes of inventory, enrolments and holds of people on this site's disk; or go back to files.

    The files of `inventory` become Machines, Profiles, Channels, MachineClasses, Racks and MaintenanceWindows;
    data/enrolment.db Enrolments with their status; holds of people that are in force Holds. What the configuration
    says to be objects already (`inventory_kubernetes`, `enrolments_kubernetes`) is not moved; holds of people are in
    any case, also one of which somebody has deleted the object since.

    First everything is looked at, and tried by the API server: where an object says another thing, or one would be
    refused, each is named and nothing is written. What is there and says the same is passed over, so after an
    interruption or an error the same command goes on. In the end all is read back as the service reads it, and
    compared. Nothing on the disk is changed. Boots and the audit stay there.

    With --rollouts where channels point becomes objects as well, and the last rollout of each with its machines, which
    goes on from there: for several replicas (`state: {kubernetes: {}}`), which read these before anything else. Give it
    at one host, and put that key there before anybody sets a channel again.

    Back, --to files has on record on this host what `netboot export` wrote of enrolments and holds: of enrolments that
    and nothing else. Where a machine would come out of retirement, a TPM that was taken out be forgotten, a generation
    fall or an alert vanish, each is named, and without --yes nothing is written. Files of the inventory are put in
    place by hand. What root makes in `data` is of whom that folder is.

    Stop the service first: what it wrote meanwhile would be in no object. --dry-run may be given while it runs.

    \b
      kubectl create namespace netboot
      netboot cluster crds | kubectl apply -f -
      netboot migrate --to kubernetes --admin-kubeconfig ~/.kube/config --dry-run
      systemctl stop netboot
      netboot migrate --to kubernetes --admin-kubeconfig ~/.kube/config

    \b
      netboot export --to exported
      netboot migrate --to files --from exported
    """
    settings = find_config(config)
    if to == "files":
        from netboot.cli.migrate_back import to_files

        if folder is None or admin_kubeconfig is not None or namespace is not None or rollouts:
            raise click.UsageError("--to files takes --from, and nothing of a cluster: give the folder of an export")
        to_files(settings, folder, output, dry_run=dry_run, yes=yes, owner=owner)
        return
    if admin_kubeconfig is None or folder is not None or yes or owner is not None:
        raise click.UsageError("--to kubernetes takes --admin-kubeconfig, and no folder, --yes, --owner: give that")
    place = settings.inventory_kubernetes
    if rollouts and place is not None and place.orders is not None:
        raise click.UsageError("by inventory_kubernetes.orders rollouts are objects already: leave --rollouts out")
    _to_kubernetes(settings, admin_kubeconfig, namespace, output, rollouts=rollouts, dry_run=dry_run)


def _to_kubernetes(
    settings: "Config", kubeconfig: Path, namespace: str | None, output: str, *, rollouts: bool, dry_run: bool
) -> None:
    from netboot.cli.ends import failed
    from netboot.kube.connection import connect
    from netboot.stores.lock import AlreadyRunningError, sole_instance

    space = namespace_of(settings, namespace)
    lock = sole_instance(settings.data / "lock") if settings.data.is_dir() and not dry_run else nullcontext()
    try:
        with lock:
            connection = connect(kubeconfig)
            try:
                site, done = _migrated(connection, settings, space, rollouts=rollouts, dry_run=dry_run)
            finally:
                connection.close()
    except AlreadyRunningError as error:
        raise failed(error) from None
    show_end(output, settings, space, site.wanted, done, kubeconfig)


def _migrated(
    connection: "Connection", settings: "Config", space: str, *, rollouts: bool, dry_run: bool
) -> tuple[Site, Done]:
    """Do it, and look whether it is done."""
    from netboot.kube.admin_objects import AdminObjects

    admin = AdminObjects(connection, space)
    admin.require_kinds()
    site = site_of(settings, space, rollouts=rollouts)
    planned = _looked_at(admin, site)
    if planned.faults:
        raise ApiError("\n".join(("nothing was written:", *planned.faults)), _ASIDE, NOT_ALLOWED)
    _try(admin, planned)
    if not dry_run:
        _make(admin, settings, space, planned)
        if wrong := [*_wrong(admin, settings, connection, space, site)]:
            raise ApiError("\n".join(("what is there now is another thing than on the disk:", *wrong)), _ASIDE, 1)
    missing, there = (Counter(each["kind"] for each in some) for some in (planned.missing, planned.there))
    return site, Done(missing, there, site.inventory is not None, site.enrolled is not None, rollouts, dry_run)


def _looked_at(admin: "AdminObjects", site: Site) -> "Plan":
    """What is to be made, by what is there."""
    from netboot.kube.moved import BY_KIND, plan
    from netboot.kube.resources.kinds import KINDS

    whole = frozenset(kind.kind for kind in KINDS.values()) if site.inventory is not None else frozenset[str]()
    kinds = sorted(whole | {each["kind"] for each in site.documents})
    return plan(site.documents, {kind: admin.things(BY_KIND[kind]) for kind in kinds}, whole)


def _try(admin: "AdminObjects", planned: "Plan") -> None:
    """Have the API server judge each.

    Raises:
        ApiError: some would be refused; each is named.
    """
    from netboot.join.errors import ConflictError, InvalidError
    from netboot.kube.moved import BY_KIND, named

    refused = []
    with progress("tried by the API server", len(planned.missing), in_bytes=False) as advance:
        for document in planned.missing:
            try:
                admin.create(BY_KIND[document["kind"]], document, dry_run=True)
            except (InvalidError, ConflictError) as error:
                refused.append(f"{named(document)}: {error}")
            advance(1)
    if refused:
        raise ApiError("\n".join(("nothing was written:", *refused)), _REFUSED, NOT_ALLOWED)


def _make(admin: "AdminObjects", settings: "Config", space: str, planned: "Plan") -> None:
    """Make what is missing, each with its status.

    Raises:
        ApiError: it ended on the way, with how far it came.
    """
    from netboot.kube.moved import BY_KIND

    steps = [*((each, None) for each in planned.missing), *planned.statuses]
    made, facts = Counter[str](), {"namespace": space, "objects": len(steps)}

    def write(before: Stood, after: Stood, result: str) -> None:
        record(settings.data, "migrate", facts, before=before, after=after, result=result)

    with (
        recorded(lambda: {"made": dict(made)}, write),
        how_far(made, len(steps)),
        progress("made", len(steps), in_bytes=False) as advance,
    ):
        for document, thing in steps:
            kind, status = BY_KIND[document["kind"]], document.get("status")
            there = admin.create(kind, document) if thing is None else thing
            if status:
                admin.write_status(kind, there, status)
            made[kind.kind] += 1
            advance(1)


def _wrong(
    admin: "AdminObjects", settings: "Config", connection: "Connection", space: str, site: Site
) -> Iterator[str]:
    """What is there otherwise than on the disk, each with its key: as it lies there, and as the service reads it."""
    from netboot.kube.moved import named

    found = _looked_at(admin, site)
    yield from found.faults
    yield from (f"{named(each)}: is not there" for each in found.missing)
    yield from (f"{named(each)}: status: is not there" for each, _ in found.statuses)
    if site.inventory is not None and site.documents:
        yield from read_back.inventory_apart(settings, site.inventory, connection, space)
    if site.enrolled is not None:
        yield from read_back.enrolments_apart(settings, site.enrolled, connection, space)
    if site.holds:
        yield from read_back.holds_apart(site.holds, connection, space)
    if site.pointing:
        yield from read_back.rollouts_apart(site.pointing, connection, space)

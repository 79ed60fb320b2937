"""`netboot export`: what objects of Kubernetes say, as files."""

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from images.values import files
from netboot.cli.cluster_objects import Source, read_all, sources_of, text_of
from netboot.cli.given_files import NamedFile
from netboot.cli.outcomes import cannot
from netboot.cli.output import output_option, say, show
from netboot.cli.paths import config_option, find_config
from netboot.cli.site_objects import namespace_of, published
from netboot.cli.written_objects import ENROLMENTS, HOLDS

if TYPE_CHECKING:
    from images.values.strict import Fault
    from netboot.config import Config
    from netboot.kube.moved import Document

INVENTORY, LEFT_OUT = "inventory", "left-out.yaml"
_MODE = 0o600


@click.command()
@click.option("--to", "folder", type=click.Path(path_type=Path), required=True, help="Folder; it is made.")
@click.option(
    "--kubeconfig",
    type=NamedFile(),
    help="Kubeconfig of who may list all kinds.  [default: the accounts of the configuration, for what it has there]",
)
@click.option("--namespace", help="Of the objects, with --kubeconfig.  [default: that of the configuration]")
@config_option
@output_option
def command(folder: Path, kubeconfig: Path | None, namespace: str | None, config: Path | None, output: str) -> None:
    """Write what objects of Kubernetes say into the folder --to, which is there whole or not at all.

    \b
    inventory/       files of an inventory, one for each kind, as `netboot config check` takes them
    enrolments.yaml  Enrolments with their status; a window that was used is in none
    holds.yaml       Holds
    rollouts.yaml    Rollouts: where channels point, and the last rollout of each
    orders.yaml      Orders
    left-out.yaml    objects with faults, which are in no inventory; each fault is said, and the exit status is 1

    `netboot migrate --to files --from DIR` has enrolments and holds on record on this host. Nothing else is written,
    here or in the cluster. Rollouts and Orders are for another cluster, by `kubectl create -f`: files of one host have
    their own.

    \b
      netboot export --to exported
      netboot export --to exported --kubeconfig ~/.kube/config --namespace netboot
    """
    settings = find_config(config)
    if not folder.name or os.path.lexists(folder):
        raise click.ClickException(f"{folder} is there already: name another folder, or remove that first")
    documents: dict[str, Sequence[Document]] = {}
    for source in _sources(settings, kubeconfig, namespace):
        documents |= read_all(source)
    if not any(documents.values()):
        raise click.ClickException("there is no object of netboot.dev: see that --namespace names the right one")
    contents, faults = contents_of(settings, documents)
    with _whole(folder) as staged:
        for name, text in contents.items():
            (staged / name).parent.mkdir(exist_ok=True, mode=0o700)
            files.write(staged / name, text.encode(), mode=_MODE)
    counts = {kind: len(some) for kind, some in documents.items()}
    value: dict[str, Any] = {
        "folder": str(folder),
        "kinds": counts,
        "files": [*contents],
        "faults": [*map(str, faults)],
    }
    show(output, value, ("kind", "objects"), counts.items(), names=contents)
    for fault in faults:
        say(str(fault), err=True)
    if output == "table":
        _say_next(folder, contents)
    if faults:
        raise click.ClickException(
            f"objects with faults are in {folder / LEFT_OUT}, and not in {folder / INVENTORY}: correct them there with "
            "kubectl and export again, or declare them in a file"
        )


def _sources(settings: "Config", kubeconfig: Path | None, namespace: str | None) -> Iterator[Source]:
    from netboot.kube.moved import IN_ORDER

    if kubeconfig is not None:
        yield Source(kubeconfig, namespace_of(settings, namespace), IN_ORDER)
        return
    if namespace is not None:
        raise click.UsageError("the accounts of the configuration read its namespaces: give --kubeconfig, too")
    found = [*sources_of(settings)]
    if not found:
        raise click.UsageError(
            "by the configuration nothing is in objects: give --kubeconfig of who may list them, or see "
            "docs/custom-resources.md"
        )
    yield from found


def contents_of(
    settings: "Config", documents: "Mapping[str, Sequence[Document]]"
) -> "tuple[dict[str, str], Sequence[Fault]]":
    """Files by name, and what is wrong with objects that are in none of an inventory. `documents`: by kind.

    Raises:
        images.values.strict.FaultsError: something cannot be written, or all of the inventory has faults.
    """
    from netboot.kube.custom_resources import resource_of
    from netboot.kube.resources.kinds import ENROLMENT, HOLD, KINDS, ORDER, ROLLOUT
    from netboot.machines.declared import LISTS
    from netboot.machines.resources import judged
    from netboot.machines.written import text_of as items_text
    from netboot.stores.inventory import joining_of

    things = [(item, each) for item, kind in KINDS.items() for each in documents.get(kind.kind, ())]
    resources = {id(each): resource_of(item, each) for item, each in things}
    faults: Sequence[Fault] = ()
    if things:
        in_force = partial(published, settings)
        faults = judged([*resources.values()], "objects", joining_of(settings), in_force).left_out
    out = {fault.file for fault in faults}
    contents = {}
    for item, listed in LISTS.items():
        good = [resources[id(each)] for kind, each in things if kind == item and resources[id(each)].shown not in out]
        if good:
            text = items_text(item, *({**each.spec, "name": each.name} for each in good))
            contents[f"{INVENTORY}/{listed}.yaml"] = text
    rest = {
        ENROLMENTS: documents.get(ENROLMENT.kind, ()),
        HOLDS: documents.get(HOLD.kind, ()),
        f"{ROLLOUT.plural}.yaml": documents.get(ROLLOUT.kind, ()),
        f"{ORDER.plural}.yaml": documents.get(ORDER.kind, ()),
        LEFT_OUT: [each for _, each in things if resources[id(each)].shown in out],
    }
    return contents | {name: text_of(some) for name, some in rest.items() if some}, faults


@contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A folder beside it, which takes its name when the block is done."""
    staged = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    try:
        staged.mkdir(mode=0o700)
        yield staged
        staged.rename(folder)
        files.sync_folder(folder.parent)
    except OSError as error:
        raise cannot(f"cannot write {folder}", error) from None
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _say_next(folder: Path, contents: Mapping[str, str]) -> None:
    say(f"\nwrote {folder}: {', '.join(contents)}")
    say("\nBack to files, next:")
    say("  systemctl stop netboot; take inventory_kubernetes, enrolments_kubernetes and `state` out of netboot.yaml")
    say(f"  copy {folder / INVENTORY} to where `inventory` of netboot.yaml is, in the place of what is there")
    say(f"  netboot migrate --to files --from {folder}")
    say("  netboot config check, and systemctl start netboot")

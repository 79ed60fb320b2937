"""What `netboot migrate` says at its end, also where that is too early: what was moved, what stays where it is, and
what comes next."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from netboot.cli.outcomes import NOT_ALLOWED, ApiError
from netboot.cli.output import say, show
from netboot.cli.site_objects import is_hold_of_people
from netboot.config_replicas import InCluster

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.lifecycle.intents import Intent

_GOES_ON = "the same command goes on from there"
_RESUME = "put right what is named, then give the same command again: what is there is passed over"
_ROLLOUTS = {
    "rollouts, and the images that they assign to machines": "data/rollouts.db",
    "images of channels that `netboot channel set` set": "store/channels",
}
_STAYS = {
    "boots, conditions and their history": "data/state.db, data/conditions.db, data/history.db",
    "quarantine, acceptances, freezes, drains, remedies; holds of others than people": "data/intents.db",
    "the history of enrolments and of holds; the audit": "data/enrolment.db, data/intents.db, data/audit.db",
}
"""What is each replica's own, whatever is in objects, and where that is."""


class Done(NamedTuple):
    """Objects by kind: those that were made (with `dry_run`: would be), and those that were there and say the same.
    `inventory`, `enrolments`, `rollouts`: whether these were to be moved, the last with where channels point."""

    made: Counter[str]
    there: Counter[str]
    inventory: bool
    enrolments: bool
    rollouts: bool
    dry_run: bool


@contextmanager
def how_far(made: Counter[str], total: int) -> Iterator[None]:
    """Around what makes objects: whoever is interrupted is told how far it came."""
    from netboot.cli.ends import ended
    from netboot.join.errors import ConflictError, InvalidError
    from netboot.lifecycle.errors import CannotTellError

    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"{made.total()} of {total} objects were made; {_GOES_ON}", err=True)
        raise
    except (InvalidError, ConflictError) as error:
        words, status = str(error), NOT_ALLOWED
    except CannotTellError as error:
        words, status = ended(error)
    else:
        return
    raise ApiError(f"{made.total()} of {total} objects were made, and then none: {words}", _RESUME, status)


def show_end(
    output: str, settings: "Config", namespace: str, wanted: "Sequence[Intent]", done: Done, kubeconfig: Path
) -> None:
    """Show it."""
    from netboot.kube.moved import IN_ORDER

    kinds = [kind for kind in IN_ORDER if done.made[kind] or done.there[kind]]
    keys, held = _keys(settings, namespace, done), [one.machine for one in wanted if is_hold_of_people(one)]
    commands, stays = [*_commands(done, kubeconfig)], ({} if done.rollouts else _ROLLOUTS) | _STAYS
    value: dict[str, Any] = {
        "namespace": namespace,
        "dry_run": done.dry_run,
        "kinds": [{"kind": kind, "made": done.made[kind], "there": done.there[kind]} for kind in kinds],
        "configuration": keys,
        "next": commands,
        "held_by_command_too": held,
        "stays": [{"what": what, "where": where} for what, where in stays.items()],
    }
    rows = [(kind, done.made[kind], done.there[kind]) for kind in kinds]
    made = "would be made" if done.dry_run else "made"
    show(output, value, ("kind", made, "there already"), rows, "nothing is to be moved", names=kinds)
    if output != "table":
        return
    counts = f"{done.made.total() + done.there.total()} objects of namespace {namespace}"
    if done.dry_run:
        say(f"\nNothing was written. The API server would take {counts}.")
        return
    say(f"\nVerified: {counts} were read back as the service reads them, and say what the disk says.")
    say("\nStays on this host, of each replica its own:")
    for what, where in stays.items():
        say(f"  {what}: {where}")
    if keys:
        say("\nNext, into netboot.yaml:")
        for key, section in keys.items():
            say(f"  {key}: {_flow(section)}")
        say("then:")
        for each in commands:
            click.echo(f"  {each}")
    if held:
        say(
            f"\nHeld by an object and, as before, by command: {', '.join(held)}. To let one go later takes both: "
            "`netboot machine unhold`, and `kubectl delete hold`."
        )


def _flow(value: object) -> str:
    """As YAML in a line."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_flow(each)}' for name, each in value.items())}}}"
    return str(value).lower()


def _keys(settings: "Config", namespace: str, done: Done) -> dict[str, dict[str, Any]]:
    """What netboot.yaml has to have, by section."""
    if done.rollouts:
        return {"state": {"kubernetes": {} if namespace == InCluster().namespace else {"namespace": namespace}}}
    place, holds = settings.inventory_kubernetes, bool(done.made["Hold"] or done.there["Hold"])
    keys: dict[str, dict[str, Any]] = {}
    if done.inventory or (holds and place is not None and not place.holds):
        keys["inventory_kubernetes"] = {"namespace": namespace, **({"holds": True} if holds else {})}
    if done.enrolments:
        keys["enrolments_kubernetes"] = {"namespace": namespace}
    return keys


def _commands(done: Done, kubeconfig: Path) -> Iterator[str]:
    parts = {
        "--inventory": done.inventory or done.rollouts,
        "--enrolments": done.enrolments or done.rollouts,
        "--keys": done.rollouts,
    }
    for option in (option for option, wanted in parts.items() if wanted):
        yield f"netboot cluster manifests {option} | kubectl apply -f -"
        yield f"netboot cluster kubeconfigs {option} --admin-kubeconfig {kubeconfig}"
    if done.rollouts:
        yield f"netboot cluster keys push --admin-kubeconfig {kubeconfig}"
    yield "netboot config check"
    yield "systemctl start netboot"

"""`netboot freeze|unfreeze`: whether what acts by itself may begin anything. Asks the running service."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import click

from netboot.cli.client import Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.ordering import may_say_why_option, standing
from netboot.cli.output import say, show
from netboot.cli.times import moment, until_option

if TYPE_CHECKING:
    from netboot.client.models import FreezeShown, PuttingOn, SignalShown

_STATUS = "status"


@click.command()
@click.argument("what", type=click.Choice([_STATUS]), required=False)
@click.option("--reason", default="", help="Why, for whoever finds it so; required to freeze.")
@until_option
@dry_run_option
@api_command
def freeze(
    what: str | None, reason: str, until: dict[str, int], dry_run: bool, connection: Connection, output: str
) -> None:
    """Freeze the fleet: nothing that acts by itself begins anything, until it ends. `status`: how it is now.

    What has begun already goes on to its end; what people order is done as ever. Machines boot and join as ever.
    Maintenance windows of the inventory (`maintenance:`) say the same for times of the week, and so does whoever
    `pause` of netboot.yaml names.

    \b
    Example:
      netboot freeze --reason "power work in hall 2" --until 8h
      netboot freeze status
      netboot unfreeze
    """
    client = connection.open()
    if what == _STATUS:
        if reason or until or dry_run:
            raise click.UsageError("status takes neither --reason nor --until nor --dry-run: leave them out")
        answer = client.freeze.get()
        show(output, answer, _COLUMNS, _rows(answer), "no maintenance window is declared")
        if output == "table":
            say(_permission(answer))
            _tell_signal(answer["signal"])
        return
    if not reason:
        raise click.UsageError("say why, with --reason")
    body = cast("PuttingOn", {"reason": reason, "dry_run": dry_run, **until})
    answer = client.freeze.freeze(body)
    show(output, answer, (), (), _frozen(answer))


@click.command()
@may_say_why_option
@dry_run_option
@api_command
def unfreeze(reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """End the freeze.

    \b
      netboot unfreeze
    """
    answer: Mapping[str, Any] = connection.open().freeze.unfreeze({"reason": reason, "dry_run": dry_run})
    if not answer["did"]:
        words = "it is not frozen"
    else:
        words = f"{'would be' if dry_run else 'is'} frozen no more. It was frozen {standing(answer['concerned'])}"
        words = f"the fleet {words}"
    show(output, answer, (), (), words)


_COLUMNS = ("window", "days", "from", "to", "time zone", "now")


def _rows(answer: "FreezeShown") -> list[tuple[object, ...]]:
    return [
        (
            each["name"],
            ", ".join(each["days"]),
            each["start"],
            each["end"],
            each["time_zone"],
            _now(each),
        )
        for each in answer["windows"]
    ]


def _now(window: Mapping[str, Any]) -> str:
    if window["closes_at"]:
        return f"open until {moment(window['closes_at'])}"
    return f"opens {moment(window['opens_at'])}" if window["opens_at"] else "shut: its time zone is not known here"


def _permission(answer: "FreezeShown") -> str:
    permission = answer["may_act"]
    until = f", until {moment(permission['until'])}" if permission["until"] is not None else ""
    return f"What acts by itself may {'' if permission['may'] else 'not '}begin: {permission['reason']}{until}."


def _tell_signal(signal: "SignalShown | None") -> None:
    """Also where something else decides: whoever lifts that wants to know."""
    if signal is not None:
        age = f", {signal['age_seconds']:.0f} s ago" if signal["age_seconds"] is not None else ""
        say(f"From outside{age}: {signal['reason']}.")


def _frozen(answer: Mapping[str, Any]) -> str:
    concerned, did = answer["concerned"], answer["did"]
    if not did:
        return f"the fleet is frozen already: {standing(concerned)}"
    so = "would be" if answer["dry_run"] else "is"
    end = f"until {moment(concerned['until'])}" if concerned["until"] is not None else "until `netboot unfreeze`"
    return f"the fleet {so} frozen {end}: nothing that acts by itself begins anything"

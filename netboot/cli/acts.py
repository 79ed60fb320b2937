"""`netboot machine hold|unhold|quarantine|readmit|accept|unaccept|holds`: what operators want of machines. Asks the
running service."""

from typing import Any

import click

from netboot.cli.client import Connection, api_command, segment
from netboot.cli.output import show
from netboot.cli.times import ago, ending_option, moment, until_option

_WORDS = {"Held": "held", "Quarantined": "in quarantine", "Accepted": "accepted"}
_PAIRS = (("hold", "unhold"), ("quarantine", "readmit"), ("accept", "unaccept"))
_OF = {act: word for acts, word in zip(_PAIRS, _WORDS.values(), strict=True) for act in acts}
why_option = click.option("--reason", required=True, help="Why, for whoever finds it so.")
may_say_why_option = click.option("--reason", default="", help="Why, for the history.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would happen, and do nothing.")


@click.command()
@click.argument("machine")
@why_option
@until_option
@dry_run_option
@api_command
def hold(machine: str, reason: str, until: dict[str, int], dry_run: bool, connection: Connection, output: str) -> None:
    """Hold MACHINE: within seconds its node takes no new work, whatever it boots and however often.

    A cordon (`kubectl cordon`) goes with the Node, which each boot makes anew; a hold is the machine's, and no boot
    takes it off. Holding again with a later end moves the end; nobody's hold is cut short so.

    \b
      netboot machine hold gpu-001 --reason "DIMM 4" --until 48h
      netboot machine hold gpu-001 --reason "DIMM 4" --dry-run
    """
    _act(connection, output, machine, "hold", {"reason": reason, "dry_run": dry_run, **until})


@click.command()
@click.argument("machine")
@may_say_why_option
@dry_run_option
@api_command
def unhold(machine: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Hold MACHINE no more, whoever held it.

    \b
      netboot machine unhold gpu-001 --reason "DIMM replaced"
    """
    _act(connection, output, machine, "unhold", {"reason": reason, "dry_run": dry_run})


@click.command()
@click.argument("machine")
@why_option
@until_option
@dry_run_option
@api_command
def quarantine(
    machine: str, reason: str, until: dict[str, int], dry_run: bool, connection: Connection, output: str
) -> None:
    """Put MACHINE in quarantine: it boots, and from its next boot on joins nothing.

    Its certificates are renewed as before: to take a node out of its cluster now, delete it there, and reboot it.

    \b
      netboot machine quarantine gpu-001 --reason "unknown USB device"
    """
    _act(connection, output, machine, "quarantine", {"reason": reason, "dry_run": dry_run, **until})


@click.command()
@click.argument("machine")
@why_option
@dry_run_option
@api_command
def readmit(machine: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Let MACHINE out of quarantine, whoever put it there: it may join again.

    \b
      netboot machine readmit gpu-001 --reason "board looked at"
    """
    _act(connection, output, machine, "readmit", {"reason": reason, "dry_run": dry_run})


@click.command()
@click.argument("machine")
@why_option
@ending_option
@dry_run_option
@api_command
def accept(
    machine: str, reason: str, until: dict[str, int], dry_run: bool, connection: Connection, output: str
) -> None:
    """Accept MACHINE as it is, until then: its gate opens in spite of its checks, with each boot that proves itself.

    An exception, of 30 days at most: what is to last is said in the inventory (`skip_checks`, `thresholds`, `gate`).

    \b
      netboot machine accept gpu-001 --reason "fan 3 is loud, and ordered" --until 48h
    """
    _act(connection, output, machine, "accept", {"reason": reason, "dry_run": dry_run, **until})


@click.command()
@click.argument("machine")
@may_say_why_option
@dry_run_option
@api_command
def unaccept(machine: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Accept MACHINE no more, whoever accepted it: its gate is as its node says.

    \b
      netboot machine unaccept gpu-001 --reason "fan replaced"
    """
    _act(connection, output, machine, "unaccept", {"reason": reason, "dry_run": dry_run})


@click.command()
@api_command
def holds(connection: Connection, output: str) -> None:
    """List machines that are held, in quarantine or accepted: since when, until when, by whom and why.

    \b
      netboot machine holds --output json
    """
    listed = connection.open().get("/v1/intents")
    rows = [
        (
            each["machine"],
            _WORDS[each["mark"]],
            ago(each["since_ms"]),
            moment(each["until_ms"]),
            each["who"],
            each["reason"],
        )
        for each in listed["intents"]
    ]
    columns = ("machine", "is", "since", "until", "by", "reason")
    show(output, listed, columns, rows, "no machine is held, in quarantine or accepted")


COMMANDS = (hold, unhold, quarantine, readmit, accept, unaccept, holds)


def facts(machine: dict[str, Any]) -> list[tuple[str, str]]:
    """What `machine show` says of it; nothing where nothing is wanted."""
    if machine["intents"] is None:
        return [("held", "it cannot be told whether it is held or in quarantine: see `netboot doctor`")]
    return [(_WORDS[each["mark"]], standing(each)) for each in machine["intents"]]


def standing(intent: dict[str, Any]) -> str:
    """Since when, by whom, until when, why."""
    until = f", until {moment(intent['until_ms'])}" if intent["until_ms"] is not None else ""
    return f"since {moment(intent['since_ms'])} by {intent['who']}{until}: {intent['reason']}"


def _act(connection: Connection, output: str, machine: str, act: str, body: dict[str, Any]) -> None:
    answer = connection.open().post(f"/v1/machines/{segment(machine)}/{act}", body)
    show(output, answer, (), (), _words(answer))


def _words(answer: dict[str, Any]) -> str:
    machine, act, did, concerned = answer["machine"], answer["act"], answer["did"], answer["concerned"]
    word = _OF[act]
    so = "would be" if answer["dry_run"] else "is"
    if not did:
        return f"{machine} is {word} already: {standing(concerned[0])}" if concerned else f"{machine} is not {word}"
    if did == "taken-off":
        was = "; and ".join(standing(each) for each in concerned)
        return f"{machine} {so} {word} no more. {_sentence(answer['consequence'])} It was {word} {was}"
    until = concerned[0]["until_ms"]
    end = f" until {moment(until)}" if until is not None else " until it is taken off"
    if did == "extended":
        first = concerned[0]
        return f"{machine} {so} {word}{end}: since {moment(first['since_ms'])} by {first['who']}: {first['reason']}"
    return f"{machine} {so} {word}{end}. {_sentence(answer['consequence'])}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."

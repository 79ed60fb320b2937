"""`netboot machine hold|unhold|quarantine|readmit|accept|unaccept|holds`: what operators want of machines. Asks the
running service."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from netboot.cli.client import Connection, api_command
from netboot.cli.ordering import machine_act, may_say_why_option, standing
from netboot.cli.output import show
from netboot.cli.selection import Selection, selected, selection_options
from netboot.cli.times import ago, ending_option, moment, until_option

if TYPE_CHECKING:
    from netboot.client.models import IntentActed

_WORDS = {"Held": "held", "Quarantined": "in quarantine", "Accepted": "accepted"}
_PAIRS = (("hold", "unhold"), ("quarantine", "readmit"), ("accept", "unaccept"))
_OF = {act: word for acts, word in zip(_PAIRS, _WORDS.values(), strict=True) for act in acts}


def _words(answer: "IntentActed") -> str:
    machine, act, did, concerned = answer["machine"], answer["act"], answer["did"], answer["concerned"]
    word = _OF[act]
    so = "would be" if answer["dry_run"] else "is"
    if not did:
        return f"{machine} is {word} already: {standing(concerned[0])}" if concerned else f"{machine} is not {word}"
    if did == "taken-off":
        was = "; and ".join(standing(each) for each in concerned)
        if any(each["mark"] == concerned[0]["mark"] and each not in concerned for each in answer["intents"]):
            return f"{machine} is {word} still. {_sentence(answer['consequence'])} It was {word}, too, {was}"
        return f"{machine} {so} {word} no more. {_sentence(answer['consequence'])} It was {word} {was}"
    until = concerned[0]["until"]
    end = f" until {moment(until)}" if until is not None else " until it is taken off"
    if did == "extended":
        first = concerned[0]
        return f"{machine} {so} {word}{end}: since {moment(first['since'])} by {first['who']}: {first['reason']}"
    return f"{machine} {so} {word}{end}. {_sentence(answer['consequence'])}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


@machine_act(lambda client: client.intents.hold, _words, until_option)
def hold() -> None:
    """Hold MACHINE: within seconds its node takes no new work, whatever it boots and however often.

    A cordon (`kubectl cordon`) goes with the Node, which each boot makes anew; a hold is the machine's, and no boot
    takes it off. Holding again with a later end moves the end; nobody's hold is cut short so.

    \b
      netboot machine hold gpu-001 --reason "DIMM 4" --until 48h
      netboot machine hold gpu-001 --reason "DIMM 4" --dry-run
    """


@machine_act(lambda client: client.intents.unhold, _words, why=may_say_why_option)
def unhold() -> None:
    """Hold MACHINE no more, whoever held it.

    \b
      netboot machine unhold gpu-001 --reason "DIMM replaced"
    """


@machine_act(lambda client: client.intents.quarantine, _words, until_option)
def quarantine() -> None:
    """Put MACHINE in quarantine: it boots, and from its next boot on joins nothing.

    Its certificates are renewed as before: to take a node out of its cluster now, delete it there, and reboot it.

    \b
      netboot machine quarantine gpu-001 --reason "unknown USB device"
    """


@machine_act(lambda client: client.intents.readmit, _words)
def readmit() -> None:
    """Let MACHINE out of quarantine, whoever put it there: it may join again.

    \b
      netboot machine readmit gpu-001 --reason "board looked at"
    """


@machine_act(lambda client: client.intents.accept, _words, ending_option)
def accept() -> None:
    """Accept MACHINE as it is, until then: its gate opens in spite of its checks, with each boot that proves itself.

    An exception, of 30 days at most: what is to last is said in the inventory (`skip_checks`, `thresholds`, `gate`).
    A machine that asked and is in no inventory is taken by `netboot machine declare`.

    \b
      netboot machine accept gpu-001 --reason "fan 3 is loud, and ordered" --until 48h
    """


@machine_act(lambda client: client.intents.unaccept, _words, why=may_say_why_option)
def unaccept() -> None:
    """Accept MACHINE no more, whoever accepted it: its gate is as its node says.

    \b
      netboot machine unaccept gpu-001 --reason "fan replaced"
    """


@click.command()
@selection_options
@api_command
def holds(selection: Selection, connection: Connection, output: str) -> None:
    """List machines that are held, in quarantine or accepted: since when, until when, by whom and why.

    \b
      netboot machine holds --output json
      netboot machine holds --field-selector rack=r1
    """
    listed = connection.open().intents.list(**selection.asked)
    rows = [
        (
            each["machine"],
            _WORDS[each["mark"]],
            ago(each["since"]),
            moment(each["until"]),
            each["who"],
            each["reason"],
        )
        for each in listed["intents"]
    ]
    columns = ("machine", "is", "since", "until", "by", "reason")
    show(
        output,
        listed,
        columns,
        rows,
        "no machine is held, in quarantine or accepted",
        names=selected(listed["intents"]),
    )


COMMANDS = (hold, unhold, quarantine, readmit, accept, unaccept, holds)


def facts(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What `machine show` says of it; nothing where nothing is wanted."""
    if machine["intents"] is None:
        return [("held", "it cannot be told whether it is held or in quarantine: see `netboot doctor`")]
    return [(_WORDS[each["mark"]], standing(each)) for each in machine["intents"]]

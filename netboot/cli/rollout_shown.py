"""How `netboot rollout` shows a rollout."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click

from images.values.durations import in_words
from netboot.cli.client import Client
from netboot.cli.output import progress, say, show
from netboot.cli.times import moment
from netboot.lifecycle.rollout import MemberState

NAMES_SHOWN = 10
LOOK_SECONDS = 2.0
ON_THEIR_WAY = ",".join(state for state in MemberState if state not in (MemberState.WAITING, MemberState.DONE))
"""States of a rollout's machines that people are told of."""
_WHICH, _HOW_FAR = ("rollout", "channel", "image", "state"), ("in service with it", "to reboot", "out", "failed")
COLUMNS = (*_WHICH, *_HOW_FAR, "began", "ended", "why")
_DOING: Mapping[str, str] = {
    "waiting": "waits to be drained",
    "draining": "draining",
    "drained": "drained",
    "ordered": "rebooting",
    "undone": "undone",
    "rebooted": "rebooted",
}
_NEXT: Mapping[str, str] = {
    "pause": "machines that were not rebooted yet boot what they had",
    "resume": "it goes on",
    "undo": "every machine boots what it had",
}
_THEN: Mapping[str, str] = {"undo": "; `netboot rollout status` names those that are to be rebooted"}


def row(rollout: Mapping[str, Any]) -> tuple[object, ...]:
    """One of a list."""
    machines = rollout["machines"]
    return (
        rollout["number"],
        rollout["channel"],
        f"{rollout['image_name']} {rollout['image'][:12]}",
        _state(rollout),
        f"{machines['done']} of {rollout['of'] - machines['left']}",
        len(rollout["to_reboot"]),
        machines["out"],
        machines["failed"],
        moment(rollout["started_at"]),
        moment(rollout["ended_at"]),
        "; ".join(filter(None, (_verdict(rollout), rollout["why"]))),
    )


def started(rollout: Mapping[str, Any], *, dry_run: bool) -> Iterator[str]:
    """What was begun, or would be."""
    strategy = rollout["strategy"]
    image = f"{rollout['image_name']} {rollout['image'][:12]}"
    what = f"channel {rollout['channel']} from {rollout['base'][:12]} to {image}"
    name = "this would be a rollout" if dry_run else f"rollout {rollout['number']}"
    yield f"{name} of {_count(rollout['of'])} of {what}"
    if rollout["unproven"]:
        turn = "one machine, or domain," if rollout["domains"] else "one machine"
        yield (
            f"its machines are in fewer than two racks, so nothing proves the image: {turn} at a time, and the first "
            "failure stops it"
        )
    else:
        per_rack = f", {strategy['per_rack']} of a rack" if strategy["per_rack"] is not None else ""
        yield (
            f"{strategy['canary']} canaries first, which bake {in_words(strategy['bake'])}; "
            f"at most {rollout['most']} of {rollout['of']} machines are out at once{per_rack}"
        )
    if by_itself := _by_itself(rollout):
        yield by_itself
    if rollout["domains"]:
        sizes = [f"{name} ({size})" for name, size in sorted(rollout["domains"].items())]
        yield f"machines of one accelerator domain go together: {_first(sizes)}"
    yield from _control_plane(rollout)
    if dry_run:
        yield f"{rollout['up']} of them are in service now; nothing was changed"
        return
    status = f"`netboot rollout status {rollout['channel']}`"
    if rollout["on_next_boot"]:
        yield "machines are assigned the image, and this rollout reboots none of them:"
        yield f"reboot those that {status} names, as it names them"
    else:
        yield f"each machine is drained and rebooted when its turn comes: {status} says how far they are"


def _control_plane(rollout: Mapping[str, Any]) -> Iterator[str]:
    """What becomes of machines of a control plane; nothing where there are none."""
    named, kept = rollout["control_plane"]["named"], rollout["control_plane"]["kept"]
    if named:
        yield f"machines of a control plane go last, one at a time: {_first(named)}"
    if kept:
        yield f"machines of a control plane keep what they have, for --control-plane did not name them: {_first(kept)}"


def ordered(answer: Mapping[str, Any]) -> str:
    """What `pause`, `resume` or `undo` came to, or would."""
    number, channel, state, act = answer["number"], answer["channel"], answer["state"], answer["act"]
    so = f"would be {state}" if answer["dry_run"] and answer["did"] else f"is {state}"
    already = "" if answer["did"] else " already"
    end = "; nothing was changed" if answer["dry_run"] else _THEN.get(act, "")
    return f"rollout {number} of channel {channel} {so}{already}: {_NEXT[act]}{end}"


def print_one(output: str, rollout: Mapping[str, Any]) -> None:
    """All about one, as it was asked for: for people with its machines that are ON_THEIR_WAY."""
    members = sorted(rollout["members"], key=lambda each: str(each["machine"]))
    rows = [
        (each["machine"], each["rack"], each["state"], "canary" if each["canary"] else "", _how(rollout, each))
        for each in members
    ]
    if output != "json":
        for name, text in _facts(rollout):
            say(f"{name:<15} {text}")
        click.echo()
    show(output, rollout, ("machine", "rack", "state", "", "how it stands"), rows, "no machine is on its way")


def _how(rollout: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    """Why a machine is where it is, or what it waits for."""
    order, moving = member["order"], member["state"] in ("assigned", "out")
    if member["why"] or not moving:
        return str(member["why"])
    if order is None:
        by = "waits for somebody to reboot it" if rollout["on_next_boot"] else "waits to be drained"
        return by if member["state"] == "assigned" else "is awaited"
    state = order["state"]
    said = f"{_DOING[state['state']]}: {state['words']}" if state else "nobody has said yet how far it is"
    its_own = order["owner"] == f"rollout/{rollout['number']}"
    return said if its_own else f"{said} ({order['what']} by {order['who']})"


def follow(client: Client, number: int) -> None:
    """Until it has ended, or somebody has to look; a bar on a terminal."""
    rollout = client.rollouts.get(number, members=False)
    whole = rollout["of"] - rollout["machines"]["left"]
    with progress(f"rollout {number} of channel {rollout['channel']}", whole, after=0.0, in_bytes=False) as advance:
        done = 0
        while True:
            now = rollout["machines"]["done"]
            advance(now - done)
            done = now
            if rollout["state"] != "running":
                return
            time.sleep(LOOK_SECONDS)
            rollout = client.rollouts.get(number, members=False)


def _facts(rollout: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    machines, strategy = rollout["machines"], rollout["strategy"]
    yield "rollout", f"{rollout['number']} of channel {rollout['channel']}, by {rollout['operator']}"
    yield "image", f"{rollout['image_name']} {rollout['image'][:12]}; before it {rollout['base'][:12]}"
    yield "state", _state(rollout) + (f": {rollout['why']}" if rollout["why"] else "")
    if verdict := _verdict(rollout):
        yield "verdict", verdict
    yield "machines", ", ".join(f"{count} {state}" for state, count in machines.items() if count)
    per_rack = f", {strategy['per_rack']} of a rack" if strategy["per_rack"] is not None else ""
    unproven = "; unproven, for want of a second rack" if rollout["unproven"] else ""
    yield "at once", f"{rollout['most']}{per_rack}{unproven}"
    yield "deadline", in_words(strategy["deadline"])
    if (by_itself := _by_itself(rollout)) and not rollout["undoing"] and rollout["ended_at"] is None:
        yield "auto-undo", by_itself
    for said in _control_plane(rollout):
        yield "control plane", said
    if rollout["to_reboot"]:
        yield "to be rebooted", _first(rollout["to_reboot"])


def _state(rollout: Mapping[str, Any]) -> str:
    state: str = rollout["state"]
    if state not in ("running", "paused"):
        return state
    if rollout["undoing"]:
        return "undoing" if state == "running" else "paused while undoing"
    stage = "everybody" if rollout["rolling"] else "canaries"
    return f"{state} ({stage})"


def _by_itself(rollout: Mapping[str, Any]) -> str:
    """What `--auto-undo` comes to; "": nobody asked for it."""
    if not rollout["strategy"].get("auto_undo"):
        return ""
    if rollout["unproven"]:
        return "it does not undo itself: that wants failures in two racks"
    return "it undoes itself where too many machines fail with the image, in two racks"


def _verdict(rollout: Mapping[str, Any]) -> str:
    """Why it was undone by itself; "": it was not."""
    said = rollout.get("verdict", "")
    return f"undone by itself: {said}" if said else ""


def _first(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _count(number: int) -> str:
    return f"{number} machine{'' if number == 1 else 's'}"

"""What was meant by a command that there is not: never one that changes what was not meant."""

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher

import click

READING = (
    frozenset(
        ("access", "api", "audit", "blocked", "boot", "cat", "channel", "check", "cluster", "completion", "config")
    )
    | frozenset(
        (
            "context",
            "crds",
            "dhcp",
            "diff",
            "discovered",
            "doctor",
            "drains",
            "drift",
            "enrolments",
            "events",
            "explain",
        )
    )
    | frozenset(
        ("fabric", "health", "history", "holds", "image", "inventory", "key", "list", "machine", "manifests", "node")
    )
    | frozenset(
        (
            "nonces",
            "openapi",
            "pods",
            "proof",
            "proofs",
            "readiness-rule",
            "remedies",
            "revocations",
            "rollout",
            "sealing",
        )
    )
    | frozenset(("show", "sources", "status", "token", "verify", "watch", "whoami"))
)
"""Groups, and commands that change nothing. Every other one is suggested for a slip of its own word alone."""
_ALIKE, _A_SLIP = 0.65, 0.88
_ABBREVIATED = 3
"""Letters of a beginning that are taken for the word, where nothing is changed by it."""
_MISSED = 2
"""Letters that a slip leaves out, or adds, at most."""
_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "add": ("create", "declare", "enroll"),
    "apply": ("declare",),
    "create": ("declare", "add", "build", "start"),
    "delete": ("remove", "rm", "undeclare"),
    "describe": ("show",),
    "get": ("list", "show"),
    "inspect": ("show",),
    "ls": ("list",),
    "remove": ("rm", "undeclare"),
    "rollback": ("undo",),
    "log": ("events", "watch"),
    "logs": ("events", "watch"),
    "status": ("show",),
}
"""What the same is called by kubectl, talosctl, Helm or MAAS."""
_OF_NETBOOT: dict[str, tuple[str, ...]] = {
    "apply": ("machine declare", "channel set"),
    "describe": ("machine show", "boot show"),
    "events": ("machine events", "boot watch"),
    "get": ("machine list", "boot list", "image list"),
    "help": ("--help",),
    "list": ("machine list", "boot list", "image list"),
    "log": ("machine events", "boot watch"),
    "logs": ("machine events", "boot watch"),
    "show": ("machine show", "boot show", "config show"),
    "status": ("doctor", "rollout status"),
    "version": ("--version",),
}
"""The same right behind `netboot`, where other tools have no groups."""
_MOST = 3


def meant(typed: str, commands: Iterable[str], *, outermost: bool = False) -> list[str]:
    """The commands of a group that may have been meant, the likeliest first. `outermost`: the group is `netboot`."""
    there = list(commands)
    word = typed.lower()
    same = list(_OF_NETBOOT.get(word, ())) if outermost else [n for n in _ELSEWHERE.get(word, ()) if n in there]
    alike = sorted(((_likeness(word, name), name) for name in there), reverse=True)
    near = [name for likeness, name in alike if likeness >= (_ALIKE if name in READING else _A_SLIP)]
    return (same or near)[:_MOST]


def _likeness(word: str, name: str) -> float:
    if name not in READING and (name[:1] != word[:1] or abs(len(name) - len(word)) > _MISSED):  # `lock` is no `block`
        return 0.0
    if len(word) >= _ABBREVIATED and name.startswith(word) and name in READING:
        return 1.0
    return SequenceMatcher(None, word, name).ratio()


def no_such_command(error: click.NoSuchCommand) -> click.UsageError:
    """The same error, with what may have been meant of all commands of its group, those that are not loaded too."""
    context = error.ctx
    there: Collection[str] = ()
    if context is not None and isinstance(context.command, click.Group):
        there = context.command.list_commands(context)
    names = meant(error.command_name, there, outermost=context is not None and context.parent is None)
    said = f" Did you mean {' or '.join(f'{name!r}' for name in names)}?" if names else ""
    where = context.command_path if context is not None else "netboot"
    return click.UsageError(
        f"No such command {error.command_name!r}.{said or f' `{where} --help` lists them.'}", context
    )

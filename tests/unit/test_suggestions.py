"""What is suggested for a command that there is not."""

import click
import pytest

from netboot.cli.commands import cli
from netboot.cli.suggestions import _ELSEWHERE, _OF_NETBOOT, READING, meant
from tests.commands import Run
from tests.unit.test_cli_help import commands

NAMES = {name: name.split()[-1] for name, _ in commands("", cli)}
GROUPS = {name.rpartition(" ")[0] for name in NAMES}
OTHERS = ("lock", "reset", "disable", "enable", "stop", "cancel", "except", "delete", "unpause")
"""Words of other tools."""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("machine create", "'declare'"),
        ("chanel", "'channel'"),
        ("machine holdd", "'hold' or 'holds'"),
        ("machine del", None),
        ("machine und", None),
        ("machine rel", None),
        ("machine rep", None),
        ("machine qua", None),
        ("machine reb", None),
        ("machine quarantin", "'quarantine'"),
        ("machine undeclar", "'undeclare'"),
        ("image rev", "'revocations'"),
        ("key res", None),
        ("res", None),
        ("apply", "'machine declare' or 'channel set'"),
        ("get", "'machine list' or 'boot list' or 'image list'"),
        ("help", "'--help'"),
        ("version", "'--version'"),
        ("logs", "'machine events' or 'boot watch'"),
        ("machine logs", "'events'"),
        ("machine delete", "'undeclare'"),
        ("key retir", "'retire'"),
        ("key remove", None),
        ("image ls", "'list'"),
        ("image remove", "'rm'"),
        ("boot zzz", None),
        ("access lock", "'blocked'"),
        ("rollout reset", None),
        ("machine audit", None),
        ("config apply", None),
        ("channel reset", None),
        ("freez", "'freeze'"),
        ("rollout resum", "'resume'"),
    ],
)
def test_what_is_suggested(run: Run, words: str, said: str | None) -> None:
    ran = run(*words.split())
    *group, typed = words.split()
    means = f"Did you mean {said}?" if said else f"`{' '.join(('netboot', *group))} --help` lists them."
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.splitlines()[-1] == f"Error: No such command {typed!r}. {means}"


def test_what_changes_something_is_named_for_a_slip_of_it_alone() -> None:
    groups = {group.split()[-1] for group in GROUPS if group}
    assert set(NAMES.values()) | groups >= READING, "each is a command, or a group of them"
    changing = set(NAMES.values()) - READING
    for group in GROUPS:
        inside = {name.split()[-1] for name in NAMES if name.rpartition(" ")[0] == group}
        for typed in (set(NAMES.values()) | set(OTHERS)) - inside:
            assert not set(meant(typed, inside)) & changing - set(_ELSEWHERE.get(typed, ())), (group, typed)
        beginnings = {name[:length] for name in inside & changing for length in range(2, len(name) - 2)}
        for beginning in beginnings - set(_ELSEWHERE):
            suggested = set(meant(beginning, inside)) & changing
            assert not suggested, (group, beginning, suggested)


@pytest.mark.parametrize(("name", "command"), list(commands("", cli)))
def test_what_reads_has_no_option_of_what_changes(name: str, command: click.Command) -> None:
    given = {option for each in command.params for option in each.opts}
    if name.split()[-1] in READING:
        assert not given & {"--dry-run", "--reason", "--force", "--yes"}


def test_what_is_suggested_right_behind_netboot_is_there(run: Run) -> None:
    for words in {words for each in _OF_NETBOOT.values() for words in each}:
        ran = run(*words.split(), *(() if words.startswith("--") else ("--help",)))
        assert (ran.status, ran.err) == (0, ""), words
        assert words.split()[-1] in READING or words in ("--help", "--version", "machine declare", "channel set")


def test_a_mac_address_leads_to_its_declaration(run: Run) -> None:
    ran = run("machine", "accept", "52:54:00:12:34:56")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.splitlines()[-1] == (
        "Error: Invalid value for 'MACHINE': 52:54:00:12:34:56 is a MAC address, and machines go by their names; "
        "`netboot machine declare 52:54:00:12:34:56 --name NAME --profile PROFILE` takes one that is in no inventory"
    )


def test_options_are_suggested_by_click(run: Run) -> None:
    assert run("image", "gc", "--dry-rn").err.endswith("Did you mean '--dry-run'?\n")
    assert issubclass(click.NoSuchCommand, click.UsageError)

"""`--help` teaches: every command shows itself at work."""

import inspect
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import netboot
from images.recipe.inherit import shipped
from netboot.cli.commands import cli
from netboot.lifecycle.phases import Phase
from tests.commands import Run


def commands(name: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for sub in group.list_commands(context):
        command = group.get_command(context, sub)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(f"{name}{sub} ", command)
        elif not command.hidden:
            yield f"{name}{sub}", command


@pytest.mark.parametrize(("name", "command"), list(commands("", cli)))
def test_every_command_shows_itself_at_work(name: str, command: click.Command) -> None:
    examples = [line.strip() for line in (command.help or "").splitlines() if f"netboot {name}" in line]
    assert examples
    for example in examples:
        words = shlex.split(example[example.index(f"netboot {name}") :].partition("|")[0].partition("   ")[0])
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        assert {word for word in words if word.startswith("-") and word != "-"} <= known


def test_a_racks_owner_is_led_to_images_for_servers_and_a_laptops_to_the_small_one() -> None:
    """The man page says the same: `tests/tools/deploy/test_man_pages.py`."""
    said = inspect.cleandoc(cli.help or "") + "\n"
    rack, _, laptop = said.partition("On a laptop, for virtual machines alone,")
    assert re.search(r"\n +netboot init site --hardware server .*\n.*\n +netboot image build ubuntu-24.04-gpu ", rack)
    assert all(name in rack for name in ("ubuntu-24.04-cpu", "debian-12-gpu", "debian-12-cpu"))
    assert "debian-12-minimal" not in rack
    assert re.search(r"\n +netboot init site --hardware vm\n.*\n +netboot image build debian-12-minimal\n", laptop)
    assert set(re.findall(r"\b(?:debian|ubuntu)-[\w.-]+\w", said)) <= set(shipped())


def test_what_init_shows_for_a_folder_that_is_there_says_force(tmp_path: Path, run: Run) -> None:
    """The package makes /etc/netboot: without `--force` its own example would be refused."""
    shown = [line.split() for line in run("init", "--help").out.splitlines() if "netboot init /etc/netboot" in line]
    assert shown == [
        ["netboot", "init", "/etc/netboot", "--force", "--state", "/var/lib/netboot", "--owner", "netboot"]
    ]


def named(cell: str) -> list[str]:
    """The commands of a cell: in `key sealing|nonces list` each word may be any of its parts."""
    ways = [[word.split("|") for word in one.replace("\\|", "|").split()] for one in re.findall(r"`([^`]+)`", cell)]
    return [" ".join(words) for way in ways for words in itertools.product(*way)]


def test_the_page_says_of_every_command_whether_it_takes_dry_run_and_else_why_not() -> None:
    page = (Path(netboot.__file__).parents[1] / "docs/command-line.md").read_text()
    section = page.partition("## Dry runs\n")[2].partition("\n## ")[0]
    tables: dict[str, list[str]] = {}
    for head, rows in re.findall(r"(?m)^\| ([^|]+?) \|.*\n\|---.*\n((?:\| .*\n)+)", section + "\n"):
        cells = [re.split(r"(?<!\\)\|", row)[1:-1] for row in rows.splitlines()]
        assert all(cell.strip() for row in cells for cell in row)
        tables[head] = [one for row in cells for one in named(row[0])]
    takes, none, reads = tables.values()
    assert list(tables) == ["takes `--dry-run`", "changes something, and takes none", "only reads"]
    shown = dict(commands("", cli))
    with_option = {name for name, one in shown.items() if any("--dry-run" in each.opts for each in one.params)}
    assert sorted(takes) == sorted(with_option)
    assert sorted([*takes, *none, *reads]) == sorted(shown), "each once"


def test_a_phase_that_there_is_not_is_not_waited_for(run: Run) -> None:
    ran = run("boot", "watch", "--until", "Nope")
    assert ran.status == 2
    assert "Invalid value for '--until': 'Nope' is not one of" in ran.err
    assert all(phase in ran.err for phase in Phase)

"""Man pages say what `--help` says, and both formatters of Debian read them without a word."""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from lab import man_pages
from lab.work import ROOT
from netboot.cli.commands import cli

pytestmark = pytest.mark.tools

COMPLETION = """\
NETBOOT-COMPLETION(1)               netboot              NETBOOT-COMPLETION(1)

NAME
       netboot-completion - Print the completion script of a shell

SYNOPSIS
       netboot completion [OPTIONS] {bash|zsh|fish}

DESCRIPTION
       Print the completion script of a shell.

       For this session of bash:  source <(netboot completion bash)
       For every one:             netboot completion bash > /etc/bash_completion.d/netboot

OPTIONS
       -h, --help
              Show this message and exit.

SEE ALSO
       netboot(1)

       What holds of every command is in docs/command-line.md, which a Debian
       package has below /usr/share/doc/netboot.

netboot 0.1.0                     2026-11-27             NETBOOT-COMPLETION(1)
"""
SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "EXIT STATUS", "SEE ALSO"]
HOSTILE = """\
.so /etc/shadow
'\\" is none, and `.sh \\(rs` is bold; naïve

\b
.TH
'it\\n' -o "x" ~/a^b
"""
SEEN = """\
       .so /etc/shadow '\\" is none, and .sh \\(rs is bold; naïve

       .TH
       'it\\n' -o "x" ~/a^b

"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("man")
    for name, text in man_pages.pages("0.1.0", "2026-11-27").items():
        (folder / name).write_text(text, encoding="ascii")
    return sorted(folder.iterdir())


def said(argv: Sequence[str | Path]) -> str:
    """On both outputs, by a program that ends well."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def shown(page: Path) -> str:
    """As a terminal has it, without bold letters; of empty lines in a row one is left, as `man` leaves it."""
    return re.sub(r"\n{3,}", "\n\n", said(["groff", "-man", "-ww", "-Tutf8", "-rLL=78n", "-P-cbou", page]))


def commands(context: click.Context) -> Iterator[click.Context]:
    """All that are not hidden, as they are called."""
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = click.Context(command, parent=context, info_name=name)
        if isinstance(command, click.Group):
            yield from commands(below)
        elif not command.hidden:
            yield below


def examples(command: click.Command) -> list[str]:
    """The lines of its help that click does not wrap, without the exit status, which has a section of its own."""
    blocks = re.findall(r"(?m)^\x08\n((?:.+\n?)+)", inspect.cleandoc(command.help or ""))
    return [line for block in blocks if not block.startswith("Exit status") for line in block.splitlines()]


def test_groff_and_mandoc_find_nothing_wrong(pages: list[Path]) -> None:
    assert said(["groff", "-man", "-ww", "-z", "-Tutf8", *pages]) == ""
    assert said(["mandoc", "-T", "lint", "-W", "warning", *pages]) == ""


def test_a_page_as_it_is_read(pages: list[Path]) -> None:
    (page,) = (page for page in pages if page.name == "netboot-completion.1")
    assert shown(page) == COMPLETION


def test_every_command_is_in_a_page_with_its_options_and_examples(pages: list[Path]) -> None:
    texts = {page.stem: shown(page) for page in pages}
    for context in commands(click.Context(cli, info_name="netboot")):
        text = texts["-".join(context.command_path.split()[:2])]
        assert f"\n       {context.command_path} [OPTIONS]" in text
        assert [line for line in examples(context.command) if f"\n       {line}\n" not in text] == []
        typed = [option for each in context.command.params if isinstance(each, click.Option) for option in each.opts]
        assert [option for option in typed if not re.search(rf"(?m)^ {{7}}(-\w, )?{option}\b", text)] == []


def test_the_first_page_leads_a_racks_owner_and_a_laptops_to_their_images(pages: list[Path]) -> None:
    (page,) = (page for page in pages if page.name == "netboot.1")
    text, lines = shown(page), examples(cli)
    assert [line for line in lines if f"\n       {line}\n" not in text] == []
    assert "  netboot init site --hardware vm" in lines
    assert any(line.startswith("  netboot image build ubuntu-24.04-gpu ") for line in lines)


def test_pages_have_their_sections_in_the_order_of_man_pages(pages: list[Path]) -> None:
    for page in pages:
        found = re.findall(r"(?m)^[A-Z][A-Z ]+$", shown(page))
        expected = [name for name in SECTIONS if name in found]
        assert found == (expected if page.stem != "netboot" else [*SECTIONS[:3], "OPTIONS", "COMMANDS", *SECTIONS[5:]])


def test_no_text_of_a_command_is_taken_for_a_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = click.Command("hostile", help=HOSTILE)
    monkeypatch.setattr(man_pages, "cli", click.Group("netboot", commands={"hostile": hostile}))
    page = tmp_path / "hostile.1"
    page.write_text(man_pages.pages("0", "2026-11-27")["netboot-hostile.1"], encoding="ascii")
    assert shown(page).partition("DESCRIPTION\n")[2].startswith(SEEN)


def test_the_same_code_gives_the_same_bytes(tmp_path: Path) -> None:
    write = "import pathlib, sys; from lab import man_pages; man_pages.write(pathlib.Path(sys.argv[1]), 1700000000)"
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", write, tmp_path / seed], cwd=ROOT, env=environment, check=True)
    first, second = ({file.name: file.read_bytes() for file in (tmp_path / seed).iterdir()} for seed in ("1", "2"))
    assert first == second
    assert first["netboot.1.gz"][4:8] == bytes(4), "no time of its own"

"""Man pages of the command line, made from its own help: `netboot(1)`, and one for each command right below it.

Requests of man(7) alone, and text in ASCII: groff and mandoc read it (groff_char(7) has the escapes). Why not by a
tool: docs/decisions/244-man-pages-from-click.md.
"""

import gzip
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import click

from netboot.cli.commands import cli
from netboot.cli.outcomes import EXIT_CODES

_ESCAPES = {"\\": r"\(rs", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
_LITERAL = "\b\n"
"""Begins a paragraph that click does not wrap."""
_EXIT_STATUS = inspect.cleandoc(EXIT_CODES)
_MORE = (
    "What holds of every command is in docs/command-line.md, which a Debian package has below /usr/share/doc/netboot."
)


class _Command(NamedTuple):
    """A command with how it is called, which click has in its context."""

    context: click.Context

    @property
    def path(self) -> str:
        """As it is typed: `netboot machine enroll`."""
        return self.context.command_path

    @property
    def page(self) -> str:
        """What its page is called: git's way, and kubectl's."""
        return self.path.replace(" ", "-")

    @property
    def summary(self) -> str:
        """Its first sentence, whole, without the full stop."""
        return self.context.command.get_short_help_str(limit=sys.maxsize).removesuffix(".")

    @property
    def paragraphs(self) -> list[str]:
        """Of its help, what is below its options too."""
        command = self.context.command
        texts = (inspect.cleandoc(text).partition("\f")[0] for text in (command.help, command.epilog) if text)
        return [paragraph for text in texts for paragraph in re.split(r"\n{2,}", text) if paragraph.strip()]

    @property
    def usage(self) -> str:
        """A line of the synopsis."""
        pieces = " ".join(self.context.command.collect_usage_pieces(self.context))
        return rf"\fB{_escaped(self.path)}\fP {_escaped(pieces)}".rstrip()

    @property
    def options(self) -> list[tuple[str, str]]:
        """As `--help` has them: how they are typed, and what they do."""
        parameters = self.context.command.get_params(self.context)
        records = (each.get_help_record(self.context) for each in parameters if isinstance(each, click.Option))
        return [record for record in records if record is not None]

    @property
    def below(self) -> "list[_Command]":
        """Commands of a group that are not hidden, in the order of its help."""
        group = self.context.command
        if not isinstance(group, click.Group):
            return []
        commands = ((name, group.get_command(self.context, name)) for name in group.list_commands(self.context))
        return [
            _Command(click.Context(command, parent=self.context, info_name=name))
            for name, command in commands
            if command is not None and not command.hidden
        ]

    @property
    def all_below(self) -> "list[_Command]":
        """Those, and theirs."""
        return [each for command in self.below for each in (command, *command.all_below)]


def pages(version: str, day: str) -> dict[str, str]:
    """By their files' names: `netboot-image.1`. `day`: as `.TH` has it."""
    top = _Command(click.Context(cli, info_name="netboot", **cli.context_settings))
    told = {f"{top.page}.1": _text(top, _overview(top), version, day)}
    return told | {f"{each.page}.1": _text(each, _described(each), version, day) for each in top.below}


def _text(command: _Command, body: Iterable[str], version: str, day: str) -> str:
    """Names are not hyphenated (`.nh`; groff's pages of man(7) do it again in each section, but for HY), nor lines
    pulled apart."""
    head = [
        f'.TH {_escaped(command.page.upper())} 1 {day} "netboot {_escaped(version)}" "netboot"',
        ".nr HY 0",
        ".nh",
        ".ad l",
        ".SH NAME",
        rf"{_escaped(command.page)} \- {_escaped(command.summary)}",
    ]
    return "\n".join([*head, *body]) + "\n"


def _overview(top: _Command) -> Iterator[str]:
    yield from (".SH SYNOPSIS", top.usage, ".SH DESCRIPTION", *_prose(top.paragraphs))
    yield from (".SH OPTIONS", *_options(top.options), ".SH COMMANDS")
    for each in top.below:
        yield from (".TP", rf"\fB{_escaped(each.page)}\fP(1)", _sentence(f"{each.summary}."))
    yield from (".SH EXIT STATUS", *_exit_status(), ".SH SEE ALSO", _sentence(_MORE))


def _described(command: _Command) -> Iterator[str]:
    """What every command of a group takes is in one place, and each has the rest."""
    below = command.all_below
    typed = [each for each in below if not each.below] or [command]
    common = [option for option in typed[0].options if all(option in each.options for each in typed)]
    yield from (".SH SYNOPSIS", "\n.br\n".join(each.usage for each in typed))
    yield from (".SH DESCRIPTION", *_prose(command.paragraphs))
    if below:
        yield ".SH COMMANDS"
    for each in below:
        yield from (f'.SS "{_escaped(each.path)}"', *_prose(each.paragraphs))
        if not each.below:
            yield from _options(option for option in each.options if option not in common)
    yield from (".SH OPTIONS", *(["Every command above takes these."] if below else []), *_options(common))
    if any(_EXIT_STATUS in each.paragraphs for each in typed):
        yield from (".SH EXIT STATUS", *_exit_status())
    yield from (".SH SEE ALSO", r"\fBnetboot\fP(1)", ".PP", _sentence(_MORE))


def _exit_status() -> Iterator[str]:
    yield _sentence(_EXIT_STATUS.removeprefix(_LITERAL).removeprefix("Exit status: "))


def _options(options: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Of many values, which are one word, a line may be broken behind each (`\\:`)."""
    for typed, does in options:
        parts = (_escaped(part) for part in re.split(r"(?<!\S)(-{1,2}\w[\w-]*)", typed))
        names = "".join(rf"\fB{part}\fP" if at % 2 else part for at, part in enumerate(parts))
        yield from (".TP", names.replace("|", r"|\:"), _sentence(does))


def _prose(paragraphs: Iterable[str]) -> Iterator[str]:
    """Without what ends every command alike, which has a section of its own."""
    for number, paragraph in enumerate(each for each in paragraphs if each != _EXIT_STATUS):
        if number:
            yield ".PP"
        if paragraph.startswith(_LITERAL):
            yield from (".EX", *_lines(paragraph.removeprefix(_LITERAL)), ".EE")
        else:
            yield _sentence(paragraph)


def _lines(text: str) -> list[str]:
    return [_guarded(_escaped(line)) for line in text.splitlines()]


def _sentence(text: str) -> str:
    """One or several, filled anew. What is in backticks is bold."""
    parts = map(_escaped, re.split(r"`([^`]+)`", text))
    words = "".join(rf"\fB{part}\fP" if at % 2 else part for at, part in enumerate(parts))
    return "\n".join(map(_guarded, textwrap.wrap(words, break_long_words=False, break_on_hyphens=False)))


def _guarded(line: str) -> str:
    """What begins with a dot would be a request."""
    return rf"\&{line}" if line.startswith(".") else line


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(c) or (c if c.isascii() else rf"\[u{ord(c):04X}]") for c in text)


def write(folder: Path, seconds: int) -> None:
    """All of them, gzipped, dated by these seconds since 1970: the same bytes of the same code."""
    day = datetime.fromtimestamp(seconds, UTC).date().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(metadata.version("netboot"), day).items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode("ascii"), mtime=0))

"""In which form a command says what it found: `--output`, after kubectl's."""

import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import click
from click.shell_completion import CompletionItem

FORMS = ("table", "wide", "json", "yaml", "name", "jsonpath=")
_PLAIN = re.compile(r"[A-Za-z/](?:[A-Za-z0-9 _./@-]*[A-Za-z0-9])?")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
"""What one YAML reads as something else than text, or the other."""


class Output(str):
    """What `--output` says. As a string it is `table`, for people, or `json`, for programs, for that is what commands
    tell apart; `form` is which of these.

    Raises:
        ValueError: there is no such form, or the expression is none.
    """

    form: str
    _expression: str

    def __new__(cls, given: str) -> "Output":
        form, equals, expression = given.partition("=")
        if form == "jsonpath" and not expression:
            raise _wrong("", "wants an expression")
        if f"{form}{equals}" not in FORMS:
            raise ValueError(f"{given!r} is none of table, wide, json, yaml, name, jsonpath=EXPRESSION")
        made = super().__new__(cls, "table" if form in ("table", "wide") else "json")
        made.form, made._expression = form, expression
        if form == "jsonpath":
            made._path  # noqa: B018 - what is wrong with it is said before anything is asked
        return made

    @property
    def wide(self) -> bool:
        """Whether a table has all its columns, and digests whole."""
        return self.form == "wide"

    def text(self, value: Any, names: Iterable[object] | None, *, sort_keys: bool = True) -> str:
        """What a program reads of `value`; `names`: what the things in it are called, None: they have no names."""
        if self.form == "name":
            if names is None:
                raise click.UsageError("what this command tells has no names: take another --output")
            return "\n".join(map(str, names))
        if self.form == "yaml":
            return _yaml(value)
        if self.form == "jsonpath":
            return "\n".join(map(_bare, self._path.findall(_plain(value))))
        return json.dumps(value, indent=2, sort_keys=sort_keys)

    def line(self, value: Any, name: object | None) -> str:
        """The same of one of many that come one after another: JSON on one line, YAML as one document."""
        if self.form == "json":
            return json.dumps(value, sort_keys=True)
        return ("---\n" if self.form == "yaml" else "") + self.text(value, None if name is None else [name])

    @cached_property
    def _path(self) -> Any:
        """A query of RFC 9535; kubectl's braces, and its beginning without `$`, are taken for it."""
        from jsonpath import JSONPathEnvironment
        from jsonpath.exceptions import JSONPathError

        text = self._expression.strip()
        if missing := _missing(text):
            raise _wrong("jsonpath: ", f"{missing} is missing at the end")
        if text.startswith("{") and text.endswith("}"):
            text = text[1:-1].strip()
        if set("{}") & set(_unquoted(text)):
            raise _wrong(
                "jsonpath: ", "braces are kubectl's, around all of it: its text, {range} and several {} are not taken"
            )
        text = f"${text}" if text[:1] in (".", "[") else text
        if text[:1] != "$":
            raise _wrong("jsonpath: ", "it begins with none of $, . and [")
        try:
            return JSONPathEnvironment(strict=True).compile(text)
        except JSONPathError as error:
            raise ValueError(f"jsonpath: {str(error).splitlines()[0]}: write one expression of RFC 9535") from None


class OutputType(click.ParamType[Output]):
    """The type of `--output`."""

    name = "FORM"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Output:
        """Whatever is no form is a usage error."""
        if isinstance(value, Output):
            return value
        try:
            return Output(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Forms that begin so."""
        return [CompletionItem(form) for form in FORMS if form.startswith(incomplete)]


def _wrong(of: str, why: str) -> ValueError:
    return ValueError(f"{of}{why}: write it like jsonpath='$.machines[*].name'")


def _unquoted(text: str) -> str:
    """What of it is in no quotes."""
    return re.sub(r"""\\.|'(\\.|[^'\\])*'|"(\\.|[^"\\])*\"""", "", text, flags=re.DOTALL)


def _missing(text: str) -> str:
    """What an expression opens and does not close, as it is to be written; "": nothing, or it closes what is not open.
    What is in quotes opens nothing."""
    closes, opened, quote = {"{": "}", "[": "]", "(": ")"}, "", ""
    for character in re.sub(r"\\.", "", text, flags=re.DOTALL):
        if quote or character in "'\"":
            quote = "" if character == quote else quote or character
        elif character in closes:
            opened = closes[character] + opened
        elif character in closes.values():
            if not opened.startswith(character):
                return ""
            opened = opened[1:]
    return quote + opened


def _plain(value: Any) -> Any:
    """As JSON has it: lists for tuples, names for enumerations."""
    return json.loads(json.dumps(value))


def _bare(found: object) -> str:
    return found if isinstance(found, str) else json.dumps(found, sort_keys=True)


def _yaml(value: Any) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes whatever YAML 1.1 and 1.2 could read differently: `12e4` is a number to one of them alone."""

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
        plain = _PLAIN.fullmatch(data) and data.lower() not in _WORDS
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=None if plain else '"')

    represent: Callable[..., Any] = Dumper.add_representer
    represent(str, text)
    dumped = yaml.dump(_plain(value), Dumper=Dumper, sort_keys=True, allow_unicode=False, default_flow_style=False)
    return str(dumped).removesuffix("\n").removesuffix("\n...")

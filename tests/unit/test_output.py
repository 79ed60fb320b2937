"""In which forms commands say what they found."""

import io
import json
import re
from typing import Any

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from images.values.strict import parse
from netboot.cli.commands import cli
from netboot.cli.forms import Output
from netboot.cli.output import show
from tests.commands import Run
from tests.unit.test_cli_help import commands

VALUE = {"machines": [{"name": "gpu-001", "macs": ("52:54:00:12:34:56",)}, {"name": "b", "macs": []}]}
COLUMNS, ROWS = ("machine", "reason", "uuid"), [("gpu-001", "it has no [bold] word", None), ("b", "", "u" * 36)]


def shown(capsys: pytest.CaptureFixture[str], form: str, **more: Any) -> str:
    show(Output(form), VALUE, COLUMNS, ROWS, names=["gpu-001", "b"], **more)
    return capsys.readouterr().out


def test_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "json") == json.dumps(VALUE, indent=2, sort_keys=True) + "\n"
    assert shown(capsys, "name") == "gpu-001\nb\n"
    assert shown(capsys, "yaml") == (
        'machines:\n- macs:\n  - "52:54:00:12:34:56"\n  name: gpu-001\n- macs: []\n  name: b\n'
    )
    assert shown(capsys, "jsonpath=$.machines[*].name") == "gpu-001\nb\n"
    assert shown(capsys, "jsonpath={.machines[0].macs}") == '["52:54:00:12:34:56"]\n'
    assert shown(capsys, "jsonpath=.machines[?@.name=='z']") == ""
    assert shown(capsys, "table", wide=1).splitlines()[0].split() == ["machine", "reason"]
    assert shown(capsys, "wide", wide=1).splitlines()[0].split() == ["machine", "reason", "uuid"]


def test_what_has_no_names_says_so() -> None:
    with pytest.raises(click.UsageError, match="what this command tells has no names: take another --output"):
        show(Output("name"), {}, (), ())


LIKE = "write it like jsonpath='$.machines[*].name'"
TEMPLATE = (
    f"jsonpath: braces are kubectl's, around all of it: its text, {{range}} and several {{}} are not taken: {LIKE}"
)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("xml", "'xml' is none of table, wide, json, yaml, name, jsonpath=EXPRESSION"),
        ("json=x", "'json=x' is none of table, wide, json, yaml, name, jsonpath=EXPRESSION"),
        ("jsonpath", "wants an expression: write it like jsonpath='$.machines[*].name'"),
        ("jsonpath=$.a[", f"jsonpath: ] is missing at the end: {LIKE}"),
        ("jsonpath={.machines[", f"jsonpath: ]}} is missing at the end: {LIKE}"),
        ("jsonpath={.machines[*].name", f"jsonpath: }} is missing at the end: {LIKE}"),
        ("jsonpath=$.a[?@.b=='x\\']", f"jsonpath: '] is missing at the end: {LIKE}"),
        ("jsonpath=$.a[?(@.b=='['", f"jsonpath: )] is missing at the end: {LIKE}"),
        ("jsonpath=$.a]", "jsonpath: unexpected token ']': write one expression of RFC 9535"),
        ("jsonpath={.a}{.b}", TEMPLATE),
        ("jsonpath={range .machines[*]}{.name}{end}", TEMPLATE),
        ("jsonpath={.a} of {.b}", TEMPLATE),
        ("jsonpath=machines[*].name", f"jsonpath: it begins with none of $, . and [: {LIKE}"),
        ("jsonpath={machines}", f"jsonpath: it begins with none of $, . and [: {LIKE}"),
    ],
)
def test_a_form_that_is_none_is_refused_before_anything_is_asked(run: Run, form: str, words: str) -> None:
    ran = run("machine", "list", "--server", "http://192.0.2.1:1", "-o", form)
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: Invalid value for '--output' / '-o': {words}")


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
AWKWARD = st.sampled_from(
    ["12e4", "0o7", "1:30", "no", "~", "", "a: b", "2026-11-24", "0x1f", "Null", "=", "<<", "a\nb"]
)


@given(
    st.recursive(
        TEXTS | AWKWARD | st.integers() | st.booleans() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(TEXTS | AWKWARD, inner),
    )
)
def test_yaml_says_what_json_says_to_readers_of_either_version(value: Any) -> None:
    text = Output("yaml").text({"value": value}, None)
    assert yaml.safe_load(text) == {"value": value}  # YAML 1.1
    assert parse(text, "x").value == {"value": value}  # YAML 1.2


class Terminal(io.StringIO):
    """As wide as 40 characters."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("colours", [True, False])
def test_nothing_that_one_copies_is_cut_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, colours: bool) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colours:
        monkeypatch.setenv("NO_COLOR", "1")
    identity = ("4c4c4544-0042-3510-8057-b4c04f4e4d32", "52:54:00:12:34:56")
    show(
        "table", None, ("UUID", "MAC", "why it may not boot"), [(*identity, "no machine of the inventory has MAC " * 2)]
    )
    text = terminal.getvalue()
    assert ("\x1b[1m" in text) is True, "headings are bold, which is no colour"
    assert not re.search(r"\x1b\[[34]\d", text)
    lines = re.sub(r"\x1b\[\d*m", "", text).splitlines()
    assert any(all(word in line for word in identity) for line in lines)
    assert {word for line in lines[1:] for word in line.split()} >= {
        "no",
        "machine",
        "of",
        "the",
        "inventory",
        "has",
        "MAC",
    }
    assert max(map(cell_len, lines)) == len("  ".join((*identity, "inventory")))


@pytest.mark.parametrize(("name", "command"), list(commands("", cli)))
def test_every_command_with_an_output_has_all_forms(name: str, command: click.Command) -> None:
    for parameter in command.params:
        if "--output" in parameter.opts and not isinstance(parameter.type, click.Path):
            assert isinstance(parameter.type.convert("wide", parameter, None), Output), name
            assert "-o" in parameter.opts


def test_colours_are_for_terminals_that_want_them(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked of a command by `click`, which knows no NO_COLOR."""
    monkeypatch.setenv("NO_COLOR", "1")
    told: list[bool | None] = []
    monkeypatch.setattr(cli, "invoke", lambda context: told.append(context.color))
    run("doctor")
    monkeypatch.setenv("NO_COLOR", "")
    run("doctor")
    assert told == [False, None]
